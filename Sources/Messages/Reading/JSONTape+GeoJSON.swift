// Polygons as GeoJSON (RFC 7946): a Polygon, a MultiPolygon, or a Feature of one of them. Members without effect on the
// polygon (`bbox`, `properties`, `id`, foreign ones) are ignored, and so are altitudes (§3.1.1).
import HubBytes
import HubGeo

extension JSONTape {
  /// The polygons of the object at `index`; `member` is its name in errors.
  func polygons(at index: Int, _ member: JSONKey, _ bytes: Span<UInt8>) throws(ValidationError) -> MultiPolygon {
    guard self[index].kind == .object else { throw ValidationError(member, "expected a GeoJSON object") }
    let object = members(of: index)
    guard let type = present(object, .type), isText(type) else {
      throw ValidationError(member, "expected GeoJSON: an object with type and coordinates, or a Feature")
    }
    if equals(type, bytes, "Feature") {
      return try geometry(at: try required(present(object, .geometry), .geometry), bytes)
    }
    return try geometry(at: index, bytes)
  }

  private func geometry(at index: Int, _ bytes: Span<UInt8>) throws(ValidationError) -> MultiPolygon {
    guard self[index].kind == .object else { throw ValidationError(.geometry, "expected an object") }
    let object = members(of: index)
    let type = try required(present(object, .type), .type)
    let isOne = isText(type) && equals(type, bytes, "Polygon")
    guard isOne || isText(type) && equals(type, bytes, "MultiPolygon") else {
      throw ValidationError(.type, "expected Polygon, MultiPolygon, or a Feature of one of them")
    }
    let list = try required(present(object, .coordinates), .coordinates)
    var positions: [[[Coordinate]]] = []
    var count = 0
    if isOne {
      positions.append(try rings(at: list, &count))
    } else {
      try elements(of: list) { (polygon) throws(ValidationError) in positions.append(try rings(at: polygon, &count)) }
    }
    do throws(MultiPolygonError) {
      return try MultiPolygon(positions, limit: DriverSearch.maximumPositions)
    } catch {
      throw ValidationError(error, of: count)
    }
  }

  private func rings(at index: Int, _ count: inout Int) throws(ValidationError) -> [[Coordinate]] {
    var rings: [[Coordinate]] = []
    // Counted before anything is built. An empty polygon or ring counts as one position.
    if self[index].count == 0 { try self.count(1, &count) }
    try elements(of: index) { (ring) throws(ValidationError) in
      try self.count(max(1, Int(self[ring].count)), &count)
      var positions: [Coordinate] = []
      try elements(of: ring) { (position) throws(ValidationError) in positions.append(try self.position(at: position)) }
      rings.append(positions)
    }
    return rings
  }

  private func count(_ positions: Int, _ count: inout Int) throws(ValidationError) {
    count += positions
    guard count <= DriverSearch.maximumPositions else {
      throw ValidationError(.tooLarge, .coordinates, ValidationError.positions)
    }
  }

  /// Longitude, latitude, and optionally an altitude (RFC 7946 §3.1.1): the place to 1e-7°.
  private func position(at index: Int) throws(ValidationError) -> Coordinate {
    let expected: StaticString = "expected positions: arrays of longitude and latitude"
    guard self[index].kind == .array, self[index].count >= 2 else { throw ValidationError(.coordinates, expected) }
    guard self[index + 1].kind == .number, self[index + 2].kind == .number else {
      throw ValidationError(.coordinates, expected)
    }
    let longitude = Double(bitPattern: self[index + 1].bits)
    let latitude = Double(bitPattern: self[index + 2].bits)
    guard let position = Coordinate(latitude: latitude, longitude: longitude) else {
      throw ValidationError(.invalidLocation, .coordinates, "expected longitudes −180…180 and latitudes −90…90")
    }
    // Rounded as in binary, before the polygon is checked, so that it is valid at other hubs, too.
    return position.inSteps
  }

  /// Calls `body` with the index of each element of the array at `index`.
  func elements(of index: Int, _ body: (Int) throws(ValidationError) -> Void) throws(ValidationError) {
    guard self[index].kind == .array else {
      throw ValidationError(.coordinates, "expected arrays of rings of positions")
    }
    var i = index + 1
    for _ in 0..<Int(self[index].count) {
      try body(i)
      i = Int(self[i].next)
    }
  }
}

extension ValidationError {
  static let positions: StaticString = "expected up to 1,000 positions in all rings"

  /// The fault of polygons with `positions` positions; it names the polygon, ring and edges.
  init(_ error: MultiPolygonError, of positions: Int) {
    self.init(error)
    checkedPositions = Int32(truncatingIfNeeded: positions)
  }

  private init(_ error: MultiPolygonError) {
    let polygon = Int32(truncatingIfNeeded: error.polygon)
    func failure(_ text: StaticString, ring: Int, _ edges: (Int, Int)? = nil) -> ValidationError {
      var failure = ValidationError(.coordinates, text)
      failure.polygonFault = ValidationError.PolygonFault(
        polygon: polygon, ring: Int32(truncatingIfNeeded: ring), first: Int32(truncatingIfNeeded: edges?.0 ?? -1),
        second: Int32(truncatingIfNeeded: edges?.1 ?? -1))
      return failure
    }
    switch error.error {
    case .noRing: self.init(.coordinates, "expected a polygon with a ring")
    case .tooManyPositions: self.init(.tooLarge, .coordinates, ValidationError.positions)
    case .tooFewPositions(let ring):
      self = failure("a ring needs four positions or more, the last the same as the first", ring: ring)
    case .notClosed(let ring): self = failure("a ring's last position must be the same as its first", ring: ring)
    case .noArea(let ring): self = failure("a ring has no area", ring: ring)
    case .selfCrossing(let ring, let edge, let other):
      self = failure("a ring crosses or touches itself", ring: ring, (edge, other))
    case .ringsCross(_, let ring): self = failure("a ring crosses another of its polygon", ring: ring)
    case .holeOutside(let ring): self = failure("a hole is not within its polygon's outer ring", ring: ring)
    case .aroundPole(let ring):
      self = failure("a ring goes round a pole: cut it at the antimeridian (RFC 7946 §3.1.9)", ring: ring)
    }
  }
}
