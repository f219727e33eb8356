// The drivers of a part of the map, assembled from the hub's updates of cells (protocol/areas.md).
import HubGeo
public import HubMessages

/// The drivers around a coordinate.
public struct AreaMap: Sendable, Equatable {
  /// A driver as riders see it: a pseudonym that changes from time to time, and a position to some 20 m.
  public typealias Driver = AreaUpdate.Driver

  private struct Cell: Equatable {
    var drivers: Set<DriverID> = []
    var more = 0
    /// Drivers of the last updates beyond this map's limit.
    var unkept = 0
  }

  /// The drivers on the map, by their ids.
  public private(set) var drivers: [DriverID: Driver] = [:]
  /// Grows by one a second; 0 before the first update.
  public private(set) var tick: UInt64 = 0
  private var cells: [GeohashCell: Cell] = [:]

  public init() {}

  /// The number of further drivers in crowded cells: those that the hub counts, and those beyond the 5,000 of a cell
  /// that this map keeps.
  public var more: Int {
    cells.values.reduce(0) { sum, cell in
      let (all, isOver) = sum.addingReportingOverflow(cell.more)
      let (more, isFarOver) = all.addingReportingOverflow(cell.unkept)
      return isOver || isFarOver ? .max : more
    }
  }

  func shows(_ cell: GeohashCell) -> Bool { cells[cell] != nil }

  /// Sets the cells of the map; forgets the others.
  mutating func show(_ shown: [GeohashCell]) {
    let wanted = Set(shown.prefix(AreaMap.maximumCells))
    for (cell, content) in cells where !wanted.contains(cell) {
      for driver in content.drivers { drivers[driver] = nil }
      cells[cell] = nil
    }
    for cell in wanted where cells[cell] == nil { cells[cell] = Cell() }
  }

  /// O(drivers of the update), and of the cell where it is full.
  mutating func apply(_ update: AreaUpdate) {
    tick = Swift.max(tick, update.tick)
    guard var cell = cells[update.cell] else { return }
    if update.isFull {
      for driver in cell.drivers { drivers[driver] = nil }
      cell.drivers = []
      cell.unkept = 0
    }
    var unkept = 0
    // A departure counts only for drivers that this cell showed last: another cell may show them by now.
    for driver in update.left where cell.drivers.remove(driver) != nil { drivers[driver] = nil }
    for driver in update.drivers {
      guard cell.drivers.count < AreaMap.driversPerCell || cell.drivers.contains(driver.driverID) else {
        unkept += 1
        continue
      }
      let known = drivers.updateValue(driver, forKey: driver.driverID)
      if known != nil, cell.drivers.contains(driver.driverID) { continue }
      if known != nil { forget(driver.driverID) }
      cell.drivers.insert(driver.driverID)
    }
    cell.unkept = Swift.max(cell.unkept, unkept)
    cell.more = update.more ?? (update.isFull ? 0 : cell.more)
    cells[update.cell] = cell
  }

  /// Removes a driver from its cell.
  private mutating func forget(_ driver: DriverID) {
    for cell in Array(cells.keys) where cells[cell]?.drivers.remove(driver) != nil { return }
  }
}
