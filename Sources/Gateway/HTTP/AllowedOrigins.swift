// Which web pages may use the hub (RFC 6454, RFC 6455 §10.2, and the CORS protocol of the Fetch standard).
//
// A browser sends the page's origin in `Origin`, which no page can forge, where the page could read the answer or sends
// more than a GET. Links, images and frames of a page come without it, as do other programs' requests: their rights
// depend on their credential alone, and one of development is not taken from another origin's page (Credential.swift).
//
// A page of the hub's own origin is allowed, as with other WebSocket servers, but only where the hub is named by its
// address or as localhost: anybody can make a name point here (DNS rebinding), and a page under such a name would be of
// the same origin, too.
import HubHTTP
import HubTransport

/// The origins of `--allow-origin`.
public struct AllowedOrigins: Sendable, Equatable {
  private var list: [String] = []
  /// `*` was given: all pages.
  private(set) var areAll = false

  public init() {}

  /// Whether there is any beside the hub's own.
  var isEmpty: Bool { list.isEmpty && !areAll }

  /// Adds `scheme://host[:port]` or `*`. False for anything else, including a path and `null`: any page can have the
  /// origin `null`, so allowing it means `*`.
  public mutating func allow(_ text: String) -> Bool {
    if text == "*" {
      areAll = true
      return true
    }
    guard let origin = AllowedOrigins.normal(text) else { return false }
    list.append(origin)
    return true
  }

  enum Verdict: Equatable {
    /// Another program than a browser, or a page that cannot read the answer, or the hub's own.
    case noOrigin
    /// An allowed origin, as it was sent.
    case allowed(String)
    case refused
  }

  func verdict(on fields: HeaderFields) -> Verdict {
    switch fields.single("origin") {
    case .absent: return .noOrigin
    case .repeated: return .refused  // RFC 6454 §7.3: one at most
    case .value(let value):
      let text = String(decoding: value, as: UTF8.self)
      if areAll { return .allowed(text) }
      guard let origin = AllowedOrigins.normal(text) else { return .refused }
      return list.contains(origin) || isOwn(origin, host: fields.string("host")) ? .allowed(text) : .refused
    }
  }

  private func isOwn(_ origin: String, host: String?) -> Bool {
    guard let host, let own = AllowedOrigins.normal("http://\(host)"), AllowedOrigins.isAddress(own) else {
      return false
    }
    return origin == own || origin == AllowedOrigins.normal("https://\(host)")
  }

  private static func isAddress(_ origin: String) -> Bool {
    guard let host = AllowedHosts.host(of: String(origin.dropFirst("http://".count))) else { return false }
    return SocketAddress(host: host, port: 0) != nil
  }

  /// RFC 6454 §6.2: in lower case, without the scheme's default port. Nil where it is invalid.
  private static func normal(_ text: String) -> String? {
    // Checked first: to compare non-ASCII texts may take the square of their length.
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
    let lower = text.lowercased()
    guard let mark = lower.utf8.firstIndex(of: 0x3A), lower[mark...].hasPrefix("://") else { return nil }
    let scheme = lower[..<mark]
    var authority = lower[mark...].dropFirst(3)
    let isScheme = scheme.utf8.allSatisfy { ASCII.isTokenByte($0) } && scheme.first?.isLetter == true
    // RFC 3986 §3.2.2, without what no origin has: user information, lists, and the authority's end.
    let isAuthority = authority.utf8.allSatisfy { !"/?#@*,\\\"<>".utf8.contains($0) }
    guard isScheme, isAuthority, !authority.isEmpty, authority.first != ":" else { return nil }
    for (known, port) in [("http", ":80"), ("https", ":443"), ("ws", ":80"), ("wss", ":443")]
    where scheme == known && authority.hasSuffix(port) {
      authority = authority.dropLast(port.count)
    }
    return "\(scheme)://\(authority)"
  }
}
