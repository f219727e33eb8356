// A client's random numbers: handshake keys, masks, jitter. A seed makes a run repeatable.
//
// splitmix64 (`Mix64`), not a cryptographic generator: masks protect proxies from scripts that choose what a browser
// sends (RFC 6455 §10.3), and here the program itself chooses the payload. Without a seed the state comes from the
// system.
import HubBytes

struct ClientRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64?) {
    var system = SystemRandomNumberGenerator()
    state = seed ?? system.next()
  }

  mutating func next() -> UInt64 { Mix64.next(&state) }

  /// Uniform, 0 ≤ result < 1.
  mutating func unit() -> Double { Mix64.unit(next()) }
}
