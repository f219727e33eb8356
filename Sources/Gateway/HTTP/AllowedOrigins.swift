// Which web pages may use the hub (RFC 6454, RFC 6455 §10.2, and the CORS protocol of the Fetch standard).
//
// A browser sends along, in `Origin`, whose page makes a request, and no page can lie there. Programs that are no
// browser send none, and need none: what they may do is up to their credential alone.
//
// A page of the hub's own origin counts as allowed, as with other WebSocket servers, but only where the hub is named by
// its address or as localhost: any name can be made to point here by whoever owns it (DNS rebinding), and a page under
// such a name would be of "the same origin" too.
import HubHTTP
import HubTransport

/// The origins of `--allow-origin`.
public struct AllowedOrigins: Sendable, Equatable {
  private var list: [String] = []
  /// `*` was given: every page may.
  private(set) var areAll = false

  public init() {}

  /// Whether there is any beside the hub's own.
  var isEmpty: Bool { list.isEmpty && !areAll }

  /// Adds `scheme://host[:port]` or `*`. False for anything else, a path behind it and `null` included: any page can
  /// have the origin `null`, so whoever wants that wants `*`.
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
    /// No browser asks.
    case noOrigin
    /// As it was sent.
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

  /// RFC 6454 §6.2: in lower case, and without the scheme's own port. Nil for what is no origin.
  private static func normal(_ text: String) -> String? {
    let lower = text.lowercased()
    guard let mark = lower.utf8.firstIndex(of: 0x3A), lower[mark...].hasPrefix("://") else { return nil }
    let scheme = lower[..<mark]
    var authority = lower[mark...].dropFirst(3)
    let isScheme = scheme.utf8.allSatisfy { ASCII.isTokenByte($0) } && scheme.first?.isLetter == true
    // RFC 3986 §3.2.2, without what no origin has: user information, lists, and the end of the authority.
    let isAuthority = authority.utf8.allSatisfy {
      $0 > 0x20 && $0 < 0x7F && !"/?#@*,\\\"<>".utf8.contains($0)
    }
    guard isScheme, isAuthority, !authority.isEmpty, authority.first != ":" else { return nil }
    for (known, port) in [("http", ":80"), ("https", ":443"), ("ws", ":80"), ("wss", ":443")]
    where scheme == known && authority.hasSuffix(port) {
      authority = authority.dropLast(port.count)
    }
    return "\(scheme)://\(authority)"
  }
}
