// Whom clients' certificates stand for (`--client-cert`): back ends that have a certificate of their own need no token.
import HubCore
import HubHTTP
import HubMessages
import HubTokens
import HubTransport

/// Identities by the names in certificates.
public struct ClientCertificates: Sendable {
  /// What one may be written as, behind "must be".
  public static let words = "DNS:name, URI:uri or email:address, then = role, id, as DNS:api.example = ops, dispatch"

  private var identities: [String: (role: Role, id: Identifier)] = [:]

  public init() {}

  public var isEmpty: Bool { identities.isEmpty }

  /// Adds a row, `name = role, id`; false where it is none, or its name has another identity already.
  public mutating func add(_ text: String) -> Bool {
    // A URI may have the sign in it, an identity not.
    guard let sign = text.lastIndex(of: "=") else { return false }
    let parts = text[text.index(after: sign)...].split(separator: ",", omittingEmptySubsequences: false).map(trimmed)
    guard let name = ClientCertificates.name(trimmed(text[..<sign])), parts.count == 2,
      let role = Role(claim: parts[0]), let id = Identifier(parts[1]), identities[name] == nil
    else { return false }
    identities[name] = (role, id)
    return true
  }

  /// As `PeerCertificate` has it; nil for no name of a kind that it has.
  private static func name(_ text: String) -> String? {
    for kind in ["DNS:", "URI:", "email:"] where text.hasPrefix(kind) && text.count > kind.count {
      return kind == "DNS:" ? kind + text.dropFirst(kind.count).lowercased() : text
    }
    return nil
  }

  /// Who a certificate's owner is: by the first of its names that has an identity.
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
