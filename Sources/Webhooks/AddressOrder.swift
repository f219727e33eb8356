// Which of a name's addresses is tried first. One that swallows what is sent to it costs seconds, so the next try
// begins behind the address that failed, also after the name is looked up again.
import HubTransport

struct AddressOrder {
  /// The address that failed last.
  private var failed: SocketAddress?

  /// No connection to it came about, or no answer over it.
  mutating func note(failed address: SocketAddress) { failed = address }

  /// The addresses in their order, from the one behind that which failed last, around.
  func order(_ addresses: [SocketAddress]) -> [SocketAddress] {
    guard let failed, let index = addresses.firstIndex(of: failed) else { return addresses }
    return Array(addresses[(index + 1)...] + addresses[...index])
  }
}
