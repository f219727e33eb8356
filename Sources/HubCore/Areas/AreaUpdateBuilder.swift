// An update of a cell while it is built: its drivers, and how many of them have been named.
//
// Naming a driver reads its record, which is rarely in cache: 0.5 µs. A cell shows operators up to 5,000, so one update
// could hold the hub's thread for longer than a turn may last. So the drivers' numbers are collected at once, and the
// drivers are named over as many turns as it takes, each in its state at that time.
import HubMessages

struct AreaUpdateBuilder {
  /// The cell's record, which may be reused by the next turn.
  let area: Handle
  let isFull: Bool
  /// Drivers to publish where the cell still shows them.
  let drivers: [UInt32]
  /// Drivers that were shown, to be published as departed where the cell no longer shows them by that name.
  let departures: [AreaCell.Departure]
  /// How many of both were looked at, drivers first.
  private(set) var position = 0
  private(set) var named: [AreaUpdate.Driver] = []
  private(set) var details: [AreaUpdate.Details] = []
  private(set) var left: [Identifier] = []
  /// The cells of a block.
  var counts: [CountsUpdate.Cell] = []

  init(_ area: Handle, isFull: Bool, drivers: [UInt32], departures: [AreaCell.Departure], atMost limit: Int) {
    self.area = area
    self.isFull = isFull
    self.drivers = drivers
    self.departures = departures
    named.reserveCapacity(min(drivers.count, limit))
  }

  var isDone: Bool { position == drivers.count + departures.count }

  enum Step {
    case driver(UInt32)
    case departure(AreaCell.Departure)
  }

  /// The next driver to look at; nil behind the last.
  mutating func next() -> Step? {
    if isDone { return nil }
    position += 1
    return position <= drivers.count
      ? .driver(drivers[position - 1]) : .departure(departures[position - 1 - drivers.count])
  }

  mutating func add(_ driver: AreaUpdate.Driver, _ details: AreaUpdate.Details?) {
    named.append(driver)
    if let details { self.details.append(details) }
  }

  mutating func add(departed name: Identifier) { left.append(name) }
}
