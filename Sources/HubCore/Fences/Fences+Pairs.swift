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

extension Fences {
  /// What one look may do: a crowd is found in part, and the rest with later positions.
  private static var budget: SearchBudget { SearchBudget(cells: 100, candidates: 200) }

  /// A position of a driver was published: pairs that end, and such that begin.
  mutating func watchPairs(
    _ position: Position, of driver: Int, among drivers: borrowing Drivers, counting counters: inout HubCounters
  ) {
    var pair = firstPair(of: driver)
    while pair >= 0 {
      let next = Int(pairs[pair].end(of: driver).next)
      watch(pair, position, driver, drivers)
      pair = next
    }
    for fence in table.roaming { findPairs(Int(fence), position, driver, drivers, counting: &counters) }
  }

  private mutating func watch(_ pair: Int, _ position: Position, _ driver: Int, _ drivers: borrowing Drivers) {
    let fence = Int(pairs[pair].fence.index)
    guard table.isCurrent(pairs[pair].fence), case .roaming(let meters, let others) = table[fence].fence.shape else {
      return unlink(pair)
    }
    let other = pairs[pair].other(than: driver)
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
    end(pair, notice, driver, drivers)
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
    _ fence: Int, _ position: Position, _ driver: Int, _ drivers: borrowing Drivers,
    counting counters: inout HubCounters
  ) {
    let (filter, label) = (table[fence].fence.drivers, drivers.label(of: driver))
    guard case .roaming(let meters, let others) = table[fence].fence.shape,
      drivers.profiles.matches(filter, label) || drivers.profiles.matches(others, label)
    else { return }
    var found: [DriverHit] = []
    swap(&found, &hits)
    found.removeAll(keepingCapacity: true)
    _ = drivers.index.nearest(
      to: position.coordinate, limit: limits.pairsPerDriver, withinMeters: meters, budget: Fences.budget, into: &found
    ) { other, _ in Int(other) != driver && isPair(filter, others, driver, Int(other), drivers) }
    for hit in found {
      begin(fence, with: Int(hit.driver), hit.distanceMeters, position, driver, drivers, counting: &counters)
    }
    swap(&found, &hits)
  }

  private mutating func begin(
    _ fence: Int, with other: Int, _ meters: Double, _ position: Position, _ driver: Int, _ drivers: borrowing Drivers,
    counting counters: inout HubCounters
  ) {
    guard let there = drivers[other].position, there.absorbed == nil, there.accuracy <= rules.accuracyMeters,
      findPair(in: fence, driver, other) == nil
    else { return }
    guard pairCount(of: driver) < limits.pairsPerDriver, pairCount(of: other) < limits.pairsPerDriver else {
      return counters.count(.pairsPerDriver)
    }
    guard pairs.count < limits.pairs else { return counters.count(full: .fencePairs) }
    link(fence, driver, other, entered: position.timestamp)
    let id = table[fence].fence.id
    let durable = DurablePair(
      fenceID: id, driverID: drivers[driver].id, otherID: drivers[other].id, entered: position.timestamp)
    var notice = FenceNotice(fenceID: id, timestamp: position.timestamp, location: position.coordinate)
    notice.distance = TrackMath.rounded(meters, to: 0.1)
    add(.fenceEnter, notice, .pair(durable), driver, other, drivers, fence: fence)
  }

  private mutating func end(_ pair: Int, _ made: FenceNotice, _ driver: Int, _ drivers: borrowing Drivers) {
    let (fence, other) = (Int(pairs[pair].fence.index), pairs[pair].other(than: driver))
    var notice = made
    let entered = Timestamp(milliseconds: pairs[pair].enteredMilliseconds)
    notice.duration = max(0, notice.timestamp.seconds(since: entered))
    unlink(pair)
    let record = DurableRecord.pairEnded(fence: notice.fenceID, driver: drivers[driver].id, other: drivers[other].id)
    add(.fenceExit, notice, record, driver, other, drivers, fence: fence)
  }

  /// The driver goes offline, or is forgotten: it is near nobody.
  mutating func endPairs(
    of driver: Int, _ reason: FenceNotice.Reason, at time: Timestamp, among drivers: borrowing Drivers
  ) {
    while case let pair = firstPair(of: driver), pair >= 0 {
      guard table.isCurrent(pairs[pair].fence) else {
        unlink(pair)
        continue
      }
      var notice = FenceNotice(fenceID: table[Int(pairs[pair].fence.index)].fence.id, timestamp: time)
      notice.reason = reason
      end(pair, notice, driver, drivers)
    }
  }

  /// On the fence's channel, and on both drivers', each with its driver first. Not on their trips': a rider has no
  /// business with another driver.
  private mutating func add(
    _ kind: Notification.Kind, _ notice: FenceNotice, _ record: DurableRecord, _ driver: Int, _ other: Int,
    _ drivers: borrowing Drivers, fence: Int
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

  func firstPair(of driver: Int) -> Int { driver < links.count ? Int(links[driver].firstPair) : -1 }

  /// Each pair of the driver, the newest first, those of deleted fences among them.
  func forEachPair(of driver: Int, _ body: (FencePair) -> Void) {
    var pair = firstPair(of: driver)
    while pair >= 0 {
      body(pairs[pair])
      pair = Int(pairs[pair].end(of: driver).next)
    }
  }

  private func pairCount(of driver: Int) -> Int {
    var count = 0
    forEachPair(of: driver) { _ in count += 1 }
    return count
  }

  mutating func link(_ fence: Int, _ driver: Int, _ other: Int, entered: Timestamp) {
    makeLinks(of: max(driver, other))
    let handle = table.handle(of: fence)
    let pair = pairs.insert(
      FencePair(
        fence: handle,
        ends: (
          FencePair.End(driver: UInt32(driver), next: links[driver].firstPair),
          FencePair.End(driver: UInt32(other), next: links[other].firstPair)
        ), enteredMilliseconds: entered.milliseconds))
    links[driver].firstPair = Int32(pair)
    links[other].firstPair = Int32(pair)
    table.count(1, in: handle)
  }

  mutating func unlink(_ pair: Int) {
    let record = pairs[pair]
    for end in [record.ends.0, record.ends.1] {
      let driver = Int(end.driver)
      var (previous, next) = (-1, Int(links[driver].firstPair))
      while next != pair { (previous, next) = (next, Int(pairs[next].end(of: driver).next)) }
      if previous < 0 { links[driver].firstPair = end.next } else { pairs[previous].setNext(end.next, of: driver) }
    }
    table.count(-1, in: record.fence)
    pairs.remove(pair, leaving: record)
  }

  func findPair(in fence: Int, _ driver: Int, _ other: Int) -> Int? {
    var pair = firstPair(of: driver)
    while pair >= 0 {
      if pairs[pair].fence == table.handle(of: fence), pairs[pair].other(than: driver) == other { return pair }
      pair = Int(pairs[pair].end(of: driver).next)
    }
    return nil
  }
}
