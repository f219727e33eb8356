// Kept events: how they are stored and restored.
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
}
