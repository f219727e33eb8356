// A fence as it is put, and what notifications say of fences.
import HubBytes
import HubGeo

extension JSONTape {
  /// The body of `PUT /v1/fences/{id}`.
  func fence(_ bytes: Span<UInt8>, id: Identifier) throws(Complaint) -> Fence {
    guard self[0].kind == .object else { throw Complaint(.unknown, "expected an object: a fence") }
    let body = members(of: 0)
    let kind: Fence.Kind = try word(body, .kind, bytes, "expected area, hazard or roaming") ?? .area
    if let own = try identifier(body, .fenceId, bytes), own != id {
      throw Complaint(.fenceId, "expected the id that the path has, or none")
    }
    let shape: Fence.Shape =
      switch kind {
      case .area: .area(try fenceArea(body, bytes))
      case .hazard: .hazard(try fenceArea(body, bytes))
      case .roaming: try roaming(body, bytes)
      }
    var fence = Fence(
      id: id, title: try inlineText(body, .title, bytes), shape: shape,
      drivers: try fenceFilter(body, .drivers, bytes), dwell: try number(body, .dwell),
      speedLimit: try number(body, .speedLimit))
    if fence.title?.isEmpty == true { fence.title = nil }
    if let dwell = fence.dwell, !Fence.dwellSeconds.contains(dwell) {
      throw Complaint(.dwell, "expected 1 to 86,400 seconds")
    }
    if kind == .roaming, fence.dwell != nil || fence.speedLimit != nil {
      throw Complaint(fence.dwell != nil ? .dwell : .speedLimit, "a roaming fence is no place: it has none")
    }
    if let limit = fence.speedLimit {
      guard Fence.speedLimits.contains(limit) else {
        throw Complaint(.speedLimit, "expected 0.5 to 90 metres per second")
      }
    }
    return fence
  }

  /// Exactly one of `circle`, `polygon` and `corridor`.
  private func fenceArea(_ body: JSONMembers, _ bytes: Span<UInt8>) throws(Complaint) -> FenceArea {
    let expected: StaticString = "expected exactly one of circle, polygon and corridor"
    let given = [JSONKey.circle, .polygon, .corridor].filter { present(body, $0) != nil }
    guard given.count == 1, present(body, .distance) == nil else { throw Complaint(given.last ?? .circle, expected) }
    if let circle = try object(body, .circle) { return .circle(try fenceCircle(circle)) }
    if let corridor = try object(body, .corridor) { return try fenceCorridor(corridor, bytes) }
    return .polygons(try polygons(at: try required(present(body, .polygon), .polygon), .polygon, bytes))
  }

  private func fenceCircle(_ circle: JSONMembers) throws(Complaint) -> Circle {
    let center = try coordinate(circle)
    let radius = try required(number(circle, .radius), .radius)
    guard radius <= Fence.maximumRadiusMeters, let made = Circle(center: center, radiusMeters: radius) else {
      throw Complaint(.radius, "expected more than 0 and up to 1,000,000 metres")
    }
    return made
  }

  private func fenceCorridor(_ corridor: JSONMembers, _ bytes: Span<UInt8>) throws(Complaint) -> FenceArea {
    let route = try required(route(corridor, bytes), .route)
    let width = try required(number(corridor, .width), .width)
    do throws(Corridor.Fault) {
      return .corridor(try Corridor(route, widthMeters: width), route)
    } catch {
      switch error {
      case .path(.tooManyPositions): throw Complaint(.tooLarge, .route, "expected up to 1,000 places")
      case .path(.tooFewPositions): throw Complaint(.route, "expected two different places or more")
      case .path(.tooLong): throw Complaint(.route, "expected a way that goes once round the Earth at most")
      case .width: throw Complaint(.width, "expected more than 0 and up to 20,000 metres")
      }
    }
  }

  private func roaming(_ body: JSONMembers, _ bytes: Span<UInt8>) throws(Complaint) -> Fence.Shape {
    for key in [JSONKey.circle, .polygon, .corridor] where present(body, key) != nil {
      throw Complaint(key, "a roaming fence is no place: expected distance, and perhaps drivers and others")
    }
    let meters = try required(number(body, .distance), .distance)
    guard meters > 0, meters <= Fence.maximumRoamingMeters else {
      throw Complaint(.distance, "expected more than 0 and up to 1,000 metres")
    }
    return .roaming(meters: meters, others: try fenceFilter(body, .others, bytes))
  }

  private func fenceFilter(
    _ body: JSONMembers, _ key: JSONKey, _ bytes: Span<UInt8>
  ) throws(Complaint) -> FenceFilter {
    guard let filter = try object(body, key) else { return FenceFilter() }
    return FenceFilter(
      status: try word(filter, .status, bytes, "expected available, unavailable, background or on_trip"),
      vehicleType: try inlineText(filter, .vehicleType, bytes), tags: try tags(filter, bytes) ?? [])
  }

  // MARK: Notifications

  /// Of a notification about a fence, from its `data`.
  func fenceNotice(
    _ data: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(Complaint) -> FenceNotice? {
    guard let id = try identifier(data, .fenceId, bytes) else { return nil }
    var notice = FenceNotice(
      fenceID: id, timestamp: try required(timestamp(data, .timestamp, bytes, time), .timestamp),
      location: try place(data, .location))
    notice.otherID = try identifier(data, .otherId, bytes)
    notice.distance = try nonNegative(data, .distance)
    notice.duration = try nonNegative(data, .duration)
    notice.speed = try nonNegative(data, .speed)
    notice.speedLimit = try nonNegative(data, .speedLimit)
    notice.reason = try word(data, .reason, bytes, "expected filter, offline or forgotten")
    return notice
  }
}

extension Fence.Kind: Word {}
extension FenceNotice.Reason: Word {}

extension Corridor {
  /// Why a route and a width are no corridor of a fence.
  public enum Fault: Error, Equatable, Sendable {
    case path(PathError)
    case width
  }

  /// The corridor of a fence along a route.
  public init(_ route: Route, widthMeters: Double) throws(Fault) {
    let path: Path
    do throws(PathError) {
      path = try Path(route.points, limit: Fence.maximumPlaces)
    } catch {
      throw .path(error)
    }
    guard widthMeters <= Fence.maximumWidthMeters, let corridor = Corridor(path, widthMeters: widthMeters) else {
      throw .width
    }
    self = corridor
  }
}
