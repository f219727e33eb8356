// A receiver's URL (RFC 9110 §4.2): http or https, a host, perhaps a port, path and query.
import HubBytes
import HubTransport

/// A receiver's URL in its parts.
public struct WebhookURL: Sendable, Equatable, CustomStringConvertible {
  public let isSecure: Bool
  /// A name in lower case, or a numeric address without brackets.
  public let host: String
  public let port: UInt16
  /// Path and query as sent.
  public let target: String

  /// Nil for any other text. Credentials (`user@`) and fragments are refused, since they would be dropped silently.
  public init?(_ text: String) {
    let isSecure = text.hasPrefix("https://")
    guard isSecure || text.hasPrefix("http://") else { return nil }
    self.init(rest: text.dropFirst(isSecure ? 8 : 7), isSecure: isSecure, defaultPort: isSecure ? 443 : 80)
  }

  /// The part behind `scheme://`.
  init?(rest: Substring, isSecure: Bool, defaultPort: UInt16) {
    guard rest.utf8.count <= 2048,
      rest.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x23 && $0 != 0x22 && $0 != 0x5C })
    else { return nil }
    self.isSecure = isSecure
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let authority = rest[..<end]
    let path = String(rest[end...])
    target = path.hasPrefix("/") ? path : "/" + path
    var (name, number) = (authority, "\(defaultPort)")
    if let colon = authority.lastIndex(of: ":"), authority.last != "]" {
      name = authority[..<colon]
      number = String(authority[authority.index(after: colon)...])
    }
    guard number.utf8.allSatisfy(\.isDigit), let port = UInt16(number), port > 0,
      let host = Self.host(String(name))
    else { return nil }
    self.port = port
    self.host = host
  }

  private static func host(_ text: String) -> String? {
    if text.hasPrefix("[") {
      guard text.hasSuffix("]"), let address = SocketAddress(host: text, port: 0), address.isIPv6 else { return nil }
      return address.host
    }
    let isName = text.utf8.allSatisfy { $0.isLetter || $0.isDigit || "-._".utf8.contains($0) }
    guard isName, 1...253 ~= text.utf8.count, !text.hasPrefix("."), !text.contains("..") else { return nil }
    return text.lowercased()
  }

  /// Host and port for the field `Host`: without the scheme's default port (RFC 9110 §7.2).
  public var authority: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
  }

  /// The URL's numeric address; nil for a name. `localhost` is looked up like any name.
  var address: SocketAddress? { host == "localhost" ? nil : SocketAddress(host: host, port: port) }

  /// Without path and query, which may contain a secret: some chat services have it in the path.
  public var description: String { "\(isSecure ? "https" : "http")://\(authority)" }
}
