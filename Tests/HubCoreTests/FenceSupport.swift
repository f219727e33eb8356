// Fences on a bench: how they are put, how a driver moves, and what comes of it.
import HubGeo
import HubMessages
import Testing

@testable import HubCore

func circle(
  _ name: String, _ center: Coordinate, _ radius: Double, drivers: FenceFilter = FenceFilter(), dwell: Double? = nil,
  speedLimit: Double? = nil, isHazard: Bool = false
) -> Fence {
  let area = FenceArea.circle(Circle(center: center, radiusMeters: radius)!)
  return Fence(
    id: id(name), shape: isHazard ? .hazard(area) : .area(area), drivers: drivers, dwell: dwell, speedLimit: speedLimit)
}

func polygon(_ name: String, _ rings: [[Coordinate]]) throws -> Fence {
  Fence(id: id(name), shape: .area(.polygons(try MultiPolygon([rings], limit: 1000))))
}

func corridor(_ name: String, _ places: [Coordinate], width: Double) throws -> Fence {
  let route = try Route(points: places)
  return Fence(id: id(name), shape: .area(.corridor(try Corridor(route, widthMeters: width), route)))
}

func roaming(
  _ name: String, _ meters: Double, drivers: FenceFilter = FenceFilter(), others: FenceFilter = FenceFilter()
) -> Fence {
  Fence(id: id(name), shape: .roaming(meters: meters, others: others), drivers: drivers)
}

extension HubInput {
  static func put(_ fence: Fence) -> HubInput {
    .fences(SessionRef(outlet: 0, slot: 95, generation: 1), .put(fence, FenceCovering(fence)))
  }

  static func ask(_ question: FenceQuestion) -> HubInput {
    .fences(SessionRef(outlet: 0, slot: 95, generation: 1), question)
  }
}

extension Sequence<HubOutput> {
  var fenceAnswers: [FenceAnswer] { compactMap { if case .fences(_, let answer) = $0 { answer } else { nil } } }

  /// Kinds of the events on a channel, in order.
  func events(on channel: Channel) -> [HubMessages.Notification] {
    compactMap { output in
      guard case .delivery(let delivery) = output, delivery.publication.channel == channel else { return nil }
      return delivery.publication.notification
    }
  }
}

extension Sequence<HubMessages.Notification> {
  var kinds: [String] { map { "\($0.kind.name)" } }
}

extension FenceAnswer {
  var refusal: ErrorReply? { if case .refused(let error) = self { error } else { nil } }
  var report: FenceReport? { if case .fence(let report, _) = self { report } else { nil } }
  var isNew: Bool? { if case .fence(_, let isNew) = self { isNew } else { nil } }
  var isDeleted: Bool { if case .deleted = self { true } else { false } }
  var isUnknown: Bool { if case .unknown = self { true } else { false } }
  var list: [FenceReport]? { if case .list(let reports, _) = self { reports } else { nil } }
  var next: UInt64? { if case .list(_, let next) = self { next } else { nil } }
}

extension HubBench {
  func channel(_ fence: String) -> Channel { .fence(id(fence)) }

  /// The driver drives straight from one place to another, a fix a second at this speed; gives all that comes of it.
  func drive(
    _ session: SessionRef, from start: Coordinate, to end: Coordinate, speed: Double = 10, trip: String? = nil,
    accuracy: Double = 5
  ) -> [HubOutput] {
    var all: [HubOutput] = []
    let (distance, bearing) = (start.distance(to: end), start.bearing(to: end))
    var driven = 0.0
    while driven <= distance {
      let place = start.destination(bearingDegrees: bearing, distanceMeters: driven)
      all +=
        turn(
          fix(session, trip: trip, at: place, accuracy: accuracy, speed: speed, heading: bearing)
        ).all
      advance(seconds: 1)
      driven += speed
    }
    return all
  }

  /// The driver stands for some seconds, a fix a second.
  func stand(_ session: SessionRef, at place: Coordinate, seconds: Int, trip: String? = nil) -> [HubOutput] {
    var all: [HubOutput] = []
    for _ in 0..<seconds {
      all += turn(fix(session, trip: trip, at: place, accuracy: 5, speed: 0)).all
      advance(seconds: 1)
    }
    return all
  }
}

extension Coordinate {
  func moved(_ bearing: Double, _ meters: Double) -> Coordinate {
    destination(bearingDegrees: bearing, distanceMeters: meters)
  }
}
