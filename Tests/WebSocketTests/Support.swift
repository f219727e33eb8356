// Ways to feed a frame reader and to build frames, and what came out as a value that can be compared.

import HubBytes
import HubHTTP
import HubWebSocket

/// A `FrameEvent` with its payload copied.
enum Seen: Equatable {
  case text(String)
  case binary([UInt8])
  case compressed([UInt8])
  case ping([UInt8])
  case pong([UInt8])
  case close(CloseCode?, String)
  case error(FrameError)

  init(_ event: FrameEvent) {
    switch event {
    case .message(_, let payload, isCompressed: true): self = .compressed(Array(payload))
    case .message(.text, let payload, isCompressed: false): self = .text(String(decoding: payload, as: UTF8.self))
    case .message(.binary, let payload, isCompressed: false): self = .binary(Array(payload))
    case .ping(let payload): self = .ping(Array(payload))
    case .pong(let payload): self = .pong(Array(payload))
    case .close(let code, let reason): self = .close(code, String(decoding: reason, as: UTF8.self))
    }
  }
}

/// What one reader makes of the bytes given in pieces that end at `ends`. Every piece is in memory of its own that is
/// overwritten afterwards, as a loop's read buffer would be.
func read(
  _ bytes: [UInt8], ends: [Int], role: Role = .server, limits: FrameLimits = FrameLimits(), compression: Bool = false
) -> (seen: [Seen], isIdle: Bool) {
  var reader = FrameReader(role: role, allowsCompression: compression)
  var seen: [Seen] = []
  var start = 0
  for end in ends {
    var piece = Array(bytes[start..<end])
    start = end
    piece.withUnsafeMutableBytes { raw in
      var offset = 0
      do throws(FrameError) {
        while let event = try reader.next(in: raw, at: &offset, limits: limits) { seen.append(Seen(event)) }
      } catch {
        seen.append(.error(error))
      }
      precondition(offset == raw.count, "all input is consumed")
      _ = raw.initializeMemory(as: UInt8.self, repeating: 0xEE)
    }
  }
  return (seen, reader.isIdle)
}

func readWhole(
  _ bytes: [UInt8], role: Role = .server, limits: FrameLimits = FrameLimits(), compression: Bool = false
) -> [Seen] {
  read(bytes, ends: [bytes.count], role: role, limits: limits, compression: compression).seen
}

/// A frame of the peer of `role`: masked for a server, plain for a client.
func frame(
  _ opcode: Opcode, _ payload: [UInt8], final: Bool = true, compressed: Bool = false, to role: Role = .server,
  key: UInt32 = 0x3D21_FA37
) -> [UInt8] {
  var buffer = ByteBuffer()
  payload.withUnsafeBytes { bytes in
    FrameWriter.write(
      opcode, bytes, isFinal: final, isCompressed: compressed, mask: role == .server ? MaskKey(key) : nil, into: &buffer
    )
  }
  return buffer.array()
}

func text(_ text: String, final: Bool = true, to role: Role = .server) -> [UInt8] {
  frame(.text, Array(text.utf8), final: final, to: role)
}

/// A head with any first byte and length form, and no payload: for what a writer would refuse to write.
func rawHeader(_ first: UInt8, _ second: UInt8, _ rest: [UInt8] = []) -> [UInt8] { [first, second] + rest }
