// Roaming fences: two drivers near each other, wherever they are. With each position of a driver its pairs are looked
// at, and where it may begin one, the nearest drivers in the index. Both are bounded: a driver has a few pairs, a hub a
// few such fences, and a search a small budget, so that a taxi rank with a hundred cabs costs no more than sixteen.
import HubGeo
import HubMessages

extension Hub {
  /// What one look may do: a crowd is found in part, and the rest with later positions.
  private static var roamingBudget: SearchBudget { SearchBudget(cells: 100, candidates: 200) }

  /// A position of a driver was published.
  @inline(never)
  mutating func watchPairs(_ position: Position, driver: Int) {
    guard storage.hasRoom else { return }
    var pair = Int(drivers[driver].fences.firstPair)
    while pair >= 0 {
      let next = Int(fences.pairs[pair].end(of: driver).next)
      watch(pair, position, driver: driver)
      pair = next
    }
    for place in 0..<fences.roaming.count { findPairs(Int(fences.roaming[place]), position, driver: driver) }
  }

  private mutating func watch(_ pair: Int, _ position: Position, driver: Int) {
    guard fences.isCurrent(fences.pairs[pair].fence) else { return unlink(pair) }
    let fence = Int(fences.pairs[pair].fence.index)
    guard case .roaming(let meters, let others) = fences.records[fence].fence.shape else { return unlink(pair) }
    let other = fences.pairs[pair].other(than: driver)
    // Who has not come back since a restart may still be there.
    guard let there = drivers[other].position else { return }
    let distance = position.coordinate.distance(to: there.coordinate)
    if drivers[other].isStale {
      end(pair, .offline, at: position, driver: driver, distance)
    } else if !isPair(fence, others, driver, other) {
      end(pair, .filter, at: position, driver: driver, distance)
    } else if distance > meters + max(fences.records[fence].exitMeters, position.accuracy, there.accuracy) {
      end(pair, nil, at: position, driver: driver, distance)
    }
  }

  /// Whether the fence is for one of the two, and the other one is of its others.
  @inline(__always)
  private func isPair(_ fence: Int, _ others: FenceFilter, _ a: Int, _ b: Int) -> Bool {
    let first = fences.records[fence].fence.drivers
    return matches(first, driver: a) && matches(others, driver: b)
      || matches(first, driver: b) && matches(others, driver: a)
  }

  private mutating func findPairs(_ fence: Int, _ position: Position, driver: Int) {
    guard case .roaming(let meters, let others) = fences.records[fence].fence.shape,
      matches(fences.records[fence].fence.drivers, driver: driver) || matches(others, driver: driver)
    else { return }
    var hits: [DriverHit] = []
    swap(&hits, &fences.hits)
    hits.removeAll(keepingCapacity: true)
    nearest(fence, meters, others, position, driver: driver, into: &hits)
    for hit in hits { begin(fence, with: Int(hit.driver), hit.distanceMeters, position, driver: driver) }
    swap(&hits, &fences.hits)
  }

  private func nearest(
    _ fence: Int, _ meters: Double, _ others: FenceFilter, _ position: Position, driver: Int,
    into hits: inout [DriverHit]
  ) {
    _ = index.nearest(
      to: position.coordinate, limit: limits.pairsPerDriver, withinMeters: meters, budget: Hub.roamingBudget,
      into: &hits
    ) { other, _ in
      Int(other) != driver && isPair(fence, others, driver, Int(other))
    }
  }

  private mutating func begin(_ fence: Int, with other: Int, _ meters: Double, _ position: Position, driver: Int) {
    guard let there = drivers[other].position, there.absorbed == nil,
      there.accuracy <= timings.fences.accuracyMeters, findPair(fence, driver, other) == nil
    else { return }
    guard pairCount(of: driver) < limits.pairsPerDriver, pairCount(of: other) < limits.pairsPerDriver else {
      return counters.count(.pairsPerDriver)
    }
    guard fences.pairs.count < limits.fencePairs else { return counters.count(full: .fencePairs) }
    link(fence, driver, other, entered: position.timestamp)
    let id = fences.records[fence].fence.id
    storage.write(
      .pair(
        DurablePair(
          fenceID: id, driverID: drivers[driver].id, otherID: drivers[other].id, entered: position.timestamp)))
    var notice = FenceNotice(fenceID: id, timestamp: position.timestamp, location: position.coordinate)
    notice.distance = TrackMath.rounded(meters, to: 0.1)
    tell(.fenceEnter, notice, driver, other, fence: fence)
  }

  private mutating func end(
    _ pair: Int, _ reason: FenceNotice.Reason?, at position: Position, driver: Int, _ meters: Double
  ) {
    var notice = FenceNotice(
      fenceID: fences.records[Int(fences.pairs[pair].fence.index)].fence.id, timestamp: position.timestamp,
      location: position.coordinate)
    notice.distance = TrackMath.rounded(meters, to: 0.1)
    notice.reason = reason
    end(pair, notice, driver: driver)
  }

  private mutating func end(_ pair: Int, _ notice: FenceNotice, driver: Int) {
    let fence = Int(fences.pairs[pair].fence.index)
    let other = fences.pairs[pair].other(than: driver)
    var notice = notice
    let entered = Timestamp(milliseconds: fences.pairs[pair].enteredMilliseconds)
    notice.duration = max(0, notice.timestamp.seconds(since: entered))
    unlink(pair)
    storage.write(
      .pairEnded(fence: notice.fenceID, driver: drivers[driver].id, other: drivers[other].id))
    tell(.fenceExit, notice, driver, other, fence: fence)
  }

  /// The driver goes offline, or is forgotten: it is near nobody. Where that can't be stored, its partners' positions
  /// say it later.
  mutating func endPairs(of driver: Int, _ reason: FenceNotice.Reason) {
    guard storage.hasRoom else { return }
    while drivers[driver].fences.firstPair >= 0 {
      let pair = Int(drivers[driver].fences.firstPair)
      guard fences.isCurrent(fences.pairs[pair].fence) else {
        unlink(pair)
        continue
      }
      var notice = FenceNotice(
        fenceID: fences.records[Int(fences.pairs[pair].fence.index)].fence.id, timestamp: now.timestamp)
      notice.reason = reason
      end(pair, notice, driver: driver)
    }
  }

  mutating func dropPairs(of driver: Int) {
    while drivers[driver].fences.firstPair >= 0 { unlink(Int(drivers[driver].fences.firstPair)) }
  }

  /// On the fence's channel, and on both drivers', each with its driver first. Not on their trips': a rider has no
  /// business with another driver.
  private mutating func tell(
    _ kind: Notification.Kind, _ notice: FenceNotice, _ driver: Int, _ other: Int, fence: Int
  ) {
    var (mine, theirs) = (notice, notice)
    mine.otherID = drivers[other].id
    theirs.otherID = drivers[driver].id
    publish(kind, mine, driver: driver, fence: fence, on: .fenceAndDriver)
    publish(kind, theirs, driver: other, fence: fence, on: .driver)
  }

  // MARK: Lists

  private mutating func link(_ fence: Int, _ driver: Int, _ other: Int, entered: Timestamp) {
    let pair = fences.pairs.insert(
      FencePair(
        fence: fences.handle(of: fence),
        ends: (
          FencePair.End(driver: UInt32(driver), next: drivers[driver].fences.firstPair),
          FencePair.End(driver: UInt32(other), next: drivers[other].fences.firstPair)
        ), enteredMilliseconds: entered.milliseconds))
    drivers[driver].fences.firstPair = Int32(pair)
    drivers[other].fences.firstPair = Int32(pair)
    fences.records[fence].inside += 1
  }

  private mutating func unlink(_ pair: Int) {
    let record = fences.pairs[pair]
    for end in [record.ends.0, record.ends.1] {
      let driver = Int(end.driver)
      var (previous, next) = (-1, Int(drivers[driver].fences.firstPair))
      while next != pair { (previous, next) = (next, Int(fences.pairs[next].end(of: driver).next)) }
      if previous < 0 {
        drivers[driver].fences.firstPair = end.next
      } else {
        fences.pairs[previous].setNext(end.next, of: driver)
      }
    }
    if fences.isCurrent(record.fence) { fences.records[Int(record.fence.index)].inside -= 1 }
    fences.pairs.remove(pair, leaving: record)
  }

  private mutating func findPair(_ fence: Int, _ driver: Int, _ other: Int) -> Int? {
    var pair = Int(drivers[driver].fences.firstPair)
    while pair >= 0 {
      if fences.pairs[pair].fence == fences.handle(of: fence), fences.pairs[pair].other(than: driver) == other {
        return pair
      }
      pair = Int(fences.pairs[pair].end(of: driver).next)
    }
    return nil
  }

  private mutating func pairCount(of driver: Int) -> Int {
    var (pair, count) = (Int(drivers[driver].fences.firstPair), 0)
    while pair >= 0 {
      count += 1
      pair = Int(fences.pairs[pair].end(of: driver).next)
    }
    return count
  }

  // MARK: Storing and reading back

  mutating func load(_ durable: DurablePair) -> Bool {
    guard let fence = findFence(durable.fenceID), durable.driverID != durable.otherID else { return false }
    guard let driver = findOrInsertDriver(durable.driverID), let other = findOrInsertDriver(durable.otherID) else {
      return true
    }
    if findPair(fence, driver, other) == nil { link(fence, driver, other, entered: durable.entered) }
    return true
  }

  mutating func loadEndedPair(fence fenceID: Identifier, _ id: Identifier, _ otherID: Identifier) {
    guard let fence = findFence(fenceID), let driver = findDriver(id), let other = findDriver(otherID),
      let pair = findPair(fence, driver, other)
    else { return }
    unlink(pair)
  }

  /// Each pair of a fence that is there, once.
  func forEachPair<E: Error>(_ body: (DurablePair) throws(E) -> Void) throws(E) {
    for driver in 0..<drivers.endIndex {
      var pair = Int(drivers[driver].fences.firstPair)
      while pair >= 0 {
        let record = fences.pairs[pair]
        if Int(record.ends.0.driver) == driver, fences.isCurrent(record.fence) {
          try body(
            DurablePair(
              fenceID: fences.records[Int(record.fence.index)].fence.id, driverID: drivers[driver].id,
              otherID: drivers[Int(record.ends.1.driver)].id,
              entered: Timestamp(milliseconds: record.enteredMilliseconds)))
        }
        pair = Int(record.end(of: driver).next)
      }
    }
  }
}
