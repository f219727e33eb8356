// Credentials as phone apps can bring them (protocol/phones.md): a token or a device's key, as Bearer, as the password
// of Basic, or in the URL.
import HubCore
import HubHTTP
import HubMessages
import HubTokens

extension CredentialCheck {
  /// The credential of an app's request. Phones have no certificates.
  mutating func phoneCredential(of head: RequestHead) throws(CredentialError) -> Credential {
    let key = head.query.text("key").map { Array($0.utf8) }
    guard let (scheme, value) = try authorization(of: head) else {
      guard let key else {
        guard access == nil || developmentHosts != nil || head.query.text("access_token") != nil else {
          throw CredentialError(text: CredentialCheck.none)
        }
        return try credential(of: head, nil)
      }
      guard head.query.text("access_token") == nil else { throw CredentialError(text: CredentialCheck.once) }
      return try credential(secret: key, known: "key")
    }
    guard key == nil, head.query.text("access_token") == nil else { throw CredentialError(text: CredentialCheck.once) }
    if ASCII.equals(scheme, "bearer") { return try credential(secret: Array(value), known: "token") }
    guard ASCII.equals(scheme, "basic") else {
      throw CredentialError(text: "Authorization must be Bearer <token>, or Basic with it as the password")
    }
    guard let (user, password) = BasicCredentials.read(value) else {
      throw CredentialError(text: "Authorization: Basic is not base64 of user:password")
    }
    let credential = try credential(secret: password, known: "password")
    guard user.isEmpty || Identifier(String(decoding: user, as: UTF8.self)) == credential.id else {
      throw CredentialError(text: "the user name must be the id that the password is of, or empty")
    }
    return credential
  }

  private static let none = """
    no credential: give a device's key or a token, as the password of Basic, as Bearer, or in the URL, as key= or \
    access_token=
    """
  private static let once = "give the credential in Authorization, in key or in access_token, in one of them only"

  private func authorization(
    of head: RequestHead
  ) throws(CredentialError) -> (scheme: ArraySlice<UInt8>, value: ArraySlice<UInt8>)? {
    switch head.fields.single("authorization") {
    case .absent: return nil
    case .repeated: throw CredentialError(text: "send Authorization once")
    case .value(let value):
      let scheme = value.prefix { $0 != 0x20 }
      return (scheme, value.dropFirst(scheme.count).drop { $0 == 0x20 })
    }
  }

  /// A device's key, or a token.
  private mutating func credential(secret: [UInt8], known kind: StaticString) throws(CredentialError) -> Credential {
    guard let access else {
      throw CredentialError(
        text: "this hub takes no \(kind): it was started with neither --device-keys nor --token-keys")
    }
    if let driver = access.devices.driver(of: secret) {
      guard !access.hasRevoked(driver, nil, now: now) else {
        throw CredentialError(text: "the device's key was revoked", isToken: true)
      }
      return Credential(role: .driver, id: driver, authority: .token(nil))
    }
    guard secret.count(where: { $0 == UInt8(ascii: ".") }) == 2 else {
      throw CredentialError(text: "this hub has no device with this key, and it is no token", isToken: true)
    }
    return try credential(of: secret, by: access)
  }
}
