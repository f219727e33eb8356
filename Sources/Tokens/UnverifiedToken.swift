// What the holder of a token can read of it without the key. It proves nothing, so no server goes by it.
public import HubMessages

/// A token that one was given, as far as its holder needs to look into it.
public enum UnverifiedToken {
  /// `exp` (RFC 7519 §4.1.4): when the token ends; nil where it has none that can be read. O(length).
  public static func expires(_ token: String) -> Timestamp? {
    let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let payload = Base64URL.decode(parts[1]), let claims = JSONValue(parsing: payload)?.members
    else { return nil }
    do throws(TokenError) { return try Claims.date(claims, "exp", .exp) } catch { return nil }
  }
}
