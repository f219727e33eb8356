// A trip's fixes on their way from the journal into a track: put in order, each once, and where some came too late to
// be published, filtered again.
//
// A position is published from the fixes up to then. What comes later, a tunnel's backlog, was never filtered, and
// drawn as it was measured it makes a track longer than the drive. So from the first late fix on all of the drive goes
// through a tracker of its own, in the order of the fixes' times, as it would have gone had they come live: behind a
// gap the published positions, too, are those of a filter that knew nothing of what had happened in it.
//
// The result is that of a live drive but for the rounding of stored fixes (1 cm), and but for fixes that a live drive's
// filter had refused: those were not stored. Work and memory are bounded: 56 bytes and about 1 µs for each fix.
import HubCore
import HubGeo
import HubMessages

/// Gathers a trip's fixes as the journal gives them: in the order in which they came, the backlog of a tunnel behind
/// what was live after it, some of them twice.
struct TrackGathering {
  /// One fix as a track may show it.
  private struct Entry {
    var fix: PackedFix
    var isOther: Bool
  }

  private let source: TrackSource
  private let limit: Int
  private let rules: Tracker.Rules
  private var fixes: [Entry] = []
  /// How many of them are the driver's without being the trip's, and whether there were too many of these.
  private var others = 0
  private var hasTooManyOthers = false
  /// A fix of the trip was never published.
  private var hasLate = false
  /// There are more than fit.
  private(set) var isOverLimit = false

  /// `limit` bounds the fixes of the trip that are kept, and the driver's others.
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

  /// Takes a fix of the trip's driver that is not the trip's: the filter has seen it. Beyond the limit there are none
  /// of them, and the filter begins with the trip.
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

  /// The points by time, each time once.
  func points() -> [TrackPoint] {
    // Stable beyond the time: the fix that came first counts.
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

/// All that is stored of one time of a driver: a fix that came twice, or one that was held back and confirmed.
private struct TrackMoment {
  let timestamp: Timestamp
  /// As it was measured; the trip's where it has one.
  private(set) var measured: Fix?
  private var position: StoredPosition?
  private var isOfTrip = false
  /// It was published, or would have been if it had come in time.
  private(set) var counts = false
  /// Nothing of it was published.
  var isLate: Bool { counts && isOfTrip && position == nil }

  init(_ timestamp: Timestamp) { self.timestamp = timestamp }

  mutating func add(_ fix: StoredFix, isOther: Bool) {
    // What a confirmed one measured stands with the held one.
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

  /// As it was published; nil where it was not.
  var published: TrackPoint? {
    position.map {
      TrackPoint(
        timestamp: timestamp, coordinate: $0.coordinate, altitude: measured?.altitude, speed: $0.speed,
        heading: $0.heading, accuracy: $0.accuracy)
    }
  }

  /// As a filter sees it.
  func point(at position: Position) -> TrackPoint? {
    guard isOfTrip else { return nil }
    return TrackPoint(
      timestamp: timestamp, coordinate: position.coordinate, altitude: measured?.altitude, speed: position.speed,
      heading: position.heading, accuracy: position.accuracy)
  }
}

/// The filter that a drive goes through again: what was published until the first late fix, then what a live drive
/// would have been.
private struct LateFilter {
  let rules: Tracker.Rules
  private var tracker = Tracker()
  private var first: Timestamp?
  private var isBehindLate = false

  /// Milliseconds of uptime that no drive reaches, so that nanoseconds have room.
  private static let longest: Int64 = 1 << 43

  init(rules: Tracker.Rules) { self.rules = rules }

  mutating func point(of moment: TrackMoment) -> TrackPoint? {
    guard moment.counts else { return nil }
    guard let measured = moment.measured else { return moment.published }
    let start = first ?? moment.timestamp
    first = start
    // As much time passes as between the fixes, so that no order but theirs has a say.
    let passed = min(moment.timestamp.milliseconds - start.milliseconds, LateFilter.longest)
    if moment.isLate { isBehindLate = true }
    switch tracker.update(measured, receivedAt: passed * 1_000_000, rules: rules) {
    case .accepted(let position), .acceptedTwo(_, let position), .clockBelieved(let position, _):
      return isBehindLate ? moment.point(at: position) : moment.published
    // A place where the driver can't have been: a live fix would have been refused.
    case .acceptedHeld, .history, .duplicate, .held, .clockDoubted, .refused: return moment.published
    }
  }
}
