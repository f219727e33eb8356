// A trip with a pickup, a dropoff and perhaps a route, and its driver, whose drive a test knows.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

/// Metres east and north of the trip's pickup.
typealias Offset = (east: Double, north: Double)

final class TripBench {
  let bench: HubBench
  let session: SessionRef
  private let plane: LocalPlane
  /// All that came on the trip's channel, with the second of its coming.
  private(set) var etas: [(second: Double, update: ETAUpdate)] = []
  private(set) var notifications: [(second: Double, notification: HubMessages.Notification)] = []
  private let begun: Int64

  /// The trip is requested for the driver, who has accepted it and is on its way. Ops follows it.
  init(
    dropoff: Offset?, route: [Offset] = [], origin: Coordinate = at(48.1, 11.5), limits: HubLimits = .roomy,
    timings: HubTimings = HubTimings()
  ) throws {
    bench = HubBench(limits: limits, timings: timings)
    plane = LocalPlane(origin: origin)
    begun = bench.uptime
    bench.turn(bench.subscribe(bench.trip("t")))
    session = bench.connect("d")
    let report = TripStatusReport(
      tripID: id("t"), status: .requested, timestamp: bench.now.timestamp, pickup: origin,
      dropoff: dropoff.map { plane.coordinate(eastMeters: $0.east, northMeters: $0.north) }, driverID: id("d"),
      route: route.isEmpty
        ? nil : try Route(points: route.map { plane.coordinate(eastMeters: $0.east, northMeters: $0.north) }))
    bench.turn(
      .tripStatus(
        TripStatusInput(
          session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: Actor(role: .ops, id: id("o")),
          messageID: bench.freshMessage(), report: report, tripIsGranted: true)))
    move(.accepted, .driverEnRoute)
  }

  var second: Double { Double(bench.uptime - begun) / 1e9 }

  func place(_ offset: Offset) -> Coordinate {
    plane.coordinate(eastMeters: offset.east, northMeters: offset.north)
  }

  @discardableResult
  func move(_ steps: TripStatus...) -> Turn {
    var last = Turn(loops: [])
    for step in steps {
      last = bench.turn(bench.move(.driver, "d", "t", step))
      #expect(last.acks.count == 1)
      note(last)
    }
    return last
  }

  /// A fix of now.
  @discardableResult
  func fix(_ offset: Offset, speed: Double?, accuracy: Double = 5, heading: Double? = nil) -> Turn {
    let turn = bench.turn(
      bench.fix(session, trip: "t", at: place(offset), accuracy: accuracy, speed: speed, heading: heading))
    #expect(turn.positions.count == 1)
    note(turn)
    return turn
  }

  /// Drives straight with a fix each `interval` seconds, the first one an interval from now.
  func drive(from: Offset, to: Offset, speed: Double, interval: Double = 1) {
    let way = (to.east - from.east, to.north - from.north)
    let heading = place(from).bearing(to: place(to))
    let seconds = (way.0 * way.0 + way.1 * way.1).squareRoot() / speed
    for step in 1...max(1, Int((seconds / interval).rounded())) {
      let part = min(1, Double(step) * interval / seconds)
      bench.advance(seconds: interval)
      fix((from.east + way.0 * part, from.north + way.1 * part), speed: speed, heading: heading)
    }
  }

  /// Drives straight for `count` intervals, and then sends all of its fixes at once.
  func batch(from: Offset, to: Offset, count: Int, interval: Double) {
    let heading = place(from).bearing(to: place(to))
    let meters = place(from).distance(to: place(to))
    let start = bench.now.timestamp.milliseconds
    bench.advance(seconds: Double(count) * interval)
    let fixes = (1...count).map { step -> Result<Fix, ErrorCode> in
      let part = Double(step) / Double(count)
      let offset = (from.east + (to.east - from.east) * part, from.north + (to.north - from.north) * part)
      return .success(
        Fix(
          coordinate: place(offset), timestamp: time(start + Int64(Double(step) * interval * 1000)), accuracy: 5,
          heading: heading, speed: meters / interval / Double(count)))
    }
    note(bench.turn(bench.batch(session, trip: "t", fixes)))
  }

  /// Stands there with a fix each second.
  func stand(_ offset: Offset, seconds: Int) {
    for _ in 0..<seconds {
      bench.advance(seconds: 1)
      fix(offset, speed: 0)
    }
  }

  private func note(_ turn: Turn) {
    for delivery in turn.deliveries where delivery.publication.channel == bench.trip("t") {
      switch delivery.publication.body {
      case .etaUpdate(let update): etas.append((second, update))
      case .notification(let notification): notifications.append((second, notification))
      case .driverLocation, .tripUpdate, .offer, .areaUpdate, .rawFix, .countsUpdate, .stats: break
      }
    }
  }

  func kinds(_ kind: HubMessages.Notification.Kind) -> [Double] {
    notifications.filter { $0.notification.kind == kind }.map(\.second)
  }
}
