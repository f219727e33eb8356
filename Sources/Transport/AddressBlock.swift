// A block of addresses in CIDR notation (RFC 4632 §3.1, RFC 4291 §2.3), such as `10.0.0.0/8` or `fd00::/8`. IPv4
// written as IPv6 (::ffff:10.0.0.0/104, RFC 4291 §2.5.5.2) is the IPv4 block, as in SocketAddress.

/// Addresses that share their first bits.
public struct AddressBlock: Sendable, Hashable {
  private let first: SocketAddress
  /// Bits that must be equal: 0–32 for IPv4, 0–128 for IPv6.
  public let length: Int

  /// From `address/length`, or an address alone, which is a block of one. Nil for anything else, and where bits behind
  /// `length` are set: `10.0.0.1/8` is a mistake of unknown intent.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    let host = String(parts[0])
    guard host != "localhost", !host.hasPrefix("["), let first = SocketAddress(host: host, port: 0) else { return nil }
    let written = host.contains(":") ? 128 : 32
    var length = written
    if parts.count == 2 {
      // Digits only: Int accepts a sign.
      guard !parts[1].isEmpty, parts[1].utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let bits = Int(parts[1]),
        bits <= written
      else { return nil }
      length = bits
    }
    if written == 128, !first.isIPv6 {
      guard length >= 96 else { return nil }  // a block of both families is two blocks
      length -= 96
    }
    self.first = first
    self.length = length
    let (high, low) = mask
    guard first.high & ~high == 0, first.low & ~low == 0 else { return nil }
  }

  /// The bits that must be equal, in the layout of SocketAddress.
  private var mask: (high: UInt64, low: UInt64) {
    // Shifts by 64 and more give 0 in Swift, as they should here.
    if first.isIPv6 { return (~0 << UInt64(64 - min(length, 64)), ~0 << UInt64(128 - max(length, 64))) }
    return (~0, ~0 << UInt64(32 - length))
  }

  /// Whether the address is in the block, with any port. One of the other family is not.
  public func contains(_ address: SocketAddress) -> Bool {
    let (high, low) = mask
    return address.isIPv6 == first.isIPv6 && address.high & high == first.high && address.low & low == first.low
  }
}

extension AddressBlock: CustomStringConvertible {
  /// For instance `10.0.0.0/8`.
  public var description: String { "\(first.host)/\(length)" }
}
