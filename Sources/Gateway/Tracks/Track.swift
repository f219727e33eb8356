// A trip's track: the fixes that a journal has of it, in the order of their own times, each once.
import Geo
import HubCore
import Messages

/// Which of a fix's two places: what the phone measured, or what was published.
enum TrackSource: String, Sendable {
  case raw, filtered
}

struct TrackPoint: Sendable, Equatable {
  /// Of the fix, by the phone's clock.
  var timestamp: Timestamp
  var coordinate: Coordinate
  /// Metres above the ellipsoid, as measured.
  var altitude: Double?
  /// Metres per second; degrees; metres (68 %).
  var speed: Double?
  var heading: Double?
  var accuracy: Double?
}

struct Track: Sendable, Equatable {
  var tripID: Identifier
  /// Nil for a trip that never had a driver, which has no points.
  var driverID: Identifier?
  var source: TrackSource
  /// By time, ascending.
  var points: [TrackPoint]

  /// Without the points that lie within `toleranceMeters` of the line through the others.
  func simplified(toleranceMeters: Double) -> Track {
    var simple = self
    let kept = Polyline.simplify(points.map(\.coordinate), toleranceMeters: toleranceMeters)
    simple.points = kept.map { points[$0] }
    return simple
  }
}

/// Gathers a trip's fixes as the journal gives them: in the order in which they came, the backlog of a tunnel behind what
/// was live after it, some of them twice.
struct TrackGathering {
  /// Of two records of one fix the better one counts: published, then measured only.
  private struct Entry {
    var rank: UInt8
    var point: TrackPoint
  }

  private let source: TrackSource
  private let limit: Int
  private var entries: [Entry] = []
  /// There are more than fit.
  private(set) var isOverLimit = false

  /// `limit` bounds the fixes that are kept.
  init(_ source: TrackSource, limit: Int) {
    self.source = source
    self.limit = limit
  }

  mutating func add(_ fix: StoredFix) {
    guard let entry = entry(fix) else { return }
    guard entries.count < limit else {
      isOverLimit = true
      return
    }
    entries.append(entry)
  }

  private func entry(_ fix: StoredFix) -> Entry? {
    let measured = fix.measured
    if source == .filtered, let position = fix.position {
      return Entry(
        rank: 0,
        point: TrackPoint(
          timestamp: measured.timestamp, coordinate: position.coordinate, altitude: measured.altitude,
          speed: position.speed, heading: position.heading, accuracy: position.accuracy))
    }
    let point = TrackPoint(
      timestamp: measured.timestamp, coordinate: measured.coordinate, altitude: measured.altitude,
      speed: measured.speed, heading: measured.heading, accuracy: measured.accuracy)
    switch fix.standing {
    case .live: return Entry(rank: 0, point: point)
    // It came too late to be published, so its measured place is all that there is.
    case .history: return Entry(rank: 1, point: point)
    // Published only when the next fix confirmed its time: then that record has the place.
    case .held: return source == .raw ? Entry(rank: 0, point: point) : nil
    // What was measured stands with the held one.
    case .confirmed: return nil
    }
  }

  /// The points by time, each time once.
  func points() -> [TrackPoint] {
    // Stable beyond time and rank: the fix that came first counts.
    let order = entries.indices.sorted { a, b in
      let (x, y) = (entries[a], entries[b])
      if x.point.timestamp != y.point.timestamp { return x.point.timestamp < y.point.timestamp }
      return x.rank != y.rank ? x.rank < y.rank : a < b
    }
    var points: [TrackPoint] = []
    points.reserveCapacity(order.count)
    for index in order where points.last?.timestamp != entries[index].point.timestamp {
      points.append(entries[index].point)
    }
    return points
  }
}
