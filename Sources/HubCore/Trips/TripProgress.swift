// A trip's progress: all figures of its summary, and the notices that were published.
//
// One value of a fixed size without references. It is a function of the moves and the published positions alone, so a
// hub that reads its journal gets the same bits (TripProgress+Record.swift), and no notification is repeated.
import HubGeo
import HubMessages

struct TripProgress: Sendable, Equatable, BitwiseCopyable {
  /// The distance until `arrived_destination`, and how much of it came before `trip_started`.
  var odometer = Odometer()
  @Packed var approachMeters: Double?
  /// Positions that named the trip, and the time of the newest one's fix.
  var fixes: UInt64 = 0
  @Packed var newest: Timestamp?
  /// Pauses between them of more than `TripRules.gapSeconds`.
  var gaps: UInt64 = 0
  var gapMilliseconds: Int64 = 0
  /// How long the driver was stationary from `arrived_pickup` on, and whether it was at the newest fix.
  var waitingMilliseconds: Int64 = 0
  var isStanding = false
  var notices: TripNotices = []
  /// When it started, and when it arrived or ended without arriving; by the senders' clocks.
  @Packed var started: Timestamp?
  @Packed var arrived: Timestamp?
  /// The driver's average speed.
  var pace = Pace()

  /// The largest count of milliseconds: 285,000 years, where sums saturate.
  static let longestMilliseconds: Int64 = 1 << 53

  /// Takes the next published position of the trip's driver; `previous` is the driver's one before it.
  @inline(__always)
  mutating func follow(
    _ position: Position, after previous: Position?, status: TripStatus, maximumSpeed: Double, rules: TripRules
  ) {
    odometer.follow(position, after: previous, maximumSpeed: maximumSpeed)
    let stood = isStanding
    // Unknown speed does not count as stationary.
    isStanding = position.speed.map { $0 < Odometer.movingSpeed } ?? false
    fixes += 1
    let before = newest
    newest = position.timestamp
    // A phone's clock that was set back adds no time.
    guard let before, before < position.timestamp else { return }
    let passed = position.timestamp.milliseconds - before.milliseconds
    let seconds = Double(passed) / 1000
    if seconds > rules.gapSeconds {
      gaps += 1
      gapMilliseconds = min(gapMilliseconds + passed, TripProgress.longestMilliseconds)
    } else if stood, isStanding, status >= .arrivedPickup {
      waitingMilliseconds = min(waitingMilliseconds + passed, TripProgress.longestMilliseconds)
    }
    // Waiting for a passenger does not lower the average speed.
    if let speed = position.speed, status != .arrivedPickup {
      pace.follow(speed: speed, seconds: min(seconds, rules.gapSeconds), rules: rules)
    }
  }

  /// Takes a move.
  mutating func move(to status: TripStatus, at time: Timestamp) {
    switch status {
    case .tripStarted:
      approachMeters = odometer.meters
      started = time
    case .arrivedDestination: arrived = time
    case .completed, .cancelled: if started != nil, arrived == nil { arrived = time }
    case .requested, .accepted, .driverEnRoute, .arrivedPickup: break
    }
  }

  /// The summary at the end: metres to 0.1, seconds to 0.001.
  var summary: TripSummary {
    let approach = approachMeters ?? odometer.meters
    let duration = if let started, let arrived { max(0, arrived.seconds(since: started)) } else { 0.0 }
    return TripSummary(
      distance: TrackMath.rounded(odometer.meters - approach, to: 10), approach: TrackMath.rounded(approach, to: 10),
      track: TrackMath.rounded(odometer.meters, to: 10), duration: duration,
      waiting: Double(waitingMilliseconds) / 1000, fixes: fixes, gaps: gaps,
      gapDuration: Double(gapMilliseconds) / 1000)
  }
}

/// Notices of a trip, each published once.
struct TripNotices: OptionSet, Sendable, BitwiseCopyable {
  var rawValue: UInt8

  static let pickupNear = TripNotices(rawValue: 1)
  static let pickupReached = TripNotices(rawValue: 2)
  static let dropoffNear = TripNotices(rawValue: 4)
  static let dropoffReached = TripNotices(rawValue: 8)
  /// The driver has left the route and not returned.
  static let offRoute = TripNotices(rawValue: 16)

  static let all: TripNotices = [.pickupNear, .pickupReached, .dropoffNear, .dropoffReached, .offRoute]
}
