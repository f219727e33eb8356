// What becomes of a trip when it is begun, moved or changed: decided by `Trips`, recorded and published by the hub.
import HubMessages

/// What a trip has come to: to be recorded, and to be published.
struct TripStep {
  let trip: Int
  /// Its number on a channel is the channel's.
  let update: TripUpdate
  /// It was not known before.
  var isNew = false
  /// It has a driver that it did not have: others may have followed it because it had none.
  var isClaimed = false
}

/// The driver who would begin a trip.
struct TripBeginner {
  let id: Identifier
  let driver: Handle
  /// Trips that it began before and that are known.
  let tripsBegun: Int
}

enum TripOutcome {
  case step(TripStep)
  /// It repeats what was said before, or changes nothing. The state is for who asks once more for the trip.
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
