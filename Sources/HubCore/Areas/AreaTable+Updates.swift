// Which cell is published next: those that a tick changed, and those whose snapshot is requested.
//
// Unfinished work is kept here and continued in the next turn if its cell is still watched.
import HubMessages

extension AreaTable {
  // MARK: Ticks

  /// The next cell to publish, or an unfinished one; nil behind the last one, which ends the tick.
  mutating func takeNextToPublish() -> AreaUpdateBuilder? {
    if let begun = publishing {
      publishing = nil
      if isWatched(begun.area) { return begun }
    }
    while published < touched.count {
      let area = Int(touched[published])
      published += 1
      // The record may have been freed, and reused by another cell.
      guard cells[area].isTouched else { continue }
      cells[area].isTouched = false
      let (changed, left) = (cells[area].changed, cells[area].left)
      cells[area].changed = []
      cells[area].left = []
      // No session has the snapshot of a cell that is still being filled.
      guard !cells[area].isOver, cells[area].fillKey == nil else { continue }
      if cells[area].audience == .counts { return counts(area, isFull: false) }
      if left.count > AreaCell.publishedDepartures { return snapshot(area) }
      return AreaUpdateBuilder(
        cells.handle(of: area), isFull: false, drivers: changed, departures: left,
        atMost: AreaCell.shownLimit(cells[area].audience))
    }
    endTick()
    return nil
  }

  /// Marks a cell for publishing at this tick; its kept snapshot is out of date.
  mutating func touch(_ index: Int) {
    guard !cells[index].isTouched else { return }
    cells[index].isTouched = true
    dropSnapshot(index)
    touched.append(UInt32(index))
  }

  mutating func dropSnapshot(_ index: Int) {
    guard cells[index].hasSnapshot else { return }
    cells[index].hasSnapshot = false
    steps.append(.outdated(cells[index].channel))
  }

  // MARK: Snapshots

  /// Whether cells are still to be filled, or snapshots to be published.
  var isAskedFor: Bool { !filling.isEmpty || answered < asked.count }

  /// Whether the cell that had this record still has it, and watchers.
  private func isWatched(_ cell: Handle) -> Bool {
    cells.current(cell).map { !cells[$0].isOver } ?? false
  }

  /// Notes that a session waits for a cell's snapshot.
  mutating func ask(_ cell: Int, _ session: SessionRef) {
    if cells[cell].fillKey == nil, cells[cell].waiting.isEmpty { asked.append(cells.handle(of: cell)) }
    cells[cell].waiting.append(session)
  }

  /// Ends the filling of a cell, the first in `filling`, once it has all drivers from before it was watched.
  mutating func endFilling(_ cell: Int) {
    filling.removeFirst()
    cells[cell].fillKey = nil
    if !cells[cell].waiting.isEmpty { asked.append(cells.handle(of: cell)) }
  }

  /// The cells of a block that changed, or all.
  private mutating func counts(_ area: Int, isFull: Bool) -> AreaUpdateBuilder {
    let block = cells[area].cell
    var builder = AreaUpdateBuilder(
      cells.handle(of: area), isFull: isFull, drivers: [], departures: [], atMost: 0)
    builder.counts = isFull ? cells[area].counts.all(of: block) : cells[area].counts.takeChanged(of: block)
    return builder
  }

  /// All that a cell shows.
  private mutating func snapshot(_ cell: Int) -> AreaUpdateBuilder {
    if cells[cell].audience == .counts { return counts(cell, isFull: true) }
    var drivers: [UInt32] = []
    drivers.reserveCapacity(cells[cell].shownCount)
    cells[cell].members.forEach(ofFirst: cells[cell].shownCount) { drivers.append($0) }
    return AreaUpdateBuilder(
      cells.handle(of: cell), isFull: true, drivers: drivers, departures: [], atMost: drivers.count)
  }

  /// The next snapshot that sessions wait for, or an unfinished one; nil where none is requested.
  mutating func takeNextAsked() -> AreaUpdateBuilder? {
    while answered < asked.count {
      let cell = asked[answered]
      if isWatched(cell) {
        let begun = showing
        showing = nil
        return begun ?? snapshot(Int(cell.index))
      }
      showing = nil
      answered += 1
    }
    asked.removeAll(keepingCapacity: true)
    answered = 0
    return nil
  }

  /// Ends the snapshot of the cell taken last, which is kept until a tick changes the cell. Gives its waiting sessions.
  mutating func answer(_ cell: Int) -> [SessionRef] {
    answered += 1
    cells[cell].hasSnapshot = !cells[cell].isTouched
    defer { cells[cell].waiting = [] }
    return cells[cell].waiting
  }
}
