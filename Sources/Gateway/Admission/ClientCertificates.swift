// Identities of clients' certificates (`--client-cert`): a back end with a certificate needs no token.
import HubCore
import HubHTTP
import HubMessages
import HubTokens
import HubTransport

/// Identities by the names in certificates.
public struct ClientCertificates: Sendable {
  /// The allowed forms, behind "must be".
  public static let words = "DNS:name, URI:uri or email:address, then = role, id, as DNS:api.example=ops,dispatch"

  private var identities: [String: (role: Role, id: Identifier)] = [:]

  public init() {}

  /// Whether no certificate stands for anybody.
  public var isEmpty: Bool { identities.isEmpty }

  /// Adds a row, `name = role, id`; false where it is invalid, or its name has another identity already.
  public mutating func add(_ text: String) -> Bool {
    // A URI may contain the sign, an identity may not.
    guard let sign = text.lastIndex(of: "=") else { return false }
    let parts = text[text.index(after: sign)...].split(separator: ",", omittingEmptySubsequences: false).map(trimmed)
    guard let name = ClientCertificates.name(trimmed(text[..<sign])), parts.count == 2,
      let role = Role(claim: parts[0]), let id = Identifier(parts[1]), identities[name] == nil
    else { return false }
    identities[name] = (role, id)
    return true
  }

  /// The name as `PeerCertificate` has it; nil for another kind of name.
  private static func name(_ text: String) -> String? {
    for kind in ["DNS:", "URI:", "email:"] where text.hasPrefix(kind) && text.count > kind.count {
      return kind == "DNS:" ? kind + text.dropFirst(kind.count).lowercased() : text
    }
    return nil
  }

  /// The identity of a certificate: that of the first of its names that has one.
  func credential(of certificate: PeerCertificate, now: Timestamp) throws(CredentialError) -> Credential {
    let end = Timestamp(milliseconds: certificate.notAfter &* 1000)
    guard now < end else { throw CredentialError(text: "the client certificate's time is over") }
    for name in certificate.names {
      guard let (role, id) = identities[name] else { continue }
      return Credential(role: role, id: id, authority: .token(nil), expires: end)
    }
    throw CredentialError(
      text: "this hub knows nobody by the names of the client certificate (--client-cert): "
        + (certificate.names.isEmpty ? "it has none" : certificate.names.prefix(4).joined(separator: ", ")))
  }
}

private func trimmed(_ text: Substring) -> String {
  String(text.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
}
