// What a map of drivers shows, kept from area updates by the protocol's rules (protocol/areas.md).
import HubGeo
import HubMessages

/// The drivers of the cells that a client watches. A value; no clock, no I/O.
public struct AreaMap: Sendable {
  /// A driver, and the cell that showed it last.
  public struct Entry: Sendable, Equatable {
    public var driver: AreaUpdate.Driver
    public var cell: GeohashCell
  }

  public private(set) var drivers: [Identifier: Entry] = [:]
  /// How many more drivers a crowded cell has than it shows.
  public private(set) var more: [GeohashCell: Int] = [:]

  public init() {}

  /// Takes in an update. What a cell says of a driver counts until another cell shows it: `left` only from the one that
  /// did last, and likewise for who is missing from a whole cell. O(drivers of the update; of the map where it is
  /// full).
  public mutating func apply(_ update: AreaUpdate) {
    if update.isFull {
      let named = Set(update.drivers.map(\.driverID))
      for (id, entry) in drivers where entry.cell == update.cell && !named.contains(id) { drivers[id] = nil }
    }
    for driver in update.drivers { drivers[driver.driverID] = Entry(driver: driver, cell: update.cell) }
    for id in update.left where drivers[id]?.cell == update.cell { drivers[id] = nil }
    more[update.cell] = update.more
  }

  /// Keeps the cells that are watched from now on (`Subscribed.cells`) and drops the others with who is in them.
  public mutating func keep(_ cells: [GeohashCell]) {
    let kept = Set(cells)
    for (id, entry) in drivers where !kept.contains(entry.cell) { drivers[id] = nil }
    for cell in more.keys where !kept.contains(cell) { more[cell] = nil }
  }
}
