// A WebSocket client for tests: what it sends is made by hand, so that it may be wrong, and what comes is read with the
// WebSocket module's client half, which has tests of its own.
import Foundation
import HubBytes
import HubWebSocket

/// A message of the hub.
struct HubMessage {
  var text: String
  var type: String
  var payload: [String: Any]
  var envelope: [String: Any]

  init(_ bytes: [UInt8]) throws {
    text = String(decoding: bytes, as: UTF8.self)
    let object = try JSONSerialization.jsonObject(with: Data(bytes))
    guard let envelope = object as? [String: Any], let type = envelope["type"] as? String,
      let payload = envelope["payload"] as? [String: Any], envelope["timestamp"] != nil,
      envelope["messageId"] is String
    else { throw PeerError.unexpected("not a message: \(text)") }
    self.envelope = envelope
    self.type = type
    self.payload = payload
  }

  func string(_ name: String) -> String? { payload[name] as? String }
  func number(_ name: String) -> Double? { (payload[name] as? NSNumber)?.doubleValue }
  func integer(_ name: String) -> Int? { (payload[name] as? NSNumber)?.intValue }
  func object(_ name: String) -> [String: Any]? { payload[name] as? [String: Any] }

  var code: String? { string("code") }
  var replyTo: String? { string("replyTo") }
}

/// What comes on a WebSocket.
enum PeerEvent {
  case message(HubMessage)
  case ping([UInt8])
  case pong([UInt8])
  case close(UInt16?)
  /// The TCP connection ended.
  case end
}

final class Peer {
  let connection: RawConnection
  /// Pings are answered, as RFC 6455 §5.5.2 wants, unless a test says otherwise. One that leaves a frame half sent, and
  /// gives the hub reason to ping, must: the answer would be taken for the rest of the frame.
  var answersPings = true
  /// What the hub's Close frame says beside its code.
  private(set) var closeReason = ""
  private var reader = FrameReader(role: .client)
  private var events: [PeerEvent] = []
  private var number = 0
  /// The `time` option of the URL.
  private let time: String
  /// What translates, where binary is spoken: a test writes and reads JSON all the same.
  let binary: BinaryTranslator?

  /// Connects and upgrades; the `connected` message is still to be read.
  init(
    port: UInt16, query: String, time: String? = nil, receiveBuffer: Int32? = nil, source: UInt32? = nil,
    fields: [(String, String)] = [], isBinary: Bool = false
  ) throws {
    self.time = time ?? "unix_ms"
    binary = isBinary ? BinaryTranslator() : nil
    let query = query + (time.map { "&time=\($0)" } ?? "")
    connection = try RawConnection(port: port, receiveBuffer: receiveBuffer, source: source)
    var request = UpgradeRequest("/v1/ws?\(query)")
    for (name, value) in fields { request = request.with(name, value) }
    if isBinary { request = request.with("Sec-WebSocket-Protocol", "locationhub.v1.binary") }
    try connection.send(request.text)
    let response = try connection.readResponse()
    guard response.status == 101 else {
      throw PeerError.unexpected("upgrade refused with \(response.status): \(response.text)")
    }
    // RFC 6455 §1.3 has this key and its answer.
    guard response.fields["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" else {
      throw PeerError.unexpected("wrong Sec-WebSocket-Accept: \(response.fields)")
    }
    if isBinary, response.fields["sec-websocket-protocol"] != "locationhub.v1.binary" {
      throw PeerError.unexpected("the hub does not speak binary: \(response.fields)")
    }
  }

  // MARK: Sending

  /// A frame by hand (RFC 6455 §5.2), masked with a key that is the same each time: nothing here needs secrecy.
  static func frame(
    _ payload: [UInt8], opcode: UInt8 = 1, isFinal: Bool = true, reserved: UInt8 = 0, isMasked: Bool = true
  ) -> [UInt8] {
    var frame: [UInt8] = [(isFinal ? 0x80 : 0) | reserved | opcode]
    let mask: UInt8 = isMasked ? 0x80 : 0
    switch payload.count {
    case ..<126: frame.append(mask | UInt8(payload.count))
    case ...0xFFFF: frame += [mask | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
    default:
      frame.append(mask | 127)
      for shift in stride(from: 56, through: 0, by: -8) { frame.append(UInt8(payload.count >> shift & 0xFF)) }
    }
    guard isMasked else { return frame + payload }
    let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]  // of the example in RFC 6455 §5.7
    frame += key
    for (index, byte) in payload.enumerated() { frame.append(byte ^ key[index % 4]) }
    return frame
  }

  func send(bytes: [UInt8]) throws { try connection.send(bytes) }

  func send(text: String) throws { try connection.send(Peer.frame(Array(text.utf8))) }

  func send(binary message: [UInt8]) throws { try connection.send(Peer.frame(message, opcode: 2)) }

  /// A message with an envelope of the present time; returns its id.
  @discardableResult
  func send(_ type: String, _ payload: [String: Any], id: String? = nil, timestamp: Any? = nil) throws -> String {
    let id = id ?? nextID()
    let text = try Peer.message(type, payload, id: id, timestamp: timestamp ?? now)
    if let binary { try send(binary: binary.message(text)) } else { try send(text: text) }
    return id
  }

  private var now: Any {
    switch time {
    case "apple": Date().timeIntervalSinceReferenceDate
    case "rfc3339": Date().formatted(.iso8601)
    default: Int(Date().timeIntervalSince1970 * 1000)
    }
  }

  static func message(_ type: String, _ payload: [String: Any], id: String, timestamp: Any? = nil) throws -> String {
    let envelope: [String: Any] = [
      "type": type, "payload": payload, "timestamp": timestamp ?? Int(Date().timeIntervalSince1970 * 1000),
      "messageId": id,
    ]
    return String(decoding: try JSONSerialization.data(withJSONObject: envelope), as: UTF8.self)
  }

  private func nextID() -> String {
    number += 1
    return "m\(number)"
  }

  // MARK: Receiving

  func next(until deadline: Deadline = Deadline(), waitingFor what: String = "a message") throws -> PeerEvent {
    while events.isEmpty {
      var bytes = try connection.receive(until: deadline, waitingFor: what)
      if bytes.isEmpty { return .end }
      try bytes.withUnsafeMutableBytes { try take($0) }
    }
    return events.removeFirst()
  }

  private func take(_ buffer: UnsafeMutableRawBufferPointer) throws {
    var offset = 0
    while let event = try reader.next(in: buffer, at: &offset, limits: FrameLimits(messageBytes: 1 << 20)) {
      switch event {
      case .message(let kind, let payload, isCompressed: _):
        guard kind == (binary == nil ? .text : .binary) else { throw PeerError.unexpected("a frame of kind \(kind)") }
        guard let binary else {
          events.append(.message(try HubMessage([UInt8](payload))))
          continue
        }
        if let text = try binary.text(payload) { events.append(.message(try HubMessage(text))) }
      case .ping(let payload):
        events.append(.ping([UInt8](payload)))
        if answersPings { try connection.send(Peer.frame([UInt8](payload), opcode: 0xA)) }
      case .pong(let payload): events.append(.pong([UInt8](payload)))
      case .close(let code, let reason):
        closeReason = String(decoding: reason, as: UTF8.self)
        events.append(.close(code?.rawValue))
      }
    }
  }

  /// The next message, which must be of this type. Pings and pongs in between do not count.
  func receive(_ type: String, within seconds: Double = Deadline.patience) throws -> HubMessage {
    let deadline = Deadline(seconds: seconds)
    while true {
      switch try next(until: deadline, waitingFor: type) {
      case .message(let message):
        guard message.type == type else {
          throw PeerError.unexpected("waited for \(type), got \(message.text)")
        }
        return message
      case .ping, .pong: continue
      case .close(let code): throw PeerError.unexpected("waited for \(type), got close \(code ?? 0)")
      case .end: throw PeerError.ended(waitingFor: type)
      }
    }
  }

  /// Skips what comes until a message of this type.
  func skip(to type: String, within seconds: Double = Deadline.patience) throws -> HubMessage {
    let deadline = Deadline(seconds: seconds)
    while true {
      switch try next(until: deadline, waitingFor: type) {
      case .message(let message): if message.type == type { return message }
      case .ping, .pong: continue
      case .close(let code): throw PeerError.unexpected("waited for \(type), got close \(code ?? 0)")
      case .end: throw PeerError.ended(waitingFor: type)
      }
    }
  }

  /// Reads to the close frame and the end behind it; gives the code, nil where there was none, and what came before.
  func receiveClose(within seconds: Double = Deadline.patience) throws -> (code: UInt16?, before: [HubMessage]) {
    let deadline = Deadline(seconds: seconds)
    var before: [HubMessage] = []
    while true {
      switch try next(until: deadline, waitingFor: "a close frame") {
      case .message(let message): before.append(message)
      case .ping, .pong: continue
      case .close(let code): return (code, before)
      case .end: return (nil, before)
      }
    }
  }

  /// All messages that came before the hub has answered what is asked now: with this a test knows that something did
  /// not come, without waiting for it. `unsubscribe` from a channel that nobody has takes the whole way through the
  /// hub and back, behind everything that was published before.
  func settle() throws -> [HubMessage] {
    let id = try send("unsubscribe", ["channel": "trip:nobody-has-this"])
    var before: [HubMessage] = []
    while true {
      switch try next(waitingFor: "the answer to unsubscribe") {
      case .message(let message):
        if message.type == "unsubscribed", message.replyTo == id { return before }
        before.append(message)
      case .ping, .pong: continue
      case .close(let code): throw PeerError.unexpected("closed with \(code ?? 0)")
      case .end: throw PeerError.ended(waitingFor: "the answer to unsubscribe")
      }
    }
  }
}
