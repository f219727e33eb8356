// Which cell is published of next: those that a tick has changed, and those that somebody waits for as a whole.
//
// What was begun in a turn and is not done is kept here, and goes on in the next one if its cell is still watched.
import HubMessages

extension AreaTable {
  // MARK: Ticks

  /// What the next cell has to tell, or what is left of what was begun; nil behind the last one, and then the tick is
  /// over.
  mutating func takeNextToPublish() -> AreaUpdateBuilder? {
    if let begun = publishing {
      publishing = nil
      if isWatched(begun.area) { return begun }
    }
    while published < touched.count {
      let area = Int(touched[published])
      published += 1
      // The record may have ended meanwhile, and be another cell's.
      guard cells[area].isTouched else { continue }
      cells[area].isTouched = false
      let (changed, left) = (cells[area].changed, cells[area].left)
      cells[area].changed = []
      cells[area].left = []
      // Nobody has seen anything of a cell that is still being filled.
      guard !cells[area].isOver, cells[area].fillKey == nil else { continue }
      if cells[area].audience == .counts { return counts(area, isFull: false) }
      if left.count > AreaCell.publishedDepartures { return whole(area) }
      return AreaUpdateBuilder(
        cells.handle(of: area), isFull: false, drivers: changed, departures: left,
        atMost: AreaCell.shownLimit(cells[area].audience))
    }
    endTick()
    return nil
  }

  /// It has something to tell at this tick; what it was as a whole is not so any more.
  mutating func touch(_ index: Int) {
    guard !cells[index].isTouched else { return }
    cells[index].isTouched = true
    cells[index].full = nil
    touched.append(UInt32(index))
  }

  // MARK: Whole cells

  /// Whether cells are still to be filled or to be published as a whole.
  var isAskedFor: Bool { !filling.isEmpty || answered < asked.count }

  /// Whether the cell that had this record still has it, and watchers.
  private func isWatched(_ cell: Handle) -> Bool {
    cells.current(cell).map { !cells[$0].isOver } ?? false
  }

  /// A session waits for a cell.
  mutating func ask(_ cell: Int, _ session: SessionRef, _ channel: ChannelHandle) {
    if cells[cell].fillKey == nil, cells[cell].waiting.isEmpty { asked.append(cells.handle(of: cell)) }
    cells[cell].waiting.append((session, channel))
  }

  /// All who were there before anybody watched are in the first of the cells that were being filled.
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

  private mutating func whole(_ cell: Int) -> AreaUpdateBuilder {
    if cells[cell].audience == .counts { return counts(cell, isFull: true) }
    var drivers: [UInt32] = []
    drivers.reserveCapacity(cells[cell].shownCount)
    cells[cell].members.forEach(ofFirst: cells[cell].shownCount) { drivers.append($0) }
    return AreaUpdateBuilder(
      cells.handle(of: cell), isFull: true, drivers: drivers, departures: [], atMost: drivers.count)
  }

  /// The next whole cell that sessions wait for, or what was begun of it; nil where nobody waits for one.
  mutating func takeNextAsked() -> AreaUpdateBuilder? {
    while answered < asked.count {
      let cell = asked[answered]
      if isWatched(cell) {
        let begun = showing
        showing = nil
        return begun ?? whole(Int(cell.index))
      }
      showing = nil
      answered += 1
    }
    asked.removeAll(keepingCapacity: true)
    answered = 0
    return nil
  }

  /// The cell that was taken last is put together: who waits for it. It is kept for others until a tick changes it.
  mutating func answer(_ cell: Int, _ full: [Publication]) -> [(session: SessionRef, channel: ChannelHandle)] {
    answered += 1
    if !cells[cell].isTouched { cells[cell].full = full }
    let waiting = cells[cell].waiting
    cells[cell].waiting = []
    return waiting
  }
}
