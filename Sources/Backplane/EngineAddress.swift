// The address of an engine's node: `redis://HOST:PORT`, or `rediss://` for TLS. Hosts are numeric, as everywhere in the
// hub (SocketAddress.swift).
public import HubTransport

/// A node of the engine.
public struct EngineAddress: Sendable, Hashable, CustomStringConvertible {
  public let address: SocketAddress
  public let isSecure: Bool
  /// The subject of its certificate.
  public let host: String

  /// Nil for any other text; credentials are separate settings.
  public init?(_ text: String) {
    let isSecure = text.hasPrefix("rediss://")
    guard isSecure || text.hasPrefix("redis://") else { return nil }
    let rest = text.dropFirst(isSecure ? 9 : 8)
    guard let colon = rest.lastIndex(of: ":"), let port = UInt16(rest[rest.index(after: colon)...]), port > 0,
      let address = SocketAddress(host: String(rest[..<colon]), port: port)
    else { return nil }
    self.address = address
    self.isSecure = isSecure
    host = address.host
  }

  /// The address as a URL, without credentials.
  public var description: String { "\(isSecure ? "rediss" : "redis")://\(address)" }
}
