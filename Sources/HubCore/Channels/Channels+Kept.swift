// Kept events: whether there is room for more, and how they are stored and restored.
import HubMessages

extension Channels {
  /// Applies a record of channels; false where it is invalid.
  mutating func load(_ record: DurableRecord) -> Bool {
    switch record {
    case .event(let event): return restore(event)
    case .channel(let name, let sequence): table.restore(name, sequence: sequence)
    case .channelForgotten(let name):
      if let channel = table.find(name) { _ = table.setKept(channel, false) }
    case .highestSequence(let number): table.restore(highestSequence: number)
    case .epoch, .trip, .tripForgotten, .eta, .fixes, .driver, .driverOffline, .driverForgotten, .highestTripNumber,
      .fence, .fenceDeleted, .stay, .stayEnded, .pair, .pairEnded, .tokenFamily, .tokensRotated, .tokensSettled,
      .tokenFamilyEnded,
      .revocation, .unrevoked, .audit, .offers, .offersForgotten:
      preconditionFailure("another domain's record")
    }
    return true
  }

  /// What is stored of channels, in an order that can be restored: names, then the events of all.
  func forEachRecord<E: Error>(_ body: (DurableRecord) throws(E) -> Void) throws(E) {
    let reserved = tripsThrough ?? 0
    try table.forEachKept { (name, sequence) throws(E) in
      try body(.channel(name, sequence: name == .trips ? max(sequence, reserved) : sequence))
    }
    try table.forEachEvent { (event) throws(E) in try body(.event(event)) }
  }

  var highestSequence: UInt64 { table.highestSequence }

  func keptNames() -> [Channel] { table.keptNames() }

  /// Whether kept events have room for `bytes` more of routes and texts.
  func hasRoom(forContent bytes: Int, below limit: Int) -> Bool { bytes == 0 || table.contentBytes + bytes <= limit }

  /// Whether kept events have room for a change's route on three channels: the trip's, the driver's and that of all
  /// trips.
  func hasRoom(forRouteOf change: TripChange, below limit: Int) -> Bool {
    let bytes = change.route?.polyline.utf8.count ?? 0
    return hasRoom(forContent: (trips == nil ? 2 : 3) * bytes, below: limit)
  }
}
