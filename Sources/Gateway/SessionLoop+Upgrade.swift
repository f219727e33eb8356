// From a request to a session: handshake, credential, and for drivers the hub's word before the answer goes out.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport
import HubWebSocket

/// What an upgrade will be answered with.
struct Upgrade {
  var handshake: ServerHandshake
  var credential: Credential
  var form: MessageForm
  /// See `HubInput.driverConnecting`.
  var client: UInt32
}

extension SessionLoop {
  static let subprotocols = Subprotocol.allCases.map(\.name)

  mutating func upgrade(_ slot: Int, _ exchange: Exchange, _ request: RequestHead) {
    let upgrade: Upgrade
    do throws(UpgradeRefusal) {
      var handshake = try ServerHandshake(
        request, subprotocols: Self.subprotocols,
        compression: configuration.compression ? fanOut.compressionPolicy : nil)
      guard let time = TimeFormat(queryValue: request.query.text("time")) else {
        counters.handshakesRefused += 1
        return respond(slot, exchange, .badRequest, .badMessage, TimeFormat.queryHelp)
      }
      let isBinary = handshake.subprotocol == Int(Subprotocol.binary.rawValue)
      // Its messages are short, and have little in them that repeats.
      if isBinary { handshake.declineCompression() }
      do throws(CredentialError) {
        upgrade = Upgrade(
          handshake: handshake, credential: try credential(of: request, exchange),
          form: isBinary ? .binary : .json(time), client: try client(of: request, exchange))
      } catch {
        counters.handshakesRefused += 1
        return refuse(slot, exchange, error)
      }
    } catch {
      counters.handshakesRefused += 1
      return respond(
        slot, exchange, error.status, .badMessage, error.explanation, fields: error.response.fields)
    }
    if let fault = request.query.fault(knowing: Endpoint.socket.parameters) {
      counters.handshakesRefused += 1
      return respond(slot, exchange, .badRequest, .badMessage, "\(fault)")
    }
    guard shared.lifecycle.phase(at: now.uptime) != .draining else {
      return respond(slot, exchange, .serviceUnavailable, .shuttingDown, "the hub is shutting down", retryAfter: 5)
    }
    guard admitSession(slot, exchange, request, upgrade.credential) else { return }
    exchange.upgrade = upgrade
    guard upgrade.credential.role == .driver else { return open(slot, exchange, upgrade, nil) }
    // A driver has one session: the hub decides before the upgrade is answered.
    sessions[slot].phase = .admitting
    sessions[slot].role = .driver
    inputs.append(
      .driverConnecting(reference(sessions[slot].connection), upgrade.credential.id, client: upgrade.client))
  }

  /// Names who connects, by the token (development's credentials say no more than the id) and the address. Never 0.
  private func client(of request: RequestHead, _ exchange: Exchange) throws(CredentialError) -> UInt32 {
    var hasher = Hasher()
    hasher.combine(try Credential.token(of: request))
    hasher.combine(clientAddress(exchange, request).limitKey)
    return max(1, UInt32(truncatingIfNeeded: hasher.finalize()))
  }

  /// A newer session of the driver has taken over. A client that came again after it was told so gets 1000 in place of
  /// 4409: it connects again on every other code.
  mutating func closeReplaced(_ slot: Int, isRepeated: Bool) {
    guard isRepeated else { return close(slot, .replaced) }
    close(slot, .normal, "\(CloseReason.replaced.text)")
  }

  /// The hub admits the driver, and says how often it should send.
  mutating func admit(_ slot: Int, _ sampling: Connected.Sampling) {
    guard sessions[slot].phase == .admitting, let exchange = sessions[slot].exchange,
      let upgrade = exchange.upgrade
    else { return }
    open(slot, exchange, upgrade, sampling)
    settleIncomplete(slot)
  }

  /// The hub does not: too many sessions of this driver, or of all drivers.
  mutating func refuseDriver(_ slot: Int, _ status: Status, _ retryAfter: Double) {
    guard sessions[slot].phase == .admitting, let exchange = sessions[slot].exchange else { return }
    sessions[slot].phase = .http
    dismissSession(slot, exchange)
    counters.handshakesRefused += 1
    respond(
      slot, exchange, status, .rateLimited,
      status == .conflict ? "this driver's sessions replace each other too often" : "this hub's driver table is full",
      retryAfter: Int(retryAfter.rounded(.up)))
    advance(slot, exchange)
    settleIncomplete(slot)
  }

  /// Answers with 101 and `connected`, in one write, and handles what came right behind the request.
  private mutating func open(_ slot: Int, _ exchange: Exchange, _ upgrade: Upgrade, _ sampling: Connected.Sampling?) {
    let connection = sessions[slot].connection
    let start = loop.arena.count
    upgrade.handshake.write(into: &loop.arena, subprotocols: Self.subprotocols)
    loop.send(start..<loop.arena.count, to: connection)
    counters.count(status: 101)

    sessions[slot].phase = .open
    take(slot, upgrade.credential)
    sessions[slot].form = upgrade.form
    if upgrade.form == .binary { counters.binarySessions += 1 }
    sessions[slot].bucket = TokenBucket(burst: burst(of: slot), now: now.uptime)
    sessions[slot].exchange = nil
    sessions[slot].encoding = fanOut.open(slot, upgrade.form, upgrade.handshake.compression)
    if upgrade.handshake.compression != nil {
      sessions[slot].frames = FrameReader(role: .server, allowsCompression: true)
      counters.compressedSessionsOpened += 1
    }
    counters.sessions[Int(upgrade.credential.role.rawValue)] += 1
    counters.sessionsOpened += 1
    sendConnected(slot, upgrade.credential, sampling)
    tellVehicle(upgrade.credential)
    if shared.log.level == .debug { logOpened(connection, upgrade.credential) }
    armSessionTimer(slot)
    if isRevoked(upgrade.credential) {  // while the hub was asked
      return close(slot, CloseCode(CloseReason.tokenExpired.rawValue), "token revoked")
    }

    guard exchange.input.count > 0 else { return }
    exchange.input.withMutableBytes { receivedFrames(slot, $0) }
  }

  private func logOpened(_ connection: ConnectionID, _ credential: Credential) {
    shared.log(
      .debug, "session_opened",
      ["session": "\(sessionID(connection))", "role": "\(credential.role.name)", "id": "\(credential.id)"])
  }

  private mutating func sendConnected(_ slot: Int, _ credential: Credential, _ sampling: Connected.Sampling?) {
    let connected = Connected(
      sessionID: sessionID(sessions[slot].connection), role: credential.role, id: credential.id,
      heartbeatInterval: configuration.heartbeatInterval, serverTime: now.timestamp,
      limits: Connected.Limits(
        maxMessageBytes: limits.messageBytes, maxBatch: LocationBatch.maximumCount, rate: rate(of: slot)),
      sampling: sampling)
    send(.connected(connected), to: slot)
  }

  /// Names a session in logs and support cases: loop, slot and generation.
  func sessionID(_ connection: ConnectionID) -> InlineText {
    InlineText("s\(index)-\(connection.slot)-\(connection.generation)") ?? InlineText()
  }
}

extension UpgradeRefusal {
  /// What the developer of the client is told.
  var explanation: String {
    switch self {
    case .methodNotAllowed: "a WebSocket is opened with GET"
    case .versionTooOld: "a WebSocket needs HTTP/1.1"
    case .hasBody: "a request that opens a WebSocket has no body"
    case .upgradeMissing: "this is a WebSocket endpoint: send Upgrade: websocket"
    case .connectionMissing: "send Connection: Upgrade"
    case .malformedKey: "Sec-WebSocket-Key must be 16 bytes in base64, once"
    case .malformedVersion: "send Sec-WebSocket-Version: 13, once"
    case .malformedExtensions: "Sec-WebSocket-Extensions is malformed"
    case .unsupportedVersion: "this hub speaks version 13 of WebSocket only"
    }
  }
}
