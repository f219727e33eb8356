// Queries of URLs, read into checked values: the same ones that a `query` over the socket is read into.
import HubBytes
import HubGeo
import HubHTTP
import HubMessages

extension TimeFormat {
  /// The URL's `time` option; the default where it is absent.
  init(_ query: Query) throws(Refusal) {
    switch try query.parameter("time") {
    case nil, "unix_ms": self = .unixMilliseconds
    case "apple": self = .apple
    case "rfc3339": self = .rfc3339
    default: throw Refusal(.badMessage, "time must be unix_ms, apple or rfc3339")
    }
  }
}

extension DriverSearch {
  /// `GET /v1/drivers/nearby`: `latitude`, `longitude`, and `radius` (metres) or `limit` or both.
  init(nearby query: Query) throws(Refusal) {
    guard let latitude = try query.number("latitude"), let longitude = try query.number("longitude"),
      let center = Coordinate(latitude: latitude, longitude: longitude)
    else { throw Refusal(.badMessage, "latitude (-90...90) and longitude (-180...180) are required") }
    let radius = try query.number("radius")
    let limit = try query.limit()
    guard radius != nil || limit != nil else {
      throw Refusal(.badMessage, "give radius (metres), limit, or both")
    }
    if let radius, !(radius > 0 && radius <= DriverSearch.maximumRadiusMeters) {
      let most = Int(DriverSearch.maximumRadiusMeters)
      throw Refusal(.badMessage, "radius must be more than 0 and at most \(most) metres")
    }
    self.init(
      area: .nearby(center, radiusMeters: radius), limit: limit, filter: try DriverFilter(query))
  }

  /// `GET /v1/drivers/within`: `bbox`, in the order of RFC 7946 §5: west, south, east, north. West is east of east
  /// where the box crosses the antimeridian (§5.2).
  init(box query: Query) throws(Refusal) {
    let help = "bbox must be west,south,east,north in degrees, south not above north"
    guard let text = try query.value("bbox") else {
      throw Refusal(.badMessage, "\(help); polygons come in the body of a POST")
    }
    var values: [Double] = []
    for part in text.split(separator: UInt8(ascii: ","), maxSplits: 4, omittingEmptySubsequences: false) {
      guard let value = unsafe Array(part).withUnsafeBytes({ unsafe parseDouble($0) }) else {
        throw Refusal(.badMessage, help)
      }
      values.append(value)
    }
    guard values.count == 4 else { throw Refusal(.badMessage, help) }
    guard let box = BoundingBox(south: values[1], west: values[0], north: values[3], east: values[2]) else {
      throw Refusal(.invalidLocation, help)
    }
    self.init(area: .box(box), limit: try query.limit(), filter: try DriverFilter(query))
  }

  /// `POST /v1/drivers/within`: the polygons of the body.
  init(_ polygons: MultiPolygon, _ query: Query) throws(Refusal) {
    guard try query.value("bbox") == nil else {
      throw Refusal(.badMessage, "give bbox or a polygon in the body, not both")
    }
    self.init(area: .polygons(polygons), limit: try query.limit(), filter: try DriverFilter(query))
  }
}

extension DriverFilter {
  fileprivate init(_ query: Query) throws(Refusal) {
    self.init()
    if let name = try query.word("status") {
      guard let status = DriverStatus.allCases.first(where: { "\($0.name)" == name.description }) else {
        throw Refusal(.badMessage, "status must be one of available, unavailable, background and on_trip")
      }
      self.status = status
    }
    vehicleType = try query.word("vehicleType")
    tags = try query.words("tags", atMost: DriverStatusReport.maximumTags)
    maxAge = try query.number("maxAge")
    if let maxAge, !(maxAge >= 0) { throw Refusal(.badMessage, "maxAge must be seconds, 0 or more") }
    includesStale = try query.flag("stale")
  }
}

extension Query {
  /// The decoded value of a parameter as text; nil where there is none.
  func parameter(_ name: StaticString) throws(Refusal) -> String? {
    do throws(HTTPError) { return try string(name) } catch {
      if case .textTooLong(let limit) = error {
        throw Refusal(.badMessage, "\(name) has non-ASCII characters and more than \(limit) bytes")
      }
      throw Query.malformed(name)
    }
  }

  /// The values of a parameter that may come several times, in order.
  func texts(_ name: StaticString) throws(Refusal) -> [String] {
    do throws(HTTPError) { return try items().filter { $0.name.isSpelled("\(name)") }.map(\.value) } catch {
      throw Refusal(error)
    }
  }

  /// The decoded value of a parameter, which need not be UTF-8; nil where there is none.
  fileprivate func value(_ name: StaticString) throws(Refusal) -> [UInt8]? {
    do throws(HTTPError) { return try bytes(name) } catch { throw Query.malformed(name) }
  }

  private static func malformed(_ name: StaticString) -> Refusal {
    Refusal(.badMessage, "\(name) is not well encoded")
  }

  /// The `limit` of a list of pages.
  func pageLimit(_ maximumLimit: Int) throws(Refusal) -> Int? {
    guard let text = try parameter("limit") else { return nil }
    guard let limit = Int(text), (1...maximumLimit).contains(limit) else {
      throw Refusal(.badMessage, "limit must be a whole number from 1 to \(maximumLimit)")
    }
    return limit
  }

  fileprivate func number(_ name: StaticString) throws(Refusal) -> Double? {
    guard let text = try value(name) else { return nil }
    guard let number = unsafe text.withUnsafeBytes({ unsafe parseDouble($0) }) else {
      throw Refusal(.badMessage, "\(name) must be a number")
    }
    return number
  }

  fileprivate func limit() throws(Refusal) -> Int? {
    guard let value = try number("limit") else { return nil }
    guard let limit = Int(exactly: value), (1...DriverSearch.maximumLimit).contains(limit) else {
      throw Refusal(.badMessage, "limit must be a whole number from 1 to \(DriverSearch.maximumLimit)")
    }
    return limit
  }

  /// `true` or `false`; false where there is none.
  func flag(_ name: StaticString) throws(Refusal) -> Bool {
    switch try word(name)?.description {
    case nil, "false": return false
    case "true": return true
    default: throw Refusal(.badMessage, "\(name) must be true or false")
    }
  }

  /// Text of 1–64 bytes of UTF-8.
  func word(_ name: StaticString) throws(Refusal) -> InlineText? {
    guard let bytes = try value(name) else { return nil }
    return try text(bytes[...], name)
  }

  /// Such texts with commas between them.
  fileprivate func words(_ name: StaticString, atMost limit: Int) throws(Refusal) -> [InlineText] {
    guard let bytes = try value(name) else { return [] }
    let parts = bytes.split(separator: UInt8(ascii: ","), maxSplits: limit, omittingEmptySubsequences: false)
    guard parts.count <= limit else { throw Refusal(.badMessage, "\(name) may have up to \(limit) words") }
    var words: [InlineText] = []
    for part in parts { words.append(try text(part, name)) }
    return words
  }

  private func text(_ bytes: ArraySlice<UInt8>, _ name: StaticString) throws(Refusal) -> InlineText {
    guard let string = String(validating: bytes, as: UTF8.self), let text = InlineText(string), !text.isEmpty else {
      throw Refusal(.badMessage, "\(name) must be text of 1-64 bytes")
    }
    return text
  }
}
