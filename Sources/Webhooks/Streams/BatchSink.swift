// Batches of events over HTTP: lines of JSON in a POST that is signed like a webhook's, one request at a time. For
// collectors that feed Kafka, ClickHouse or object storage.
import HubBytes
import HubHTTP
import HubMessages

final class BatchSink: StreamSink {
  private let url: WebhookURL
  private let signer: WebhookSigner
  private let userAgent: String
  private var isOpen = false
  private var underWay: [JournalPosition] = []
  /// Positions in the present request.
  private var sentPositions = 0
  private var number: UInt64 = 0
  /// A request's answer is incomplete.
  private var isBusy = false
  /// The connection was used before.
  private var isUsed = false
  private var response = ReplyReader()
  private var output = ByteBuffer()
  private var events: [SinkEvent] = []

  /// - Precondition: the endpoint has a signer.
  init(_ endpoint: StreamEndpoint, userAgent: String) {
    guard let signer = endpoint.signer else { preconditionFailure("batches are signed") }
    self.signer = signer
    self.userAgent = userAgent
    url = endpoint.url.url
  }

  var mode: StreamQueue.Mode { .batches(delay: Self.delay) }
  var isConnectedOnDemand: Bool { true }
  var isReady: Bool { isOpen && !isBusy }
  var owesAnswer: Bool { isBusy }

  func opened(_ now: Moment) { (isOpen, isUsed, isBusy) = (true, false, false) }

  func closed(_ reason: String) -> Bool {
    let (positions, wasKept, isAnswered) = (underWay, isOpen && isUsed, isBusy && response.hasHead)
    takePositions(isStored: false)
    (isOpen, isBusy, underWay) = (false, false, [])
    output.removeAll()
    // The end of an answer without a length (RFC 9112 §6.3), whose status was taken before.
    if isAnswered { return true }
    // A kept connection may have been closed before a request; then the request was not received.
    if wasKept, positions.isEmpty || response.isUntouched { return true }
    if !positions.isEmpty { events.append(.refused(positions, reason: reason, retryAfterSeconds: nil)) }
    return false
  }

  func send(_ messages: [StreamMessage], _ now: Moment) {
    guard let first = messages.first else { return }
    underWay = messages.map(\.position)
    // The id has the number of events, since the next try, after a crash, may have more.
    post(Self.body(messages), "batch_\(first.id.dropFirst(4))_\(messages.count)", now)
  }

  var takesPositions: Bool { isReady }

  func send(_ positions: inout PositionTable, _ now: Moment) -> Int {
    var body: [UInt8] = []
    let count = positions.takeAll { _, message in
      unsafe message.withBytes { unsafe body.append(contentsOf: $0) }
      body.append(UInt8(ascii: "\n"))
    }
    sentPositions = count
    number += 1
    post(body, "positions_\(now.timestamp.milliseconds)_\(number)", now)
    return count
  }

  private func post(_ body: [UInt8], _ id: String, _ now: Moment) {
    (isBusy, response) = (true, ReplyReader())
    output.append(
      signer.post(
        body, "application/x-ndjson", to: url, id: id, timestamp: now.timestamp, userAgent: userAgent))
  }

  /// A line for each event: a webhook's body, with the event's id before the other members.
  private static func body(_ messages: [StreamMessage]) -> [UInt8] {
    var body: [UInt8] = []
    for message in messages {
      body += "{\"id\":\"\(message.id)\",".utf8
      body += message.payload.dropFirst()
      body.append(UInt8(ascii: "\n"))
    }
    return body
  }

  func received(_ bytes: UnsafeRawBufferPointer, _ now: Moment) {
    guard isBusy else { return events.append(.finished) }  // unsolicited
    do throws(HTTPError) {
      guard case .answered(let reply, let isComplete, let keepsAlive) = try unsafe response.read(bytes) else { return }
      if !underWay.isEmpty { take(reply) }
      if case .status(200..<300, _) = reply { takePositions(isStored: true) } else { takePositions(isStored: false) }
      guard isComplete else { return }
      (isBusy, isUsed) = (false, true)
      if !keepsAlive { events.append(.finished) }
    } catch {
      events.append(.failed("no HTTP/1.1: \(error)"))
    }
  }

  private func takePositions(isStored: Bool) {
    if sentPositions > 0, !isStored { events.append(.positionsRefused(sentPositions)) }
    sentPositions = 0
  }

  private func take(_ reply: WebhookReply) {
    let positions = underWay
    underWay = []
    switch reply {
    case .status(200..<300, _): events.append(.stored(positions, repeats: 0))
    case .status(410, _): events.append(.gone)
    case .status(let status, let wait):
      events.append(.refused(positions, reason: "status \(status)", retryAfterSeconds: wait))
    case .none: break
    }
  }

  func takeOutput(into buffer: inout ByteBuffer) {
    unsafe output.withBytes { unsafe buffer.append($0) }
    output.removeAll(keepingAtMost: StreamQueue.windowBytes)
  }

  func takeEvents() -> [SinkEvent] {
    defer { events.removeAll() }
    return events
  }
}
