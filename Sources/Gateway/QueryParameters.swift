// Queries of URLs, read into checked values.
import Bytes
import Geo
import HTTP
import Messages

extension TimeFormat {
  static let queryHelp = "time must be unix_ms, apple or rfc3339"

  /// The URL's `time` option; the default where it is absent, nil where it is unknown.
  init?(queryValue: String?) {
    switch queryValue {
    case nil, "unix_ms": self = .unixMilliseconds
    case "apple": self = .apple
    case "rfc3339": self = .rfc3339
    default: return nil
    }
  }
}

/// The parameters of `GET /v1/drivers/nearby`.
struct NearbyQuery: Equatable {
  struct Invalid: Error, Equatable {
    var text: String
  }

  /// Half the Earth's circumference: everything.
  static let maximumRadiusMeters = 20_038_000.0
  static let defaultLimit = 100

  var centre: Coordinate
  var radiusMeters: Double
  var limit: Int

  /// `latitude`, `longitude`, and `radius` (metres) or `limit` or both.
  init(_ query: Query, maximumLimit: Int) throws(Invalid) {
    guard let latitude = try NearbyQuery.number(query, "latitude"),
      let longitude = try NearbyQuery.number(query, "longitude"),
      let centre = Coordinate(latitude: latitude, longitude: longitude)
    else { throw Invalid(text: "latitude (-90...90) and longitude (-180...180) are required") }
    let radius = try NearbyQuery.number(query, "radius")
    let limit = try NearbyQuery.number(query, "limit")
    guard radius != nil || limit != nil else { throw Invalid(text: "give radius (metres), limit, or both") }
    self.centre = centre
    radiusMeters = radius ?? NearbyQuery.maximumRadiusMeters
    guard radiusMeters > 0, radiusMeters <= NearbyQuery.maximumRadiusMeters else {
      throw Invalid(text: "radius must be more than 0 and at most \(Int(NearbyQuery.maximumRadiusMeters)) metres")
    }
    guard let count = Int(exactly: limit ?? Double(NearbyQuery.defaultLimit)), (1...maximumLimit).contains(count) else {
      throw Invalid(text: "limit must be a whole number from 1 to \(maximumLimit)")
    }
    self.limit = count
  }

  private static func number(_ query: Query, _ name: StaticString) throws(Invalid) -> Double? {
    let text: [UInt8]?
    do throws(HTTPError) { text = try query.bytes(name) } catch { throw Invalid(text: "\(name) is not well encoded") }
    guard let text else { return nil }
    guard let number = text.withUnsafeBytes({ parseDouble($0) }) else {
      throw Invalid(text: "\(name) must be a number")
    }
    return number
  }
}
