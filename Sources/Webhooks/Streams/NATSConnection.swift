// A publisher to NATS JetStream (https://docs.nats.io/reference/reference-protocols/nats_api_reference).
//
//     closed ─opened→ the server's INFO [─→ TLS] ─→ CONNECT, SUB, PING ─its PONG→ ready
//
// Each event is published with a reply subject, whose last token is a number that identifies the event: JetStream
// answers `{"stream":…,"seq":…}` when it has stored it, or an error; a server without a stream for the subject answers
// that there are no responders (503). With `Nats-Msg-Id` the server drops duplicates, within the stream's duplicate
// window.
import HubBytes
import HubMessages

final class NATSConnection: StreamSink {
  private enum Phase { case closed, informed, securing, greeting, ready }

  private let isSecure: Bool
  private let prefix: String
  private let name: String
  private let credentials: StreamCredentials
  /// The prefix of reply subjects: `_INBOX.` and a token that no other client has.
  private let inbox: String
  private var phase = Phase.closed
  private var reader = NATSReader()
  private var output = ByteBuffer()
  private var events: [SinkEvent] = []
  private var underWay: [UInt64: (position: JournalPosition, subject: String)] = [:]
  /// Positions sent over this connection and not refused; they have no other answer.
  private var sentPositions = 0
  private var number: UInt64 = 0
  private var maximumPayload = Int.max

  /// `inbox`: letters and digits that no other client of the server has.
  init(_ endpoint: StreamEndpoint, inbox: String) {
    isSecure = endpoint.url.isSecure
    prefix = endpoint.prefix
    name = endpoint.name
    credentials = endpoint.credentials
    self.inbox = "_INBOX.\(inbox)"
  }

  var mode: StreamQueue.Mode { .single }
  var isConnectedOnDemand: Bool { false }
  var isReady: Bool { phase == .ready }
  /// Positions are published without an answer.
  var owesAnswer: Bool { false }

  func opened(_ now: Moment) {
    phase = .informed
    reader = NATSReader()
    sentPositions = 0
  }

  func secured() {
    reader = NATSReader()  // bytes before TLS are not authenticated
    greet()
  }

  func closed(_ reason: String) -> Bool {
    phase = .closed
    underWay.removeAll()
    output.removeAll(keepingAtMost: 1 << 16)
    return false
  }

  func takeOutput(into buffer: inout ByteBuffer) {
    unsafe output.withBytes { unsafe buffer.append($0) }
    output.removeAll(keepingAtMost: 1 << 16)
  }

  func takeEvents() -> [SinkEvent] {
    defer { events.removeAll(keepingCapacity: true) }
    return events
  }

  // MARK: Out

  func send(_ messages: [StreamMessage], _ now: Moment) {
    precondition(isReady)
    for message in messages {
      let headers = "NATS/1.0\r\nNats-Msg-Id: \(message.id)\r\n\r\n"
      let total = headers.utf8.count + message.payload.count
      guard total <= maximumPayload else {
        events.append(.impossible(message.position, reason: "the server takes \(maximumPayload) bytes"))
        continue
      }
      number += 1
      let subject = "\(prefix).\(message.source).\(message.kind)"
      underWay[number] = (message.position, subject)
      output.append(utf8: "HPUB \(subject) \(inbox).\(number) \(headers.utf8.count) \(total)\r\n")
      output.append(utf8: headers)
      output.append(message.payload)
      output.append("\r\n")
    }
  }

  var takesPositions: Bool { isReady }

  func send(_ positions: inout PositionTable, _ now: Moment) -> Int {
    let count = positions.takeAll { driver, message in
      output.append(utf8: "PUB \(prefix).driver.\(driver).position \(message.count)\r\n")
      unsafe message.withBytes { unsafe output.append($0) }
      output.append("\r\n")
    }
    sentPositions += count
    return count
  }

  private func greet() {
    output.append("CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true")
    output.append(",\"protocol\":1,\"lang\":\"swift\",\"version\":\"1\",\"name\":")
    output.append(json: "locationhub \(name)")
    for (key, value) in [
      ("user", credentials.user), ("pass", credentials.password), ("auth_token", credentials.token),
    ] {
      guard let value else { continue }
      output.append(utf8: ",\"\(key)\":")
      output.append(json: value)
    }
    output.append(utf8: "}\r\nSUB \(inbox).* 1\r\nPING\r\n")
    phase = .greeting
  }

  // MARK: In

  func received(_ bytes: UnsafeRawBufferPointer, _ now: Moment) {
    var operations: [NATSOperation] = []
    do throws(NATSError) { try unsafe reader.read(bytes, into: &operations) } catch {
      take(operations)
      return fail("what it says is no NATS: \(error)")
    }
    take(operations)
  }

  private func take(_ operations: [NATSOperation]) {
    for operation in operations {
      guard phase != .securing else { return fail("plain text where TLS was to begin") }
      guard phase != .informed || operation.mayComeFirst else { return fail("its first word is not INFO") }
      switch operation {
      case .info(let text): take(info: text)
      case .ping: output.append("PONG\r\n")
      case .pong:
        guard phase == .greeting else { continue }
        phase = .ready
        events.append(.ready)
      case .ok: break
      case .error(let reason): take(error: reason)
      case .message(let subject, let status, let payload): take(answer: payload, status, on: subject)
      }
    }
  }

  private func take(info text: [UInt8]) {
    guard let info = JSONValue(parsing: text)?.members else { return fail("its INFO is no JSON") }
    if let limit = info["max_payload"]?.number, limit >= 1 { maximumPayload = Int(min(limit, 1e9)) }
    guard phase == .informed else { return }
    guard info["headers"] == .bool(true) else { return fail("it has no headers: NATS 2.2 or newer is needed") }
    let hasTLS = ["tls_required", "tls_available"].contains { info[$0] == .bool(true) }
    guard isSecure else {
      return info["tls_required"] == .bool(true) ? fail("it demands TLS: give it as tls://") : greet()
    }
    guard hasTLS else { return fail("it has no TLS, and it was given as tls://") }
    phase = .securing
    events.append(.plainTextEnds)
  }

  /// All errors end the connection, except for a subject that the user may not publish to: the server reports that for
  /// each message by its subject alone, of which at most one event is unanswered.
  private func take(error reason: String) {
    guard reason.hasPrefix("Permissions Violation for Publish") else { return fail(reason) }
    let subject = reason.split(separator: "\"", omittingEmptySubsequences: false).dropFirst().first ?? ""
    if let number = underWay.first(where: { $0.value.subject == subject })?.key,
      let event = underWay.removeValue(forKey: number)
    {
      events.append(.refused([event.position], reason: reason, retryAfterSeconds: nil))
    } else if subject.hasSuffix(".position"), sentPositions > 0 {
      sentPositions -= 1
      events.append(.positionsRefused(1))
    }
  }

  private func take(answer: [UInt8], _ status: Int?, on subject: String) {
    guard subject.hasPrefix(inbox + "."), let number = UInt64(subject.dropFirst(inbox.count + 1)),
      let position = underWay.removeValue(forKey: number)?.position
    else { return }
    if let status {
      let reason = status == 503 ? "no stream of its JetStream has the subject (\(prefix).>)" : "status \(status)"
      events.append(.refused([position], reason: reason, retryAfterSeconds: nil))
    } else if let reply = JSONValue(parsing: answer)?.members, reply["error"] == nil, reply["seq"]?.number != nil {
      events.append(.stored([position], repeats: reply["duplicate"] == .bool(true) ? 1 : 0))
    } else {
      let error = JSONValue(parsing: answer)?.members?["error"]?.members?["description"]?.string
      events.append(
        .refused([position], reason: error ?? "an answer that is not JetStream's", retryAfterSeconds: nil))
    }
  }

  private func fail(_ reason: String) {
    phase = .closed
    events.append(.failed(reason))
  }
}
