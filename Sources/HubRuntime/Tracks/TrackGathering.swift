// Collects a trip's fixes from the journal into a track: sorted, each once and, where some came too late to be
// published, filtered again.
//
// A position is published from the fixes so far. Later ones, such as a tunnel's backlog, were never filtered, and drawn
// as measured they lengthen the track. So from the first late fix on the whole drive is filtered by a tracker of its
// own, in the order of the fixes' times, as if they had come live: after a gap, positions were published by a filter
// that knew nothing of the gap.
//
// The result is that of a live drive, except for the rounding of stored fixes (1 cm), and for fixes that the filter had
// refused, which were not stored. Work and memory are bounded: 56 bytes and about 1 µs for each fix.
import HubCore
import HubGeo
import HubMessages

/// Collects a trip's fixes in the journal's order of arrival: the backlog of a tunnel behind later live fixes, and some
/// fixes twice.
struct TrackGathering {
  /// One fix for a track.
  private struct Entry {
    var fix: PackedFix
    var isOther: Bool
  }

  private let source: TrackSource
  private let limit: Int
  private let rules: Tracker.Rules
  private var fixes: [Entry] = []
  /// The number of the driver's other fixes, and whether there were too many of these.
  private var others = 0
  private var hasTooManyOthers = false
  /// A fix of the trip was never published.
  private var hasLate = false
  /// The limit is exceeded.
  private(set) var isOverLimit = false

  /// `limit`: of the trip's fixes, and of the driver's others.
  init(_ source: TrackSource, limit: Int, rules: Tracker.Rules = .standard) {
    self.source = source
    self.limit = limit
    self.rules = rules
  }

  /// Takes a fix of the trip.
  mutating func add(_ fix: PackedFix) {
    guard fixes.count - others < limit else {
      isOverLimit = true
      return
    }
    if fix.unpacked.disposition == .history { hasLate = true }
    fixes.append(Entry(fix: fix, isOther: false))
  }

  /// Takes a fix of the trip's driver outside the trip, which the filter has seen. Beyond the limit all of these are
  /// dropped, and the filter begins with the trip.
  mutating func addOther(_ fix: PackedFix) {
    guard source == .filtered, !hasTooManyOthers else { return }
    guard others < limit else {
      hasTooManyOthers = true
      others = 0
      return fixes.removeAll { $0.isOther }
    }
    others += 1
    fixes.append(Entry(fix: fix, isOther: true))
  }

  /// The points by time, one for each time.
  func points() -> [TrackPoint] {
    // Stable for equal times: the fix that came first is used.
    let times = fixes.map(\.fix.timestamp)
    let order = fixes.indices.sorted { times[$0] != times[$1] ? times[$0] < times[$1] : $0 < $1 }
    var points: [TrackPoint] = []
    points.reserveCapacity(order.count - others)
    var filter = LateFilter(rules: rules)
    var next = 0
    while next < order.count {
      var moment = TrackMoment(times[order[next]])
      while next < order.count, times[order[next]] == moment.timestamp {
        let entry = fixes[order[next]]
        moment.add(entry.fix.unpacked, isOther: entry.isOther)
        next += 1
      }
      switch source {
      case .raw: if let point = moment.raw { points.append(point) }
      case .filtered:
        let point = hasLate ? filter.point(of: moment) : moment.published
        if let point { points.append(point) }
      }
    }
    return points
  }
}

/// All stored fixes of one time of a driver: repeated, or held and then confirmed.
private struct TrackMoment {
  let timestamp: Timestamp
  /// The fix as it was measured: one for the trip, if there is one.
  private(set) var measured: Fix?
  private var position: StoredPosition?
  private var isOfTrip = false
  /// It was published, or would have been if it had come in time.
  private(set) var counts = false
  /// Nothing of it was published.
  var isLate: Bool { counts && isOfTrip && position == nil }

  init(_ timestamp: Timestamp) { self.timestamp = timestamp }

  mutating func add(_ fix: StoredFix, isOther: Bool) {
    // The measurement of a confirmed fix is in the held one.
    if fix.disposition != .confirmed, measured == nil || !isOther && !isOfTrip { measured = fix.measured }
    if fix.disposition != .held { counts = true }
    guard !isOther else { return }
    isOfTrip = true
    if position == nil { position = fix.position }
  }

  var raw: TrackPoint? {
    guard isOfTrip, let measured else { return nil }
    return TrackPoint(
      timestamp: timestamp, coordinate: measured.coordinate, altitude: measured.altitude, speed: measured.speed,
      heading: measured.heading, accuracy: measured.accuracy)
  }

  /// The published point; nil where it was not published.
  var published: TrackPoint? {
    position.map {
      TrackPoint(
        timestamp: timestamp, coordinate: $0.coordinate, altitude: measured?.altitude, speed: $0.speed,
        heading: $0.heading, accuracy: $0.accuracy)
    }
  }

  /// The filtered point.
  func point(at position: Position) -> TrackPoint? {
    guard isOfTrip else { return nil }
    return TrackPoint(
      timestamp: timestamp, coordinate: position.coordinate, altitude: measured?.altitude, speed: position.speed,
      heading: position.heading, accuracy: position.accuracy)
  }
}

/// The filter of the repeated drive: what was published until the first late fix, then the result of a live drive.
private struct LateFilter {
  let rules: Tracker.Rules
  private var tracker = Tracker()
  private var first: Timestamp?
  private var isBehindLate = false

  /// Milliseconds, longer than any drive; in nanoseconds they still fit an Int64.
  private static let longest: Int64 = 1 << 43

  init(rules: Tracker.Rules) { self.rules = rules }

  mutating func point(of moment: TrackMoment) -> TrackPoint? {
    guard moment.counts else { return nil }
    guard let measured = moment.measured else { return moment.published }
    let start = first ?? moment.timestamp
    first = start
    // The clock advances with the fixes' times.
    let passed = min(moment.timestamp.milliseconds - start.milliseconds, LateFilter.longest)
    if moment.isLate { isBehindLate = true }
    switch tracker.update(measured, receivedAt: passed * 1_000_000, rules: rules) {
    case .accepted(let position), .acceptedTwo(_, let position), .clockBelieved(let position, _):
      return isBehindLate ? moment.point(at: position) : moment.published
    // Refused: a live fix with this impossible coordinate would not have been published either.
    case .acceptedHeld, .history, .duplicate, .held, .clockDoubted, .refused: return moment.published
    }
  }
}
