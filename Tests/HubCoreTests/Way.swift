// A simulated way with its truth, and what a good phone says of it.
import Foundation
import HubGeo
import HubTestSupport

@testable import HubCore

/// A way of which each tenth of a second is known, made of stretches of constant acceleration and turn.
struct Way {
  struct Stretch {
    var seconds: Int
    /// m/s², until it stands; and degrees a second to the right.
    var acceleration = 0.0
    var turn = 0.0
  }

  private(set) var samples: [(place: Coordinate, speed: Double, heading: Double)] = []

  init(speed: Double, _ stretches: [Stretch]) {
    var (place, speed, heading) = (Coordinate(latitude: 48.137, longitude: 11.575)!, speed, 40.0)
    for stretch in stretches {
      for _ in 0..<stretch.seconds * 10 {
        samples.append((place, speed, heading))
        let next = max(0, speed + stretch.acceleration / 10)
        heading = (heading + stretch.turn / 10 + 360).truncatingRemainder(dividingBy: 360)
        place = Globe.place(from: place, bearing: heading, meters: (speed + next) / 20).place
        speed = next
      }
    }
  }

  /// Fixes of a good phone: errors of 1 m that drift, and 0.3 m that do not. Speed and bearing `late` seconds late, or
  /// none.
  func fixes(
    every: Double = 1, seed: UInt64, late: Double? = 0, white: Double = 0.3, stated: Double = 4
  ) -> [SimulatedDrive.Sample] {
    var random = SplitMix64(seed: seed)
    var drift = random.normals()
    let kept = exp(-every / 90)
    return stride(from: 0, to: samples.count, by: Int(every * 10)).map { index in
      drift = drift * kept + random.normals() * (1 - kept * kept).squareRoot()
      let now = samples[index]
      let before = samples[max(0, index - Int((late ?? 0) * 10))]
      let off = drift + random.normals() * white
      let seen = Globe.place(
        from: now.place, bearing: atan2(off.x, off.y) * 180 / .pi, meters: (off * off).sum().squareRoot()
      ).place
      return SimulatedDrive.Sample(
        fix: .at(
          Double(index) / 10, seen, accuracy: stated, speed: late == nil ? nil : before.speed,
          heading: late == nil || before.speed < 0.5 ? nil : before.heading),
        truth: now.place, speed: now.speed)
    }
  }
}
