// The URL of a stream of events: `nats://`, `redis://`, with TLS `tls://` (NATS) and `rediss://`, or `http(s)://` for
// batches.

/// A stream's server.
public struct StreamURL: Sendable, Equatable, CustomStringConvertible {
  /// The protocol, by the URL's scheme.
  public enum Kind: Sendable, Equatable {
    /// NATS JetStream.
    case nats
    /// Redis Streams, also of Valkey.
    case redis
    /// Lines of JSON in signed POSTs.
    case batches
  }

  public let kind: Kind
  /// Host, port and path, and whether it uses TLS. Its own description has another scheme.
  let url: WebhookURL

  /// Nil for any other text, or a path where the kind has none. Default ports are 4222, 6379, 80 and 443.
  public init?(_ text: String) {
    if let url = WebhookURL(text) {
      (kind, self.url) = (.batches, url)
      return
    }
    guard let (scheme, kind, isSecure, port) = Self.schemes.first(where: { text.hasPrefix($0.0) }),
      let url = WebhookURL(rest: text.dropFirst(scheme.count), isSecure: isSecure, defaultPort: port),
      url.target == "/"
    else { return nil }
    (self.kind, self.url) = (kind, url)
  }

  private static let schemes: [(String, Kind, isSecure: Bool, port: UInt16)] = [
    ("nats://", .nats, false, 4222), ("tls://", .nats, true, 4222), ("redis://", .redis, false, 6379),
    ("rediss://", .redis, true, 6379),
  ]

  /// Whether the connection is over TLS, by the scheme.
  public var isSecure: Bool { url.isSecure }

  /// Without path and query, which may contain a secret.
  public var description: String {
    let host = url.host.contains(":") ? "[\(url.host)]" : url.host
    return switch kind {
    case .batches: url.description
    case .nats: "\(isSecure ? "tls" : "nats")://\(host):\(url.port)"
    case .redis: "\(isSecure ? "rediss" : "redis")://\(host):\(url.port)"
    }
  }
}
