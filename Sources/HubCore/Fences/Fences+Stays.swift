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
  var speedingNotified: Timestamp?
  /// It is, as far as it was notified.
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

/// The driver that a position is of, as fences see it.
struct FenceSubject {
  let driver: Int
  let id: Identifier
  /// Its status and its profile, as they are now.
  let label: DriverLabel
  let position: Position

  fileprivate func notice(of fence: Identifier) -> FenceNotice {
    FenceNotice(fenceID: fence, timestamp: position.timestamp, location: position.coordinate)
  }
}

extension Fences {
  /// A position of a driver that is near a fence: exits first, then enters.
  mutating func watchStays(
    _ subject: FenceSubject, _ profiles: borrowing DriverProfileTable, counting counters: inout HubCounters
  ) {
    mark += 2
    var stay = Int(links[subject.driver].firstStay)
    while stay >= 0 {
      if table.isCurrent(stays[stay].fence) { table.mark(Int(stays[stay].fence.index), mark) }
      stay = Int(stays[stay].next)
    }
    findEntered(subject, profiles, counting: &counters)
    lookAtStays(subject, profiles)
    for fence in entering { enter(Int(fence), subject, counting: &counters) }
  }

  /// Of the fences that the driver was in, marks those that it still is in; collects those that it was not.
  private mutating func findEntered(
    _ subject: FenceSubject, _ profiles: borrowing DriverProfileTable, counting counters: inout HubCounters
  ) {
    entering.removeAll(keepingCapacity: true)
    let direction = UnitVector(subject.position.coordinate)
    var walk = table.index.walk(links[subject.driver].known)
    while let (fence, isWhole) = table.index.next(&walk) {
      counters.fencesLookedAt += 1
      guard isWhole || table[fence].contains(subject.position.coordinate, direction) else { continue }
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
  private mutating func lookAtStays(_ subject: FenceSubject, _ profiles: borrowing DriverProfileTable) {
    var (stay, previous) = (Int(links[subject.driver].firstStay), -1)
    while stay >= 0 {
      let next = Int(stays[stay].next)
      switch outcome(of: stay, subject, profiles) {
      case .inside:
        watchDwell(stay, subject)
        watchSpeed(stay, subject)
        previous = stay
      case .near:
        watchDwell(stay, subject)
        previous = stay
      case .left(let reason):
        var notice = notice(of: stay, subject)
        notice.reason = reason
        leave(stay, behind: previous, subject.driver, subject.id, notice, on: .all)
      case .gone: end(stay, behind: previous, of: subject.driver)
      }
      stay = next
    }
  }

  @inline(__always)
  private func outcome(
    of stay: Int, _ subject: FenceSubject, _ profiles: borrowing DriverProfileTable
  ) -> Outcome {
    guard table.isCurrent(stays[stay].fence) else { return .gone }
    let fence = Int(stays[stay].fence.index)
    guard table[fence].isForAll || profiles.matches(table[fence].fence.drivers, subject.label) else {
      return .left(.filter)
    }
    if table[fence].stamp == mark + 1 { return .inside }
    guard let area = table[fence].fence.area else { return .gone }
    let meters = area.distanceToBorder(from: subject.position.coordinate)
    return meters > max(table[fence].exitMeters, subject.position.accuracy) ? .left(nil) : .near
  }

  private mutating func enter(_ fence: Int, _ subject: FenceSubject, counting counters: inout HubCounters) {
    guard stayCount(of: subject.driver) < limits.perDriver else { return counters.count(.fencesPerDriver) }
    guard stays.count < limits.stays else { return counters.count(full: .fenceStays) }
    let stay = begin(fence, at: subject.position.timestamp, of: subject.driver)
    let notice = subject.notice(of: table[fence].fence.id)
    add(.fenceEnter, notice, of: stay, subject, on: .all)
    if table[fence].fence.kind == .hazard {
      crossings.append(
        Crossing(kind: .hazard, notice: notice, driver: subject.driver, fence: fence, audience: .driver, record: nil))
    }
    watchSpeed(stay, subject)
  }

  /// A crossing after which the stay is as it is now.
  private mutating func add(
    _ kind: Notification.Kind, _ notice: FenceNotice, of stay: Int, _ subject: FenceSubject,
    on audience: Crossing.Audience
  ) {
    crossings.append(
      Crossing(
        kind: kind, notice: notice, driver: subject.driver, fence: Int(stays[stay].fence.index), audience: audience,
        record: .stay(stays[stay].durable(driver: subject.id, fence: notice.fenceID))))
  }

  private func notice(of stay: Int, _ subject: FenceSubject) -> FenceNotice {
    var notice = subject.notice(of: table[Int(stays[stay].fence.index)].fence.id)
    notice.duration = max(0, notice.timestamp.seconds(since: stays[stay].entered))
    return notice
  }

  /// Reports once that a stay has become long.
  @inline(__always)
  private mutating func watchDwell(_ stay: Int, _ subject: FenceSubject) {
    guard let dwell = table[Int(stays[stay].fence.index)].dwell, !stays[stay].isDwellNotified,
      subject.position.timestamp.seconds(since: stays[stay].entered) >= dwell
    else { return }
    stays[stay].isDwellNotified = true
    add(.fenceDwell, notice(of: stay, subject), of: stay, subject, on: .all)
  }

  /// Reports that the driver is too fast, and again only after it was slower and some time has passed.
  @inline(__always)
  private mutating func watchSpeed(_ stay: Int, _ subject: FenceSubject) {
    let fence = Int(stays[stay].fence.index)
    guard let limit = table[fence].speedLimit, let speed = subject.position.speed else { return }
    if stays[stay].isSpeeding {
      if speed <= limit * rules.speedingEndsPart { stays[stay].isSpeeding = false }
      return
    }
    guard speed > limit else { return }
    let time = subject.position.timestamp
    if let told = stays[stay].speedingNotified, time.seconds(since: told) < rules.speedingSeconds { return }
    stays[stay].isSpeeding = true
    stays[stay].speedingNotified = time
    var notice = subject.notice(of: table[fence].fence.id)
    notice.speed = speed
    notice.speedLimit = limit
    add(.speeding, notice, of: stay, subject, on: .fenceAndDriver)
  }

  // MARK: Drivers that go, clocks that are set

  /// The driver's clock was set back by so many milliseconds: the times of its stays become times by the new clock.
  /// Else a long stay would be reported by as much too late, and speeding not at all until then. Gives what changed.
  mutating func moveStays(of driver: Int, _ id: Identifier, back milliseconds: Int64) -> [DurableStay] {
    var moved: [DurableStay] = []
    var stay = firstStay(of: driver)
    while stay >= 0 {
      stays[stay].entered.goBack(milliseconds)
      stays[stay].speedingNotified?.goBack(milliseconds)
      if table.isCurrent(stays[stay].fence) {
        moved.append(stays[stay].durable(driver: id, fence: table[Int(stays[stay].fence.index)].fence.id))
      }
      stay = Int(stays[stay].next)
    }
    return moved
  }

  /// The driver is forgotten: its stays end, and the followers of the fences are notified.
  mutating func endStays(ofForgotten driver: Int, _ id: Identifier, at time: Timestamp) {
    while case let stay = firstStay(of: driver), stay >= 0 {
      guard table.isCurrent(stays[stay].fence) else {
        end(stay, behind: -1, of: driver)
        continue
      }
      var notice = FenceNotice(fenceID: table[Int(stays[stay].fence.index)].fence.id, timestamp: time)
      notice.duration = max(0, time.seconds(since: stays[stay].entered))
      notice.reason = .forgotten
      leave(stay, behind: -1, driver, id, notice, on: .fence)
    }
  }

  // MARK: Lists

  func firstStay(of driver: Int) -> Int { driver < links.count ? Int(links[driver].firstStay) : -1 }

  /// How many stays the driver has, those in deleted fences among them.
  func stayCount(of driver: Int) -> Int {
    var count = 0
    forEachStay(of: driver) { _ in count += 1 }
    return count
  }

  /// Each stay of the driver, the newest first.
  func forEachStay(of driver: Int, _ body: (FenceStay) -> Void) {
    var stay = firstStay(of: driver)
    while stay >= 0 {
      body(stays[stay])
      stay = Int(stays[stay].next)
    }
  }

  private mutating func leave(
    _ stay: Int, behind previous: Int, _ driver: Int, _ id: Identifier, _ notice: FenceNotice,
    on audience: Crossing.Audience
  ) {
    crossings.append(
      Crossing(
        kind: .fenceExit, notice: notice, driver: driver, fence: Int(stays[stay].fence.index), audience: audience,
        record: .stayEnded(driver: id, fence: notice.fenceID)))
    end(stay, behind: previous, of: driver)
  }

  mutating func begin(_ fence: Int, at time: Timestamp, of driver: Int) -> Int {
    makeLinks(of: driver)
    let handle = table.handle(of: fence)
    let stay = stays.insert(FenceStay(fence: handle, entered: time, next: links[driver].firstStay))
    links[driver].firstStay = Int32(stay)
    table.count(1, in: handle)
    return stay
  }

  /// Ends a stay, the one behind `previous` (−1: the driver's first).
  mutating func end(_ stay: Int, behind previous: Int, of driver: Int) {
    let gone = stays[stay]
    if previous < 0 { links[driver].firstStay = gone.next } else { stays[previous].next = gone.next }
    table.count(-1, in: gone.fence)
    stays.remove(stay, leaving: gone)
  }

  /// The driver's stay in a fence, and the one before it.
  func findStay(in fence: Int, of driver: Int) -> (stay: Int, previous: Int)? {
    var (stay, previous) = (firstStay(of: driver), -1)
    while stay >= 0 {
      if stays[stay].fence == table.handle(of: fence) { return (stay, previous) }
      (previous, stay) = (stay, Int(stays[stay].next))
    }
    return nil
  }
}

extension Timestamp {
  /// Not to before the first time that can be stored: over a restart the milliseconds come from the hub's wall clock.
  fileprivate mutating func goBack(_ milliseconds: Int64) {
    self = max(Timestamp.accepted.lowerBound, Timestamp(milliseconds: self.milliseconds - milliseconds))
  }
}
