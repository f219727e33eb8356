// A location update in the hub, as one list of calls: driver, trip, plausibility, position, publications.
import HubBytes
import HubGeo
import HubMessages

extension Hub {
  /// Handles one fix of a session. Inlined, with what it calls.
  @inline(__always)
  mutating func handle(_ input: FixInPlace) {
    guard let driver = drivers.driver(of: input.session) else {
      counters.fixesReceived += 1
      counters.fixesOrphaned += 1
      return refuseReplaced(input.session, input.messageID)
    }
    handle(input, driver: driver)
  }

  @inline(__always)
  mutating func handle(_ input: FixInPlace, driver: Int) {
    counters.fixesReceived += 1
    let (sent, received) = (input.sent, input.received)
    drivers.observeClock(of: driver, sent: sent, received: received.timestamp)
    let trip: Int?
    do throws(ErrorReply) {
      trip = try tripForFixes(of: driver, input)
    } catch {
      counters.noteRefused(1, because: error.code)
      return refuse(input.session, error, replyTo: input.messageID)
    }
    let outcome = track(
      input.fix, sent: sent, driver: driver, trip: trip, received: received.uptime,
      isRecorded: storage.isOn && storage.hasRoom)
    recordFixes(driver: driver, trip: trip, received: received.timestamp)
    switch outcome {
    case .accepted, .history, .duplicate, .held: return
    case .refused(let refusal):
      refuse(input.session, input.messageID, refusal.code, refusal.explanation)
    case .clockDoubted(let secondsBehind):
      refuse(input.session, input.messageID, .implausibleLocation, Tracker.explanation(ofClockBehind: secondsBehind))
    }
  }

  /// Filters, indexes and publishes a fix, live or of a batch.
  ///
  /// `sent` is the time of a live fix's envelope, nil for a fix of a batch. With a journal, `isRecorded` says that it
  /// has room. A fix that is not recorded is published all the same, and counts as unseen when it is sent again.
  mutating func track(
    _ fix: Fix, sent: Timestamp?, driver: Int, trip: Int?, received: Int64, isRecorded: Bool
  ) -> FixOutcome {
    let outcome = applyIfNew(fix, sent: sent, driver: driver, trip: trip, received: received, isRecorded: isRecorded)
    if drivers[driver].rawChannel >= 0 { publish(raw: fix, outcome, driver: driver) }
    return outcome
  }

  @inline(__always)
  private mutating func applyIfNew(
    _ fix: Fix, sent: Timestamp?, driver: Int, trip: Int?, received: Int64, isRecorded: Bool
  ) -> FixOutcome {
    // The time of a fix without a record is not remembered, so that a repetition can still be recorded.
    let isLost = storage.isOn && !isRecorded
    guard drivers.insertIfNew(fix.timestamp, of: driver, remembering: !isLost) else {
      counters.fixesDuplicate += 1
      return .duplicate
    }
    let outcome = applyFix(fix, sent: sent, driver: driver, trip: trip, received: received, isRecorded: isRecorded)
    if isLost, outcome.isTaken {
      drivers.noteUnrecorded(fix.timestamp, driver: driver, counting: &counters)
    }
    return outcome
  }

  private mutating func applyFix(
    _ fix: Fix, sent: Timestamp?, driver: Int, trip: Int?, received: Int64, isRecorded: Bool
  ) -> FixOutcome {
    let rules = limits.tracking
    if let speed = fix.speed, speed > rules.maximumSpeed { counters.speedsIgnored += 1 }
    switch drivers.advanceTrack(with: fix, of: driver, sent: sent, receivedAt: received, hubClock: now.timestamp) {
    case .accepted(let position):
      return applyPosition(fix, position, driver: driver, trip: trip, received: received, isRecorded: isRecorded)
    case .acceptedTwo(let held, let position):
      applyHeld(held, driver: driver, trip: trip, received: received, isRecorded: isRecorded)
      return applyPosition(fix, position, driver: driver, trip: trip, received: received, isRecorded: isRecorded)
    case .acceptedHeld(let held, let refusal):
      applyHeld(held, driver: driver, trip: trip, received: received, isRecorded: isRecorded)
      return countRefusal(refusal)
    case .history:
      counters.fixesHistory += 1
      if isRecorded { record(fix, .history, nil, driver: driver) }
      if drivers[driver].isBehindClock(fix, at: now.timestamp, rules) { counters.fixesBehindClock += 1 }
      return .history
    case .clockDoubted(let secondsBehind):
      counters.fixesHistory += 1
      counters.fixesBehindClock += 1
      if isRecorded { record(fix, .history, nil, driver: driver) }
      noteUnpublished(driver)
      return .clockDoubted(secondsBehind: secondsBehind)
    case .clockBelieved(let position, let back):
      counters.clocksBelieved += 1
      drivers.believeClock(of: driver, sent: sent, at: now.timestamp)
      moveFenceTimes(of: driver, back: back)
      return applyPosition(fix, position, driver: driver, trip: trip, received: received, isRecorded: isRecorded)
    case .duplicate:
      if isRecorded, drivers.hasNoRecord(ofPublished: fix.timestamp, of: driver) {
        counters.fixesHistory += 1
        record(fix, .history, nil, driver: driver)
        return .history
      }
      counters.fixesDuplicate += 1
      return .duplicate
    case .held:
      counters.fixesHeld += 1
      if isRecorded { record(fix, .held, nil, driver: driver) }
      return .held
    case .refused(let refusal):
      return countRefusal(refusal)
    }
  }

  /// Publishes a held fix, before the one that confirmed it.
  private mutating func applyHeld(_ held: Position, driver: Int, trip: Int?, received: Int64, isRecorded: Bool) {
    counters.fixesReleased += 1
    let fix = Fix(coordinate: held.coordinate, timestamp: held.timestamp)
    _ = applyPosition(fix, held, .confirmed, driver: driver, trip: trip, received: received, isRecorded: isRecorded)
  }

  private mutating func countRefusal(_ refusal: Tracker.Refusal) -> FixOutcome {
    counters.fixesRefused[Int(refusal.rawValue)] += 1
    return .refused(refusal)
  }

  /// Takes the driver's new position: moves it in the index, publishes and records it.
  private mutating func applyPosition(
    _ fix: Fix, _ position: Position, _ disposition: StoredFix.Disposition = .live, driver: Int, trip: Int?,
    received: Int64, isRecorded: Bool
  ) -> FixOutcome {
    counters.fixesAccepted += 1
    if let trip { trips.measure(position, after: drivers[driver].position, trip: trip, at: now.uptime) }
    if let reason = position.absorbed { counters.fixesAbsorbed[Int(reason.rawValue)] += 1 }
    drivers.storePosition(position, of: driver, trip: trip.map { trips.handle(of: $0) }, at: now)
    let age = drivers[driver].age(of: position, at: now.timestamp)
    if drivers[driver].isStale { returnFromStale(driver) }
    drivers.reindex(driver)
    noteArea(driver)
    publish(position, age: age, driver: driver, trip: trip, received: received)
    if let trip { updateLeg(position, age: age, driver: driver, trip: trip, isRecorded: isRecorded) }
    if fences.count > 0 { watchFences(position, driver: driver) }
    adviseSampling(driver, trip: trip)
    if isRecorded { record(fix, disposition, position, driver: driver) }
    return .accepted
  }

  /// Publishes a position on the trip's, the driver's and the fleet's channel.
  private mutating func publish(_ position: Position, age: Double, driver: Int, trip: Int?, received: Int64) {
    counters.positionsPublished += 1
    if !distant.isEmpty, let name = distant.named(by: driver) {
      return channels.publish(
        position.location(of: drivers[driver].id, trip: name, age: age), of: driver, drivers, received: received,
        at: now.timestamp, storedThrough: storage.storedThrough)
    }
    let shared = trip.flatMap { trips[$0].channel == nil ? nil : $0 }
    channels.publish(
      position, age: age, of: driver, drivers, on: shared, trips, Moment(uptime: received, timestamp: now.timestamp),
      storedThrough: storage.storedThrough)
  }
}
