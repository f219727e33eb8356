// Batches: a driver's backlog, each fix at its time. The ack has the outcome of each, and waits until all are stored.
//
// Fixes newer than the driver's newest are handled like live ones. To find duplicates among the others, the hub keeps
// the latest fix times of each driver. For fixes older than these it asks the journal (Batches/HistoryLookups.swift),
// and handles them after the answer; as history they affect no live position, so the delay does not matter.
import HubBytes
import HubGeo
import HubMessages

extension Hub {
  /// Handles a batch of a known driver.
  mutating func handle(_ input: BatchInput, driver: Int) {
    let count = input.batch.fixes.count
    counters.fixesReceived += UInt64(count)
    if drivers[driver].isElsewhere { return putOff(input, "the driver is at another hub now; send the batch again") }
    // A batch is refused entirely where it can't be stored, or where too much waits already.
    guard storage.hasRoom else { return refuseUnstored(input, fixes: count) }
    if storage.callerAnswersLookups, !lookups.hasRoom(for: count, of: driver, limits) { return refuseOverloaded(input) }
    // Over HTTP there is no envelope, so the phone's clock is not observed.
    if input.driverID == nil { drivers.observeClock(of: driver, sent: input.sent, received: input.received.timestamp) }
    distant.noteFix(of: driver, takesCurrent: input.isOfCurrentTrip && drivers[driver].activeTrips == 1)
    let trip: Int?
    do throws(ErrorReply) {
      trip =
        input.isOfCurrentTrip
        ? trips.onlyActive(of: drivers.handle(of: driver))
        : try tripForFixes(of: driver, input.batch.tripID, isGranted: input.tripIsGranted, at: input.sent)
    } catch {
      counters.noteRefused(count, because: error.code)
      return refuse(input.session, error, replyTo: input.messageID)
    }
    if distant.isLooking(by: driver) { return putOff(input, "the trip is being looked for; send the batch again") }
    drivers.rememberFixTimes(of: driver, isStored: storage.isOn, counting: &counters)
    var partial = PartialBatch(
      input: input, driver: drivers.handle(of: driver), driverID: drivers[driver].id,
      trip: trip.map { trips.handle(of: $0) })
    let unknownBefore = storage.callerAnswersLookups ? drivers.completeSince(driver) : .min
    if trip != nil { trips.holdETA() }
    for index in input.batch.indicesByTime {
      let fix = partial.fix(at: index, of: driver, drivers, unknownBefore: unknownBefore, counting: &counters)
      if let fix { take(fix, at: index, of: &partial, driver: driver, trip: trip) }
    }
    if let trip { publish(trips.releaseETA(of: trip), of: trip) }
    if input.phone != nil { drivers.noteDevice(driver) }
    recordFixes(driver: driver, trip: partial.isBeforeTrip ? nil : trip, received: input.received.timestamp)
    guard !partial.indices.isEmpty else { return finish(partial) }
    counters.lookups += 1
    lookups.add(partial, storage: storage.awaitNewest())
  }

  /// Handles the fixes that waited for the journal's answer.
  mutating func finishLookup(_ ticket: UInt64, known: [Int64]) {
    guard var partial = lookups.remove(ticket) else { return }
    defer { lookups.startNext(driver: partial.driver.index, storage: storage.newest) }
    guard let driver = drivers.current(partial.driver) else {  // forgotten meanwhile
      counters.fixesOrphaned += UInt64(partial.indices.count)
      return
    }
    guard storage.hasRoom else { return refuseUnstored(partial.input, fixes: partial.indices.count) }
    let trip = partial.trip.flatMap { trips.current($0) }
    let (new, found) = partial.split(known: known)
    counters.fixesDuplicate += UInt64(found.count)
    for time in found { drivers.removeUnrecorded(time, driver: driver) }
    if trip != nil { trips.holdETA() }
    for (index, fix) in new { take(fix, at: index, of: &partial, driver: driver, trip: trip) }
    if let trip { publish(trips.releaseETA(of: trip), of: trip) }
    recordFixes(driver: driver, trip: partial.isBeforeTrip ? nil : trip, received: partial.input.received.timestamp)
    finish(partial)
  }

  /// Takes one valid fix of a batch. Those from before the current trip come first, and have a record of their own.
  private mutating func take(_ fix: Fix, at index: Int, of partial: inout PartialBatch, driver: Int, trip: Int?) {
    let received = partial.input.received
    let (own, isFirst) = partial.trip(trip, of: fix, trips, at: now.timestamp)
    if isFirst { recordFixes(driver: driver, trip: nil, received: received.timestamp) }
    let outcome = track(fix, sent: nil, driver: driver, trip: own, received: received.uptime, isRecorded: storage.isOn)
    partial.summary.count(outcome, at: index)
  }

  private mutating func finish(_ partial: PartialBatch) {
    var summary = partial.summary
    summary.rejected.sort { $0.index < $1.index }
    if let phone = partial.input.phone { counters.count(phone, summary) }
    let ack = Ack(replyTo: partial.input.messageID, batch: summary)
    acknowledge(ack, .locationBatch, since: partial.input.received.uptime, to: partial.input.session)
  }

  // MARK: Refused for now

  mutating func refuseUnstored(_ input: BatchInput, fixes: Int) {
    counters.fixesPutOff += UInt64(fixes)
    refuse(input.session, unstored("this hub cannot store fixes now; send the batch again"), replyTo: input.messageID)
  }

  mutating func refuseOverloaded(_ input: BatchInput) {
    counters.count(full: .waitingFixes)
    putOff(input, "too many batches wait; send this one again")
  }

  private mutating func putOff(_ input: BatchInput, _ message: String) {
    counters.fixesPutOff += UInt64(input.batch.fixes.count)
    refuse(input.session, input.messageID, .rateLimited, message, retryAfter: 2)
  }
}

extension Ack.Batch {
  fileprivate mutating func count(_ outcome: FixOutcome, at index: Int) {
    switch outcome {
    case .accepted, .history, .held, .clockDoubted: accepted += 1
    case .duplicate: duplicates += 1
    case .refused(let refusal): rejected.append(.init(index: index, code: refusal.code))
    }
  }
}
