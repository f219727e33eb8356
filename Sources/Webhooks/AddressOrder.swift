// The order in which a name's addresses are tried. One that does not answer costs seconds, so the next try begins
// behind the address that failed, also after another look-up.
import HubTransport

struct AddressOrder {
  /// The address that failed last.
  private var failed: SocketAddress?

  /// Notes an address without a connection or an answer.
  mutating func note(failed address: SocketAddress) { failed = address }

  /// The addresses in order, beginning behind the one that failed last, cyclically.
  func order(_ addresses: [SocketAddress]) -> [SocketAddress] {
    guard let failed, let index = addresses.firstIndex(of: failed) else { return addresses }
    return Array(addresses[(index + 1)...] + addresses[...index])
  }
}
