// The durable state of the hub as a list of changes. Records store effects and not inputs: reading a journal sets what
// was set, so that a later version, or other limits, get the same trips.
import HubBytes
import HubGeo
import HubMessages

/// One change of the durable state: trips, drivers and their fixes, the events of channels, and their numbers.
enum DurableRecord: Equatable {
  /// The first record of a journal, and one at each new epoch. Seed and key never change: hashes of moves are kept, and
  /// drivers with new pseudonyms after a start could be identified by their positions.
  case epoch(InlineText, seed: UInt64, pseudonymKey: SipKey)
  /// The present state of a trip, new or changed.
  case trip(DurableTrip)
  case tripForgotten(Identifier)
  /// The ETA that was published for a trip.
  case eta(Identifier, DurableETA)
  /// An event on a channel, with its number.
  case event(Publication)
  /// A channel whose events are kept: the number of its newest. Written in snapshots, before the events.
  case channel(Channel, sequence: UInt64)
  case channelForgotten(Channel)
  /// No removed channel had a higher number. Written in snapshots.
  case highestSequence(UInt64)
  /// The fixes of one message. Readers of the journal get each (`FixesRecord`); this is what the hub restores of them.
  case fixes(DurableFixes)
  /// The present state of a driver: what it reported, and its newest fix.
  case driver(DurableDriver)
  /// `driver_offline` was published, at this time by the hub's wall clock.
  case driverOffline(Identifier, at: Timestamp)
  case driverForgotten(Identifier)
  /// No forgotten trip had a higher number. Written in snapshots.
  case highestTripNumber(UInt64)
  /// The present state of a fence, new or replaced.
  case fence(DurableFence)
  /// A fence was deleted, with all stays and pairs in it.
  case fenceDeleted(Identifier)
  /// A driver in a fence, or a change of its stay.
  case stay(DurableStay)
  case stayEnded(driver: Identifier, fence: Identifier)
  /// Two drivers in a roaming fence.
  case pair(DurablePair)
  case pairEnded(fence: Identifier, driver: Identifier, other: Identifier)
  case tokenFamily(TokenFamily)
  /// A family's newest tokens were replaced, at this time by the hub's wall clock.
  case tokensRotated(InlineText, serial: UInt64, at: Timestamp)
  /// The grace of a family's previous refresh token is over.
  case tokensSettled(InlineText)
  case tokenFamilyEnded(InlineText)
  /// Replaces a revocation of the same name.
  case revocation(Revocation)
  case unrevoked(RevokedName)
  /// For readers of the journal; the hub restores nothing of it.
  case audit(DurableAudit)
  /// The present state of a trip's search for a driver: the drivers that were asked, and the outcome.
  case offers(DurableOffers)
  /// An ended search of this trip was replaced by another one.
  case offersForgotten(Identifier)
}

/// What is stored of a trip.
struct DurableTrip: Equatable {
  var id: Identifier
  /// Numbers trips in the order in which they began.
  var number: UInt64
  /// When it began and was last moved, by the hub's wall clock.
  var created: Timestamp
  var updated: Timestamp
  var begunBy: Role
  var status: TripStatus
  var changed: Timestamp
  /// When a driver took it, by the hub's wall clock.
  var accepted: Timestamp?
  var driverID: Identifier?
  var riderID: Identifier?
  var pickup: Coordinate?
  var dropoff: Coordinate?
  var route: Route?
  /// As of when the record was written.
  var progress = TripProgress()
  /// By the hub's wall clock.
  var ended: Timestamp?
  /// Oldest first.
  var recentMoves: [UInt64]
  /// The newest published ETA, if it is for the present target.
  var eta: DurableETA?
  var shares: [TripShare] = []
  /// How many shares were made, also those that have expired and are in no list.
  var sharesMade: UInt8 = 0
}

/// What is stored of an ETA.
struct DurableETA: Equatable {
  var target: TripTarget
  var basis: ETABasis
  var meters: Double
  /// By the hub's wall clock.
  var arrival: Timestamp
}

/// What is stored of a driver.
struct DurableDriver: Equatable {
  var id: Identifier
  var status: DriverStatus
  var profile: DriverProfile
  /// Its newest fix that was published and stored.
  var newest: Timestamp?
  /// The time at which its position was published, where that differs from its own (Tracking/ClockChange.swift).
  var published: Timestamp?
  /// When the fix of `newest`, or without one the driver's last message, arrived by the hub's wall clock.
  var heard: Timestamp
  /// `driver_offline` was published, and no `driver_online` since.
  var isOffline = false
  /// When its last trip ended, ms since 1970 by the hub's wall clock; 0 for none.
  var lastTripEnded: Int64 = 0
  /// The trip that its newest published position, or else the last fix with a trip, named; and that position.
  var tripID: Identifier?
  var isPositionOnTrip = false
  var position: Position?
  var tracking = StoredTracking()
  /// Oldest first.
  var statusChanges: [UInt64] = []
}

extension Drivers {
  /// What is stored of a driver.
  func durable(_ driver: Int, trip: Identifier?, isPositionOnTrip: Bool) -> DurableDriver {
    var stored = self[driver].durable(
      profiles.profile(self[driver].profile), trip: trip, isPositionOnTrip: isPositionOnTrip)
    stored.statusChanges = recentStatusChanges(of: driver)
    return stored
  }
}
