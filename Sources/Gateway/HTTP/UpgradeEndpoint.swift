// `GET /v1/ws`: from a request to what a session needs. Whether there is room for it, and for drivers what the hub says
// of it, comes behind that.
import HubHTTP
import HubMessages
import HubWebSocket

/// What an upgrade will be answered with.
struct Upgrade {
  var handshake: ServerHandshake
  var credential: Credential
  var form: MessageForm
  /// Names who connects, by the token (development's credentials say no more than the id) and the address; never 0
  /// (`HubInput.driverConnecting`).
  var client: UInt32
}

enum UpgradeEndpoint {
  static let subprotocols = Subprotocol.allCases.map(\.name)

  static func upgrade(_ request: HTTPRequest, _ context: HTTPContext) throws(Refusal) -> Outcome {
    let upgrade: Upgrade
    do throws(Refusal) {
      upgrade = try read(request, context)
    } catch {
      var refusal = error
      refusal.kind = .upgrade
      throw refusal
    }
    guard context.phase != .draining else {
      throw Refusal(.shuttingDown, "the hub is shutting down", retryAfter: 5)
    }
    return .upgrade(upgrade)
  }

  private static func read(_ request: HTTPRequest, _ context: HTTPContext) throws(Refusal) -> Upgrade {
    var handshake = try handshake(request, context)
    guard let time = TimeFormat(queryValue: request.head.query.text("time")) else {
      throw Refusal(.badMessage, TimeFormat.queryHelp)
    }
    let isBinary = handshake.subprotocol == Int(Subprotocol.binary.rawValue)
    // Its messages are short, and have little in them that repeats.
    if isBinary { handshake.declineCompression() }
    let credential = try request.caller(by: context.credentials)
    let client = try client(request, context)
    if let fault = request.head.query.fault(knowing: HTTPRoute.commonParameters) {
      throw Refusal(.badMessage, "\(fault)")
    }
    return Upgrade(handshake: handshake, credential: credential, form: isBinary ? .binary : .json(time), client: client)
  }

  private static func handshake(
    _ request: HTTPRequest, _ context: HTTPContext
  ) throws(Refusal) -> ServerHandshake {
    do throws(UpgradeRefusal) {
      return try ServerHandshake(request.head, subprotocols: subprotocols, compression: context.compression)
    } catch {
      throw Refusal(error)
    }
  }

  private static func client(_ request: HTTPRequest, _ context: HTTPContext) throws(Refusal) -> UInt32 {
    var hasher = Hasher()
    do throws(CredentialError) { hasher.combine(try Credential.token(of: request.head)) } catch { throw Refusal(error) }
    hasher.combine(request.clientAddress(trusted: context.configuration.trustedProxies).limitKey)
    return max(1, UInt32(truncatingIfNeeded: hasher.finalize()))
  }
}
