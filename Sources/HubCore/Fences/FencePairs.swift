// Roaming fences: two drivers near each other, anywhere. Each position of a driver checks its pairs and, where it may
// begin one, the nearest drivers in the index. Both are bounded: a driver has a few pairs, a hub a few such fences, and
// a search a small budget, so a taxi rank with a hundred cabs costs no more than sixteen.
//
// A pair is in the lists of both drivers, through its two links.
import HubGeo
import HubMessages

/// Two drivers within the distance of a roaming fence.
struct FencePair {
  /// One of the two drivers, and its list's next pair.
  struct End {
    var driver: UInt32
    /// The driver's next pair; −1 for none.
    var next: Int32 = -1
  }

  let fence: Handle
  /// The first is the driver whose fix began it.
  fileprivate(set) var ends: (End, End)
  /// The time of that fix.
  fileprivate(set) var entered: Timestamp

  func end(of driver: Int) -> End { Int(ends.0.driver) == driver ? ends.0 : ends.1 }

  func other(than driver: Int) -> Int { Int(ends.0.driver) == driver ? Int(ends.1.driver) : Int(ends.0.driver) }

  fileprivate mutating func setNext(_ next: Int32, of driver: Int) {
    if Int(ends.0.driver) == driver { ends.0.next = next } else { ends.1.next = next }
  }
}

/// All pairs. Crossings are appended to the caller's list.
struct FencePairs: ~Copyable {
  private let limits: HubLimits
  private let rules: FenceRules
  private var slab = Slab<FencePair>()
  /// By driver: its newest pair; −1 for none.
  private var first: PagedSlab<Int32>
  /// The drivers near one, reused between calls.
  private var hits: [DriverHit] = []

  /// The budget of one search: a crowd is found in part, and the rest with later positions.
  private static var budget: SearchBudget { SearchBudget(cells: 100, candidates: 200) }

  init(limits: HubLimits, rules: FenceRules) {
    self.limits = limits
    self.rules = rules
    first = PagedSlab(limit: limits.drivers, pageShift: 10, filler: -1)
  }

  var count: Int { slab.count }

  /// Ends and begins pairs at a driver's position.
  mutating func update(
    _ position: Position, of driver: Int, among drivers: borrowing Drivers, at fences: inout FenceTable,
    into crossings: inout [Crossing], counting counters: inout HubCounters
  ) {
    var pair = first(of: driver)
    while pair >= 0 {
      let next = Int(slab[pair].end(of: driver).next)
      watch(pair, position, driver, drivers, &fences, &crossings)
      pair = next
    }
    for fence in fences.roaming {
      find(Int(fence), position, driver, drivers, &fences, &crossings, counting: &counters)
    }
  }

  private mutating func watch(
    _ pair: Int, _ position: Position, _ driver: Int, _ drivers: borrowing Drivers, _ fences: inout FenceTable,
    _ crossings: inout [Crossing]
  ) {
    let fence = Int(slab[pair].fence.index)
    guard fences.isCurrent(slab[pair].fence), case .roaming(let meters, let others) = fences[fence].fence.shape else {
      return unlink(pair, &fences)
    }
    let other = slab[pair].other(than: driver)
    // A driver that has not returned since a restart may still be there.
    guard let there = drivers[other].position else { return }
    let distance = position.coordinate.distance(to: there.coordinate)
    var notice = FenceNotice(
      fenceID: fences[fence].fence.id, timestamp: position.timestamp, location: position.coordinate)
    notice.distance = TrackMath.rounded(distance, to: 10)
    if drivers[other].isStale {
      notice.reason = .offline
    } else if !isPair(fences[fence].fence.drivers, others, driver, other, drivers) {
      notice.reason = .filter
    } else if distance <= meters + max(fences[fence].exitMeters, position.accuracy, there.accuracy) {
      return
    }
    end(pair, notice, driver, drivers, &fences, &crossings)
  }

  /// Whether a fence for some drivers includes one of the two as subject and the other as counterpart.
  @inline(__always)
  private func isPair(
    _ filter: FenceFilter, _ others: FenceFilter, _ a: Int, _ b: Int, _ drivers: borrowing Drivers
  ) -> Bool {
    let (one, two) = (drivers.label(of: a), drivers.label(of: b))
    return drivers.profiles.matches(filter, one) && drivers.profiles.matches(others, two)
      || drivers.profiles.matches(filter, two) && drivers.profiles.matches(others, one)
  }

  private mutating func find(
    _ fence: Int, _ position: Position, _ driver: Int, _ drivers: borrowing Drivers, _ fences: inout FenceTable,
    _ crossings: inout [Crossing], counting counters: inout HubCounters
  ) {
    let (filter, label) = (fences[fence].fence.drivers, drivers.label(of: driver))
    guard case .roaming(let meters, let others) = fences[fence].fence.shape,
      drivers.profiles.matches(filter, label) || drivers.profiles.matches(others, label)
    else { return }
    var found: [DriverHit] = []
    swap(&found, &hits)
    found.removeAll(keepingCapacity: true)
    _ = drivers.index.nearest(
      to: position.coordinate, limit: limits.pairsPerDriver, withinMeters: meters, budget: Self.budget, into: &found
    ) { other, _ in Int(other) != driver && isPair(filter, others, driver, Int(other), drivers) }
    for hit in found {
      begin(
        fence, with: Int(hit.driver), hit.distanceMeters, position, driver, drivers, &fences, &crossings,
        counting: &counters)
    }
    swap(&found, &hits)
  }

  private mutating func begin(
    _ fence: Int, with other: Int, _ meters: Double, _ position: Position, _ driver: Int, _ drivers: borrowing Drivers,
    _ fences: inout FenceTable, _ crossings: inout [Crossing], counting counters: inout HubCounters
  ) {
    guard let there = drivers[other].position, there.absorbed == nil, there.accuracy <= rules.accuracyMeters,
      find(in: fences.handle(of: fence), driver, other) == nil
    else { return }
    guard count(of: driver) < limits.pairsPerDriver, count(of: other) < limits.pairsPerDriver else {
      return counters.count(.pairsPerDriver)
    }
    guard slab.count < limits.fencePairs else { return counters.count(full: .fencePairs) }
    link(fence, driver, other, entered: position.timestamp, &fences)
    let id = fences[fence].fence.id
    let durable = DurablePair(
      fenceID: id, driverID: drivers[driver].id, otherID: drivers[other].id, entered: position.timestamp)
    var notice = FenceNotice(fenceID: id, timestamp: position.timestamp, location: position.coordinate)
    notice.distance = TrackMath.rounded(meters, to: 10)
    add(.fenceEnter, notice, .pair(durable), driver, other, drivers, fence: fence, &crossings)
  }

  private mutating func end(
    _ pair: Int, _ made: FenceNotice, _ driver: Int, _ drivers: borrowing Drivers, _ fences: inout FenceTable,
    _ crossings: inout [Crossing]
  ) {
    let (fence, other) = (Int(slab[pair].fence.index), slab[pair].other(than: driver))
    var notice = made
    notice.duration = max(0, notice.timestamp.seconds(since: slab[pair].entered))
    unlink(pair, &fences)
    let record = DurableRecord.pairEnded(fence: notice.fenceID, driver: drivers[driver].id, other: drivers[other].id)
    add(.fenceExit, notice, record, driver, other, drivers, fence: fence, &crossings)
  }

  /// Ends the pairs of a driver that goes offline or is forgotten.
  mutating func end(
    of driver: Int, _ reason: FenceNotice.Reason, at time: Timestamp, among drivers: borrowing Drivers,
    _ fences: inout FenceTable, into crossings: inout [Crossing]
  ) {
    while case let pair = first(of: driver), pair >= 0 {
      guard let fence = fences.id(slab[pair].fence) else {
        unlink(pair, &fences)
        continue
      }
      var notice = FenceNotice(fenceID: fence, timestamp: time)
      notice.reason = reason
      end(pair, notice, driver, drivers, &fences, &crossings)
    }
  }

  /// Moves the times of the pairs that a driver whose clock was set back has begun, and gives those pairs. Else their
  /// durations would be 0 until the clock has caught up.
  mutating func move(
    of driver: Int, back milliseconds: Int64, among drivers: borrowing Drivers, _ fences: borrowing FenceTable
  ) -> [DurablePair] {
    var pair = first(of: driver)
    while pair >= 0 {
      if Int(slab[pair].ends.0.driver) == driver { slab[pair].entered.goBack(milliseconds) }
      pair = Int(slab[pair].end(of: driver).next)
    }
    return durable(driver, among: drivers, fences)
  }

  /// Drops the driver's pairs with its record.
  mutating func drop(_ driver: Int, _ fences: inout FenceTable) {
    while case let pair = first(of: driver), pair >= 0 { unlink(pair, &fences) }
  }

  /// Adds a crossing for the channels of the fence and of both drivers, each with its own driver first, but not for
  /// those of their trips: riders see no other drivers.
  private func add(
    _ kind: Notification.Kind, _ notice: FenceNotice, _ record: DurableRecord, _ driver: Int, _ other: Int,
    _ drivers: borrowing Drivers, fence: Int, _ crossings: inout [Crossing]
  ) {
    var (mine, theirs) = (notice, notice)
    mine.otherID = drivers[other].id
    theirs.otherID = drivers[driver].id
    crossings.append(
      Crossing(kind: kind, notice: mine, driver: driver, fence: fence, audience: .fenceAndDriver, record: record))
    crossings.append(
      Crossing(kind: kind, notice: theirs, driver: other, fence: fence, audience: .driver, record: nil))
  }

  // MARK: Lists

  private func first(of driver: Int) -> Int { driver < first.count ? Int(first[driver]) : -1 }

  /// Each pair of the driver, newest first, including those of deleted fences.
  func forEach(of driver: Int, _ body: (FencePair) -> Void) {
    var pair = first(of: driver)
    while pair >= 0 {
      body(slab[pair])
      pair = Int(slab[pair].end(of: driver).next)
    }
  }

  private func count(of driver: Int) -> Int {
    var count = 0
    forEach(of: driver) { _ in count += 1 }
    return count
  }

  private mutating func link(_ fence: Int, _ driver: Int, _ other: Int, entered: Timestamp, _ fences: inout FenceTable)
  {
    first.grow(to: max(driver, other) + 1)
    let handle = fences.handle(of: fence)
    let ends = (
      FencePair.End(driver: UInt32(driver), next: first[driver]),
      FencePair.End(driver: UInt32(other), next: first[other])
    )
    let pair = slab.insert(FencePair(fence: handle, ends: ends, entered: entered))
    first[driver] = Int32(pair)
    first[other] = Int32(pair)
    fences.count(1, in: handle)
  }

  private mutating func unlink(_ pair: Int, _ fences: inout FenceTable) {
    let record = slab[pair]
    for end in [record.ends.0, record.ends.1] {
      let driver = Int(end.driver)
      var (previous, next) = (-1, Int(first[driver]))
      while next != pair { (previous, next) = (next, Int(slab[next].end(of: driver).next)) }
      if previous < 0 { first[driver] = end.next } else { slab[previous].setNext(end.next, of: driver) }
    }
    fences.count(-1, in: record.fence)
    slab.remove(pair, leaving: record)
  }

  private func find(in fence: Handle, _ driver: Int, _ other: Int) -> Int? {
    var pair = first(of: driver)
    while pair >= 0 {
      if slab[pair].fence == fence, slab[pair].other(than: driver) == other { return pair }
      pair = Int(slab[pair].end(of: driver).next)
    }
    return nil
  }

  // MARK: Storing and reading back

  mutating func load(_ durable: DurablePair, _ driver: Int, _ other: Int, fence: Int, _ fences: inout FenceTable) {
    if let known = find(in: fences.handle(of: fence), driver, other) {
      slab[known].entered = durable.entered
    } else {
      link(fence, driver, other, entered: durable.entered, &fences)
    }
  }

  mutating func loadEnded(_ driver: Int, _ other: Int, fence: Int, _ fences: inout FenceTable) {
    if let pair = find(in: fences.handle(of: fence), driver, other) { unlink(pair, &fences) }
  }

  /// What is stored of the pairs that a driver's fixes began, so that each is stored once.
  func durable(_ driver: Int, among drivers: borrowing Drivers, _ fences: borrowing FenceTable) -> [DurablePair] {
    var pairs: [DurablePair] = []
    forEach(of: driver) { pair in
      guard Int(pair.ends.0.driver) == driver, let fence = fences.id(pair.fence) else { return }
      pairs.append(
        DurablePair(
          fenceID: fence, driverID: drivers[driver].id, otherID: drivers[Int(pair.ends.1.driver)].id,
          entered: pair.entered))
    }
    return pairs
  }
}
