// A hub that takes tokens, and the tokens for it.
import Foundation
import HubBytes
import HubGateway
import HubMessages
import HubTokens

/// A hub that takes tokens of one secret, and makes them.
struct TokenHub {
  let hub: TestHub
  let keys: KeySet

  init(loops: Int = 1, _ change: (inout ServerConfiguration) -> Void = { _ in }) throws {
    let keys = try KeySet(parsing: Array("0123456789abcdef0123456789abcdef\n".utf8))
    self.keys = keys
    hub = try TestHub(loops: loops) {
      $0.allowsDevelopmentCredentials = false
      $0.tokens = TokenAccess(verifier: TokenVerifier(keys: keys))
      change(&$0)
    }
  }

  private static var milliseconds: Int64 { Int64(Date().timeIntervalSince1970 * 1000) }

  /// A token; `lasts` in seconds.
  func token(
    _ role: Role, _ id: String, trips: [String] = [], channels: [String] = [], jti: String? = nil,
    limits: SessionLimits? = nil, vehicle: VehicleClaims? = nil, lasts: Double = 60
  ) throws -> String {
    let grants = Grants(
      trips: trips.compactMap { NamePattern($0) }, channels: channels.compactMap { ChannelPattern($0) }, limits: limits,
      vehicle: vehicle, tokenID: jti.flatMap { .init($0) })
    let expires = Timestamp(milliseconds: TokenHub.milliseconds + Int64(lasts * 1000))
    let claims = Claims(subject: Identifier(id)!, role: role, expires: expires, grants: grants)
    return String(decoding: try keys.keys[0].token(TokenRequest(claims: claims)), as: UTF8.self)
  }

  /// An open session, whose `connected` was read.
  func join(_ token: String) throws -> Peer {
    let peer = try Peer(port: hub.port, query: "access_token=\(token)")
    _ = try peer.receive("connected")
    return peer
  }

  func revoke(_ ids: String) throws {
    hub.server.replaceTokens(
      TokenAccess(verifier: TokenVerifier(keys: keys), revoked: try RevocationList(parsing: Array(ids.utf8))))
  }
}

extension Peer {
  /// What comes of subscribing: `subscribed`, or the code of the error. What else comes before it is passed over.
  func answer(toSubscribing channel: String) throws -> String {
    let id = try send("subscribe", ["channel": channel])
    while true {
      switch try next(waitingFor: "the answer to subscribe") {
      case .message(let message): if message.replyTo == id { return message.code ?? message.type }
      case .ping, .pong: continue
      case .close(let code): throw PeerError.unexpected("closed with \(code ?? 0)")
      case .end: throw PeerError.ended(waitingFor: "the answer to subscribe")
      }
    }
  }
}
