// The client's address of a request: the socket's peer or, behind a proxy that the operator trusts (`--trusted-proxy`),
// the one in X-Forwarded-For. A de-facto standard, described at
// developer.mozilla.org/docs/Web/HTTP/Reference/Headers/X-Forwarded-For: each proxy appends the address that it was
// connected from. So from the right every address is trustworthy up to the first one that is no trusted proxy's; the
// client may have made up the rest.
import HubHTTP
import HubTransport

/// The address that a request counts for.
struct ClientAddress: Equatable {
  var address: SocketAddress
  /// False where a proxy in between did not state the client, or is not trusted.
  var isKnown: Bool

  /// `trusted` are the trusted proxies. Costs only the look-up where the peer is none of them.
  init(of fields: HeaderFields, peer: SocketAddress, trusted: [AddressBlock]) {
    guard trusted.contains(where: { $0.contains(peer) }) else {
      self.init(address: peer, isKnown: !ClientAddress.wasForwarded(fields))
      return
    }
    var client: SocketAddress?
    for element in fields.elements("x-forwarded-for").reversed() {
      guard let address = SocketAddress(forwarded: element) else {
        client = nil  // malformed: ignored
        break
      }
      client = address
      if !trusted.contains(where: { $0.contains(address) }) { break }
    }
    self.init(address: client ?? peer, isKnown: client != nil)
  }

  private init(address: SocketAddress, isKnown: Bool) {
    self.address = address
    self.isKnown = isKnown
  }

  /// Whether the request came from this machine, not only through a proxy on it.
  var isThisMachine: Bool { isKnown && address.isLoopback }

  /// The fields that proxies add (RFC 7239 §4, RFC 9110 §7.6.3, and usage).
  static func wasForwarded(_ fields: HeaderFields) -> Bool {
    fields["forwarded"] != nil || fields["via"] != nil || fields["x-real-ip"] != nil
      || fields.hasName(startingWith: "x-forwarded-")
  }
}

extension SocketAddress {
  /// The key by which the address is counted; nil where it has no limit. Never 0, which means "not counted".
  func countedKey(onLoopback: Bool) -> UInt64? {
    // ::1 has 0. Nothing else can have 1: ::/8 is reserved (RFC 4291 §2.4).
    onLoopback || !isLoopback ? max(1, limitKey) : nil
  }

  /// An element of X-Forwarded-For: an address, which some proxies write with its port, and IPv6 then in brackets.
  init?(forwarded element: ArraySlice<UInt8>) {
    // No names, especially not `localhost`, and none of the obfuscated identifiers of RFC 7239 §6.3.
    guard element.count <= 64, element.allSatisfy({ ASCII.hexValue($0) != nil || "[]:.".utf8.contains($0) }) else {
      return nil
    }
    var host = element
    var port: ArraySlice<UInt8>?
    if element.first == 0x5B {
      guard let end = element.firstIndex(of: 0x5D) else { return nil }
      host = element[...end]
      if end + 1 < element.endIndex {
        guard element[end + 1] == 0x3A else { return nil }
        port = element[(end + 2)...]
      }
    } else if let colon = element.firstIndex(of: 0x3A), colon == element.lastIndex(of: 0x3A) {
      host = element[..<colon]
      port = element[(colon + 1)...]
    }
    var number = 0
    if let port {
      guard let decimal = ASCII.decimal(port), decimal <= 65_535 else { return nil }
      number = decimal
    }
    self.init(host: String(decoding: host, as: UTF8.self), port: UInt16(number))
  }
}
