// Which fences a driver comes into, leaves, stays in for long, or is too fast in: looked at with each published
// position, and with nothing else. protocol/fences.md says what follows from it.
//
//     position → the fences of its cell → exits, then enters → crossings, each with its record
//
// Where no fence is near this is a comparison of two numbers. A stay is 48 bytes in a list of the driver's own, so that
// a fix looks at as many as there are and nobody at all drivers of a fence. A fence that is deleted leaves its stays
// where they are; each goes with its driver's next fix, by the generation of the fence.
import HubGeo
import HubMessages

/// A driver in a fence.
struct FenceStay {
  let fence: Handle
  /// The time of the fix with which it began.
  var entered: Timestamp
  /// When the driver was notified last that it is speeding there.
  var speedingTold: Timestamp?
  /// It is, as far as it was notified.
  var isSpeeding = false
  var isDwellTold = false
  /// The driver's next one; −1 for none.
  fileprivate(set) var next: Int32 = -1

  func durable(driver: Identifier, fence: Identifier) -> DurableStay {
    DurableStay(
      driverID: driver, fenceID: fence, entered: entered, speedingTold: speedingTold, isSpeeding: isSpeeding,
      isDwellTold: isDwellTold)
  }
}

/// What is kept of each driver. Not private to the type: Swift 6.3.1 breaks off over such a one in a debug build.
struct FenceLink: BitwiseCopyable {
  /// What is known of the fences near it.
  var known = FenceLevels()
  /// Its newest stay; −1 for none.
  var first: Int32 = -1
}

struct FenceStays: ~Copyable {
  private let limit: Int
  private let limitPerDriver: Int
  private let rules: FenceRules
  private var slab = Slab<FenceStay>()
  private var links: PagedSlab<FenceLink>
  /// The newest mark of a look: fences that the driver was in have it, and those that it still is in one more.
  private var mark: UInt64 = 0
  /// For one look: the fences that the driver comes into.
  private var entering: [UInt32] = []

  init(limits: HubLimits, rules: FenceRules) {
    limit = limits.fenceStays
    limitPerDriver = limits.fencesPerDriver
    self.rules = rules
    links = PagedSlab(limit: limits.drivers, pageShift: 10, filler: FenceLink())
  }

  var count: Int { slab.count }

  /// How many stays the driver has, those in deleted fences among them.
  func count(of driver: Int) -> Int {
    var count = 0
    forEach(of: driver) { _ in count += 1 }
    return count
  }

  /// Each stay of the driver, the newest first.
  func forEach(of driver: Int, _ body: (FenceStay) -> Void) {
    var stay = first(of: driver)
    while stay >= 0 {
      body(slab[stay])
      stay = Int(slab[stay].next)
    }
  }

  private func first(of driver: Int) -> Int { driver < links.count ? Int(links[driver].first) : -1 }

  // MARK: A position

  /// Whether a position of the driver needs a look: it is in a fence, or one is near.
  @inline(__always)
  mutating func isNearFence(_ position: Position, driver: Int, in table: borrowing FenceTable) -> Bool {
    if driver >= links.count { links.grow(to: driver + 1) }
    table.index.look(position.coordinate, &links[driver].known)
    return links[driver].known.levels != 0 || links[driver].first >= 0
  }

  /// A position of a driver that is near a fence: what follows from it, exits first.
  mutating func update(
    _ position: Position, of subject: FenceSubject, in table: inout FenceTable, profiles: borrowing DriverProfileTable,
    counting counters: inout HubCounters
  ) -> [Crossing] {
    var crossings: [Crossing] = []
    mark += 2
    var stay = Int(links[subject.driver].first)
    while stay >= 0 {
      if table.isCurrent(slab[stay].fence) { table.mark(Int(slab[stay].fence.index), mark) }
      stay = Int(slab[stay].next)
    }
    findEntered(position, of: subject, in: &table, profiles: profiles, counting: &counters)
    watchStays(position, of: subject, in: &table, profiles: profiles, &crossings)
    for fence in entering { enter(Int(fence), position, subject, &table, counting: &counters, &crossings) }
    return crossings
  }

  /// Of the fences that the driver was in, marks those that it still is in; collects those that it was not.
  private mutating func findEntered(
    _ position: Position, of subject: FenceSubject, in table: inout FenceTable, profiles: borrowing DriverProfileTable,
    counting counters: inout HubCounters
  ) {
    entering.removeAll(keepingCapacity: true)
    let direction = UnitVector(position.coordinate)
    var walk = table.index.walk(links[subject.driver].known)
    while let (fence, isWhole) = table.index.next(&walk) {
      counters.fencesLookedAt += 1
      guard isWhole || table[fence].contains(position.coordinate, direction) else { continue }
      if table[fence].stamp == mark {
        table.mark(fence, mark + 1)
      } else if table[fence].isForAll || profiles.matches(table[fence].fence.drivers, subject.label) {
        entering.append(UInt32(fence))
      }
    }
  }

  private enum Outcome {
    case inside
    /// Outside, and not far enough to have left.
    case near
    case left(FenceNotice.Reason?)
    /// The fence was deleted.
    case gone
  }

  /// Looks at all fences that the driver is in.
  private mutating func watchStays(
    _ position: Position, of subject: FenceSubject, in table: inout FenceTable, profiles: borrowing DriverProfileTable,
    _ crossings: inout [Crossing]
  ) {
    var (stay, previous) = (Int(links[subject.driver].first), -1)
    while stay >= 0 {
      let next = Int(slab[stay].next)
      switch outcome(of: stay, position, subject.label, table, profiles) {
      case .inside:
        watchDwell(stay, position, subject, table, &crossings)
        watchSpeed(stay, position, subject, table, &crossings)
        previous = stay
      case .near:
        watchDwell(stay, position, subject, table, &crossings)
        previous = stay
      case .left(let reason):
        var notice = notice(of: stay, position, table)
        notice.reason = reason
        leave(stay, behind: previous, subject, notice, on: .all, &table, &crossings)
      case .gone: end(stay, behind: previous, of: subject.driver, in: &table)
      }
      stay = next
    }
  }

  private func outcome(
    of stay: Int, _ position: Position, _ label: DriverLabel, _ table: borrowing FenceTable,
    _ profiles: borrowing DriverProfileTable
  ) -> Outcome {
    guard table.isCurrent(slab[stay].fence) else { return .gone }
    let fence = Int(slab[stay].fence.index)
    guard table[fence].isForAll || profiles.matches(table[fence].fence.drivers, label) else { return .left(.filter) }
    if table[fence].stamp == mark + 1 { return .inside }
    guard let area = table[fence].fence.area else { return .gone }
    let meters = area.distanceToBorder(from: position.coordinate)
    return meters > max(table[fence].exitMeters, position.accuracy) ? .left(nil) : .near
  }

  private mutating func enter(
    _ fence: Int, _ position: Position, _ subject: FenceSubject, _ table: inout FenceTable,
    counting counters: inout HubCounters, _ crossings: inout [Crossing]
  ) {
    guard count(of: subject.driver) < limitPerDriver else { return counters.count(.fencesPerDriver) }
    guard count < limit else { return counters.count(full: .fenceStays) }
    let stay = begin(fence, at: position.timestamp, of: subject.driver, in: &table)
    let notice = FenceNotice(
      fenceID: table[fence].fence.id, timestamp: position.timestamp, location: position.coordinate)
    crossings.append(made(.fenceEnter, notice, of: stay, subject, on: .all))
    if table[fence].fence.kind == .hazard {
      crossings.append(
        Crossing(kind: .hazard, notice: notice, driver: subject.driver, fence: fence, audience: .driver, record: nil))
    }
    watchSpeed(stay, position, subject, table, &crossings)
  }

  /// A crossing after which the stay is as it is now.
  private func made(
    _ kind: Notification.Kind, _ notice: FenceNotice, of stay: Int, _ subject: FenceSubject,
    on audience: Crossing.Audience
  ) -> Crossing {
    Crossing(
      kind: kind, notice: notice, driver: subject.driver, fence: Int(slab[stay].fence.index), audience: audience,
      record: .stay(slab[stay].durable(driver: subject.id, fence: notice.fenceID)))
  }

  private func notice(of stay: Int, _ position: Position, _ table: borrowing FenceTable) -> FenceNotice {
    var notice = FenceNotice(
      fenceID: table[Int(slab[stay].fence.index)].fence.id, timestamp: position.timestamp,
      location: position.coordinate)
    notice.duration = max(0, position.timestamp.seconds(since: slab[stay].entered))
    return notice
  }

  /// Reports once that a stay has become long.
  @inline(__always)
  private mutating func watchDwell(
    _ stay: Int, _ position: Position, _ subject: FenceSubject, _ table: borrowing FenceTable,
    _ crossings: inout [Crossing]
  ) {
    guard let dwell = table[Int(slab[stay].fence.index)].dwell, !slab[stay].isDwellTold,
      position.timestamp.seconds(since: slab[stay].entered) >= dwell
    else { return }
    slab[stay].isDwellTold = true
    crossings.append(made(.fenceDwell, notice(of: stay, position, table), of: stay, subject, on: .all))
  }

  /// Reports that the driver is too fast, and again only after it was slower and some time has passed.
  @inline(__always)
  private mutating func watchSpeed(
    _ stay: Int, _ position: Position, _ subject: FenceSubject, _ table: borrowing FenceTable,
    _ crossings: inout [Crossing]
  ) {
    let fence = Int(slab[stay].fence.index)
    guard let limit = table[fence].speedLimit, let speed = position.speed else { return }
    if slab[stay].isSpeeding {
      if speed <= limit * rules.speedingEndsPart { slab[stay].isSpeeding = false }
      return
    }
    guard speed > limit else { return }
    if let told = slab[stay].speedingTold, position.timestamp.seconds(since: told) < rules.speedingSeconds { return }
    slab[stay].isSpeeding = true
    slab[stay].speedingTold = position.timestamp
    var notice = FenceNotice(
      fenceID: table[fence].fence.id, timestamp: position.timestamp, location: position.coordinate)
    notice.speed = speed
    notice.speedLimit = limit
    crossings.append(made(.speeding, notice, of: stay, subject, on: .fenceAndDriver))
  }

  // MARK: Drivers that go, clocks that are set

  /// The driver's clock was set back by so many milliseconds: the times of its stays become times by the new clock.
  /// Else a long stay would be reported by as much too late, and speeding not at all until then. Gives what changed.
  mutating func move(of subject: FenceSubject, back milliseconds: Int64, in table: borrowing FenceTable)
    -> [DurableStay]
  {
    var moved: [DurableStay] = []
    var stay = first(of: subject.driver)
    while stay >= 0 {
      slab[stay].entered.goBack(milliseconds)
      slab[stay].speedingTold?.goBack(milliseconds)
      if table.isCurrent(slab[stay].fence) {
        let fence = table[Int(slab[stay].fence.index)].fence.id
        moved.append(slab[stay].durable(driver: subject.id, fence: fence))
      }
      stay = Int(slab[stay].next)
    }
    return moved
  }

  /// The driver is forgotten: its stays end, and the followers of the fences are notified.
  mutating func end(ofForgotten subject: FenceSubject, in table: inout FenceTable, at time: Timestamp) -> [Crossing] {
    var crossings: [Crossing] = []
    while case let stay = first(of: subject.driver), stay >= 0 {
      guard table.isCurrent(slab[stay].fence) else {
        end(stay, behind: -1, of: subject.driver, in: &table)
        continue
      }
      var notice = FenceNotice(fenceID: table[Int(slab[stay].fence.index)].fence.id, timestamp: time)
      notice.duration = max(0, time.seconds(since: slab[stay].entered))
      notice.reason = .forgotten
      leave(stay, behind: -1, subject, notice, on: .fence, &table, &crossings)
    }
    return crossings
  }

  /// Ends the stays of a driver whose record goes, without a crossing.
  mutating func drop(of driver: Int, in table: inout FenceTable) {
    while case let stay = first(of: driver), stay >= 0 { end(stay, behind: -1, of: driver, in: &table) }
    if driver < links.count { links[driver] = FenceLink() }
  }

  // MARK: Lists

  private mutating func leave(
    _ stay: Int, behind previous: Int, _ subject: FenceSubject, _ notice: FenceNotice, on audience: Crossing.Audience,
    _ table: inout FenceTable, _ crossings: inout [Crossing]
  ) {
    crossings.append(
      Crossing(
        kind: .fenceExit, notice: notice, driver: subject.driver, fence: Int(slab[stay].fence.index),
        audience: audience, record: .stayEnded(driver: subject.id, fence: notice.fenceID)))
    end(stay, behind: previous, of: subject.driver, in: &table)
  }

  private mutating func begin(_ fence: Int, at time: Timestamp, of driver: Int, in table: inout FenceTable) -> Int {
    if driver >= links.count { links.grow(to: driver + 1) }
    let handle = table.handle(of: fence)
    let stay = slab.insert(FenceStay(fence: handle, entered: time, next: links[driver].first))
    links[driver].first = Int32(stay)
    table.count(1, in: handle)
    return stay
  }

  /// Ends a stay, the one behind `previous` (−1: the driver's first).
  private mutating func end(_ stay: Int, behind previous: Int, of driver: Int, in table: inout FenceTable) {
    let gone = slab[stay]
    if previous < 0 { links[driver].first = gone.next } else { slab[previous].next = gone.next }
    table.count(-1, in: gone.fence)
    slab.remove(stay, leaving: gone)
  }

  /// The driver's stay in a fence, and the one before it.
  private func find(_ fence: Handle, of driver: Int) -> (stay: Int, previous: Int)? {
    var (stay, previous) = (first(of: driver), -1)
    while stay >= 0 {
      if slab[stay].fence == fence { return (stay, previous) }
      (previous, stay) = (stay, Int(slab[stay].next))
    }
    return nil
  }

  // MARK: Reading back

  mutating func load(_ durable: DurableStay, driver: Int, fence: Int, in table: inout FenceTable) {
    let stay =
      find(table.handle(of: fence), of: driver)?.stay
      ?? begin(fence, at: durable.entered, of: driver, in: &table)
    slab[stay].entered = durable.entered
    slab[stay].speedingTold = durable.speedingTold
    slab[stay].isSpeeding = durable.isSpeeding
    slab[stay].isDwellTold = durable.isDwellTold
  }

  mutating func loadEnded(driver: Int, fence: Int, in table: inout FenceTable) {
    guard let (stay, previous) = find(table.handle(of: fence), of: driver) else { return }
    end(stay, behind: previous, of: driver, in: &table)
  }
}

extension Timestamp {
  /// Not to before the first time that can be stored: over a restart the milliseconds come from the hub's wall clock.
  fileprivate mutating func goBack(_ milliseconds: Int64) {
    self = max(Timestamp.accepted.lowerBound, Timestamp(milliseconds: self.milliseconds - milliseconds))
  }
}
