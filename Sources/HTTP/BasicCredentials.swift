// HTTP Basic authentication.

import HubBytes

/// `user:password` in base64 (RFC 7617).
public enum BasicCredentials {
  /// Nil where it is malformed. A password may have colons, a user name none.
  public static func read(_ text: some Collection<UInt8>) -> (user: [UInt8], password: [UInt8])? {
    var digits = Array(text)
    while digits.last == UInt8(ascii: "=") || digits.last == 0x20 { digits.removeLast() }  // some phones omit padding
    guard let bytes = Base64.unpadded.decode(digits), let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
      return nil
    }
    return (Array(bytes[..<colon]), Array(bytes[(colon + 1)...]))
  }
}
