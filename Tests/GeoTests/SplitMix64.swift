// Seeded randomness for tests: the same seed gives the same run. Steele, Lea, Flood, "Fast Splittable Pseudorandom
// Number Generators", OOPSLA 2014.

import Foundation
import Geo

struct SplitMix64: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
    return z ^ z >> 31
  }

  /// Evenly spread over the sphere, with the corners of the map thrown in.
  mutating func coordinate() -> Coordinate {
    if Int.random(in: 0..<16, using: &self) == 0 {
      let latitude = [-90.0, -45, 0, 45, 90].randomElement(using: &self)!
      let longitude = [-180.0, -90, 0, 90, 180].randomElement(using: &self)!
      return Coordinate(latitude: latitude, longitude: longitude)!
    }
    let z = Double.random(in: -1...1, using: &self)
    return Coordinate(
      clampingLatitude: degrees(sine: z), wrappingLongitude: .random(in: -180...180, using: &self))
  }
}

private func degrees(sine: Double) -> Double { asin(sine) * 180 / .pi }

/// A coordinate written in a test.
func at(_ latitude: Double, _ longitude: Double) -> Coordinate {
  Coordinate(latitude: latitude, longitude: longitude)!
}
