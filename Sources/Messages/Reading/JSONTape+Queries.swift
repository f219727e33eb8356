// Queries for drivers, and their answers.
import HubBytes
import HubGeo

/// The kinds of a `query`.
enum QueryKind: UInt8, WireEnum {
  case nearby, within, driver, trip

  var name: StaticString {
    switch self {
    case .nearby: "nearby"
    case .within: "within"
    case .driver: "driver"
    case .trip: "trip"
    }
  }
}

extension JSONTape {
  /// The payload of a `query`.
  func query(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> QueryRequest {
    let kind: QueryKind = try required(keyword(payload, .kind, bytes, "expected nearby, within, driver or trip"), .kind)
    switch kind {
    case .driver: return .driver(try required(identifier(payload, .driverId, bytes), .driverId))
    case .trip: return .trip(try required(identifier(payload, .tripId, bytes), .tripId))
    case .nearby:
      let center = try coordinate(payload)
      let radius = try number(payload, .radius)
      let limit = try limit(payload)
      guard radius != nil || limit != nil else {
        throw ValidationError(.radius, "expected radius (metres), limit, or both")
      }
      if let radius, !(radius > 0 && radius <= DriverSearch.maximumRadiusMeters) {
        throw ValidationError(.radius, "expected more than 0 and up to 1,000,000 metres")
      }
      let area = DriverSearch.Area.nearby(center, radiusMeters: radius)
      return .drivers(DriverSearch(area: area, limit: limit, filter: try filter(payload, bytes)))
    case .within:
      let area = try area(payload, bytes)
      return .drivers(DriverSearch(area: area, limit: try limit(payload), filter: try filter(payload, bytes)))
    }
  }

  private func limit(_ payload: JSONMembers) throws(ValidationError) -> Int? {
    guard let value = try number(payload, .limit) else { return nil }
    guard let limit = Int(exactly: value), (1...DriverSearch.maximumLimit).contains(limit) else {
      throw ValidationError(.limit, "expected a whole number from 1 to 1,000")
    }
    return limit
  }

  /// `bbox` or `polygon`.
  private func area(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> DriverSearch.Area {
    if let index = present(payload, .polygon) {
      guard present(payload, .bbox) == nil else {
        throw ValidationError(.polygon, "expected bbox or polygon, not both")
      }
      return .polygons(try polygons(at: index, .polygon, bytes))
    }
    let expected: StaticString = "expected bbox: [west, south, east, north] in degrees, or polygon"
    guard let index = present(payload, .bbox), self[index].kind == .array, self[index].count == 4 else {
      throw ValidationError(.bbox, expected)
    }
    var values = InlineArray<4, Double>(repeating: 0)
    for side in 0..<4 {
      guard self[index + 1 + side].kind == .number else { throw ValidationError(.bbox, expected) }
      values[side] = Double(bitPattern: self[index + 1 + side].bits)
    }
    guard let box = BoundingBox(south: values[1], west: values[0], north: values[3], east: values[2]) else {
      throw ValidationError(
        .invalidLocation, .bbox, "expected west and east −180…180, south and north −90…90 in that order")
    }
    return .box(box)
  }

  private func filter(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> DriverFilter {
    var filter = DriverFilter()
    filter.status = try keyword(payload, .status, bytes, "expected available, unavailable, background or on_trip")
    filter.vehicleType = try inlineText(payload, .vehicleType, bytes)
    filter.tags = try tags(payload, bytes) ?? []
    filter.maxAge = try number(payload, .maxAge)
    if let age = filter.maxAge, age < 0 { throw ValidationError(.maxAge, "expected seconds, 0 or more") }
    filter.includesStale = try bool(payload, .stale) ?? false
    return filter
  }

  // MARK: Answers

  /// The payload of a `result`: a list where it has `drivers`, a trip where it has `tripId`.
  func result(_ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat) throws(ValidationError) -> ResultReply {
    let replyTo = try required(replyTo(payload, bytes), .replyTo)
    if present(payload, .tripId) != nil {
      return ResultReply(replyTo: replyTo, result: .trip(try tripReport(payload, bytes, time)))
    }
    guard present(payload, .drivers) != nil else {
      return ResultReply(replyTo: replyTo, result: .driver(try driverReport(payload, bytes, time)))
    }
    var drivers: [DriverReport] = []
    try forEachObject(payload, .drivers) { (driver) throws(ValidationError) in
      drivers.append(try driverReport(driver, bytes, time))
    }
    let more = try smallCount(payload, .more, bytes) ?? 0
    return ResultReply(replyTo: replyTo, result: .drivers(DriverList(drivers: drivers, more: more)))
  }

  private func tripReport(
    _ members: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> TripReport {
    var report = TripReport(
      tripID: try required(identifier(members, .tripId, bytes), .tripId),
      status: try required(keyword(members, .status, bytes, "expected the name of a state of a trip"), .status),
      timestamp: try required(timestamp(members, .timestamp, bytes, time), .timestamp),
      created: try required(timestamp(members, .created, bytes, time), .created),
      updated: try required(timestamp(members, .updated, bytes, time), .updated))
    report.ended = try timestamp(members, .ended, bytes, time)
    report.driverID = try identifier(members, .driverId, bytes)
    report.riderID = try identifier(members, .riderId, bytes)
    report.pickup = try place(members, .pickup)
    report.dropoff = try place(members, .dropoff)
    report.route = try string(members, .route, bytes)
    report.summary = try object(members, .summary).map { (summary) throws(ValidationError) in
      try tripSummary(summary, bytes)
    }
    return report
  }

  private func driverReport(
    _ members: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> DriverReport {
    var report = DriverReport(
      driverID: try required(identifier(members, .driverId, bytes), .driverId),
      status: try required(keyword(members, .status, bytes, "expected the name of a driver's status"), .status))
    report.vehicleType = try inlineText(members, .vehicleType, bytes)
    report.tags = try tags(members, bytes) ?? []
    if present(members, .latitude) != nil {
      report.position = DriverReport.Place(
        coordinate: try coordinate(members), heading: try heading(members),
        speed: try speed(members), accuracy: try nonNegative(members, .accuracy),
        age: try required(number(members, .age), .age), timestamp: try timestamp(members, .timestamp, bytes, time),
        timeSource: try timeSource(members, bytes))
    }
    report.predicted = try place(members, .predicted)
    report.distance = try nonNegative(members, .distance)
    report.isOnline = try bool(members, .online)
    return report
  }
}
