// Blocks of addresses: what is in them, beside a count bit by bit.

import Testing

@testable import HubTransport

@Suite struct `Address blocks` {
  private func block(_ text: String) throws -> AddressBlock { try #require(AddressBlock(text), "\(text)") }
  private func address(_ host: String) throws -> SocketAddress { try #require(SocketAddress(host: host, port: 443)) }

  @Test(arguments: [
    ("10.0.0.0/8", ["10.0.0.0", "10.255.255.255", "::ffff:10.1.2.3"], ["9.255.255.255", "11.0.0.0", "::a00:0"]),
    ("192.0.2.7", ["192.0.2.7"], ["192.0.2.6", "192.0.2.8"]),
    ("192.0.2.6/31", ["192.0.2.6", "192.0.2.7"], ["192.0.2.5", "192.0.2.8"]),
    ("0.0.0.0/0", ["0.0.0.0", "255.255.255.255"], ["::", "::1"]),
    ("::/0", ["::", "::1", "ffff::"], ["0.0.0.0", "10.0.0.1"]),
    ("fd00::/8", ["fd00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"], ["fc00::", "fe00::"]),
    ("2001:db8::/64", ["2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff"], ["2001:db8:0:1::", "2001:db7::1"]),
    ("2001:db8::8/125", ["2001:db8::8", "2001:db8::f"], ["2001:db8::7", "2001:db8::10"]),
    ("::1", ["::1"], ["::2", "127.0.0.1"]),
    ("::ffff:127.0.0.0/104", ["127.0.0.1", "127.255.0.1"], ["126.255.255.255", "128.0.0.0", "::1"]),
  ])
  func `hold their addresses and no others`(text: String, inside: [String], outside: [String]) throws {
    let block = try block(text)
    for host in inside { #expect(try block.contains(address(host)), "\(host)") }
    for host in outside { #expect(try !block.contains(address(host)), "\(host)") }
  }

  @Test(arguments: [
    "", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "10.0.0.1/8", "10.0.0/8",
    "::1/64", "::/129", "::ffff:0.0.0.0/95", "::ffff:10.0.0.1/104", "localhost", "[::1]", "example.org/8",
    "10.0.0.0/ 8", "10.0.0.0/99999999999999999999",
  ])
  func `are not read from anything else`(text: String) {
    #expect(AddressBlock(text) == nil)
  }

  @Test func `of every length hold what shares so many bits, counted one by one`() throws {
    var state: UInt64 = 7
    func random() -> UInt64 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return state ^ state >> 29
    }
    for length in 0...128 {
      for _ in 0..<50 {
        let (high, low) = (random() | 1 << 63, random())  // not in ::/8, where IPv4 would be
        let base = SocketAddress(
          high: length >= 64 ? high : high & ~(~0 >> UInt64(length)),
          low: length <= 64 ? 0 : low & ~(~0 >> UInt64(length - 64)), isIPv6: true, port: 0)
        let block = try block("\(base.host)/\(length)")
        #expect(block.description == "\(base.host)/\(length)")
        // Differs from the first address in one bit, or in none that counts.
        let bit = Int(random() % 128)
        let flipped = SocketAddress(
          high: bit < 64 ? base.high ^ 1 << UInt64(63 - bit) : base.high,
          low: bit < 64 ? base.low : base.low ^ 1 << UInt64(127 - bit), isIPv6: true, port: 1)
        #expect(block.contains(flipped) == (bit >= length), "\(block) and \(flipped)")
      }
    }
  }
}
