// Revocations as back ends write them over HTTP: the body of `POST /v1/revocations`, and names in a query.
package import HubBytes
package import HubMessages

extension Revocation {
  /// Reads the members `sub` or `jti`, and `until?`, with which it must still be in force.
  /// - Throws: `bad_message`.
  package init(members: [String: JSONValue], time: TimeFormat, now: Timestamp) throws(ErrorReply) {
    let (sub, jti) = (try Self.text(members, "sub"), try Self.text(members, "jti"))
    let name = try RevokedName(sub: sub, jti: jti)
    var end: Timestamp?
    if let value = members["until"], value != .null {
      // The time of the token's claim `exp`, but in the request's time format.
      guard let until = Timestamp(value, as: time) else { throw .badRevocation("until must be a time") }
      guard until >= .earliestFromClients else { throw .badRevocation("until: \(time.earlyExplanation)") }
      end = until
    }
    self.init(name, until: end)
    guard inForceUntil.map({ $0 > now }) ?? true else { throw .badRevocation("until has passed") }
  }

  private static func text(_ members: [String: JSONValue], _ name: String) throws(ErrorReply) -> String? {
    guard let value = members[name], value != .null else { return nil }
    guard let text = value.string else { throw .badRevocation("\(name) must be a text") }
    return text
  }
}

extension RevokedName {
  /// The name that a back end gives: one of the two.
  /// - Throws: `bad_message`.
  package init(sub: String?, jti: String?) throws(ErrorReply) {
    switch (sub, jti) {
    case (let sub?, nil):
      guard let id = Identifier(sub) else { throw .badRevocation("sub must be 1-64 of A-Z a-z 0-9 . _ -") }
      self = .subject(id)
    case (nil, let jti?):
      guard let id = InlineText(jti), !id.isEmpty else { throw .badRevocation("jti must be 1-64 bytes") }
      self = .tokenID(id)
    case (nil, nil), (_?, _?): throw .badRevocation("give sub or jti, one of them")
    }
  }
}

extension ErrorReply {
  fileprivate static func badRevocation(_ message: String) -> ErrorReply {
    ErrorReply(code: .badMessage, message: message)
  }
}
