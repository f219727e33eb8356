// `GET /v1/ws`: from a request to the parameters of a session. Whether there is room, and for drivers the hub's
// decision, is checked after that.
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport
import HubWebSocket

enum UpgradeEndpoint {
  static let subprotocols = Subprotocol.allCases.map(\.name)

  static func upgrade(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let upgrade: Upgrade
    do throws(Refusal) {
      upgrade = try read(call)
    } catch {
      var refusal = error
      refusal.counting = { $0.handshakesRefused += 1 }
      throw refusal
    }
    guard call.context.phase != .draining else {
      throw Refusal(.shuttingDown, "the hub is shutting down", retryAfter: 5)
    }
    return .upgrade(upgrade)
  }

  private static func read(_ call: HTTPCall) throws(Refusal) -> Upgrade {
    var handshake = try handshake(call)
    let time = try TimeFormat(call.query)
    let isBinary = handshake.subprotocol == Int(Subprotocol.binary.rawValue)
    // Its messages are short, with little redundancy.
    if isBinary { handshake.declineCompression() }
    let caller = try call.caller()
    if caller.isShare {
      // Ids are hidden in one form only.
      guard !isBinary, time == .unixMilliseconds else {
        throw Refusal(.badMessage, "a share's session is in JSON, with time=unix_ms")
      }
      handshake.declineCompression()
    }
    let upgrade = Upgrade(
      handshake: handshake, credential: caller, form: isBinary ? .binary : .json(time),
      client: try client(call))
    if let fault = call.query.fault(knowing: HTTPRoute.commonParameters) { throw Refusal(.badMessage, "\(fault)") }
    return upgrade
  }

  private static func handshake(_ call: HTTPCall) throws(Refusal) -> ServerHandshake {
    do throws(UpgradeRefusal) {
      return try ServerHandshake(
        call.request.head, subprotocols: subprotocols, compression: call.context.compression)
    } catch {
      throw Refusal(error)
    }
  }

  private static func client(_ call: HTTPCall) throws(Refusal) -> UInt32 {
    var hasher = Hasher()
    do throws(CredentialError) {
      hasher.combine(try Credential.token(of: call.request.head))
    } catch {
      throw Refusal(error)
    }
    hasher.combine(call.request.clientAddress(trusted: call.context.configuration.trustedProxies).limitKey)
    return max(1, UInt32(truncatingIfNeeded: hasher.finalize()))
  }
}
