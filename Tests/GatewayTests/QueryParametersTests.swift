// Queries of URLs, read into checked values.
import HubBytes
import HubCore
import HubGeo
import HubHTTP
import HubMessages
import HubTestSupport
import Testing

@testable import HubGateway

@Suite struct QueryParametersTests {
  private func nearby(_ query: String) throws(Refusal) -> DriverSearch {
    try DriverSearch(nearby: Query(Array(query.utf8)[...]))
  }

  private func within(_ query: String) throws(Refusal) -> DriverSearch {
    try DriverSearch(box: Query(Array(query.utf8)[...]))
  }

  @Test("latitude and longitude with a radius, a limit, or both")
  func good() throws {
    let center = try #require(Coordinate(latitude: 52.5, longitude: 13.25))
    let both = try nearby("latitude=52.5&longitude=13.25&radius=500&limit=7")
    #expect(both == DriverSearch(area: .nearby(center, radiusMeters: 500), limit: 7))
    #expect(try nearby("latitude=0&longitude=0&radius=1e3").limit == nil)
    let pole = try #require(Coordinate(latitude: -90, longitude: 180))
    #expect(try nearby("latitude=-90&longitude=180&limit=1000").area == .nearby(pole, radiusMeters: nil))
  }

  @Test("filters are read, texts decoded and tags split at commas")
  func filters() throws {
    let filter = try nearby(
      "latitude=1&longitude=2&limit=3&status=on_trip&vehicleType=mini%20van&tags=xl,wheelchair&maxAge=12.5&stale=true"
    ).filter
    #expect(
      filter
        == DriverFilter(
          status: .onTrip, vehicleType: InlineText("mini van"), tags: [InlineText("xl")!, InlineText("wheelchair")!],
          maxAge: 12.5, includesStale: true))
    #expect(try within("bbox=1,2,3,4&stale=false").filter == DriverFilter())
  }

  @Test("a box is west, south, east, north, and may cross the antimeridian")
  func boxes() throws {
    let box = try #require(BoundingBox(south: -20, west: 177, north: -15, east: -178))
    #expect(try within("bbox=177,-20,-178,-15&limit=5") == DriverSearch(area: .box(box), limit: 5))
    #expect(try within("bbox=-180,-90,180,90").area == .box(.world))
  }

  @Test(
    "what is missing, out of range or no number is refused with the parameter's name",
    arguments: [
      ("", "latitude"), ("latitude=1&radius=5", "longitude"), ("latitude=91&longitude=0&radius=5", "latitude"),
      ("latitude=1&longitude=181&radius=5", "longitude"), ("latitude=1&longitude=2", "radius"),
      ("latitude=nan&longitude=2&radius=5", "latitude"), ("latitude=x&longitude=2&radius=5", "latitude"),
      ("latitude=1&longitude=2&radius=0", "radius"), ("latitude=1&longitude=2&radius=-1", "radius"),
      ("latitude=1&longitude=2&radius=10000000", "radius"), ("latitude=1&longitude=2&radius=inf", "radius"),
      ("latitude=1&longitude=2&radius=nan", "radius"), ("latitude=1&longitude=2&limit=0", "limit"),
      ("latitude=1&longitude=2&limit=1000000", "limit"), ("latitude=1&longitude=2&limit=1.5", "limit"),
      ("latitude=1&longitude=2&limit=%zz", "limit"), ("latitude=1&longitude=2&limit=5&status=free", "status"),
      ("latitude=1&longitude=2&limit=5&vehicleType=", "vehicleType"),
      ("latitude=1&longitude=2&limit=5&vehicleType=%ff", "vehicleType"),
      ("latitude=1&longitude=2&limit=5&tags=a,,b", "tags"),
      ("latitude=1&longitude=2&limit=5&tags=1,2,3,4,5,6,7,8,9", "tags"),
      ("latitude=1&longitude=2&limit=5&maxAge=-1", "maxAge"), ("latitude=1&longitude=2&limit=5&stale=1", "stale"),
    ])
  func bad(query: String, name: String) {
    do throws(Refusal) {
      _ = try nearby(query)
      Issue.record("\(query) was taken")
    } catch {
      #expect(error.message.contains(name), "\(error.message)")
      #expect(error.code == .badMessage)
    }
  }

  @Test(
    "what is no box is refused, as over the socket",
    arguments: [
      ("", ErrorCode.badMessage), ("bbox=", .badMessage), ("bbox=1,2,3", .badMessage), ("bbox=1,2,3,4,5", .badMessage),
      ("bbox=1,2,3,x", .badMessage), ("bbox=nan,0,1,1", .badMessage), ("bbox=1,2,3,4&limit=0", .badMessage),
      ("bbox=0,10,1,5", .invalidLocation), ("bbox=-181,0,1,1", .invalidLocation), ("bbox=0,0,1,91", .invalidLocation),
    ])
  func badBoxes(query: String, code: ErrorCode) {
    do throws(Refusal) {
      _ = try within(query)
      Issue.record("\(query) was taken")
    } catch {
      #expect(error.code == code && error.status == .badRequest)
    }
  }

  private static let place = Coordinate(latitude: 52.5, longitude: 13.4)!

  private func audience(_ role: HubMessages.Role, _ search: DriverSearch) -> Result<Audience, ErrorReply> {
    do throws(ErrorReply) {
      return .success(try search.audience(for: role, maximumLimit: 1000))
    } catch { return .failure(error) }
  }

  @Test("ops may ask for anything, riders for free drivers nearby, drivers for nothing")
  func rights() throws {
    let far = DriverSearch(area: .nearby(Self.place, radiusMeters: 5_001), limit: 1)
    let near = DriverSearch(area: .nearby(Self.place, radiusMeters: 5_000), filter: DriverFilter(status: .available))
    #expect(audience(.ops, far) == .success(.ops) && audience(.rider, near) == .success(.riders))
    func isForbidden(_ role: HubMessages.Role, _ search: DriverSearch) -> Bool {
      if case .failure(let refusal) = audience(role, search) { refusal.code == .forbidden } else { false }
    }
    #expect(isForbidden(.rider, far) && isForbidden(.driver, near) && isForbidden(.driver, far))
    for change in [
      { (search: inout DriverSearch) in search.filter.status = .onTrip },
      { (search: inout DriverSearch) in search.filter.tags = [InlineText("xl")!] },
      { (search: inout DriverSearch) in search.filter.includesStale = true },
      { (search: inout DriverSearch) in search.limit = 101 },
      { (search: inout DriverSearch) in search.area = .box(.world) },
      { (search: inout DriverSearch) in
        search.area = .box(BoundingBox(south: 52.4, west: 13.3, north: 52.49, east: 13.4)!)
      },
    ] {
      var search = near
      change(&search)
      #expect(isForbidden(.rider, search), "\(search)")
      #expect(audience(.ops, search) == .success(.ops))
    }
    let small = BoundingBox(center: Self.place, radiusMeters: 3_500)
    #expect(audience(.rider, DriverSearch(area: .box(small))) == .success(.riders))
    let cut = try MultiPolygon(
      [
        [[(-17, 179.99), (-17, 180), (-16.99, 180), (-17, 179.99)]],
        [[(-17, -180), (-17, -179.99), (-16.99, -180), (-17, -180)]],
      ].map { rings in rings.map { ring in ring.map { Coordinate(latitude: $0.0, longitude: $0.1)! } } }, limit: 100)
    #expect(audience(.rider, DriverSearch(area: .polygons(cut))) == .success(.riders))
  }
}
