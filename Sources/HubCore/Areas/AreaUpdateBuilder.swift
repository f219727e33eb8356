// One update of a cell while it is put together: whom it is about, and how many of them have been named.
//
// To name a driver takes its record, which is rarely in cache: half a microsecond. A cell shows operators up to 1,000,
// so that one update would hold the hub's thread for longer than a turn may last. Whom it is about is therefore written
// down at once, as numbers, and they are named over as many turns as it takes, each as it is when its turn comes.
import HubMessages

struct AreaUpdateBuilder {
  /// The cell's record, which may be another cell's by the time of the next turn.
  let area: Handle
  let isFull: Bool
  /// Who is told of where the cell still shows it.
  let drivers: [UInt32]
  /// Who was shown, and is told of where the cell shows it no more by that name.
  let departures: [AreaCell.Departure]
  /// How many of all these were looked at, the drivers first.
  private(set) var position = 0
  private(set) var named: [AreaUpdate.Driver] = []
  private(set) var details: [AreaUpdate.Details] = []
  private(set) var left: [Identifier] = []
  /// Of a block: its cells.
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

  /// The next one to be looked at; nil behind the last.
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
