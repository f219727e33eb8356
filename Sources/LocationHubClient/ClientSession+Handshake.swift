// From a TCP connection to one that the hub has greeted.
import Bytes
import HTTP
import Messages
import WebSocket

/// A handshake under way: what was asked for, and what has come of the answer. On the heap, so that a client that
/// stands does not pay for it.
final class Upgrade {
  let handshake: ClientHandshake
  var parser = ResponseParser()
  var input = ByteBuffer()
  var isRequested = false

  init(nonce: (UInt64, UInt64)) {
    handshake = ClientHandshake(nonce: nonce, subprotocols: ["locationhub.v1.json"])
  }
}

extension ClientSession {
  /// TCP stands.
  public func transportConnected(_ now: Moment) {
    guard state == .connecting else { return }
    state = .handshaking
    upgrade = Upgrade(nonce: (random.next(), random.next()))
    lastHeard = now.uptime
  }

  /// Appends the request.
  func writeUpgrade(_ upgrade: Upgrade, into buffer: inout ByteBuffer) {
    upgrade.isRequested = true
    var fields: [OutgoingField] = []
    renewal?.inUpgrade = token
    if let token { fields.append(OutgoingField("Authorization", "Bearer \(token)")) }
    upgrade.handshake.writeRequest(
      host: configuration.url.host, target: configuration.url.target, fields: fields, into: &buffer)
  }

  /// Bytes of the answer. What stands behind its head are frames, given back as `input`'s rest from that place.
  func readAnswer(_ upgrade: Upgrade, _ bytes: UnsafeMutableRawBufferPointer) -> Int? {
    guard upgrade.input.count + bytes.count <= limits.handshakeBytes + limits.messageBytes else {
      giveUp(.notHTTP(.headTooLarge(limit: limits.handshakeBytes)))
      return nil
    }
    upgrade.input.append(UnsafeRawBufferPointer(bytes))
    do throws(HTTPError) {
      let parsed = try upgrade.input.withBytes { (input) throws(HTTPError) in
        try upgrade.parser.parse(input, limits: HTTPLimits(headBytes: limits.handshakeBytes))
      }
      switch parsed {
      case .incomplete: return nil
      case .response(let head, let consumed): return answered(upgrade, head, consumed)
      }
    } catch {
      giveUp(.notHTTP(error))
      return nil
    }
  }

  private func answered(_ upgrade: Upgrade, _ head: ResponseHead, _ consumed: Int) -> Int? {
    do throws(HandshakeError) {
      _ = try upgrade.handshake.check(head)
      state = .greeting
      return consumed
    } catch {
      switch error {
      case .refused(let status):
        let body = upgrade.input.withBytes { (input) -> String in text(of: input[consumed...]) }
        giveUp(.refused(status: status.code, retryAfter: retryAfter(head), text: body))
      case .upgradeMissing, .connectionMissing, .acceptMismatch, .unexpectedExtension, .unexpectedSubprotocol:
        giveUp(.handshakeFailed(error))
      }
      return nil
    }
  }

  /// Retry-After in seconds (RFC 9110 §10.2.3); its other form, a date, needs a clock that both agree on.
  private func retryAfter(_ head: ResponseHead) -> Double? {
    guard let text = head.fields.string("retry-after"), let seconds = Int(text), seconds >= 0 else { return nil }
    return Double(seconds)
  }

  /// The beginning of a refusal's body, for a person: printable ASCII only.
  private func text(of body: Slice<UnsafeRawBufferPointer>) -> String {
    String(decoding: body.prefix(limits.refusalTextBytes).map { (0x20..<0x7F).contains($0) ? $0 : 0x20 }, as: UTF8.self)
  }

  /// `connected` came: this client is in.
  func open(_ greeting: Connected, _ now: Moment) {
    state = .open
    connected = greeting
    openedAt = now.uptime
    patienceEnds = .max
    queueNotBefore = .min
    counters.opened += 1
    budget.begin(
      rate: greeting.limits.rate, burst: greeting.limits.rate * limits.burstSeconds, now: now.uptime)
    subscriptions.beginConnection()
    unsubscribes.removeAll()
    wantsPing = false
    beginRenewal(greeting, now)
    pingsSent.removeAll()
    queue.beginConnection(maximumBatch: maximumBatch(greeting))
    // The first ping at a random time, so that clients which came together do not ping together.
    let interval = nanoseconds(heartbeatInterval * limits.pingPart)
    nextPing = now.uptime + Int64(Double(interval) * (0.5 + 0.5 * random.unit()))
  }

  /// A fix with all its members is below 300 bytes of JSON, an envelope below 300 too.
  private func maximumBatch(_ greeting: Connected) -> Int {
    min(greeting.limits.maxBatch, LocationBatch.maximumCount, greeting.limits.maxMessageBytes / 300 - 1)
  }
}
