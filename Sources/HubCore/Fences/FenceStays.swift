// Which fences a driver enters, leaves, stays in for long, or speeds in: checked with each published position and
// nothing else. protocol/fences.md describes the effect.
//
//     position → the fences of its cell → exits, then enters → crossings, each with its record
//
// Where no fence is near this is a comparison of two numbers. A stay is 48 bytes in a list of the driver's own, so a
// fix checks only its driver's stays. A deleted fence leaves its stays; each is removed with its driver's next fix, by
// the generation of the fence.
import HubGeo
import HubMessages

/// A driver in a fence.
struct FenceStay {
  let fence: Handle
  /// The time of the fix that began it.
  var entered: Timestamp
  /// When the driver's speeding there was last published.
  var speedingNotified: Timestamp?
  /// Whether speeding there is the last published state.
  var isSpeeding = false
  var isDwellNotified = false
  /// The driver's next one; −1 for none.
  var next: Int32 = -1

  func durable(driver: Identifier, fence: Identifier) -> DurableStay {
    DurableStay(
      driverID: driver, fenceID: fence, entered: entered, speedingNotified: speedingNotified, isSpeeding: isSpeeding,
      isDwellNotified: isDwellNotified)
  }
}

/// The driver of a position, as fences see it.
private struct FenceSubject {
  let driver: Int
  let id: Identifier
  /// Its present status and profile.
  let label: DriverLabel
  let position: Position

  func notice(of fence: Identifier) -> FenceNotice {
    FenceNotice(fenceID: fence, timestamp: position.timestamp, location: position.coordinate)
  }
}

/// All stays. Crossings are appended to the caller's list.
struct FenceStays: ~Copyable {
  /// The state of each driver. Not private: the compiler (Swift 6.3.1) fails on a private type of an element in another
  /// file.
  struct Links: BitwiseCopyable {
    /// The levels of fences near it.
    var known = FenceLevels()
    /// Its newest stay; −1 for none.
    var first: Int32 = -1
  }

  private let limits: HubLimits
  private let rules: FenceRules
  private var slab = Slab<FenceStay>()
  /// By driver.
  private var links: PagedSlab<Links>
  /// The stamp of the newest check for fences that the driver was in; those that it is still in get one more.
  private var mark: UInt64 = 0
  /// The fences that the driver enters, reused between calls.
  private var entering: [UInt32] = []

  init(limits: HubLimits, rules: FenceRules) {
    self.limits = limits
    self.rules = rules
    links = PagedSlab(limit: limits.drivers, pageShift: 10, filler: Links())
  }

  var count: Int { slab.count }

  @inline(__always)
  private mutating func makeLinks(of driver: Int) { if driver >= links.count { links.grow(to: driver + 1) } }

  /// Checks a driver's position: exits first, then enters.
  @inline(__always)
  mutating func update(
    _ position: Position, of driver: Int, among drivers: borrowing Drivers, at fences: inout FenceTable,
    into crossings: inout [Crossing], counting counters: inout HubCounters
  ) {
    makeLinks(of: driver)
    fences.index.look(position.coordinate, &links[driver].known)
    guard links[driver].known.levels != 0 || links[driver].first >= 0 else { return }
    let subject = FenceSubject(
      driver: driver, id: drivers[driver].id, label: drivers.label(of: driver), position: position)
    watch(subject, drivers.profiles, &fences, &crossings, counting: &counters)
  }

  private mutating func watch(
    _ subject: FenceSubject, _ profiles: borrowing DriverProfileTable, _ fences: inout FenceTable,
    _ crossings: inout [Crossing], counting counters: inout HubCounters
  ) {
    mark += 2
    var stay = first(of: subject.driver)
    while stay >= 0 {
      if fences.isCurrent(slab[stay].fence) { fences.mark(Int(slab[stay].fence.index), mark) }
      stay = Int(slab[stay].next)
    }
    findEntered(subject, profiles, &fences, counting: &counters)
    lookAtStays(subject, profiles, &fences, &crossings)
    for fence in entering { enter(Int(fence), subject, &fences, &crossings, counting: &counters) }
  }

  /// Marks the fences that the driver still is in; collects those that it was not in.
  private mutating func findEntered(
    _ subject: FenceSubject, _ profiles: borrowing DriverProfileTable, _ fences: inout FenceTable,
    counting counters: inout HubCounters
  ) {
    entering.removeAll(keepingCapacity: true)
    let direction = UnitVector(subject.position.coordinate)
    var walk = fences.index.walk(links[subject.driver].known)
    while let (fence, isWhole) = fences.index.next(&walk) {
      counters.fencesLookedAt += 1
      guard isWhole || fences[fence].contains(subject.position.coordinate, direction) else { continue }
      if fences[fence].stamp == mark {
        fences.mark(fence, mark + 1)
      } else if fences[fence].isForAll || profiles.matches(fences[fence].fence.drivers, subject.label) {
        entering.append(UInt32(fence))
      }
    }
  }

  private enum Outcome {
    case inside
    /// Outside, but not far enough for an exit.
    case near
    case left(FenceNotice.Reason?)
    /// The fence was deleted.
    case gone
  }

  /// Checks all fences that the driver is in.
  private mutating func lookAtStays(
    _ subject: FenceSubject, _ profiles: borrowing DriverProfileTable, _ fences: inout FenceTable,
    _ crossings: inout [Crossing]
  ) {
    var (stay, previous) = (Int(links[subject.driver].first), -1)
    while stay >= 0 {
      let next = Int(slab[stay].next)
      switch outcome(of: stay, subject, profiles, fences) {
      case .inside:
        watchDwell(stay, subject, fences, &crossings)
        watchSpeed(stay, subject, fences, &crossings)
        previous = stay
      case .near:
        watchDwell(stay, subject, fences, &crossings)
        previous = stay
      case .left(let reason):
        var notice = notice(of: stay, subject, fences)
        notice.reason = reason
        leave(stay, behind: previous, subject.driver, subject.id, notice, on: .all, &fences, &crossings)
      case .gone: end(stay, behind: previous, of: subject.driver, &fences)
      }
      stay = next
    }
  }

  @inline(__always)
  private func outcome(
    of stay: Int, _ subject: FenceSubject, _ profiles: borrowing DriverProfileTable, _ fences: borrowing FenceTable
  ) -> Outcome {
    guard fences.isCurrent(slab[stay].fence) else { return .gone }
    let fence = Int(slab[stay].fence.index)
    guard fences[fence].isForAll || profiles.matches(fences[fence].fence.drivers, subject.label) else {
      return .left(.filter)
    }
    if fences[fence].stamp == mark + 1 { return .inside }
    guard let area = fences[fence].fence.area else { return .gone }
    let meters = area.distanceToBorder(from: subject.position.coordinate)
    return meters > max(fences[fence].exitMeters, subject.position.accuracy) ? .left(nil) : .near
  }

  private mutating func enter(
    _ fence: Int, _ subject: FenceSubject, _ fences: inout FenceTable, _ crossings: inout [Crossing],
    counting counters: inout HubCounters
  ) {
    guard count(of: subject.driver) < limits.fencesPerDriver else { return counters.count(.fencesPerDriver) }
    guard slab.count < limits.fenceStays else { return counters.count(full: .fenceStays) }
    let stay = begin(fence, at: subject.position.timestamp, of: subject.driver, &fences)
    let notice = subject.notice(of: fences[fence].fence.id)
    add(.fenceEnter, notice, of: stay, subject, on: .all, &crossings)
    if fences[fence].fence.kind == .hazard {
      crossings.append(
        Crossing(kind: .hazard, notice: notice, driver: subject.driver, fence: fence, audience: .driver, record: nil))
    }
    watchSpeed(stay, subject, fences, &crossings)
  }

  /// Adds a crossing with the present state of the stay.
  private func add(
    _ kind: Notification.Kind, _ notice: FenceNotice, of stay: Int, _ subject: FenceSubject,
    on audience: Crossing.Audience, _ crossings: inout [Crossing]
  ) {
    crossings.append(
      Crossing(
        kind: kind, notice: notice, driver: subject.driver, fence: Int(slab[stay].fence.index), audience: audience,
        record: .stay(slab[stay].durable(driver: subject.id, fence: notice.fenceID))))
  }

  private func notice(of stay: Int, _ subject: FenceSubject, _ fences: borrowing FenceTable) -> FenceNotice {
    var notice = subject.notice(of: fences[Int(slab[stay].fence.index)].fence.id)
    notice.duration = max(0, notice.timestamp.seconds(since: slab[stay].entered))
    return notice
  }

  /// Reports once that a stay has become long.
  @inline(__always)
  private mutating func watchDwell(
    _ stay: Int, _ subject: FenceSubject, _ fences: borrowing FenceTable, _ crossings: inout [Crossing]
  ) {
    guard let dwell = fences[Int(slab[stay].fence.index)].dwell, !slab[stay].isDwellNotified,
      subject.position.timestamp.seconds(since: slab[stay].entered) >= dwell
    else { return }
    slab[stay].isDwellNotified = true
    add(.fenceDwell, notice(of: stay, subject, fences), of: stay, subject, on: .all, &crossings)
  }

  /// Reports speeding, and again only after the driver was slower and some time has passed.
  @inline(__always)
  private mutating func watchSpeed(
    _ stay: Int, _ subject: FenceSubject, _ fences: borrowing FenceTable, _ crossings: inout [Crossing]
  ) {
    let fence = Int(slab[stay].fence.index)
    guard let limit = fences[fence].speedLimit, let speed = subject.position.speed else { return }
    if slab[stay].isSpeeding {
      guard speed <= limit * rules.speedingResetFraction else { return }
      slab[stay].isSpeeding = false
      let notice = subject.notice(of: fences[fence].fence.id)
      return add(.speeding, notice, of: stay, subject, on: .nobody, &crossings)
    }
    guard speed > limit else { return }
    let time = subject.position.timestamp
    if let last = slab[stay].speedingNotified, time.seconds(since: last) < rules.speedingSeconds { return }
    slab[stay].isSpeeding = true
    slab[stay].speedingNotified = time
    var notice = subject.notice(of: fences[fence].fence.id)
    notice.speed = speed
    notice.speedLimit = limit
    add(.speeding, notice, of: stay, subject, on: .fenceAndDriver, &crossings)
  }

  // MARK: Drivers that go, clocks that are set

  /// Moves the times of the stays of a driver whose clock was set back, and gives these stays. Else a long stay would
  /// be reported too late by as much, and speeding not before the clock has caught up.
  mutating func move(
    of driver: Int, _ id: Identifier, back milliseconds: Int64, _ fences: borrowing FenceTable
  ) -> [DurableStay] {
    var moved: [DurableStay] = []
    var stay = first(of: driver)
    while stay >= 0 {
      slab[stay].entered.goBack(milliseconds)
      slab[stay].speedingNotified?.goBack(milliseconds)
      if let fence = fences.id(slab[stay].fence) { moved.append(slab[stay].durable(driver: id, fence: fence)) }
      stay = Int(slab[stay].next)
    }
    return moved
  }

  /// Ends the stays of a driver that is forgotten, with notifications to the fences' followers.
  mutating func end(
    ofForgotten driver: Int, _ id: Identifier, at time: Timestamp, _ fences: inout FenceTable,
    into crossings: inout [Crossing]
  ) {
    while case let stay = first(of: driver), stay >= 0 {
      guard let fence = fences.id(slab[stay].fence) else {
        end(stay, behind: -1, of: driver, &fences)
        continue
      }
      var notice = FenceNotice(fenceID: fence, timestamp: time)
      notice.duration = max(0, time.seconds(since: slab[stay].entered))
      notice.reason = .forgotten
      leave(stay, behind: -1, driver, id, notice, on: .fence, &fences, &crossings)
    }
  }

  /// Drops the driver's stays with its record.
  mutating func drop(_ driver: Int, _ fences: inout FenceTable) {
    guard driver < links.count else { return }
    while case let stay = first(of: driver), stay >= 0 { end(stay, behind: -1, of: driver, &fences) }
    links[driver] = Links()
  }

  // MARK: Lists

  private func first(of driver: Int) -> Int { driver < links.count ? Int(links[driver].first) : -1 }

  /// The number of the driver's stays, including those in deleted fences.
  func count(of driver: Int) -> Int {
    var count = 0
    forEach(of: driver) { _ in count += 1 }
    return count
  }

  /// Each stay of the driver, newest first.
  func forEach(of driver: Int, _ body: (FenceStay) -> Void) {
    var stay = first(of: driver)
    while stay >= 0 {
      body(slab[stay])
      stay = Int(slab[stay].next)
    }
  }

  private mutating func leave(
    _ stay: Int, behind previous: Int, _ driver: Int, _ id: Identifier, _ notice: FenceNotice,
    on audience: Crossing.Audience, _ fences: inout FenceTable, _ crossings: inout [Crossing]
  ) {
    crossings.append(
      Crossing(
        kind: .fenceExit, notice: notice, driver: driver, fence: Int(slab[stay].fence.index), audience: audience,
        record: .stayEnded(driver: id, fence: notice.fenceID)))
    end(stay, behind: previous, of: driver, &fences)
  }

  private mutating func begin(_ fence: Int, at time: Timestamp, of driver: Int, _ fences: inout FenceTable) -> Int {
    makeLinks(of: driver)
    let handle = fences.handle(of: fence)
    let stay = slab.insert(FenceStay(fence: handle, entered: time, next: links[driver].first))
    links[driver].first = Int32(stay)
    fences.count(1, in: handle)
    return stay
  }

  /// Ends the stay behind `previous` (−1: the driver's first).
  private mutating func end(_ stay: Int, behind previous: Int, of driver: Int, _ fences: inout FenceTable) {
    let gone = slab[stay]
    if previous < 0 { links[driver].first = gone.next } else { slab[previous].next = gone.next }
    fences.count(-1, in: gone.fence)
    slab.remove(stay, leaving: gone)
  }

  /// The driver's stay in a fence, and the one before it in the list.
  private func find(in fence: Handle, of driver: Int) -> (stay: Int, previous: Int)? {
    var (stay, previous) = (first(of: driver), -1)
    while stay >= 0 {
      if slab[stay].fence == fence { return (stay, previous) }
      (previous, stay) = (stay, Int(slab[stay].next))
    }
    return nil
  }

  // MARK: Storing and reading back

  mutating func load(_ durable: DurableStay, driver: Int, fence: Int, _ fences: inout FenceTable) {
    let known = find(in: fences.handle(of: fence), of: driver)?.stay
    let stay = known ?? begin(fence, at: durable.entered, of: driver, &fences)
    slab[stay].entered = durable.entered
    slab[stay].speedingNotified = durable.speedingNotified
    slab[stay].isSpeeding = durable.isSpeeding
    slab[stay].isDwellNotified = durable.isDwellNotified
  }

  mutating func loadEnded(driver: Int, fence: Int, _ fences: inout FenceTable) {
    guard let (stay, previous) = find(in: fences.handle(of: fence), of: driver) else { return }
    end(stay, behind: previous, of: driver, &fences)
  }

  /// What is stored of a driver's stays, oldest first: read back in this order, the list is the same.
  func durable(_ driver: Int, _ id: Identifier, _ fences: borrowing FenceTable) -> [DurableStay] {
    var stays: [DurableStay] = []
    forEach(of: driver) { stay in
      if let fence = fences.id(stay.fence) { stays.append(stay.durable(driver: id, fence: fence)) }
    }
    return stays.reversed()
  }
}

extension Timestamp {
  /// Goes back, but not beyond what can be stored: after a restart `milliseconds` comes from the hub's wall clock.
  mutating func goBack(_ milliseconds: Int64) {
    self = max(Timestamp.accepted.lowerBound, Timestamp(milliseconds: self.milliseconds - milliseconds))
  }
}
