// The fences of a hub: what ops put and delete, and what positions of drivers mean at them. Each method decides and
// changes what is kept here; its caller records what it gives and publishes it.
//
// Who is in a fence is recorded with the events that say so, so that after a restart nobody enters twice and an exit
// that happened meanwhile comes with the first position.
import HubGeo
import HubMessages

/// What fences keep of each driver.
struct FenceLinks: BitwiseCopyable {
  /// What is known of the fences near it.
  var known = FenceLevels()
  /// Its newest stay and its newest pair; −1 for none.
  var firstStay: Int32 = -1
  var firstPair: Int32 = -1
}

/// The limits of a hub that concern fences (`HubLimits`).
struct FenceCapacities {
  let fences, positions, roaming, perCell, perDriver, stays, pairsPerDriver, pairs: Int

  init(_ limits: HubLimits) {
    (fences, positions, roaming) = (limits.fences, limits.fencePositions, limits.roamingFences)
    (perCell, perDriver, stays) = (limits.fencesPerCell, limits.fencesPerDriver, limits.fenceStays)
    (pairsPerDriver, pairs) = (limits.pairsPerDriver, limits.fencePairs)
  }
}

struct Fences: ~Copyable {
  let limits: FenceCapacities
  let rules: FenceRules
  private var seed: UInt64
  var table: FenceTable
  var stays = Slab<FenceStay>()
  var pairs = Slab<FencePair>()
  /// By driver.
  var links: PagedSlab<FenceLinks>
  /// What is being decided.
  var crossings: [Crossing] = []
  /// The newest mark of a look: fences that the driver was in have it, and those that it still is in one more.
  var mark: UInt64 = 0
  /// For one look: the fences that the driver comes into, and the drivers near it.
  var entering: [UInt32] = []
  var hits: [DriverHit] = []

  init(limits: HubLimits, rules: FenceRules, seed: UInt64) {
    self.limits = FenceCapacities(limits)
    self.rules = rules
    self.seed = seed
    table = FenceTable(rules: rules)
    links = PagedSlab(limit: limits.drivers, pageShift: 10, filler: FenceLinks())
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

  /// What is published of a crossing; its number is the channel's.
  func notification(of crossing: Crossing, driver: Identifier) -> Notification {
    let text = FenceWords.text(crossing.kind, crossing.notice, driver: driver, fence: table[crossing.fence].fence)
    return Notification(
      kind: crossing.kind, title: text.title, body: text.body, driverID: driver, fence: crossing.notice, sequence: 0)
  }

  @inline(__always)
  mutating func makeLinks(of driver: Int) { if driver >= links.count { links.grow(to: driver + 1) } }

  private mutating func takeCrossings() -> [Crossing] {
    defer { crossings = [] }
    return crossings
  }

  // MARK: Drivers

  /// A position of a driver was published. What is guessed, or not known to be here, decides nothing.
  @inline(__always)
  mutating func update(
    _ position: Position, of driver: Int, among drivers: borrowing Drivers, counting counters: inout HubCounters
  ) -> [Crossing] {
    guard position.absorbed == nil, position.accuracy <= rules.accuracyMeters else { return [] }
    if !table.roaming.isEmpty { watchPairs(position, of: driver, among: drivers, counting: &counters) }
    makeLinks(of: driver)
    table.index.look(position.coordinate, &links[driver].known)
    if links[driver].known.levels != 0 || links[driver].firstStay >= 0 {
      let subject = FenceSubject(
        driver: driver, id: drivers[driver].id, label: drivers.label(of: driver), position: position)
      watchStays(subject, drivers.profiles, counting: &counters)
    }
    return crossings.isEmpty ? [] : takeCrossings()
  }

  /// The driver is offline: its pairs end.
  mutating func endPairs(of driver: Int, at time: Timestamp, among drivers: borrowing Drivers) -> [Crossing] {
    endPairs(of: driver, .offline, at: time, among: drivers)
    return takeCrossings()
  }

  /// The driver is forgotten: its stays and its pairs end.
  mutating func forget(_ driver: Int, at time: Timestamp, among drivers: borrowing Drivers) -> [Crossing] {
    endStays(ofForgotten: driver, drivers[driver].id, at: time)
    endPairs(of: driver, .forgotten, at: time, among: drivers)
    return takeCrossings()
  }

  /// The driver's record goes, and all that is known of it, without a crossing.
  mutating func drop(_ driver: Int) {
    guard driver < links.count else { return }
    while case let stay = firstStay(of: driver), stay >= 0 { end(stay, behind: -1, of: driver) }
    while case let pair = firstPair(of: driver), pair >= 0 { unlink(pair) }
    links[driver] = FenceLinks()
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
    if known == nil, count >= limits.fences {
      counters.count(full: .fences)
      return "this hub has \(limits.fences) fences, as many as it may"
    }
    if table.positions - old + fence.positionCount > limits.positions {
      counters.count(full: .fencePositions)
      return "this hub's fences have \(limits.positions) positions, as many as they may"
    }
    if known == nil, fence.isRoaming, table.roaming.count >= limits.roaming {
      counters.count(full: .roamingFences)
      return "this hub has \(limits.roaming) roaming fences, as many as it may"
    }
    guard table.index.hasRoom(covering, perCell: limits.perCell) else {
      counters.count(.fencesPerCell)
      return "\(limits.perCell) fences, as many as there may be, are in one place already"
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
    guard let fence = find(durable.fenceID) else { return }
    let stay = findStay(in: fence, of: driver)?.stay ?? begin(fence, at: durable.entered, of: driver)
    stays[stay].entered = durable.entered
    stays[stay].speedingNotified = durable.speedingNotified
    stays[stay].isSpeeding = durable.isSpeeding
    stays[stay].isDwellNotified = durable.isDwellNotified
  }

  mutating func loadEnded(driver: Int, fence id: Identifier) {
    guard let fence = find(id), let (stay, previous) = findStay(in: fence, of: driver) else { return }
    end(stay, behind: previous, of: driver)
  }

  mutating func load(_ durable: DurablePair, _ driver: Int, _ other: Int) {
    guard let fence = find(durable.fenceID), findPair(in: fence, driver, other) == nil else { return }
    link(fence, driver, other, entered: durable.entered)
  }

  mutating func loadEndedPair(_ driver: Int, _ other: Int, fence id: Identifier) {
    if let fence = find(id), let pair = findPair(in: fence, driver, other) { unlink(pair) }
  }

  /// All that is stored of fences, in an order in which it can be read back.
  func forEachRecord<E: Error>(of drivers: borrowing Drivers, _ body: (DurableRecord) throws(E) -> Void) throws(E) {
    for fence in table.order { try body(.fence(table[Int(fence)].durable)) }
    for driver in 0..<drivers.endIndex {
      var records: [DurableRecord] = []
      forEachStay(of: driver) { stay in
        guard table.isCurrent(stay.fence) else { return }
        let fence = table[Int(stay.fence.index)].fence.id
        records.append(.stay(stay.durable(driver: drivers[driver].id, fence: fence)))
      }
      // The last one is the first that began: read back in this order, the list is the same.
      for record in records.reversed() { try body(record) }
    }
    for driver in 0..<drivers.endIndex {
      var records: [DurableRecord] = []
      forEachPair(of: driver) { pair in
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
