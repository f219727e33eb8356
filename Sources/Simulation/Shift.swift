// When a driver works: breaks with the app open or in the background, and times without a connection, so that a map
// shows all states. It has a random generator of its own, so it does not change the drive.

/// A driver's day, by the seconds of its simulation.
public struct Shift: Sendable {
  /// What a driver does for a while.
  public enum Part: Sendable, Equatable, CaseIterable {
    case working
    /// A break: the driver takes no trips.
    case unavailable
    /// A break with the app in the background.
    case background
    /// The phone is off, or out of reach.
    case offline
  }

  public private(set) var part = Part.working
  private var random: SplitMix64
  private var ends: Double

  /// The first break is spread over the first ten minutes, so that drivers who begin together do not rest together.
  public init(seed: UInt64, index: Int) {
    random = SplitMix64(seed: seed, index: index, purpose: 0x5F1F7)
    ends = random.uniform(10, 600)
  }

  /// Moves on to a time; returns the part that begins, if any. A break waits until the trip has ended.
  public mutating func step(to seconds: Double, isOnTrip: Bool) -> Part? {
    guard seconds >= ends, part != .working || !isOnTrip else { return nil }
    if part == .working {
      let chance = random.unit()
      part = chance < 0.5 ? .unavailable : chance < 0.75 ? .background : .offline
      // Longer than the hub's timeout for offline (60 s).
      ends = seconds + (part == .offline ? random.uniform(75, 150) : random.uniform(40, 180))
    } else {
      part = .working
      ends = seconds + random.uniform(240, 900)
    }
    return part
  }
}
