// The URL of a hub: `ws://HOST:PORT/path?query` (RFC 6455 §3), or `wss:` for TLS. The host stays a name here: the
// transport looks it up.
import HubBytes
public import HubMessages

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The fault of a URL, as a text for the person who typed it.
public enum HubURLError: Error, Equatable, CustomStringConvertible {
  case noScheme(String)
  case unsupportedScheme(String)
  case credentialsInURL
  case fragment
  case badHost(String)
  case badPort(String)
  /// A space, a control character or one beyond ASCII: to be percent-encoded.
  case badCharacter
  case badTimeOption(String)

  /// What is wrong with the URL and what to write instead, for developers.
  public var description: String {
    switch self {
    case .noScheme(let text): "\(text) is no URL: it should look like ws://127.0.0.1:8080/v1/ws or wss://…"
    case .unsupportedScheme(let scheme): "\(scheme):// is not a WebSocket URL: use ws:// or wss://"
    case .credentialsInURL: "user and password in the URL are not supported: use a token"
    case .fragment: "a WebSocket URL has no #fragment (RFC 6455 §3)"
    case .badHost(let host): "\(host) is no host: use a name, a numeric address such as 127.0.0.1, or [::1]"
    case .badPort(let port): "\(port) is not a port: use 1 to 65535"
    case .badCharacter: "the URL has a space, control or non-ASCII character: percent-encode it"
    case .badTimeOption(let value): "time=\(value) is not a time format: use unix_ms, apple or rfc3339"
    }
  }
}

/// A hub's WebSocket URL, checked.
public struct HubURL: Sendable, Hashable {
  /// A DNS name, or a numeric address without brackets; TLS requires a certificate for exactly this, but for the dot at
  /// the end of a complete name.
  public let host: String
  /// 1–65535.
  public let port: UInt16
  /// `wss`: TLS with a check of the hub's certificate.
  public let isSecure: Bool
  /// Path and query as sent in the request, beginning with `/`.
  public let target: String
  /// The format of timestamps on this connection: `time=` of the query.
  public let time: TimeFormat

  /// A hub at a host, with the hubs' usual path. The host is a name, or a numeric address without brackets.
  public init(
    host: String, port: UInt16, target: String = HubURL.defaultPath, isSecure: Bool = false
  ) throws(HubURLError) {
    guard HubURL.isName(host) || HubURL.isIPv6(host) else { throw .badHost(host) }
    guard port > 0 else { throw .badPort("\(port)") }
    guard target.utf8.first == UInt8(ascii: "/"), target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw .badCharacter
    }
    self.host = host
    self.port = port
    self.isSecure = isSecure
    self.target = target
    time = try HubURL.time(ofQueryIn: target)
  }

  /// Reads a URL. The default port is 80, or 443 for `wss` (RFC 6455 §3), the default path `/v1/ws`.
  public init(_ text: String) throws(HubURLError) {
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { throw .badCharacter }
    guard let separator = text.firstRange(of: "://") else { throw .noScheme(text) }
    let scheme = text[..<separator.lowerBound].lowercased()
    guard scheme == "ws" || scheme == "wss" else { throw .unsupportedScheme(scheme) }
    let rest = text[separator.upperBound...]
    guard !rest.contains("#") else { throw .fragment }
    let authorityEnd = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let authority = rest[..<authorityEnd]
    guard !authority.contains("@") else { throw .credentialsInURL }
    var target = String(rest[authorityEnd...])
    if target.isEmpty {
      target = HubURL.defaultPath
    } else if target.hasPrefix("?") {
      target = HubURL.defaultPath + target
    }
    let (host, port) = try HubURL.split(authority, defaultPort: HubURL.defaultPort(scheme == "wss"))
    try self.init(host: host, port: port, target: target, isSecure: scheme == "wss")
  }

  public static let defaultPath = "/v1/ws"

  private static func defaultPort(_ isSecure: Bool) -> UInt16 { isSecure ? 443 : 80 }

  /// For the Host field: without the scheme's default port (RFC 9110 §4.2.3).
  package var authority: String {
    let host = host.contains(":") ? "[\(host)]" : host
    return port == HubURL.defaultPort(isSecure) ? host : "\(host):\(port)"
  }

  /// This URL with one more parameter, whose name and value need no encoding.
  public func adding(_ name: String, _ value: String) throws(HubURLError) -> HubURL {
    try HubURL(
      host: host, port: port, target: target + (target.contains("?") ? "&" : "?") + name + "=" + value,
      isSecure: isSecure)
  }

  /// Whether the query has a parameter of this name.
  public func hasParameter(_ name: String) -> Bool { HubURL.parameters(target).contains { $0.name == name } }

  private static func split(_ authority: Substring, defaultPort: UInt16) throws(HubURLError) -> (String, UInt16) {
    var host = authority
    var port = defaultPort
    // The last colon begins the port, unless it is within the brackets of an IPv6 address (RFC 3986 §3.2.2).
    if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") {
      let digits = authority[authority.index(after: colon)...]
      guard let number = UInt16(digits), number > 0 else { throw .badPort(String(digits)) }
      host = authority[..<colon]
      port = number
    }
    guard host.hasPrefix("[") else {
      guard isName(String(host)) else { throw .badHost(String(host)) }
      return (String(host), port)
    }
    let bare = String(host.dropFirst().dropLast())
    guard host.hasSuffix("]"), isIPv6(bare) else { throw .badHost(String(host)) }
    return (bare, port)
  }

  /// Labels of 1–63 letters, digits, hyphens and underscores, up to 253 bytes in all (RFC 1123 §2.1, and underscores,
  /// which local names have). An IPv4 address is one, too.
  private static func isName(_ host: String) -> Bool {
    var labels = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    // The root's label, "hub.example.", marks a complete name.
    if labels.count > 1, labels.last?.isEmpty == true { labels.removeLast() }
    return host.utf8.count <= 253
      && labels.allSatisfy { label in
        (1...63).contains(label.count)
          && label.allSatisfy { $0.isLetter || $0.isDigit || "-_".utf8.contains($0) }
      }
  }

  private static func isIPv6(_ host: String) -> Bool {
    var address = in6_addr()
    return unsafe inet_pton(AF_INET6, host, &address) == 1
  }

  private static func time(ofQueryIn target: String) throws(HubURLError) -> TimeFormat {
    guard let value = parameters(target).first(where: { $0.name == "time" })?.value else { return .unixMilliseconds }
    switch value {
    case "unix_ms": return .unixMilliseconds
    case "apple": return .apple
    case "rfc3339": return .rfc3339
    case let other: throw .badTimeOption(String(other))
    }
  }

  private static func parameters(_ target: String) -> [(name: Substring, value: Substring)] {
    guard let mark = target.firstIndex(of: "?") else { return [] }
    return target[target.index(after: mark)...].split(separator: "&").map { item in
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return (parts[0], parts.count > 1 ? parts[1] : "")
    }
  }
}

extension HubURL: CustomStringConvertible {
  /// Without the query, which may contain a credential.
  public var description: String { "\(isSecure ? "wss" : "ws")://\(authority)\(target.prefix { $0 != "?" })" }
}
