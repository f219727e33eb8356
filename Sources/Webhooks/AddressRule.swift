// The addresses that a webhook may connect to. Otherwise anybody who can set a URL could make the hub request internal
// services: its own admin port, a cloud's metadata service at 169.254.169.254 (CWE-918). The address of the connection
// is checked, after the look-up, since a name can change its address between two look-ups.
public import HubTransport

/// Which addresses a webhook may connect to: public ones over TLS, and those that the operator allows.
public struct AddressRule: Sendable, Equatable {
  /// Internal addresses that are allowed all the same, also over plain HTTP.
  public let allowed: [AddressBlock]

  public init(allowed: [AddressBlock] = []) { self.allowed = allowed }

  /// Whether a webhook may connect to this address; `isSecure`: over TLS.
  public func allows(_ address: SocketAddress, isSecure: Bool) -> Bool {
    if allowed.contains(where: { $0.contains(address) }) { return true }
    return isSecure && Self.isPublic(address)
  }

  /// Whether the address is public, by IANA's registries of special-purpose addresses (RFC 6890).
  static func isPublic(_ address: SocketAddress) -> Bool {
    if special.contains(where: { $0.contains(address) }) { return false }
    return !address.isIPv6 || globalUnicast.contains(address)
  }

  private static func block(_ text: String) -> AddressBlock {
    guard let block = AddressBlock(text) else { preconditionFailure("\(text) is no block") }
    return block
  }

  /// RFC 4291 §2.4: the part of global unicast in use.
  private static let globalUnicast = block("2000::/3")

  private static let special = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    "224.0.0.0/4", "240.0.0.0/4",
    // Protocol assignments with Teredo, documentation, and 6to4, which contains an IPv4 address.
    "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
  ].map(block)
}
