// Queries of URLs, read into checked values.
import Geo
import HTTP
import Messages
import Testing

@testable import Gateway

@Suite struct QueryParametersTests {
  private func nearby(_ query: String) throws(NearbyQuery.Invalid) -> NearbyQuery {
    try NearbyQuery(Query(Array(query.utf8)[...]), maximumLimit: 1000)
  }

  @Test("latitude and longitude with a radius, a limit, or both")
  func good() throws {
    let both = try nearby("latitude=52.5&longitude=13.25&radius=500&limit=7")
    #expect(both.centre == Coordinate(latitude: 52.5, longitude: 13.25))
    #expect(both.radiusMeters == 500 && both.limit == 7)
    #expect(try nearby("latitude=0&longitude=0&radius=1e3").limit == NearbyQuery.defaultLimit)
    #expect(try nearby("latitude=-90&longitude=180&limit=1000").radiusMeters == NearbyQuery.maximumRadiusMeters)
  }

  @Test(
    "what is missing, out of range or no number is refused with the parameter's name",
    arguments: [
      ("", "latitude"), ("latitude=1&radius=5", "longitude"), ("latitude=91&longitude=0&radius=5", "latitude"),
      ("latitude=1&longitude=181&radius=5", "longitude"), ("latitude=1&longitude=2", "radius"),
      ("latitude=nan&longitude=2&radius=5", "latitude"), ("latitude=x&longitude=2&radius=5", "latitude"),
      ("latitude=1&longitude=2&radius=0", "radius"), ("latitude=1&longitude=2&radius=-1", "radius"),
      ("latitude=1&longitude=2&radius=20038001", "radius"), ("latitude=1&longitude=2&radius=inf", "radius"),
      ("latitude=1&longitude=2&limit=0", "limit"), ("latitude=1&longitude=2&limit=1001", "limit"),
      ("latitude=1&longitude=2&limit=1.5", "limit"), ("latitude=1&longitude=2&limit=1e300", "limit"),
      ("latitude=1&longitude=2&limit=", "limit"), ("latitude=%q1&longitude=2&limit=1", "latitude"),
    ])
  func bad(query: String, parameter: String) {
    do {
      let made = try nearby(query)
      Issue.record("accepted as \(made)")
    } catch {
      #expect(error.text.contains(parameter), "\(error.text)")
    }
  }

  @Test("the time option has three values; none is the default and any other is none")
  func time() {
    #expect(TimeFormat(queryValue: nil) == .unixMilliseconds)
    #expect(TimeFormat(queryValue: "unix_ms") == .unixMilliseconds)
    #expect(TimeFormat(queryValue: "apple") == .apple)
    #expect(TimeFormat(queryValue: "rfc3339") == .rfc3339)
    #expect(TimeFormat(queryValue: "RFC3339") == nil)
    #expect(TimeFormat(queryValue: "") == nil)
  }
}
