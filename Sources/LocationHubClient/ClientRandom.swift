// A client's chance: handshake keys, masks, jitter. A seed makes a run repeatable.
//
// splitmix64 (Steele, Lea, Flood, OOPSLA 2014). It is no cryptographic generator, and need not be: masks protect proxies
// from scripts that choose what a browser sends (RFC 6455 §10.3), and here whoever chooses the payload is the program
// itself. Without a seed the state comes from the system.

struct ClientRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64?) {
    var system = SystemRandomNumberGenerator()
    state = seed ?? system.next()
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z &>> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z &>> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z &>> 31)
  }

  /// Uniform, 0 ≤ result < 1.
  mutating func unit() -> Double { Double(next() &>> 11) * 0x1p-53 }
}
