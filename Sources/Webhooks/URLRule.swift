// The receivers that may be set over HTTP, as the operator allows (`--webhook-allow`): a credential of ops alone must
// not make the hub send requests elsewhere (CWE-918). The parts of the URL are compared, since `https://hooks.example`
// is also the beginning of `https://hooks.example.evil.test/`.
public import HubTransport

/// Which URLs a webhook may have that is set over HTTP.
public struct URLRule: Sendable, Equatable {
  private enum Prefix: Equatable {
    /// `https://`: any host, over TLS.
    case secure
    case url(WebhookURL)
  }

  private var prefixes: [Prefix] = []
  /// Internal addresses that may be connected to, also over plain HTTP.
  public private(set) var addresses: [AddressBlock] = []

  /// Nothing is allowed.
  public init() {}

  /// Whether no URL is allowed.
  public var isEmpty: Bool { prefixes.isEmpty }

  /// Allows URLs that begin with a URL, or an internal address or block of addresses. False for any other text. A URL
  /// with a numeric address allows that address as well.
  public mutating func allow(_ text: String) -> Bool {
    if text == "https://" {
      prefixes.append(.secure)
    } else if let block = AddressBlock(text) {
      addresses.append(block)
    } else {
      guard let url = WebhookURL(text) else { return false }
      prefixes.append(.url(url))
      if let address = url.address, let block = AddressBlock(address.host) { addresses.append(block) }
    }
    return true
  }

  /// Whether a webhook may be set to this URL. The address of its connection is checked as well, by `addresses`.
  public func allows(_ url: WebhookURL) -> Bool {
    prefixes.contains { prefix in
      switch prefix {
      case .secure: url.isSecure
      case .url(let allowed):
        (url.isSecure, url.host, url.port) == (allowed.isSecure, allowed.host, allowed.port)
          && url.target.isBelow(allowed.target)
      }
    }
  }
}

extension String {
  /// Whether a path begins with another, in complete segments. One with `.` or `..` in it is only below `/`, because
  /// its receiver may resolve it to another path, some also after they drop what follows a semicolon in a segment.
  fileprivate func isBelow(_ path: String) -> Bool {
    if path == "/" { return true }
    guard hasPrefix(path) else { return false }
    let (rest, text) = (dropFirst(path.count), prefix { $0 != "?" }.lowercased())
    guard path.hasSuffix("/") || rest.isEmpty || rest.hasPrefix("/") || rest.hasPrefix("?") else { return false }
    // These are . / ; and the backslash, percent-encoded; some receivers take the last for a slash.
    guard !["%2e", "%2f", "%3b", "%5c"].contains(where: { text.contains($0) }) else { return false }
    return !text.split(separator: "/").map { $0.prefix { $0 != ";" } }.contains { $0 == "." || $0 == ".." }
  }
}
