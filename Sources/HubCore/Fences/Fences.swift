// The fences of a hub: what ops put and delete, and what positions of drivers mean at them. Each method decides and
// changes what is kept here; its caller records what it gives and publishes it.
//
// Who is in a fence is recorded with the events that say so, so that after a restart nobody enters twice and an exit
// that happened meanwhile comes with the first position.
import HubGeo
import HubMessages

struct Fences: ~Copyable {
  private let limit: Int
  private let limitOfPositions: Int
  private let limitOfRoaming: Int
  private let limitPerCell: Int
  private let accuracyMeters: Double
  private var seed: UInt64
  private(set) var table: FenceTable
  private(set) var stays: FenceStays
  private(set) var pairs: FencePairs

  init(limits: HubLimits, rules: FenceRules, seed: UInt64) {
    limit = limits.fences
    limitOfPositions = limits.fencePositions
    limitOfRoaming = limits.roamingFences
    limitPerCell = limits.fencesPerCell
    accuracyMeters = rules.accuracyMeters
    self.seed = seed
    table = FenceTable(rules: rules)
    stays = FenceStays(limits: limits, rules: rules)
    pairs = FencePairs(limits: limits, rules: rules)
  }

  var count: Int { table.count }

  func find(_ id: Identifier) -> Int? { table.find(id, hash: id.text.hashValue(seed: seed)) }

  /// The fence that a crossing is about.
  func fence(of crossing: Crossing) -> Fence { table[crossing.fence].fence }

  // MARK: Drivers

  /// A position of a driver was published. What is guessed, or not known to be here, decides nothing.
  @inline(__always)
  mutating func update(
    _ position: Position, of driver: Int, among drivers: borrowing Drivers, counting counters: inout HubCounters
  ) -> [Crossing] {
    guard position.absorbed == nil, position.accuracy <= accuracyMeters else { return [] }
    var crossings: [Crossing] = []
    if !table.roaming.isEmpty {
      crossings = pairs.update(position, of: driver, among: drivers, in: &table, counting: &counters)
    }
    guard stays.isNearFence(position, driver: driver, in: table) else { return crossings }
    crossings += stays.update(
      position, of: drivers.fenceSubject(driver), in: &table, profiles: drivers.profiles, counting: &counters)
    return crossings
  }

  /// The driver's clock was set back by so many milliseconds. Gives the stays that have other times now.
  mutating func moveStays(of subject: FenceSubject, back milliseconds: Int64) -> [DurableStay] {
    stays.move(of: subject, back: milliseconds, in: table)
  }

  /// The driver is offline: its pairs end.
  mutating func endPairs(of driver: Int, at time: Timestamp, among drivers: borrowing Drivers) -> [Crossing] {
    pairs.end(of: driver, .offline, at: time, among: drivers, in: &table)
  }

  /// The driver is forgotten: its stays and its pairs end.
  mutating func forget(_ driver: Int, at time: Timestamp, among drivers: borrowing Drivers) -> [Crossing] {
    stays.end(ofForgotten: drivers.fenceSubject(driver), in: &table, at: time)
      + pairs.end(of: driver, .forgotten, at: time, among: drivers, in: &table)
  }

  /// The driver's record goes.
  mutating func drop(_ driver: Int) {
    stays.drop(of: driver, in: &table)
    pairs.drop(of: driver, in: &table)
  }

  // MARK: Questions

  func report(of id: Identifier) -> FenceReport? { find(id).map { table[$0].report } }

  func list(below number: UInt64, limit: Int) -> FenceAnswer {
    let page = table.page(below: number, limit: limit)
    let next = page.startIndex > 0 ? page.first.map { table[Int($0)].number } : nil
    return .list(page.reversed().map { table[Int($0)].report }, next: next)
  }

  // MARK: Putting and deleting

  /// Whether this very fence is there.
  func has(_ fence: Fence) -> Bool { find(fence.id).map { table[$0].fence == fence } ?? false }

  /// Puts a fence in the place of the one with its id, if there is one. Throws what is answered where it can't.
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

  /// Which limit there is no room at.
  private func fullTable(
    for fence: Fence, _ covering: FenceCovering, replacing known: Int?, counting counters: inout HubCounters
  ) -> String? {
    let old = known.map { table[$0].fence.positionCount } ?? 0
    if known == nil, count >= limit {
      counters.count(full: .fences)
      return "this hub has \(limit) fences, as many as it may"
    }
    if table.positions - old + fence.positionCount > limitOfPositions {
      counters.count(full: .fencePositions)
      return "this hub's fences have \(limitOfPositions) positions, as many as they may"
    }
    if known == nil, fence.isRoaming, table.roaming.count >= limitOfRoaming {
      counters.count(full: .roamingFences)
      return "this hub has \(limitOfRoaming) roaming fences, as many as it may"
    }
    guard table.index.hasRoom(covering, perCell: limitPerCell) else {
      counters.count(.fencesPerCell)
      return "\(limitPerCell) fences, as many as there may be, are in one place already"
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

  /// The fence goes; whoever was in it is in it no more, and there are no exits. Nil where there is no such fence.
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
    if let fence = find(durable.fenceID) { stays.load(durable, driver: driver, fence: fence, in: &table) }
  }

  mutating func loadEnded(driver: Int, fence id: Identifier) {
    if let fence = find(id) { stays.loadEnded(driver: driver, fence: fence, in: &table) }
  }

  mutating func load(_ durable: DurablePair, _ driver: Int, _ other: Int) {
    guard let fence = find(durable.fenceID) else { return }
    pairs.load(driver, other, fence: fence, entered: durable.entered, in: &table)
  }

  mutating func loadEndedPair(_ driver: Int, _ other: Int, fence id: Identifier) {
    if let fence = find(id) { pairs.loadEnded(driver, other, fence: fence, in: &table) }
  }

  /// All that is stored of fences, in an order in which it can be read back.
  func forEachRecord<E: Error>(of drivers: borrowing Drivers, _ body: (DurableRecord) throws(E) -> Void) throws(E) {
    for fence in table.order { try body(.fence(table[Int(fence)].durable)) }
    for driver in 0..<drivers.endIndex {
      var records: [DurableRecord] = []
      stays.forEach(of: driver) { stay in
        guard table.isCurrent(stay.fence) else { return }
        let fence = table[Int(stay.fence.index)].fence.id
        records.append(.stay(stay.durable(driver: drivers[driver].id, fence: fence)))
      }
      // The last one is the first that began: read back in this order, the list is the same.
      for record in records.reversed() { try body(record) }
    }
    for driver in 0..<drivers.endIndex {
      var records: [DurableRecord] = []
      pairs.forEach(of: driver) { pair in
        // Each once: with the driver whose fix began it.
        guard Int(pair.ends.0.driver) == driver, table.isCurrent(pair.fence) else { return }
        records.append(
          .pair(
            DurablePair(
              fenceID: table[Int(pair.fence.index)].fence.id, driverID: drivers[driver].id,
              otherID: drivers[Int(pair.ends.1.driver)].id,
              entered: Timestamp(milliseconds: pair.enteredMilliseconds))))
      }
      for record in records { try body(record) }
    }
  }
}

extension Drivers {
  @inline(__always)
  func fenceSubject(_ driver: Int) -> FenceSubject {
    FenceSubject(driver: driver, id: self[driver].id, label: label(of: driver))
  }
}
