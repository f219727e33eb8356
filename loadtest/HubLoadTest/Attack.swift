// What one hostile connection does: nothing, too slowly, too much, or wrongly. Each kind goes for another limit.
import HubBytes
import HubDeflate
import HubWebSocket

/// A way to harm a hub.
enum Attack: Int, CaseIterable {
  /// Connects and says nothing.
  case silent
  /// Sends its request a byte at a time.
  case slowHead
  /// Connects and resets at once.
  case comeAndGo
  /// Bytes that are no HTTP.
  case garbage
  /// A TLS handshake on the plain port.
  case tls
  /// A hundred requests in one piece, again and again.
  case requestFlood
  /// A body without a credential, and more of it than is wanted.
  case strangersBody
  /// A session that never answers a ping, nor reads.
  case noPong
  /// Subscribes to a busy trip and reads nothing.
  case deaf
  /// As many messages as the socket takes.
  case messageFlood
  /// As many WebSocket pings.
  case pingFlood
  /// Announces a frame of 2^62 bytes.
  case hugeFrame
  /// A message of 200 KB whose last byte never comes.
  case halfMessage
  /// 16 MiB of zeros in 16 KB.
  case bomb
  /// Frames that break RFC 6455, and a text that is not JSON.
  case badFrames

  /// Whether it first becomes a session.
  var upgrades: Bool {
    switch self {
    case .silent, .slowHead, .comeAndGo, .garbage, .tls, .requestFlood, .strangersBody: false
    case .noPong, .deaf, .messageFlood, .pingFlood, .hugeFrame, .halfMessage, .bomb, .badFrames: true
    }
  }

  /// Whether it leaves in the kernel what the hub sends.
  var isDeaf: Bool {
    switch self {
    case .noPong, .deaf, .requestFlood: true
    case .silent, .slowHead, .comeAndGo, .garbage, .tls, .strangersBody, .messageFlood, .pingFlood, .hugeFrame,
      .halfMessage, .bomb, .badFrames:
      false
    }
  }

  /// Milliseconds until it does its next thing; nil where the first was all.
  var pace: Int64? {
    switch self {
    case .slowHead: 60
    case .requestFlood, .messageFlood, .pingFlood: 20
    case .silent, .comeAndGo, .garbage, .tls, .strangersBody, .noPong, .deaf, .hugeFrame, .halfMessage, .bomb,
      .badFrames:
      nil
    }
  }
}

/// The bytes of the attacks, made once.
struct Ammunition {
  private static let mask = MaskKey(0x1234_5678)
  private let pings: [UInt8]
  private let messages: [UInt8]
  private let half: [UInt8]
  private let bomb: [UInt8]
  private let requests: [UInt8]

  init() {
    pings = Ammunition.bytes { buffer in
      for _ in 0..<500 { [1, 2, 3].withUnsafeBytes { FrameWriter.write(.ping, $0, mask: Self.mask, into: &buffer) } }
    }
    let ping = Array(#"{"type":"ping","payload":{},"timestamp":1,"messageId":"x"}"#.utf8)
    messages = Ammunition.bytes { buffer in
      for _ in 0..<200 { ping.withUnsafeBytes { FrameWriter.write(.text, $0, mask: Self.mask, into: &buffer) } }
    }
    half = Ammunition.bytes { buffer in
      [UInt8](repeating: 0x20, count: 200_000).withUnsafeBytes {
        FrameWriter.write(.text, $0, mask: Self.mask, into: &buffer)
      }
    }.dropLast()
    bomb = Ammunition.bytes { buffer in
      var deflater = Deflater(windowBits: 15, level: 9, memoryLevel: 8, takesContextOver: false)
      var payload = ByteBuffer()
      [UInt8](repeating: 0, count: 16 << 20).withUnsafeBytes { deflater.compress($0, into: &payload) }
      payload.withBytes { FrameWriter.write(.text, $0, isCompressed: true, mask: Self.mask, into: &buffer) }
    }
    requests = Array(String(repeating: "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 100).utf8)
  }

  private static func bytes(_ write: (inout ByteBuffer) -> Void) -> [UInt8] {
    var buffer = ByteBuffer()
    write(&buffer)
    return buffer.array()
  }

  /// What an attack sends as its `step`th thing, from 0, once it is connected or upgraded.
  func bytes(of attack: Attack, step: Int, trip: Int) -> [UInt8] {
    switch attack {
    case .silent, .comeAndGo, .noPong: return []
    case .slowHead:
      let head = Array("GET /v1/ws?role=rider&id=slow HTTP/1.1\r\nHost: localhost\r\nX: ".utf8)
      return [step < head.count ? head[step] : 0x78]
    case .garbage: return (0..<2000).map { UInt8(truncatingIfNeeded: ($0 &+ trip) &* 2_654_435_761 >> 7) }
    case .tls:
      // RFC 8446 §4.1.2 and §5.1: the beginning of a ClientHello of 512 bytes.
      return [0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3] + (0..<506).map { UInt8(truncatingIfNeeded: $0 &* 73) }
    case .requestFlood: return requests
    case .strangersBody:
      return Array("POST /v1/locations HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n".utf8)
        + [UInt8](repeating: 0x20, count: 0x2000)
    case .deaf: return subscribe(trip: trip)
    case .messageFlood: return messages
    case .pingFlood: return pings
    case .hugeFrame: return [0x81, 0xFF, 0x40, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4] + [UInt8](repeating: 0, count: 1000)
    case .halfMessage: return half
    case .bomb: return bomb
    case .badFrames:
      let text = Array("no JSON".utf8)
      return Ammunition.bytes { buffer in
        text.withUnsafeBytes { FrameWriter.write(.text, $0, mask: Self.mask, into: &buffer) }
      } + [0xF3, 0x80, 0, 0, 0, 0]
    }
  }

  private func subscribe(trip: Int) -> [UInt8] {
    let text = #"{"type":"subscribe","payload":{"channel":"trip:T\#(trip)"},"timestamp":1,"messageId":"s"}"#
    return Ammunition.bytes { buffer in
      Array(text.utf8).withUnsafeBytes { FrameWriter.write(.text, $0, mask: Self.mask, into: &buffer) }
    }
  }
}
