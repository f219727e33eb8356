// Which fences a driver comes into, leaves, stays in for long, or is too fast in: looked at with each published
// position, and with nothing else. protocol/fences.md says what follows from it.
//
//     position → gate → the fences of its cell → exits, then enters → events, each with its record
//
// Where no fence is near this is a comparison of two numbers. A fence's own events go to its channel, the driver's and
// the driver's trip's, in one order; who is in is recorded with them, so that after a restart nobody enters twice and
// an exit that happened meanwhile is told with the first position.
import HubGeo
import HubMessages

extension Hub {
  /// A position of a driver was published.
  @inline(__always)
  mutating func watchFences(_ position: Position, driver: Int) {
    if fences.count == 0 { return }
    let rules = timings.fences
    // What is guessed, or not known to be here, decides nothing.
    guard position.absorbed == nil, position.accuracy <= rules.accuracyMeters else { return }
    if !fences.roaming.isEmpty { watchPairs(position, driver: driver) }
    fences.index.look(position.coordinate, &drivers[driver].fences.known)
    if drivers[driver].fences.known.levels == 0, drivers[driver].fences.firstStay < 0 { return }
    watchAreas(position, driver: driver)
  }

  /// While nothing can be stored nothing is decided: a later position does.
  private mutating func watchAreas(_ position: Position, driver: Int) {
    guard storage.hasRoom else { return }
    let mark = fences.nextStamp()
    var stay = Int(drivers[driver].fences.firstStay)
    while stay >= 0 {
      let fence = fences.stays[stay].fence
      if fences.isCurrent(fence) { fences.records[Int(fence.index)].stamp = mark }
      stay = Int(fences.stays[stay].next)
    }
    findEntered(position, driver: driver, mark)
    watchStays(position, driver: driver, mark)
    let count = fences.entering.count
    for place in 0..<count { enter(Int(fences.entering[place]), position, driver: driver) }
  }

  /// Of the fences that the driver was in, marks those that it still is in; collects those that it was not.
  private mutating func findEntered(_ position: Position, driver: Int, _ mark: UInt64) {
    fences.entering.removeAll(keepingCapacity: true)
    let direction = UnitVector(position.coordinate)
    var walk = fences.index.walk(drivers[driver].fences.known)
    while let (fence, isWhole) = fences.index.next(&walk) {
      counters.fencesLookedAt += 1
      guard isWhole || contains(fence, position.coordinate, direction) else { continue }
      if fences.records[fence].stamp == mark {
        fences.records[fence].stamp = mark + 1
      } else if isFor(fence, driver: driver) {
        fences.entering.append(UInt32(fence))
      }
    }
  }

  @inline(__always)
  private func contains(_ fence: Int, _ place: Coordinate, _ direction: UnitVector) -> Bool {
    if let circle = fences.records[fence].circle { return circle.contains(place, direction) }
    guard case .area(let area) = fences.records[fence].fence.shape else { return false }
    return area.contains(place, direction)
  }

  /// Whether a fence is for a driver, as that is now.
  @inline(__always)
  private func isFor(_ fence: Int, driver: Int) -> Bool {
    fences.records[fence].isForAll || matches(fences.records[fence].fence.drivers, driver: driver)
  }

  @inline(__always)
  func matches(_ filter: FenceFilter, driver: Int) -> Bool {
    if filter.isEmpty { return true }
    if let status = filter.status, status != drivers[driver].status { return false }
    return profiles.matches(drivers[driver].profile, vehicleType: filter.vehicleType, tags: filter.tags)
  }

  // MARK: Stays

  private enum Standing {
    case inside
    /// Outside, and not far enough to have left.
    case near
    case left(FenceNotice.Reason?)
    /// The fence was deleted.
    case gone
  }

  /// Looks at all fences that the driver is in.
  private mutating func watchStays(_ position: Position, driver: Int, _ mark: UInt64) {
    var (stay, previous) = (Int(drivers[driver].fences.firstStay), -1)
    while stay >= 0 {
      let next = Int(fences.stays[stay].next)
      switch standing(stay, position, driver: driver, mark) {
      case .inside:
        watchDwell(stay, position, driver: driver)
        watchSpeed(stay, position, driver: driver)
        previous = stay
      case .near:
        watchDwell(stay, position, driver: driver)
        previous = stay
      case .left(let reason):
        leave(stay, behind: previous, position, reason, driver: driver)
      case .gone:
        fences.end(stay, behind: previous, of: &drivers[driver].fences)
      }
      stay = next
    }
  }

  private mutating func standing(_ stay: Int, _ position: Position, driver: Int, _ mark: UInt64) -> Standing {
    guard fences.isCurrent(fences.stays[stay].fence) else { return .gone }
    let fence = Int(fences.stays[stay].fence.index)
    if !isFor(fence, driver: driver) { return .left(.filter) }
    if fences.records[fence].stamp == mark + 1 { return .inside }
    guard case .area(let area) = fences.records[fence].fence.shape else { return .gone }
    let meters = area.distanceToBorder(from: position.coordinate)
    return meters > max(fences.records[fence].exitMeters, position.accuracy) ? .left(nil) : .near
  }

  private mutating func enter(_ fence: Int, _ position: Position, driver: Int) {
    guard fences.stayCount(of: drivers[driver].fences) < limits.fencesPerDriver else {
      return counters.count(.fencesPerDriver)
    }
    guard fences.stays.count < limits.fenceStays else { return counters.count(full: .fenceStays) }
    let stay = fences.begin(fence, at: position.timestamp, of: &drivers[driver].fences)
    record(stay: stay, driver: driver)
    let notice = FenceNotice(
      fenceID: fences.records[fence].fence.id, timestamp: position.timestamp, location: position.coordinate)
    publish(.fenceEnter, notice, driver: driver, fence: fence, on: .all)
    if fences.records[fence].fence.kind == .hazard {
      publish(.hazard, notice, driver: driver, fence: fence, on: .driver)
    }
    watchSpeed(stay, position, driver: driver)
  }

  private mutating func leave(
    _ stay: Int, behind previous: Int, _ position: Position, _ reason: FenceNotice.Reason?, driver: Int
  ) {
    let fence = Int(fences.stays[stay].fence.index)
    var notice = notice(of: stay, position)
    notice.reason = reason
    fences.end(stay, behind: previous, of: &drivers[driver].fences)
    storage.write(.stayEnded(driver: drivers[driver].id, fence: notice.fenceID))
    publish(.fenceExit, notice, driver: driver, fence: fence, on: .all)
  }

  private mutating func notice(of stay: Int, _ position: Position) -> FenceNotice {
    var notice = FenceNotice(
      fenceID: fences.records[Int(fences.stays[stay].fence.index)].fence.id, timestamp: position.timestamp,
      location: position.coordinate)
    notice.duration = max(0, position.timestamp.seconds(since: fences.stays[stay].entered))
    return notice
  }

  /// Tells once of a stay that has become long.
  @inline(__always)
  private mutating func watchDwell(_ stay: Int, _ position: Position, driver: Int) {
    let fence = Int(fences.stays[stay].fence.index)
    guard let dwell = fences.records[fence].dwell, !fences.stays[stay].isDwellTold,
      position.timestamp.seconds(since: fences.stays[stay].entered) >= dwell
    else { return }
    fences.stays[stay].isDwellTold = true
    record(stay: stay, driver: driver)
    publish(.fenceDwell, notice(of: stay, position), driver: driver, fence: fence, on: .all)
  }

  /// Tells the driver that it is too fast, and again only after it was slower and some time has passed.
  @inline(__always)
  private mutating func watchSpeed(_ stay: Int, _ position: Position, driver: Int) {
    let fence = Int(fences.stays[stay].fence.index)
    guard let limit = fences.records[fence].speedLimit, let speed = position.speed else { return }
    if fences.stays[stay].isSpeeding {
      if speed <= limit * timings.fences.speedingEndsPart { fences.stays[stay].isSpeeding = false }
      return
    }
    guard speed > limit else { return }
    if let told = fences.stays[stay].speedingTold,
      position.timestamp.seconds(since: told) < timings.fences.speedingSeconds
    {
      return
    }
    fences.stays[stay].isSpeeding = true
    fences.stays[stay].speedingTold = position.timestamp
    record(stay: stay, driver: driver)
    var notice = FenceNotice(
      fenceID: fences.records[fence].fence.id, timestamp: position.timestamp, location: position.coordinate)
    notice.speed = speed
    notice.speedLimit = limit
    publish(.speeding, notice, driver: driver, fence: fence, on: .fenceAndDriver)
  }

  /// The driver's clock was set back by so many milliseconds: the times of its stays become times by the new clock.
  /// Else a long stay would be told by as much too late, and speeding not at all until then.
  mutating func moveStays(of driver: Int, back milliseconds: Int64) {
    var stay = Int(drivers[driver].fences.firstStay)
    while stay >= 0 {
      fences.stays[stay].entered.goBack(milliseconds)
      fences.stays[stay].speedingTold?.goBack(milliseconds)
      // Without room the driver's fixes are not recorded either: a hub that starts again doubts the clock anew, and
      // moves the stays itself.
      if storage.hasRoom, fences.isCurrent(fences.stays[stay].fence) { record(stay: stay, driver: driver) }
      stay = Int(fences.stays[stay].next)
    }
  }

  /// The driver is forgotten: its stays end, and who follows the fences hears of it.
  mutating func endStays(ofForgotten driver: Int) {
    while drivers[driver].fences.firstStay >= 0 {
      let stay = Int(drivers[driver].fences.firstStay)
      let handle = fences.stays[stay].fence
      let entered = fences.stays[stay].entered
      fences.end(stay, behind: -1, of: &drivers[driver].fences)
      guard fences.isCurrent(handle) else { continue }
      let fence = Int(handle.index)
      var notice = FenceNotice(fenceID: fences.records[fence].fence.id, timestamp: now.timestamp)
      notice.duration = max(0, now.timestamp.seconds(since: entered))
      notice.reason = .forgotten
      storage.write(.stayEnded(driver: drivers[driver].id, fence: notice.fenceID))
      publish(.fenceExit, notice, driver: driver, fence: fence, on: .fence)
    }
  }

  /// Ends the stays of a driver that goes with all that is known of it, without a word.
  mutating func dropStays(of driver: Int) {
    while drivers[driver].fences.firstStay >= 0 {
      fences.end(Int(drivers[driver].fences.firstStay), behind: -1, of: &drivers[driver].fences)
    }
  }

  // MARK: Telling

  /// Who is told.
  enum FenceAudience {
    /// Who follows the fence, the driver, or the driver's trip.
    case all
    case fenceAndDriver
    case fence
    case driver

    var hasFence: Bool { self != .driver }
    var hasDriver: Bool { self != .fence }
  }

  /// An event about a driver and a fence, on each channel that it concerns, in one order.
  @inline(never)
  mutating func publish(
    _ kind: Notification.Kind, _ notice: FenceNotice, driver: Int, fence: Int, on audience: FenceAudience
  ) {
    counters.fenceEvents[Int(kind.rawValue)] += 1
    let id = drivers[driver].id
    let text = FenceWords.text(kind, notice, driver: id, fence: fences.records[fence].fence)
    func body(_ sequence: UInt64) -> Publication.Body {
      .notification(
        Notification(
          kind: kind, title: text.title, body: text.body, driverID: id, fence: notice, sequence: sequence))
    }
    if audience.hasFence, let channel = eventChannel(ofFence: notice.fenceID) { publishEvent(on: channel, body) }
    if audience.hasDriver, let channel = eventChannel(ofDriver: driver) { publishEvent(on: channel, body) }
    if audience == .all, let trip = lastTrip(of: driver), !trips[trip].status.isFinal,
      let channel = eventChannel(ofTrip: trip)
    {
      publishEvent(on: channel, body)
    }
  }

  // MARK: Storing and reading back

  private mutating func record(stay: Int, driver: Int) {
    if storage.isOn { storage.write(.stay(durable(stay: stay, driver: driver))) }
  }

  func durable(stay: Int, driver: Int) -> DurableStay {
    let stay = fences.stays[stay]
    return DurableStay(
      driverID: drivers[driver].id, fenceID: fences.records[Int(stay.fence.index)].fence.id, entered: stay.entered,
      speedingTold: stay.speedingTold, isSpeeding: stay.isSpeeding, isDwellTold: stay.isDwellTold)
  }

  mutating func load(_ durable: DurableStay) -> Bool {
    guard let fence = findFence(durable.fenceID) else { return false }
    // A driver that the table has no room for comes in anew when it comes.
    guard let driver = findOrInsertDriver(durable.driverID) else { return true }
    let stay =
      fences.find(fence, of: drivers[driver].fences)?.stay
      ?? fences.begin(fence, at: durable.entered, of: &drivers[driver].fences)
    fences.stays[stay].entered = durable.entered
    fences.stays[stay].speedingTold = durable.speedingTold
    fences.stays[stay].isSpeeding = durable.isSpeeding
    fences.stays[stay].isDwellTold = durable.isDwellTold
    return true
  }

  mutating func loadEnded(driver id: Identifier, fence fenceID: Identifier) {
    guard let fence = findFence(fenceID), let driver = findDriver(id),
      let (stay, previous) = fences.find(fence, of: drivers[driver].fences)
    else { return }
    fences.end(stay, behind: previous, of: &drivers[driver].fences)
  }

  /// Each stay in a fence that is there.
  func forEachStay<E: Error>(_ body: (DurableStay) throws(E) -> Void) throws(E) {
    for driver in 0..<drivers.endIndex {
      // The last one is the first that began: read back in this order, the list is the same.
      var list: [Int] = []
      var stay = Int(drivers[driver].fences.firstStay)
      while stay >= 0 {
        if fences.isCurrent(fences.stays[stay].fence) { list.append(stay) }
        stay = Int(fences.stays[stay].next)
      }
      for stay in list.reversed() { try body(durable(stay: stay, driver: driver)) }
    }
  }
}

extension Timestamp {
  /// Not to before the first time that can be stored: over a restart the milliseconds come from the hub's wall clock.
  fileprivate mutating func goBack(_ milliseconds: Int64) {
    self = max(Timestamp.accepted.lowerBound, Timestamp(milliseconds: self.milliseconds - milliseconds))
  }
}
