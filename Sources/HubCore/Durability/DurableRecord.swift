// What the hub must still know after its own death, as a list of changes. What is stored are effects and not inputs: to
// read a journal back means to set what was set, so that a later version, or other limits, come to the same trips.
import HubBytes
import HubGeo
import HubMessages

/// One change of the durable state: trips, drivers and their fixes, the events of channels, and their numbers.
enum DurableRecord: Equatable {
  /// The first record of a journal, and one at each new epoch. Seed and key never change: hashes of moves are kept, and
  /// drivers that got new pseudonyms at a start, where they were before it, could be told by their places.
  case epoch(InlineText, seed: UInt64, pseudonymKey: SipKey)
  /// A trip as it is now, new or changed.
  case trip(DurableTrip)
  case tripForgotten(Identifier)
  /// The ETA that a trip's people know.
  case eta(Identifier, DurableETA)
  /// An event on a channel, with its number.
  case event(Publication)
  /// A channel whose events are kept: the number of its newest. Written in snapshots, before the events.
  case channel(Channel, sequence: UInt64)
  case channelForgotten(Channel)
  /// No channel that is gone had a number above this. Written in snapshots.
  case highestSequence(UInt64)
  /// The fixes of one message. They are in the journal for who reads it; what the hub keeps of them is in this.
  case fixes(DurableFixes)
  /// A driver as it is now: what it says of itself, and its newest fix.
  case driver(DurableDriver)
  /// It was said that a driver is offline, at this time by the hub's wall clock.
  case driverOffline(Identifier, at: Timestamp)
  case driverForgotten(Identifier)
  /// No trip that is forgotten had a number above this. Written in snapshots.
  case highestTripNumber(UInt64)
  /// A fence as it is now, new or put again.
  case fence(DurableFence)
  /// It was deleted, and all stays and pairs in it went with it.
  case fenceDeleted(Identifier)
  /// A driver in a fence, or something of its stay has changed.
  case stay(DurableStay)
  case stayEnded(driver: Identifier, fence: Identifier)
  /// Two drivers in a roaming fence.
  case pair(DurablePair)
  case pairEnded(fence: Identifier, driver: Identifier, other: Identifier)
  case tokenFamily(TokenFamily)
  /// A family's newest tokens are others, since this time by the hub's wall clock.
  case tokensRotated(InlineText, serial: UInt64, at: Timestamp)
  /// Who used a family's refresh token last has had its time to ask once more.
  case tokensSettled(InlineText)
  case tokenFamilyEnded(InlineText)
  /// Takes the place of one of the same name.
  case revocation(Revocation)
  case unrevoked(RevokedName)
  /// For who reads the journal; the hub keeps nothing of it.
  case audit(DurableAudit)
  /// The search for a driver of a trip as it is now: whom the hub has asked, and what came of it.
  case offers(DurableOffers)
  /// An ended search of this trip gave way to another one.
  case offersForgotten(Identifier)
}

/// What is stored of a trip.
struct DurableTrip: Equatable {
  var id: Identifier
  /// In the order in which trips began.
  var number: UInt64
  /// When it began and was last moved, by the hub's wall clock.
  var created: Timestamp
  var updated: Timestamp
  var begunBy: Role
  var status: TripStatus
  var changed: Timestamp
  var driverID: Identifier?
  var riderID: Identifier?
  var pickup: Coordinate?
  var dropoff: Coordinate?
  var route: Route?
  /// As it was when the record was written.
  var progress = TripProgress()
  /// By the hub's wall clock.
  var ended: Timestamp?
  /// Oldest first.
  var recentMoves: [UInt64]
  /// The newest one that its people know, for the target that it has now.
  var eta: DurableETA?
  var shares: [TripShare] = []
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
  /// The time that its position was published by, where that is not its own (Tracking/ClockChange.swift).
  var published: Timestamp?
  /// When that fix came, or else the driver's word, by the hub's wall clock.
  var heard: Timestamp
  /// It was said that the driver is offline, and not that it is back.
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
  func durable(_ driver: Int, _ trips: borrowing Trips) -> DurableDriver {
    let positionTrip = self[driver].positionTrip.flatMap { trips.current($0) }
    let trip = positionTrip ?? self[driver].lastTrip.flatMap { trips.current($0) }
    var stored = self[driver].durable(
      profiles.profile(self[driver].profile), trip: trip.map { trips[$0].id }, isPositionOnTrip: positionTrip != nil)
    if let changes = statusChanges[driver] { stored.statusChanges = changes.oldestFirst }
    return stored
  }
}
