// Roaming fences: two drivers near each other, wherever they are. With each position of a driver its pairs are looked
// at, and where it may begin one, the nearest drivers in the index. Both are bounded: a driver has a few pairs, a hub a
// few such fences, and a search a small budget, so that a taxi rank with a hundred cabs costs no more than sixteen.
//
// A pair stands in the lists of both drivers, by way of its two links.
import HubGeo
import HubMessages

/// Two drivers within the distance of a roaming fence.
struct FencePair {
  /// One of the two, and where its list goes on.
  struct End {
    var driver: UInt32
    /// The driver's next pair; −1 for none.
    var next: Int32 = -1
  }

  let fence: Handle
  /// The driver whose fix began it is the first.
  fileprivate(set) var ends: (End, End)
  /// The time of that fix, ms since 1970.
  let enteredMilliseconds: Int64

  func end(of driver: Int) -> End { Int(ends.0.driver) == driver ? ends.0 : ends.1 }

  func other(than driver: Int) -> Int { Int(ends.0.driver) == driver ? Int(ends.1.driver) : Int(ends.0.driver) }

  fileprivate mutating func setNext(_ next: Int32, of driver: Int) {
    if Int(ends.0.driver) == driver { ends.0.next = next } else { ends.1.next = next }
  }
}

struct FencePairs: ~Copyable {
  /// What one look may do: a crowd is found in part, and the rest with later positions.
  private static var budget: SearchBudget { SearchBudget(cells: 100, candidates: 200) }

  private let limit: Int
  private let limitPerDriver: Int
  private let accuracyMeters: Double
  private var slab = Slab<FencePair>()
  /// By driver: its newest pair; −1 for none.
  private var firsts: PagedSlab<Int32>
  /// For one look: the drivers near it.
  private var hits: [DriverHit] = []

  init(limits: HubLimits, rules: FenceRules) {
    limit = limits.fencePairs
    limitPerDriver = limits.pairsPerDriver
    accuracyMeters = rules.accuracyMeters
    firsts = PagedSlab(limit: limits.drivers, pageShift: 10, filler: -1)
  }

  var count: Int { slab.count }

  /// Each pair of the driver, the newest first, those of deleted fences among them.
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

  private func first(of driver: Int) -> Int { driver < firsts.count ? Int(firsts[driver]) : -1 }

  // MARK: A position

  /// A position of a driver was published: pairs that end, and such that begin.
  mutating func update(
    _ position: Position, of driver: Int, among drivers: borrowing Drivers, in table: inout FenceTable,
    counting counters: inout HubCounters
  ) -> [Crossing] {
    var crossings: [Crossing] = []
    var pair = first(of: driver)
    while pair >= 0 {
      let next = Int(slab[pair].end(of: driver).next)
      watch(pair, position, driver, drivers, &table, &crossings)
      pair = next
    }
    for place in 0..<table.roaming.count {
      findPairs(Int(table.roaming[place]), position, driver, drivers, &table, counting: &counters, &crossings)
    }
    return crossings
  }

  private mutating func watch(
    _ pair: Int, _ position: Position, _ driver: Int, _ drivers: borrowing Drivers, _ table: inout FenceTable,
    _ crossings: inout [Crossing]
  ) {
    let fence = Int(slab[pair].fence.index)
    guard table.isCurrent(slab[pair].fence), case .roaming(let meters, let others) = table[fence].fence.shape else {
      return unlink(pair, in: &table)
    }
    let other = slab[pair].other(than: driver)
    // Who has not come back since a restart may still be there.
    guard let there = drivers[other].position else { return }
    let distance = position.coordinate.distance(to: there.coordinate)
    var notice = FenceNotice(
      fenceID: table[fence].fence.id, timestamp: position.timestamp, location: position.coordinate)
    notice.distance = TrackMath.rounded(distance, to: 0.1)
    if drivers[other].isStale {
      notice.reason = .offline
    } else if !isPair(table[fence].fence.drivers, others, driver, other, drivers) {
      notice.reason = .filter
    } else if distance <= meters + max(table[fence].exitMeters, position.accuracy, there.accuracy) {
      return
    }
    end(pair, notice, driver, drivers, &table, &crossings)
  }

  /// Whether a fence for some drivers is for one of the two, and the other one is of its others.
  @inline(__always)
  private func isPair(
    _ filter: FenceFilter, _ others: FenceFilter, _ a: Int, _ b: Int, _ drivers: borrowing Drivers
  ) -> Bool {
    let (one, two) = (drivers.label(of: a), drivers.label(of: b))
    return drivers.profiles.matches(filter, one) && drivers.profiles.matches(others, two)
      || drivers.profiles.matches(filter, two) && drivers.profiles.matches(others, one)
  }

  private mutating func findPairs(
    _ fence: Int, _ position: Position, _ driver: Int, _ drivers: borrowing Drivers, _ table: inout FenceTable,
    counting counters: inout HubCounters, _ crossings: inout [Crossing]
  ) {
    let (filter, label) = (table[fence].fence.drivers, drivers.label(of: driver))
    guard case .roaming(let meters, let others) = table[fence].fence.shape,
      drivers.profiles.matches(filter, label) || drivers.profiles.matches(others, label)
    else { return }
    var found: [DriverHit] = []
    swap(&found, &hits)
    found.removeAll(keepingCapacity: true)
    _ = drivers.index.nearest(
      to: position.coordinate, limit: limitPerDriver, withinMeters: meters, budget: FencePairs.budget,
      into: &found
    ) { other, _ in Int(other) != driver && isPair(filter, others, driver, Int(other), drivers) }
    for hit in found {
      begin(
        fence, with: Int(hit.driver), hit.distanceMeters, position, driver, drivers, &table, counting: &counters,
        &crossings)
    }
    swap(&found, &hits)
  }

  private mutating func begin(
    _ fence: Int, with other: Int, _ meters: Double, _ position: Position, _ driver: Int, _ drivers: borrowing Drivers,
    _ table: inout FenceTable, counting counters: inout HubCounters, _ crossings: inout [Crossing]
  ) {
    guard let there = drivers[other].position, there.absorbed == nil, there.accuracy <= accuracyMeters,
      find(table.handle(of: fence), driver, other) == nil
    else { return }
    guard count(of: driver) < limitPerDriver, count(of: other) < limitPerDriver else {
      return counters.count(.pairsPerDriver)
    }
    guard count < limit else { return counters.count(full: .fencePairs) }
    link(table.handle(of: fence), driver, other, entered: position.timestamp, in: &table)
    let id = table[fence].fence.id
    let durable = DurablePair(
      fenceID: id, driverID: drivers[driver].id, otherID: drivers[other].id, entered: position.timestamp)
    var notice = FenceNotice(fenceID: id, timestamp: position.timestamp, location: position.coordinate)
    notice.distance = TrackMath.rounded(meters, to: 0.1)
    add(.fenceEnter, notice, .pair(durable), driver, other, drivers, fence: fence, to: &crossings)
  }

  private mutating func end(
    _ pair: Int, _ made: FenceNotice, _ driver: Int, _ drivers: borrowing Drivers, _ table: inout FenceTable,
    _ crossings: inout [Crossing]
  ) {
    let (fence, other) = (Int(slab[pair].fence.index), slab[pair].other(than: driver))
    var notice = made
    let entered = Timestamp(milliseconds: slab[pair].enteredMilliseconds)
    notice.duration = max(0, notice.timestamp.seconds(since: entered))
    unlink(pair, in: &table)
    let record = DurableRecord.pairEnded(
      fence: notice.fenceID, driver: drivers[driver].id, other: drivers[other].id)
    add(.fenceExit, notice, record, driver, other, drivers, fence: fence, to: &crossings)
  }

  /// The driver goes offline, or is forgotten: it is near nobody.
  mutating func end(
    of driver: Int, _ reason: FenceNotice.Reason, at time: Timestamp, among drivers: borrowing Drivers,
    in table: inout FenceTable
  ) -> [Crossing] {
    var crossings: [Crossing] = []
    while case let pair = first(of: driver), pair >= 0 {
      guard table.isCurrent(slab[pair].fence) else {
        unlink(pair, in: &table)
        continue
      }
      var notice = FenceNotice(fenceID: table[Int(slab[pair].fence.index)].fence.id, timestamp: time)
      notice.reason = reason
      end(pair, notice, driver, drivers, &table, &crossings)
    }
    return crossings
  }

  /// Ends the pairs of a driver whose record goes, without a crossing.
  mutating func drop(of driver: Int, in table: inout FenceTable) {
    while case let pair = first(of: driver), pair >= 0 { unlink(pair, in: &table) }
  }

  /// On the fence's channel, and on both drivers', each with its driver first. Not on their trips': a rider has no
  /// business with another driver.
  private func add(
    _ kind: Notification.Kind, _ notice: FenceNotice, _ record: DurableRecord, _ driver: Int, _ other: Int,
    _ drivers: borrowing Drivers, fence: Int, to crossings: inout [Crossing]
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

  private mutating func link(
    _ fence: Handle, _ driver: Int, _ other: Int, entered: Timestamp, in table: inout FenceTable
  ) {
    firsts.grow(to: max(driver, other, firsts.count - 1) + 1)
    let pair = slab.insert(
      FencePair(
        fence: fence,
        ends: (
          FencePair.End(driver: UInt32(driver), next: firsts[driver]),
          FencePair.End(driver: UInt32(other), next: firsts[other])
        ), enteredMilliseconds: entered.milliseconds))
    firsts[driver] = Int32(pair)
    firsts[other] = Int32(pair)
    table.count(1, in: fence)
  }

  private mutating func unlink(_ pair: Int, in table: inout FenceTable) {
    let record = slab[pair]
    for end in [record.ends.0, record.ends.1] {
      let driver = Int(end.driver)
      var (previous, next) = (-1, Int(firsts[driver]))
      while next != pair { (previous, next) = (next, Int(slab[next].end(of: driver).next)) }
      if previous < 0 { firsts[driver] = end.next } else { slab[previous].setNext(end.next, of: driver) }
    }
    table.count(-1, in: record.fence)
    slab.remove(pair, leaving: record)
  }

  private func find(_ fence: Handle, _ driver: Int, _ other: Int) -> Int? {
    var pair = first(of: driver)
    while pair >= 0 {
      if slab[pair].fence == fence, slab[pair].other(than: driver) == other { return pair }
      pair = Int(slab[pair].end(of: driver).next)
    }
    return nil
  }

  // MARK: Reading back

  mutating func load(_ driver: Int, _ other: Int, fence: Int, entered: Timestamp, in table: inout FenceTable) {
    let handle = table.handle(of: fence)
    if find(handle, driver, other) == nil { link(handle, driver, other, entered: entered, in: &table) }
  }

  mutating func loadEnded(_ driver: Int, _ other: Int, fence: Int, in table: inout FenceTable) {
    if let pair = find(table.handle(of: fence), driver, other) { unlink(pair, in: &table) }
  }
}
