// What is kept of channels: whether there is room for more, and how it is stored and read back.
import HubMessages

extension Channels {
  mutating func restore(_ name: Channel, sequence: UInt64) -> Bool { table.restore(name, sequence: sequence) }

  mutating func restore(highestSequence number: UInt64) { table.restore(highestSequence: number) }

  mutating func restoreForgotten(_ name: Channel) -> Bool {
    guard let channel = table.find(name) else { return false }
    _ = table.setKept(channel, false)
    return true
  }

  /// What is stored of channels, in an order in which it can be restored: their names, then the events of all.
  func forEachRecord<E: Error>(_ body: (DurableRecord) throws(E) -> Void) throws(E) {
    try table.forEachKept { (name, sequence) throws(E) in try body(.channel(name, sequence: sequence)) }
    try table.forEachEvent { (event) throws(E) in try body(.event(event)) }
  }

  var highestSequence: UInt64 { table.highestSequence }

  func keptNames() -> [Channel] { table.keptNames() }

  /// Whether kept events have room for so many bytes more of routes and texts.
  func hasRoom(forContent bytes: Int, below limit: Int) -> Bool { bytes == 0 || table.contentBytes + bytes <= limit }

  /// Whether kept events have room for the route of a change: on the trip's channel, the driver's, and that of all
  /// trips.
  func hasRoom(forRouteOf change: TripChange, below limit: Int) -> Bool {
    let bytes = change.route?.polyline.utf8.count ?? 0
    return hasRoom(forContent: (trips == nil ? 2 : 3) * bytes, below: limit)
  }
}
