// The host names under which the hub serves what needs no secret: development credentials, and metrics without any.
//
// A browser sends no `Origin` with a GET to a page's own origin. So a page of http://evil.example:8080 whose name is
// made to point at 127.0.0.1 after it was loaded (DNS rebinding) looks like any program of this machine, except that
// its requests say `Host: evil.example:8080`, which no page can change (the Fetch standard forbids to set `Host`).
import HubBytes
import HubHTTP
import HubTransport

/// The hosts of `--allow-host`, beside loopback addresses and `localhost`, which are always allowed.
public struct AllowedHosts: Sendable, Equatable {
  private var list: [String] = []

  public init() {}

  /// Adds a name or a numeric address, without a port. False for anything else.
  public mutating func allow(_ text: String) -> Bool {
    guard let host = AllowedHosts.host(named: text) else { return false }
    list.append(host)
    return true
  }

  /// Whether a request names one of them in `Host`, with any port.
  ///
  /// - Parameter allowsAddresses: any numeric address is allowed, too. Rebinding needs a name, and a listener on all
  ///   addresses cannot know by which it is reached (a container's port that its host forwards).
  func allows(_ fields: HeaderFields, allowsAddresses: Bool = false) -> Bool {
    // Without Host (HTTP/1.0) the name that was used is unknown.
    guard case .value(let value) = fields.single("host"),
      let host = AllowedHosts.host(of: String(decoding: value, as: UTF8.self))
    else { return false }
    if let address = SocketAddress(host: host, port: 0), allowsAddresses || address.isLoopback { return true }
    return list.contains(host)
  }

  /// A name or a numeric address without a port, in the form of `host(of:)`.
  private static func host(named text: String) -> String? {
    if SocketAddress(host: text, port: 0)?.isIPv6 == true, text.first != "[" { return host(of: "[\(text)]") }
    // With a port already there, a second one is invalid.
    return host(of: "\(text):1")
  }

  /// The host of an authority (RFC 3986 §3.2.2) in lower case, without its port and without the brackets of an IPv6
  /// address; nil where it is invalid.
  static func host(of authority: String) -> String? {
    // Checked first: to compare non-ASCII texts may take the square of their length.
    guard authority.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
    let lower = authority.lowercased()
    if lower.first == "[" {
      guard let end = lower.firstIndex(of: "]"), isPort(lower[end...].dropFirst()) else { return nil }
      return SocketAddress(host: String(lower[...end]), port: 0)?.host  // an address has many spellings
    }
    let name = lower.prefix { $0 != ":" }
    let isName = name.utf8.allSatisfy { $0.isLetter || $0.isDigit || "-._".utf8.contains($0) }
    return isName && !name.isEmpty && isPort(lower[name.endIndex...]) ? String(name) : nil
  }

  /// Empty, or a colon and digits.
  private static func isPort(_ text: Substring) -> Bool {
    text.isEmpty || text.first == ":" && text.dropFirst().utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
  }
}
