// A connection from its client's end: messages become frames of a WebSocket and bytes on the simulated network, and
// what has arrived becomes messages again. The machine is ClientSocket, as LocationHubClient has it.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubTestSupport
import HubTransport
import HubTransportSupport
import HubWebSocket

/// What a client hears on a connection.
enum Heard {
  case message(ServerMessage)
  /// The hub's Close frame: nothing follows.
  case closed(CloseCode?)
  /// The answer to the upgrade is another than 101.
  case refused(Status)
}

/// How a client connects.
struct Dialect {
  var isBinary = false
  var time = TimeFormat.unixMilliseconds
  /// What compresses for all connections of this world; nil for a client that does not.
  var compression: MessageCompression?
}

final class Link {
  private static let limits = ClientSocketLimits(
    headBytes: 4096, frames: FrameLimits(messageBytes: 1 << 16), inflate: InflateLimits(messageBytes: 1 << 16),
    pongs: 4)

  /// Its index in the world's list.
  let client: Int
  let loop: Int
  /// The client's end.
  let far: SimulatedSocket
  private let dialect: Dialect
  private var socket: ClientSocket
  private var random: SplitMix64
  private var unsent = ByteBuffer()
  private(set) var isBinary = false
  private var names = BinaryServerReader()
  private var tripBefore: Identifier?
  /// The hub is gone; what it sent before may still arrive.
  var isHungUp = false
  /// The client reads nothing for now, or did not for a time.
  var isSlow = false {
    didSet {
      if isSlow { wasSlow = true }
      far.window = isSlow ? 300 : 1 << 20
    }
  }
  private(set) var wasSlow = false

  init(client: Int, loop: Int, _ far: SimulatedSocket, _ dialect: Dialect, seed: UInt64) {
    self.client = client
    self.loop = loop
    self.far = far
    self.dialect = dialect
    random = SplitMix64(seed: seed)
    let names = (dialect.isBinary ? [.binary, .json] : [Subprotocol.json]).map { "\($0.name)" }
    let handshake = ClientHandshake(
      nonce: (random.next(), random.next()), subprotocols: names,
      compression: dialect.compression == nil ? nil : .withoutContexts)
    socket = ClientSocket(handshake, sharing: dialect.compression)
  }

  var isCompressed: Bool { socket.isCompressed }

  // MARK: On the way

  /// Bytes that are on their way to the hub.
  var upward: Int { far.peer?.bytesUnderWay ?? 0 }

  /// Bytes that are on their way to the client.
  var downward: Int { far.bytesUnderWay }

  /// Nothing is on its way, nor waits to be read.
  var isQuiet: Bool { far.isQuiet && far.peer?.isQuiet != false && unsent.isEmpty }

  /// The connection is over, and all that came of it was heard.
  var isOver: Bool { far.end != nil || isHungUp && downward == 0 }

  /// The client lets go of it, in order or not; a part of what it sent is lost with it, or nothing.
  func drop(losing isLosing: Bool, reset: Bool) {
    if isLosing { far.peer?.lose(keeping: 0) }
    let hub = far.peer
    far.close(reset: reset)
    hub?.arrive()
  }

  // MARK: Saying

  /// Asks for the upgrade.
  func request(_ actor: HubCore.Actor) {
    let time = dialect.time == .rfc3339 ? "&time=rfc3339" : ""
    socket.writeRequest(
      host: "localhost", target: "/v1/ws?role=\(actor.role.name)&id=\(actor.id)\(time)", into: &unsent)
    flush()
  }

  func send(_ message: ClientMessage, _ messageID: MessageID, at timestamp: Timestamp) {
    guard socket.maySend else { return }
    let payload = FrameWriter.begin(as: .client, in: &unsent)
    if isBinary {
      BinaryWriter.write(
        message, messageID: messageID, timestamp: timestamp, tripBefore: tripBefore, into: &unsent)
      if case .locationUpdate(let update) = message, let trip = update.tripID { tripBefore = trip }
    } else {
      JSONWriter.write(message, messageID: messageID, timestamp: timestamp, time: dialect.time, into: &unsent)
    }
    socket.finish(
      isBinary ? .binary : .text, payloadAt: payload, compressedBytes: 200, mask: .random(using: &random), in: &unsent)
    flush()
  }

  /// Bytes of any kind.
  func send(raw bytes: [UInt8]) {
    unsent.append(bytes)
    flush()
  }

  private func flush() {
    guard !unsent.isEmpty else { return }
    switch unsent.withBytes({ far.send($0) }) {
    case .moved(let count): unsent.removeFirst(count)
    case .wouldBlock: break
    case .ended, .failed: unsent.removeAll()
    }
  }

  // MARK: Hearing

  /// So many bytes arrive at the client, and the end behind the last. Who is deaf answers nothing.
  func hear(_ count: Int, _ reader: MessageReader, isDeaf: Bool = false) throws(Violation) -> [Heard] {
    far.arrive(count)
    var bytes = far.receiveAll()
    var heard: [Heard] = []
    if !bytes.isEmpty {
      let fault: Violation? = bytes.withUnsafeMutableBytes { bytes in
        do throws(Violation) { try read(bytes, reader, into: &heard) } catch { return error }
        return nil
      }
      if let fault { throw fault }
      if !isDeaf { socket.writeControlFrames(into: &unsent, using: &random) }
    }
    flush()
    return heard
  }

  private func read(
    _ bytes: UnsafeMutableRawBufferPointer, _ reader: MessageReader, into heard: inout [Heard]
  ) throws(Violation) {
    var offset = 0
    do throws(ClientSocketError) {
      while let event = try socket.next(in: bytes, at: &offset, limits: Self.limits) {
        switch event {
        case .opened(let chosen): isBinary = dialect.isBinary && chosen == 0
        case .close(let code): heard.append(.closed(code))
        case .message(_, let payload):
          if let message = read(payload, reader) { heard.append(.message(message)) }
        }
      }
    } catch {
      switch error {
      case .handshake(.refused(let status), _, body: _): heard.append(.refused(status))
      case .handshake, .notHTTP, .frame: throw Violation(text: "client \(client) was sent what breaks a rule: \(error)")
      }
    }
  }

  /// Nil for what is for the reader only.
  private func read(_ payload: UnsafeRawBufferPointer, _ reader: MessageReader) -> ServerMessage? {
    do throws(MessageError) {
      if isBinary { return try names.read(payload)?.message }
      return try reader.readServer(payload, time: dialect.time).message
    } catch {
      return .unknown(type: "\(error.text)")
    }
  }
}
