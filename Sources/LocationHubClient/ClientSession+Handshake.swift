// From a TCP connection to one that the hub has greeted.
import HubBytes
import HubHTTP
import HubMessages
import HubWebSocket

extension ClientSession {
  /// TCP stands.
  public func transportConnected(_ now: Moment) {
    guard state == .connecting else { return }
    state = .handshaking
    let handshake = ClientHandshake(
      nonce: (random.next(), random.next()), subprotocols: subprotocols.map { "\($0.name)" },
      compression: configuration.compression)
    socket = ClientSocket(handshake, sharing: sharedCompression)
    lastHeard = now.uptime
  }

  /// What is asked for, the wanted one first (RFC 6455 §4.1 item 10).
  private var subprotocols: [Subprotocol] {
    switch configuration.codec {
    case .json: [.json]
    case .binary: [.binary, .json]
    }
  }

  /// The upgrade is granted: `chosen` is the place in the list of what was asked for.
  func upgraded(_ chosen: Int?) {
    state = .greeting
    let isBinary = chosen.map { subprotocols[$0] == .binary } ?? false
    form = isBinary ? .binary : .json(configuration.url.time)
    binary = isBinary ? BinaryConnection() : nil
  }

  /// Appends the request.
  func writeRequest(into buffer: inout ByteBuffer) {
    var fields: [OutgoingField] = []
    renewal?.inUpgrade = token
    if let token { fields.append(OutgoingField("Authorization", "Bearer \(token)")) }
    socket?.writeRequest(
      host: configuration.url.host, target: configuration.url.target, fields: fields, into: &buffer)
  }

  /// The answer does not open the WebSocket.
  func refused(_ error: HandshakeError, _ head: ResponseHead, body: [UInt8]) {
    switch error {
    case .refused(let status):
      giveUp(.refused(status: status.code, retryAfter: retryAfter(head), text: text(of: body)))
    case .upgradeMissing, .connectionMissing, .acceptMismatch, .unexpectedExtension, .unexpectedSubprotocol:
      giveUp(.handshakeFailed(error))
    }
  }

  /// Retry-After in seconds (RFC 9110 §10.2.3); its other form, a date, needs a clock that both agree on.
  private func retryAfter(_ head: ResponseHead) -> Double? {
    guard let text = head.fields.string("retry-after"), let seconds = Int(text), seconds >= 0 else { return nil }
    return Double(seconds)
  }

  /// The beginning of a refusal's body, for a person: printable ASCII only.
  private func text(of body: [UInt8]) -> String {
    String(decoding: body.prefix(limits.refusalTextBytes).map { (0x20..<0x7F).contains($0) ? $0 : 0x20 }, as: UTF8.self)
  }

  /// `connected` came: this client is in.
  func open(_ greeting: Connected, _ now: Moment) {
    state = .open
    connected = greeting
    sampling = greeting.sampling
    openedAt = now.uptime
    patienceEnds = .max
    queueNotBefore = .min
    counters.opened += 1
    budget.begin(
      rate: greeting.limits.rate, burst: greeting.limits.rate * limits.burstSeconds, now: now.uptime)
    missed = nil
    subscriptions.beginConnection()
    unsubscribes.removeAll()
    wantsPing = false
    beginRenewal(greeting, now)
    pingsSent.removeAll()
    answeredPing = nil
    queue.beginConnection(maximumBatch: maximumBatch(greeting))
    // The first ping at a random time, so that clients which came together do not ping together.
    let interval = nanoseconds(heartbeatInterval * limits.pingPart)
    nextPing = now.uptime + Int64(Double(interval) * (0.5 + 0.5 * random.unit()))
  }

  /// A fix with all its members is below 300 bytes of JSON, an envelope below 300 too.
  func maximumBatch(_ greeting: Connected) -> Int {
    min(greeting.limits.maxBatch, LocationBatch.maximumCount, greeting.limits.maxMessageBytes / 300 - 1)
  }
}
