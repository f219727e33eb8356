// Where a hub is: `ws://HOST:PORT/path?query` (RFC 6455 §3), or `wss:` for TLS, as far as this client can go there.
// Hosts are numeric, or `localhost`: resolving names blocks for seconds, and nothing here may.
public import HubMessages
public import HubTransport

/// What is wrong with a URL, in words for the person who typed it.
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

  public var description: String {
    switch self {
    case .noScheme(let text): "\(text) is no URL: it should look like ws://127.0.0.1:8080/v1/ws or wss://…"
    case .unsupportedScheme(let scheme): "\(scheme):// is not a WebSocket URL: use ws:// or wss://"
    case .credentialsInURL: "user and password in the URL are not supported: use a token"
    case .fragment: "a WebSocket URL has no #fragment (RFC 6455 §3)"
    case .badHost(let host):
      "\(host) is not a numeric address: names are not resolved; use 127.0.0.1, [::1] or localhost"
    case .badPort(let port): "\(port) is not a port: use 1 to 65535"
    case .badCharacter: "the URL has a space, control or non-ASCII character: percent-encode it"
    case .badTimeOption(let value): "time=\(value) is not a time format: use unix_ms, apple or rfc3339"
    }
  }
}

/// A hub's WebSocket URL, checked.
public struct HubURL: Sendable, Hashable {
  public var address: SocketAddress
  /// `wss`: TLS, and the hub's certificate is checked.
  public let isSecure: Bool
  /// Whom that certificate must be for: the host as the URL has it, a name or a numeric address without brackets.
  public let certificateName: String
  /// Path and query as sent in the request, beginning with `/`.
  public var target: String
  /// How timestamps are written on this connection: what `time=` in the query says.
  public var time: TimeFormat

  /// A hub at an address, with the path that hubs serve WebSockets on.
  public init(
    address: SocketAddress, target: String = HubURL.defaultPath, isSecure: Bool = false, certificateName: String? = nil
  ) throws(HubURLError) {
    guard target.utf8.first == UInt8(ascii: "/"), target.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw .badCharacter
    }
    self.address = address
    self.isSecure = isSecure
    self.certificateName = certificateName ?? address.host
    self.target = target
    time = try HubURL.time(ofQueryIn: target)
  }

  /// Reads a URL. The port is 80, or 443 for `wss`, where none is given (RFC 6455 §3), the path `/v1/ws` where there is
  /// none.
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
    let isSecure = scheme == "wss"
    let (address, name) = try HubURL.address(authority, defaultPort: HubURL.defaultPort(isSecure))
    try self.init(address: address, target: target, isSecure: isSecure, certificateName: name)
  }

  public static let defaultPath = "/v1/ws"

  private static func defaultPort(_ isSecure: Bool) -> UInt16 { isSecure ? 443 : 80 }

  /// The authority for the Host field.
  var host: String {
    guard address.port == HubURL.defaultPort(isSecure) else { return "\(address)" }
    return address.isIPv6 ? "[\(address.host)]" : address.host
  }

  /// The same URL with one more parameter, whose name and value need no encoding.
  public func adding(_ name: String, _ value: String) throws(HubURLError) -> HubURL {
    try HubURL(
      address: address, target: target + (target.contains("?") ? "&" : "?") + name + "=" + value, isSecure: isSecure,
      certificateName: certificateName)
  }

  /// Whether the query has a parameter of this name.
  public func hasParameter(_ name: String) -> Bool { HubURL.parameters(target).contains { $0.name == name } }

  private static func address(
    _ authority: Substring, defaultPort: UInt16
  ) throws(HubURLError) -> (SocketAddress, name: String) {
    var host = authority
    var port = defaultPort
    // The last colon begins the port, unless it stands within the brackets of an IPv6 address (RFC 3986 §3.2.2).
    if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") {
      let digits = authority[authority.index(after: colon)...]
      guard let number = UInt16(digits), number > 0 else { throw .badPort(String(digits)) }
      host = authority[..<colon]
      port = number
    }
    guard !host.contains(":") || host.hasPrefix("["), let address = SocketAddress(host: String(host), port: port) else {
      throw .badHost(String(host))
    }
    return (address, String(host.hasPrefix("[") ? host.dropFirst().dropLast() : host))
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
  /// Without the query, which may hold a credential.
  public var description: String { "\(isSecure ? "wss" : "ws")://\(host)\(target.prefix { $0 != "?" })" }
}
