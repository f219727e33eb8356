// Fences that are put, and the fence members of notifications.
import HubBytes
public import HubGeo

extension JSONTape {
  /// The body of `PUT /v1/fences/{id}`.
  func fence(_ bytes: Span<UInt8>, id: Identifier) throws(ValidationError) -> Fence {
    guard self[0].kind == .object else { throw ValidationError(.unknown, "expected an object: a fence") }
    let body = members(of: 0)
    let kind: Fence.Kind = try keyword(body, .kind, bytes, "expected area, hazard or roaming") ?? .area
    if let own = try identifier(body, .fenceId, bytes), own != id {
      throw ValidationError(.fenceId, "must match the path, or be omitted")
    }
    let shape: Fence.Shape =
      switch kind {
      case .area: .area(try fenceArea(body, bytes))
      case .hazard: .hazard(try fenceArea(body, bytes))
      case .roaming: try roaming(body, bytes)
      }
    let fence = Fence(
      id: id, title: try inlineText(body, .title, bytes), shape: shape,
      drivers: try fenceFilter(body, .drivers, bytes), dwell: try number(body, .dwell),
      speedLimit: try number(body, .speedLimit))
    if let dwell = fence.dwell, !Fence.dwellSeconds.contains(dwell) {
      throw ValidationError(.dwell, "expected 1 to 86,400 seconds")
    }
    if kind == .roaming, fence.dwell != nil || fence.speedLimit != nil {
      throw ValidationError(
        fence.dwell != nil ? .dwell : .speedLimit, "a roaming fence cannot have dwell or speedLimit")
    }
    if let limit = fence.speedLimit {
      guard Fence.speedLimits.contains(limit) else {
        throw ValidationError(.speedLimit, "expected 0.5 to 90 metres per second")
      }
    }
    return fence
  }

  /// Exactly one of `circle`, `polygon` and `corridor`.
  private func fenceArea(_ body: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> FenceArea {
    let expected: StaticString = "expected exactly one of circle, polygon and corridor"
    let given = [JSONKey.circle, .polygon, .corridor].filter { present(body, $0) != nil }
    guard given.count == 1, present(body, .distance) == nil else {
      throw ValidationError(given.last ?? .circle, expected)
    }
    if let circle = try object(body, .circle) { return .circle(try fenceCircle(circle)) }
    if let corridor = try object(body, .corridor) { return try fenceCorridor(corridor, bytes) }
    return .polygons(try polygons(at: try required(present(body, .polygon), .polygon), .polygon, bytes))
  }

  private func fenceCircle(_ circle: JSONMembers) throws(ValidationError) -> Circle {
    let center = try coordinate(circle, of: .circle)
    let radius = try required(number(circle, .radius), .radius)
    guard radius <= Fence.maximumRadiusMeters, let made = Circle(center: center, radiusMeters: radius) else {
      throw ValidationError(.radius, "expected more than 0 and up to 1,000,000 metres")
    }
    return made
  }

  private func fenceCorridor(_ corridor: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> FenceArea {
    let route = try required(route(corridor, bytes), .route)
    let width = try required(number(corridor, .width), .width)
    do throws(Corridor.Fault) {
      return .corridor(try Corridor(route, widthMeters: width), route)
    } catch {
      switch error {
      case .path(.tooManyPositions): throw ValidationError(.tooLarge, .route, "expected up to 1,000 places")
      case .path(.tooFewPositions): throw ValidationError(.route, "expected two different places or more")
      case .path(.tooLong): throw ValidationError(.route, "expected a route no longer than the Earth's circumference")
      case .width: throw ValidationError(.width, "expected more than 0 and up to 20,000 metres")
      }
    }
  }

  private func roaming(_ body: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> Fence.Shape {
    for key in [JSONKey.circle, .polygon, .corridor] where present(body, key) != nil {
      throw ValidationError(key, "a roaming fence has no area: expected distance, and optionally drivers and others")
    }
    let meters = try required(number(body, .distance), .distance)
    guard meters > 0, meters <= Fence.maximumRoamingMeters else {
      throw ValidationError(.distance, "expected more than 0 and up to 1,000 metres")
    }
    return .roaming(meters: meters, others: try fenceFilter(body, .others, bytes))
  }

  private func fenceFilter(
    _ body: JSONMembers, _ key: JSONKey, _ bytes: Span<UInt8>
  ) throws(ValidationError) -> FenceFilter {
    guard let filter = try object(body, key) else { return FenceFilter() }
    return FenceFilter(
      status: try keyword(filter, .status, bytes, "expected available, unavailable, background or on_trip"),
      vehicleType: try inlineText(filter, .vehicleType, bytes), tags: try tags(filter, bytes) ?? [])
  }

  // MARK: Notifications

  /// The fence members of a notification's `data`; nil where it is not about a fence.
  func fenceNotice(
    _ data: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> FenceNotice? {
    guard let id = try identifier(data, .fenceId, bytes) else { return nil }
    var notice = FenceNotice(
      fenceID: id, timestamp: try required(timestamp(data, .timestamp, bytes, time), .timestamp),
      location: try place(data, .location))
    notice.otherID = try identifier(data, .otherId, bytes)
    notice.distance = try nonNegative(data, .distance)
    notice.duration = try nonNegative(data, .duration)
    notice.speed = try nonNegative(data, .speed)
    notice.speedLimit = try nonNegative(data, .speedLimit)
    notice.reason = try keyword(data, .reason, bytes, "expected filter, offline or forgotten")
    return notice
  }
}

extension Fence.Kind: WireEnum {}
extension FenceNotice.Reason: WireEnum {}

extension Corridor {
  /// Why a route and a width make no corridor.
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
