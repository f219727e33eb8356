// From a TCP connection to an open session.
import HubBytes
import HubHTTP
public import HubMessages
import HubWebSocket

extension ClientSession {
  /// TCP is connected.
  public func transportConnected(_ now: Moment) {
    guard case .connecting(let until) = phase else { return }
    let handshake = ClientHandshake(
      nonce: (random.next(), random.next()), subprotocols: subprotocols.map { "\($0.name)" },
      compression: configuration.compression)
    let socket = ClientSocket(handshake, sharing: sharedCompression)
    phase = .handshaking(ClientConnection(socket, now: now.uptime), until: until)
  }

  /// The offered subprotocols, the preferred one first (RFC 6455 §4.1 item 10).
  private var subprotocols: [Subprotocol] {
    switch configuration.codec {
    case .json: [.json]
    case .binary: [.binary, .json]
    }
  }

  /// The upgrade is granted: `chosen` is an index into the offered subprotocols.
  func upgraded(_ chosen: Int?) {
    guard case .handshaking(let connection, let until) = phase else { return }
    phase = .greeting(connection, until: until)
    let isBinary = chosen.map { subprotocols[$0] == .binary } ?? false
    form = isBinary ? .binary : .json(configuration.url.time)
    connection.binary = isBinary ? BinaryConnection() : nil
  }

  /// Appends the upgrade request to `buffer`.
  func writeRequest(_ connection: ClientConnection, into buffer: inout ByteBuffer) {
    var fields: [OutgoingField] = []
    renewal?.inUpgrade = token
    if let token { fields.append(OutgoingField("Authorization", "Bearer \(token)")) }
    connection.socket.writeRequest(
      host: configuration.url.authority, target: configuration.url.target, fields: fields, into: &buffer)
  }

  /// The response does not open the WebSocket.
  func refused(_ error: HandshakeError, _ head: ResponseHead, body: [UInt8]) {
    switch error {
    case .refused(let status):
      giveUp(.refused(status: status.code, retryAfter: retryAfter(head), text: text(of: body)))
    case .upgradeMissing, .connectionMissing, .acceptMismatch, .unexpectedExtension, .unexpectedSubprotocol:
      giveUp(.handshakeFailed(error))
    }
  }

  /// Retry-After in seconds (RFC 9110 §10.2.3); its other form, a date, would need synchronised clocks.
  private func retryAfter(_ head: ResponseHead) -> Double? {
    guard let text = head.fields.string("retry-after"), let seconds = Int(text), seconds >= 0 else { return nil }
    return Double(seconds)
  }

  /// The beginning of a refusal's body, for a person: printable ASCII only.
  private func text(of body: [UInt8]) -> String {
    String(decoding: body.prefix(limits.refusalTextBytes).map { (0x20..<0x7F).contains($0) ? $0 : 0x20 }, as: UTF8.self)
  }

  /// `connected` has come: the session is open.
  func open(_ greeting: Connected, _ now: Moment) {
    guard case .greeting(let connection, _) = phase else { return }
    phase = .open(connection)
    connected = greeting
    sampling = greeting.sampling
    counters.opened += 1
    connection.openedAt = now.uptime
    connection.budget.begin(
      rate: greeting.limits.rate, burst: greeting.limits.rate * limits.burstSeconds, now: now.uptime)
    // The first ping at a random time, to spread clients that connected together.
    connection.nextPing = now.uptime + Int64(Double(pingInterval) * (0.5 + 0.5 * random.unit()))
    subscriptions.beginConnection()
    beginRenewal(greeting, now)
    queue.beginConnection(maximumBatch: maximumBatch(greeting), isDrivers: greeting.role == .driver)
  }

  /// The most fixes that a batch to this hub may have: a fix with all members, each double in 24 characters, is below
  /// 400 bytes of JSON, and so is an envelope. At least 1: a hub that cannot read so much refuses it, which is counted.
  func maximumBatch(_ greeting: Connected) -> Int {
    max(1, min(greeting.limits.maxBatch, LocationBatch.maximumCount, greeting.limits.maxMessageBytes / 400 - 1))
  }
}
