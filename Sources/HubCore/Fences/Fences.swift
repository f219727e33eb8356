// The fences of a hub: what ops put and delete, and the effect of drivers' positions. Each method decides and changes
// the state here; the caller records and publishes the result.
//
// Stays are recorded with the events that begin and end them, so that after a restart nobody enters twice, and an exit
// that happened meanwhile comes with the first position.
import HubBytes
import HubGeo
import HubMessages

struct Fences: ~Copyable {
  private let limits: HubLimits
  private let rules: FenceRules
  private var seed: UInt64
  private(set) var table: FenceTable
  private(set) var stays: FenceStays
  private(set) var pairs: FencePairs

  init(limits: HubLimits, rules: FenceRules, seed: UInt64) {
    self.limits = limits
    self.rules = rules
    self.seed = seed
    table = FenceTable(rules: rules)
    stays = FenceStays(limits: limits, rules: rules)
    pairs = FencePairs(limits: limits, rules: rules)
  }

  var count: Int { table.count }

  func countEntries(into counters: inout HubCounters) {
    counters.set(.fences, count)
    counters.set(.fencePositions, table.positions)
    counters.set(.roamingFences, table.roaming.count)
    counters.set(.fenceStays, stays.count)
    counters.set(.fencePairs, pairs.count)
  }

  func find(_ id: Identifier) -> Int? { table.find(id, hash: id.text.hashValue(seed: seed)) }

  /// The notification of a crossing; its number is the channel's.
  func notification(of crossing: Crossing, driver: Identifier) -> Notification {
    let text = FenceWords.text(crossing.kind, crossing.notice, driver: driver, fence: table[crossing.fence].fence)
    return Notification(
      kind: crossing.kind, title: text.title, body: text.body, driverID: driver, fence: crossing.notice, sequence: 0)
  }

  // MARK: Drivers

  /// Checks a published position of a driver of this hub. Extrapolated and inaccurate positions decide nothing.
  @inline(__always)
  mutating func update(
    _ position: Position, of driver: Int, among drivers: borrowing Drivers, counting counters: inout HubCounters
  ) -> [Crossing] {
    guard position.absorbed == nil, position.accuracy <= rules.accuracyMeters else { return [] }
    var crossings: [Crossing] = []
    if !table.roaming.isEmpty {
      pairs.update(position, of: driver, among: drivers, at: &table, into: &crossings, counting: &counters)
    }
    stays.update(position, of: driver, among: drivers, at: &table, into: &crossings, counting: &counters)
    return crossings
  }

  /// Ends the pairs of a driver that goes offline.
  mutating func endPairs(of driver: Int, at time: Timestamp, among drivers: borrowing Drivers) -> [Crossing] {
    var crossings: [Crossing] = []
    pairs.end(of: driver, .offline, at: time, among: drivers, &table, into: &crossings)
    return crossings
  }

  /// Adjusts to a driver's clock that was set back (`FenceStays.move`, `FencePairs.move`). Gives what changed.
  mutating func moveTimes(
    of driver: Int, back milliseconds: Int64, among drivers: borrowing Drivers
  ) -> [DurableRecord] {
    stays.move(of: driver, drivers[driver].id, back: milliseconds, table).map { .stay($0) }
      + pairs.move(of: driver, back: milliseconds, among: drivers, table).map { .pair($0) }
  }

  /// Ends the stays and pairs of a driver that is forgotten.
  mutating func forget(_ driver: Int, at time: Timestamp, among drivers: borrowing Drivers) -> [Crossing] {
    var crossings: [Crossing] = []
    stays.end(ofForgotten: driver, drivers[driver].id, at: time, &table, into: &crossings)
    pairs.end(of: driver, .forgotten, at: time, among: drivers, &table, into: &crossings)
    return crossings
  }

  /// Drops all state of a driver whose record is removed, without a crossing.
  mutating func drop(_ driver: Int) {
    stays.drop(driver, &table)
    pairs.drop(driver, &table)
  }

  // MARK: Questions

  func show(_ id: Identifier, isNew: Bool) -> FenceAnswer {
    find(id).map { .fence(table[$0].report, isNew: isNew) } ?? .unknown
  }

  func list(below number: UInt64, limit: Int, positions: Int) -> FenceAnswer {
    let page = table.page(below: number, limit: limit)
    var room = positions
    let fitting = page.reversed().prefix {
      room -= table[Int($0)].fence.positionCount + HubLimits.positionsPerListedFence
      return room >= 0
    }
    let shown = page.suffix(max(fitting.count, 1))
    let next = shown.startIndex > 0 ? shown.first.map { table[Int($0)].number } : nil
    return .list(shown.reversed().map { table[Int($0)].report }, next: next)
  }

  // MARK: Putting and deleting

  /// Adds a fence, or replaces the one with its id. Throws the answer where it is refused.
  mutating func put(
    _ fence: Fence, _ covering: FenceCovering, at time: Timestamp, counting counters: inout HubCounters
  ) throws(ErrorReply) -> DurableFence {
    let known = find(fence.id)
    if let known, table[known].fence.isRoaming != fence.isRoaming {
      throw ErrorReply(
        code: .invalidTransition, message: "a fence does not change from a place to roaming or back: delete it first")
    }
    if let full = fullTable(for: fence, covering, replacing: known, counting: &counters) {
      throw ErrorReply(code: .storageFull, message: full)
    }
    return table[put(fence, covering, at: known, number: nil, updated: time)].durable
  }

  /// The message of the first limit that the fence would exceed; nil where there is room.
  private func fullTable(
    for fence: Fence, _ covering: FenceCovering, replacing known: Int?, counting counters: inout HubCounters
  ) -> String? {
    let old = known.map { table[$0].fence.positionCount } ?? 0
    if known == nil, count >= limits.fences {
      counters.count(full: .fences)
      return "fence limit reached (\(limits.fences))"
    }
    if table.positions - old + fence.positionCount > limits.fencePositions {
      counters.count(full: .fencePositions)
      return "this hub's fences have \(limits.fencePositions) positions, as many as they may"
    }
    if known == nil, fence.isRoaming, table.roaming.count >= limits.roamingFences {
      counters.count(full: .roamingFences)
      return "roaming fence limit reached (\(limits.roamingFences))"
    }
    guard table.index.hasRoom(covering, perCell: limits.fencesPerCell, besides: known) else {
      counters.count(.fencesPerCell)
      return "at most \(limits.fencesPerCell) fences may overlap in one cell"
    }
    return nil
  }

  private mutating func put(
    _ fence: Fence, _ covering: FenceCovering, at known: Int?, number: UInt64?, updated: Timestamp
  ) -> Int {
    if let known {
      table.replace(known, with: fence, covering, updated: updated)
      return known
    }
    let hash = fence.id.text.hashValue(seed: seed)
    return table.insert(fence, covering, hash: hash, number: number, updated: updated)
  }

  /// Removes a fence and all stays in it, without exits. Nil where there is none.
  mutating func remove(_ id: Identifier) -> Fence? {
    guard let index = find(id) else { return nil }
    let fence = table[index].fence
    table.remove(index)
    return fence
  }

  // MARK: Storing and reading back

  /// Changes the seed while there are no fences.
  mutating func setSeed(_ seed: UInt64) { self.seed = seed }

  mutating func load(_ durable: DurableFence) -> Bool {
    let known = find(durable.fence.id)
    if let known {
      let isSame = table[known].number == durable.number
      guard isSame, table[known].fence.isRoaming == durable.fence.isRoaming else { return false }
    }
    _ = put(durable.fence, FenceCovering(durable.fence), at: known, number: durable.number, updated: durable.updated)
    return true
  }

  mutating func load(_ durable: DurableStay, driver: Int) {
    if let fence = find(durable.fenceID) { stays.load(durable, driver: driver, fence: fence, &table) }
  }

  mutating func loadEnded(driver: Int, fence id: Identifier) {
    if let fence = find(id) { stays.loadEnded(driver: driver, fence: fence, &table) }
  }

  mutating func load(_ durable: DurablePair, _ driver: Int, _ other: Int) {
    if let fence = find(durable.fenceID) { pairs.load(durable, driver, other, fence: fence, &table) }
  }

  mutating func loadEndedPair(_ driver: Int, _ other: Int, fence id: Identifier) {
    if let fence = find(id) { pairs.loadEnded(driver, other, fence: fence, &table) }
  }

  /// All that is stored of fences, in an order that can be read back.
  func forEachRecord<E: Error>(of drivers: borrowing Drivers, _ body: (DurableRecord) throws(E) -> Void) throws(E) {
    for fence in table.order { try body(.fence(table[Int(fence)].durable)) }
    for driver in 0..<drivers.endIndex {
      for stay in stays.durable(driver, drivers[driver].id, table) { try body(.stay(stay)) }
    }
    for driver in 0..<drivers.endIndex {
      for pair in pairs.durable(driver, among: drivers, table) { try body(.pair(pair)) }
    }
  }
}
