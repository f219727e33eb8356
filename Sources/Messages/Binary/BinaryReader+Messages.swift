// The less frequent messages of clients in binary, by type.
import HubBytes
import HubGeo

extension BinaryInput {
  /// The content behind the envelope's members.
  mutating func clientMessage(_ type: BinaryClientType) throws(ValidationError) -> ClientMessage {
    switch type {
    case .locationBatch: .locationBatch(try locationBatch())
    case .driverStatus: .driverStatus(try driverStatus())
    case .tripStatus: .tripStatus(try tripStatus())
    case .subscribe: .subscribe(try subscribe())
    case .unsubscribe: .unsubscribe(try unsubscribe())
    case .ping: .ping(try ping())
    case .refresh: .refresh(try refresh())
    case .query: .query(try query())
    case .tripChange: .tripChange(try tripChange())
    case .offerDecline: .offerDecline(OfferDecline(tripID: try identifier(.tripId)))
    }
  }

  private mutating func tripChange() throws(ValidationError) -> TripChange {
    var change = TripChange(tripID: try identifier(.tripId))
    let flags = try byte(.pickup)
    if flags & 0x01 != 0 { change.pickup = try coordinate() }
    if flags & 0x02 != 0 { change.dropoff = try coordinate() }
    if flags & 0x04 != 0 { change.route = try route() }
    guard !change.isEmpty else { throw ValidationError(.pickup, "expected pickup, dropoff or route") }
    return change
  }

  private mutating func driverStatus() throws(ValidationError) -> DriverStatusReport {
    let status: DriverStatus = try keyword(.status)
    guard status != .onTrip else {
      throw ValidationError(
        .status, "expected 0 to 2: available, unavailable or background (on_trip follows from trips)")
    }
    var report = DriverStatusReport(status: status)
    let flags = try byte(.status)
    if flags & 0x01 != 0 { report.vehicleType = try filledText(.vehicleType) }
    if flags & 0x02 != 0 { report.tags = try tags() }
    return report
  }

  private mutating func tripStatus() throws(ValidationError) -> TripStatusReport {
    let id = try identifier(.tripId)
    let status: TripStatus = try keyword(.status)
    var report = TripStatusReport(
      tripID: id, status: status, timestamp: try clientTimestamp(.timestamp, early: .badMessage))
    let flags = try byte(.status)
    if flags & 0x01 != 0 { report.location = try coordinate() }
    if flags & 0x02 != 0 { report.expectedStatus = try keyword(.expectedStatus) }
    // As in JSON, the following count only with `requested`; the driver also with `accepted`.
    guard status == .requested || status == .accepted else { return report }
    if flags & 0x04 != 0 { report.pickup = try coordinate() }
    if flags & 0x08 != 0 { report.dropoff = try coordinate() }
    if flags & 0x10 != 0 { report.driverID = try identifier(.driverId) }
    if status == .accepted {
      (report.pickup, report.dropoff) = (nil, nil)
      return report
    }
    if flags & 0x20 != 0 { report.riderID = try identifier(.riderId) }
    if flags & 0x40 != 0 { report.route = try route() }
    if flags & 0x80 != 0 { report.offer = try offerCriteria() }
    return report
  }

  private mutating func route() throws(ValidationError) -> Route {
    let polyline = try longText(.route)
    do throws(Route.Fault) {
      return try Route(polyline: polyline)
    } catch {
      switch error {
      case .tooManyPoints: throw ValidationError(.tooLarge, .route, "expected up to 5,000 places")
      case .notAPolyline, .tooShort:
        throw ValidationError(.route, "expected 2 places or more: an encoded polyline (precision 5)")
      }
    }
  }

  private mutating func subscribe() throws(ValidationError) -> Subscribe {
    var subscribe = Subscribe(channel: try channel())
    let flags = try byte(.channel)
    if flags & 0x01 != 0 {
      let since = try varint(.since)
      subscribe.resume = ResumePoint(since: since, epoch: try filledText(.epoch, atMost: MessageLimits.epochBytes))
    }
    if flags & 0x02 != 0 { subscribe.viewID = try filledText(.viewId) }
    if flags & 0x04 != 0 { subscribe.precision = try Subscribe.precision(Int(try byte(.precision))) }
    subscribe.isEventsOnly = flags & 0x08 != 0
    return subscribe
  }

  private mutating func unsubscribe() throws(ValidationError) -> Unsubscribe {
    switch try byte(.channel) {
    case 0: return .channel(try channel())
    case 1: return .view(try filledText(.viewId))
    case _: throw ValidationError(.channel, "expected 0 for a channel or 1 for a view")
    }
  }

  mutating func ping() throws(ValidationError) -> Ping {
    let count = try listCount(.payload)
    try Ping.check(count)
    return unsafe Ping(members: count == 0 ? nil : try run(count, .payload) { unsafe [UInt8]($0) })
  }

  private mutating func refresh() throws(ValidationError) -> Refresh {
    let token = try longText(.token)
    guard (1...Refresh.maximumBytes).contains(token.utf8.count) else {
      throw ValidationError(.token, "expected 1–8,192 bytes")
    }
    return Refresh(token: token)
  }

  // MARK: Queries

  private mutating func query() throws(ValidationError) -> QueryRequest {
    let kind: QueryKind = try keyword(.kind)
    switch kind {
    case .driver: return .driver(try identifier(.driverId))
    case .trip: return .trip(try identifier(.tripId))
    case .nearby:
      let center = try coordinate()
      let flags = try byte(.kind)
      let radius = flags & 0x01 != 0 ? try number(.radius) : nil
      if let radius, !(radius > 0 && radius <= DriverSearch.maximumRadiusMeters) {
        throw ValidationError(.radius, "expected more than 0 and up to 1,000,000 metres")
      }
      let search = try search(.nearby(center, radiusMeters: radius), flags)
      guard radius != nil || search.limit != nil else {
        throw ValidationError(.radius, "expected radius (metres), limit, or both")
      }
      return .drivers(search)
    case .within:
      let flags = try byte(.kind)
      let area: DriverSearch.Area = flags & 0x01 != 0 ? .polygons(try polygons()) : .box(try box(.bbox))
      return .drivers(try search(area, flags))
    }
  }

  private mutating func search(_ area: DriverSearch.Area, _ flags: UInt8) throws(ValidationError) -> DriverSearch {
    var search = DriverSearch(area: area)
    if flags & 0x02 != 0 {
      let limit = try smallCount(.limit)
      guard (1...DriverSearch.maximumLimit).contains(limit) else {
        throw ValidationError(.limit, "expected a whole number from 1 to 1,000")
      }
      search.limit = limit
    }
    if flags & 0x04 != 0 { search.filter.status = try keyword(.status) }
    if flags & 0x08 != 0 { search.filter.vehicleType = try filledText(.vehicleType) }
    if flags & 0x10 != 0 { search.filter.tags = try tags() }
    if flags & 0x20 != 0 { search.filter.maxAge = try nonNegative(.maxAge) }
    search.filter.includesStale = flags & 0x40 != 0
    return search
  }

  private mutating func polygons() throws(ValidationError) -> MultiPolygon {
    var positions: [[[Coordinate]]] = []
    var left = DriverSearch.maximumPositions
    for _ in 0..<(try listCount(.polygon)) {
      var rings: [[Coordinate]] = []
      let ringCount = try listCount(.coordinates)
      if ringCount == 0 { left -= 1 }  // an empty polygon or ring counts as one position
      guard left >= 0 else { throw ValidationError(.tooLarge, .coordinates, ValidationError.positions) }
      for _ in 0..<ringCount {
        let count = try listCount(.coordinates)
        left -= max(1, count)
        guard left >= 0 else { throw ValidationError(.tooLarge, .coordinates, ValidationError.positions) }
        var ring: [Coordinate] = []
        for _ in 0..<count { ring.append(try coordinate()) }
        rings.append(ring)
      }
      positions.append(rings)
    }
    do throws(MultiPolygonError) {
      return try MultiPolygon(positions, limit: DriverSearch.maximumPositions)
    } catch {
      throw ValidationError(error, of: DriverSearch.maximumPositions - left)
    }
  }
}
