// The journal on the reader's thread: trips and their fixes.
package import HubCore
package import HubJournal
package import HubMessages

package enum HistoryError: Error, Equatable {
  case journal(JournalError)
  case tooManyFixes(limit: Int)
  case tooManyTrips(limit: Int)
  /// The hub is shutting down.
  case stopping
}

/// Reads the journal for questions, on the reader's thread alone. It is opened with the first question.
package final class HistoryAccess {
  private let open: () throws(JournalError) -> JournalHistory
  private let isStopping: () -> Bool
  private let recordsPerLookup: Int
  private let recordsPerTrack: Int
  private let log: Log
  private var opened: JournalHistory?
  /// The damaged files that were logged.
  private var damaged: Set<String> = []
  /// How many records all questions have read so far.
  package private(set) var recordsRead = 0
  /// Whether an incomplete lookup was logged.
  private var hasFailed = false

  convenience init(_ configuration: JournalConfiguration, _ log: Log, isStopping: @escaping () -> Bool) {
    self.init(log, isStopping: isStopping) {
      () throws(JournalError) in
      try unsafe JournalHistory(directory: configuration.directory, limits: configuration.limits) {
        unsafe DurableKeys.forEach(in: $0, $1)
      }
    }
  }

  init(
    _ log: Log, recordsPerLookup: Int = RuntimeLimits.recordsPerLookup,
    recordsPerTrack: Int = RuntimeLimits.recordsPerTrack, isStopping: @escaping () -> Bool,
    opening open: @escaping () throws(JournalError) -> JournalHistory
  ) {
    self.log = log
    self.open = open
    self.recordsPerLookup = recordsPerLookup
    self.recordsPerTrack = recordsPerTrack
    self.isStopping = isStopping
  }

  func journal() throws(JournalError) -> JournalHistory {
    if let opened { return opened }
    let history = try open()
    opened = history
    return history
  }

  /// Gives the records of a key, oldest first, until `body` returns false. Returns the damage that it met, if any: that
  /// of an old segment, whose state the snapshots have, costs only the records in it, so questions are still answered.
  @discardableResult
  private func forEachRecord(
    _ key: UInt64, since: Int64, _ body: (UnsafeRawBufferPointer) -> Bool
  ) throws(HistoryError) -> Damage? {
    var isBrokenOff = false
    var met: Damage?
    do throws(JournalError) {
      try unsafe journal().forEachRecord(key: key, since: since) { record in
        isBrokenOff = isStopping()
        recordsRead += 1
        return unsafe !isBrokenOff && body(record)
      }
    } catch {
      guard case .damaged(let damage) = error else { throw .journal(error) }
      met = damage
      if damaged.insert(damage.file).inserted { log(.error, "history_damaged", ["error": "\(error)"]) }
    }
    if isBrokenOff { throw .stopping }
    return met
  }

  /// The newest state of the trip with this id; nil where the journal has none.
  package func trip(_ id: Identifier) throws(HistoryError) -> TripReport? {
    var found: TripReport?
    let damage = try unsafe forEachRecord(DurableKeys.trip(id), since: .min) { record in
      do throws(RecordError) {
        if let trip = try unsafe StoredTrip(record: record), trip.report.tripID == id { found = trip.report }
        return true
      } catch {
        return true  // its sum is right, so a newer program wrote it
      }
    }
    // The hub has forgotten the trip, so it has ended, and that record is among the damaged ones.
    if let damage, let found, found.ended == nil { throw .journal(.damaged(damage)) }
    return found
  }

  /// The trips of `query` that ended by `endedBy`, newest first, up to its limit and one more. At most `limit` records
  /// are read.
  package func trips(
    _ query: TripListQuery, endedBy: Timestamp, limit: Int
  ) throws(HistoryError) -> [StoredTrip] {
    // A trip has some records after its end; the last one counts.
    var found: [UInt64: StoredTrip] = [:]
    var looked = 0
    try unsafe forEachRecord(DurableKeys.endedTrips, since: query.since?.milliseconds ?? .min) { record in
      looked += 1
      do throws(RecordError) {
        guard let trip = try unsafe StoredTrip(record: record), trip.number < query.below, query.matches(trip.report),
          let ended = trip.report.ended, ended <= endedBy
        else { return looked <= limit }
        found[trip.number] = trip
      } catch {
        return true  // a newer program wrote it
      }
      if found.count > 2 * query.limit + 64 { found = Self.newest(query.limit + 1, of: found) }
      return looked <= limit
    }
    if looked > limit { throw .tooManyTrips(limit: limit) }
    return Self.newest(query.limit + 1, of: found).values.sorted { $0.number > $1.number }
  }

  private static func newest(_ count: Int, of trips: [UInt64: StoredTrip]) -> [UInt64: StoredTrip] {
    let kept = Set(trips.keys.sorted(by: >).prefix(count))
    return trips.filter { kept.contains($0.key) }
  }

  /// How long before a trip's creation its fixes are looked for: the one that began it arrived earlier, and the clock
  /// may have been set back since. An older trip with its id is not found: that ended over a day before.
  private static let slackMilliseconds: Int64 = 3_600_000

  /// How long after a trip's end fixes may still name it: the day for which the hub remembers it, and some slack.
  private static let lateMilliseconds: Int64 = 25 * 3_600_000

  /// A trip's fixes: those that its driver sent for it since it began. Throws `tooManyFixes` beyond `limit`, and where
  /// the driver has more than `RuntimeLimits.recordsPerTrack` records from its beginning to its end. `rules` are the
  /// tracker's, for fixes that came too late to be published.
  package func track(
    of trip: TripReport, _ source: TrackSource, limit: Int, rules: Tracker.Rules
  ) throws(HistoryError) -> Track {
    var track = Track(tripID: trip.tripID, driverID: trip.driverID, source: source, points: [])
    guard let driver = trip.driverID else { return track }
    var gathering = TrackGathering(source, limit: limit, rules: rules)
    let since = trip.created.milliseconds - Self.slackMilliseconds
    let until = trip.ended.map { $0.milliseconds + Self.lateMilliseconds } ?? .max
    var (left, late, isCut) = (recordsPerTrack, 0, false)
    try unsafe forEachRecord(DurableKeys.fixes(ofDriver: driver), since: since) { bytes in
      do throws(RecordError) {
        let record = try unsafe FixesRecord(bytes)
        guard record.driverID == driver, record.received.milliseconds >= since else { return true }
        left -= 1
        if left < 0 {
          isCut = record.received <= trip.ended ?? record.received
          return false
        }
        if record.received.milliseconds > until {
          late += 1
          return late < RuntimeLimits.recordsBehindTrack
        }
        if record.tripID == trip.tripID {
          for index in 0..<record.count { gathering.add(record.packed(index)) }
        } else if record.received <= trip.ended ?? record.received {
          for index in 0..<record.count { gathering.addOther(record.packed(index)) }
        }
        return !gathering.isOverLimit
      } catch {
        return true  // a newer program wrote it
      }
    }
    if gathering.isOverLimit || isCut { throw .tooManyFixes(limit: limit) }
    track.points = gathering.points()
    return track
  }

  // MARK: Seen fixes

  /// Which of a lookup's fixes the journal has, among the driver's first `recordsPerLookup` records since the oldest
  /// was measured. Unreadable ones count as absent, which is logged the first time: at worst a fix is stored twice, and
  /// is in a track once all the same.
  func known(_ lookup: HistoryLookup) -> [Int64] {
    var (found, left): ([Int64], Int) = ([], recordsPerLookup)
    do throws(HistoryError) {
      try unsafe forEachRecord(lookup.key, since: lookup.since) { record in
        _ = unsafe FixesRecord.times(ofDriver: lookup.driverID, in: record, within: lookup.times, into: &found)
        left -= 1
        return left > 0 && found.count < lookup.times.count
      }
    } catch {
      if !hasFailed { log(.warning, "lookup_incomplete", ["error": "\(error)"]) }
      hasFailed = true
    }
    return found
  }
}
