// The outcome of beginning, moving or changing a trip: decided by `Trips`, recorded and published by the hub.
import HubMessages

/// The new state of a trip, to be recorded and published.
struct TripStep {
  let trip: Int
  /// Its number is set later, for each channel.
  let update: TripUpdate
  /// The trip is new.
  var isNew = false
  /// The trip has just got its driver: those who could follow it only while it had none no longer can.
  var isClaimed = false
}

/// The driver that creates a trip.
struct TripCreator {
  let id: Identifier
  let driver: Handle
  /// Known trips that it created.
  let tripsBegun: Int
}

enum TripOutcome {
  case step(TripStep)
  /// A repetition, or no change. The state is for a repeated `requested`.
  case unchanged(showing: TripState?)
}

extension TripUpdate {
  /// A copy with its number on a channel.
  func numbered(_ sequence: UInt64) -> TripUpdate {
    var update = self
    update.sequence = sequence
    return update
  }
}
