// What the holder of a token can read without the key. It proves nothing, so no server uses it.
import HubBytes
public import HubMessages

/// Reads a token for its holder.
public enum UnverifiedToken {
  /// `exp` (RFC 7519 §4.1.4): when the token ends; nil where it is absent or unreadable. O(length).
  public static func expires(_ token: String) -> Timestamp? {
    let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    // NumericDate (RFC 7519 §2): seconds, perhaps with a fraction; up to the year 9999, as everywhere.
    guard parts.count == 3, let payload = Base64.url.decode(parts[1]),
      let seconds = JSONValue(parsing: payload)?.members?["exp"]?.number, (0...253_402_300_799).contains(seconds)
    else { return nil }
    return Timestamp(milliseconds: Int64((seconds * 1000).rounded(.down)))
  }
}
