// The watched cells and their drivers, where the changes of a tick are collected while fixes are handled.
//
// A driver has a list of nodes, one for each of its cells: a move within a cell changes nothing, and leaving a cell
// needs no search through other drivers.
import HubBytes
import HubGeo
import HubMessages

struct AreaTable: ~Copyable {
  /// One node says that a driver is in a cell; a driver's nodes are a list.
  struct Node {
    var cell: UInt32
    /// The driver's next node.
    var next: UInt32
  }

  private let seed: UInt64
  private(set) var isInCluster = false
  /// What areas keep for each of this hub's drivers, by its index.
  var own = Slab<DriverArea>()
  /// Steps that the channels are to carry out, in order.
  var steps: [AreaStep] = []
  /// Drivers of other hubs, and the cells that those hubs are asked for.
  var guests: Guests
  var interest = AreaInterest()
  var cells = Slab<AreaCell>()
  private var indices = IndexTable()
  private var nodes = Slab<Node>()
  /// How many cells of each precision an audience watches: `[audience][precision]`.
  private var counts = [[Int]](repeating: [Int](repeating: 0, count: 13), count: AreaAudience.allCases.count)
  /// Bit p: cells of precision p are watched.
  private var precisions = [UInt16](repeating: 0, count: AreaAudience.allCases.count)

  /// The phase of the present tick.
  enum Phase {
    case resting, looking, publishing
  }

  private(set) var phase = Phase.resting
  /// Drivers that changed since the tick began, and those that it looks at.
  var noted: [UInt32] = []
  private var looking: [UInt32] = []
  private var lookedAt = 0
  /// Cells that this tick publishes, and how many are published.
  var touched: [UInt32] = []
  var published = 0
  /// The update of a tick whose drivers are being named.
  var publishing: AreaUpdateBuilder?
  /// Cells whose drivers are looked up, and the drivers that were found for the first of them.
  var filling: [UInt32] = []
  var found: [UInt32] = []
  /// How many of the cells in `filling` are over.
  private(set) var overInFilling = 0
  /// Cells that sessions wait for, how many of these are answered, and the next snapshot while it is built.
  var asked: [Handle] = []
  var answered = 0
  var showing: AreaUpdateBuilder?
  /// Cells that nobody watches any more.
  var ending: [UInt32] = []
  /// The number of the present tick and of the last one that was published; when the next one begins (uptime, ns).
  private(set) var tick: UInt64 = 0
  private(set) var publishedTick: UInt64 = 0
  /// The second of the hub's wall clock in which the present tick began: the only time that riders are shown, and the
  /// time that decides pseudonyms.
  var second = Timestamp(milliseconds: 0)
  /// While a tick renames all drivers: how many of the hub's drivers are done.
  var renamed: Int?
  private(set) var nextTick = Int64.max
  /// The uptime of the present turn, in ns.
  var uptime: Int64 = 0
  /// When the current tick was due (uptime, ns).
  private(set) var tickDue: Int64 = 0

  init(seed: UInt64, guests limit: Int) {
    self.seed = seed
    guests = Guests(limit: limit, seed: seed)
  }

  mutating func joinCluster() { isInCluster = true }

  /// Makes room for a driver of this hub.
  mutating func insert(_ driver: Int) { while own.endIndex <= driver { _ = own.insert(DriverArea()) } }

  mutating func takeSteps() -> [AreaStep] {
    defer { steps.removeAll() }
    return steps
  }

  /// Whether anybody watches, or there is something to clean up.
  var isActive: Bool { cells.count > 0 }
  var count: Int { cells.count }
  var guestCount: Int { guests.count }
  /// Read for each fix.
  private(set) var hasWatchers = false

  func precisions(_ audience: AreaAudience) -> UInt16 { precisions[Int(audience.rawValue)] }

  // MARK: Cells

  func find(_ cell: GeohashCell, _ audience: AreaAudience) -> Int? {
    indices.find(hash: hash(cell, audience)) { cells[$0].cell == cell && cells[$0].audience == audience }
  }

  /// The cells of a request; nil where there is no room for them. Throws where there are too many.
  func view(
    _ request: Subscribe, for role: Role, isPeer: Bool, limit: Int
  ) throws(ErrorReply) -> AreaView? {
    let (audience, cells) = try AreaCovering.watched(by: role, request, isPeer: isPeer)
    let known = cells.map { find($0, audience).map { self.cells[$0].channel } }
    let new = known.count { $0 == nil }
    guard new == 0 || count + new <= role.share(of: limit) else { return nil }
    return AreaView(audience: audience, cells: cells, known: known)
  }

  /// The indices of a view's cells, which are watched from now on.
  mutating func watch(_ view: AreaView, on channels: [Int], at now: Moment) -> [Int] {
    zip(view.cells, channels).map { cell, channel in
      if let known = find(cell, view.audience) { return known }
      if isInCluster, view.audience != .peers, let asked = interest.add(cell) { steps.append(.watched(asked)) }
      return insert(cell, view.audience, channel: channel, at: now)
    }
  }

  /// Begins a cell for its first watcher.
  private mutating func insert(_ cell: GeohashCell, _ audience: AreaAudience, channel: Int, at now: Moment) -> Int {
    if nextTick == .max {
      nextTick = now.uptime + Self.tickNanoseconds
      second = now.timestamp.wholeSecond
    }
    let index = cells.insert(AreaCell(cell: cell, audience: audience, channel: channel))
    indices.insert(hash: hash(cell, audience), index: index)
    count(cell, audience, by: 1)
    filling.append(UInt32(index))
    return index
  }

  /// Ends a cell that its last watcher has left. Its drivers are removed in slices.
  mutating func end(_ index: Int) {
    let (cell, audience) = (cells[index].cell, cells[index].audience)
    if isInCluster, audience != .peers, let asked = interest.remove(cell) {
      guests.sweep(asked)
      steps.append(.unwatched(asked))
    }
    indices.remove(hash: hash(cell, audience), index: index)
    count(cell, audience, by: -1)
    cells[index].isOver = true
    cells[index].waiting = []
    dropSnapshot(index)
    guard cells[index].fillKey != nil else { return ending.append(UInt32(index)) }
    overInFilling += 1
    if 2 * overInFilling > filling.count { stopFilling() }
  }

  /// Takes the cells that are over out of `filling`: when they are half of it, or when the first one is, so that ending
  /// thousands costs a few steps each. O(cells in `filling`).
  mutating func stopFilling() {
    if let first = filling.first, cells[Int(first)].isOver { found.removeAll() }
    var others: [UInt32] = []
    for index in filling {
      if cells[Int(index)].isOver { ending.append(index) } else { others.append(index) }
    }
    (filling, overInFilling) = (others, 0)
  }

  /// Frees the record of a cell whose last driver was removed.
  mutating func remove(_ index: Int) {
    var tombstone = AreaCell(cell: cells[index].cell, audience: cells[index].audience, channel: -1)
    tombstone.isOver = true
    cells.remove(index, leaving: tombstone)
  }

  private mutating func count(_ cell: GeohashCell, _ audience: AreaAudience, by step: Int) {
    let row = Int(audience.rawValue)
    counts[row][cell.precision] += step
    let bit = UInt16(1) << UInt16(cell.precision)
    if counts[row][cell.precision] > 0 { precisions[row] |= bit } else { precisions[row] &= ~bit }
    hasWatchers = precisions.contains { $0 != 0 }
  }

  private func hash(_ cell: GeohashCell, _ audience: AreaAudience) -> UInt64 {
    // The seed keeps clients from choosing cells that collide.
    Mix64.mix(cell.bits &* 16 &+ UInt64(cell.precision) &* 4 &+ UInt64(audience.rawValue) ^ seed)
  }

  // MARK: Ticks

  mutating func endTick() {
    touched.removeAll(keepingCapacity: true)
    publishedTick = tick
    phase = .resting
  }

  mutating func beginTick(at uptime: Int64) {
    tick += 1
    swap(&noted, &looking)
    lookedAt = 0
    phase = .looking
    tickDue = nextTick
    nextTick += Self.tickNanoseconds
    // A hub that was suspended does not make up for missed ticks.
    if nextTick <= uptime { nextTick = uptime + Self.tickNanoseconds }
  }

  /// Stops the ticks when nobody watches and no work is left.
  mutating func restIfIdle() {
    if !isActive, phase == .resting, noted.isEmpty, guests.sweeps.isEmpty { nextTick = .max }
  }

  /// The next driver to look at; nil behind the last one, when the cells are to be published.
  mutating func nextToLookAt() -> UInt32? {
    guard lookedAt < looking.count else {
      looking.removeAll(keepingCapacity: true)
      published = 0
      phase = .publishing
      // From here on a snapshot has all that this tick changes; outlets send it behind the tick.
      if let begun = showing, cells[Int(begun.area.index)].isTouched { showing = nil }
      return nil
    }
    lookedAt += 1
    return looking[lookedAt - 1]
  }

  // MARK: Drivers in cells

  func node(_ index: UInt32) -> Node { nodes[Int(index)] }

  mutating func setNext(_ node: UInt32, _ next: UInt32) { nodes[Int(node)].next = next }

  func isMember(of cell: Int, first: UInt32) -> Bool {
    var node = first
    while node != DriverArea.none {
      if nodes[Int(node)].cell == UInt32(cell) { return true }
      node = nodes[Int(node)].next
    }
    return false
  }

  /// Whether a driver is in any cell of an audience.
  func isShown(to audience: AreaAudience, first: UInt32) -> Bool {
    var node = first
    while node != DriverArea.none {
      if cells[Int(nodes[Int(node)].cell)].audience == audience { return true }
      node = nodes[Int(node)].next
    }
    return false
  }

  /// Inserts a driver into a cell, and a node in front of its list `first`. `publishes`: false for a driver that was
  /// there before anybody watched. Gives the driver that is no longer shown because of it.
  mutating func join(
    _ driver: UInt32, rank: UInt32, field: UInt32, _ cell: Int, first: inout UInt32, publishes: Bool
  ) -> UInt32? {
    let stamp = UInt32(truncatingIfNeeded: tick)
    let limit = AreaCell.shownLimit(cells[cell].audience)
    let slot = cells[cell].members.find(rank: rank, driver: driver).slot
    cells[cell].members.insert(.init(rank: rank, driver: driver, changed: stamp &- 1, field: field), at: slot)
    first = UInt32(nodes.insert(Node(cell: UInt32(cell), next: first)))
    if cells[cell].audience == .counts { cells[cell].counts.add(field, publishes: publishes) }
    guard publishes else { return nil }
    touch(cell)
    // The insertion may have split its piece.
    let (there, _) = cells[cell].members.find(rank: rank, driver: driver)
    guard cells[cell].members.isAmongFirst(limit, there) else { return nil }
    cells[cell].noteChange(at: there, tick: stamp)
    return cells[cell].members.slot(at: limit).map { cells[cell].members[$0].driver }
  }

  /// Removes a driver from a cell's members, but not its node. Where it was shown, the next one behind the limit is
  /// shown now.
  mutating func leave(_ driver: UInt32, rank: UInt32, _ cell: Int, name: Identifier) {
    let (slot, isThere) = cells[cell].members.find(rank: rank, driver: driver)
    precondition(isThere, "a node names a cell that the driver is not in")
    let limit = AreaCell.shownLimit(cells[cell].audience)
    let isShown = cells[cell].members.isAmongFirst(limit, slot)
    if cells[cell].audience == .counts { cells[cell].counts.remove(cells[cell].members[slot].field) }
    cells[cell].members.remove(at: slot)
    touch(cell)
    guard isShown else { return }
    cells[cell].noteDeparture(.init(driver: driver, name: name))
    if let next = cells[cell].members.slot(at: limit - 1) {
      cells[cell].noteChange(at: next, tick: UInt32(truncatingIfNeeded: tick))
    }
  }

  /// Removes the node of a cell from a driver's list.
  mutating func unlink(_ cell: Int, first: inout UInt32) {
    var before = DriverArea.none
    var node = first
    while nodes[Int(node)].cell != UInt32(cell) {
      before = node
      node = nodes[Int(node)].next
    }
    if before == DriverArea.none { first = nodes[Int(node)].next } else { setNext(before, nodes[Int(node)].next) }
    nodes.remove(Int(node), leaving: Node(cell: .max, next: DriverArea.none))
  }
}
