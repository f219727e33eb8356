// What URLs say, checked.
import HTTP
import Messages
import Testing

@testable import Gateway

@Suite struct QueryParametersTests {
  private func query(_ text: String) -> Query { Query(Array(text.utf8)[...]) }

  @Test("nearby takes a radius, a limit or both")
  func nearby() throws {
    let both = try NearbyQuery(query("latitude=37.5&longitude=-122.25&radius=500&limit=7"), maximumLimit: 1000)
    #expect(both.centre.latitude == 37.5 && both.centre.longitude == -122.25)
    #expect(both.radiusMeters == 500 && both.limit == 7)
    #expect(try NearbyQuery(query("latitude=0&longitude=0&radius=1"), maximumLimit: 1000).limit == 100)
    let all = try NearbyQuery(query("latitude=0&longitude=0&limit=1000"), maximumLimit: 1000)
    #expect(all.radiusMeters == NearbyQuery.maximumRadiusMeters)
  }

  @Test(
    "nearby says what is wrong",
    arguments: [
      "", "latitude=1", "latitude=1&longitude=1", "latitude=91&longitude=0&limit=1", "latitude=x&longitude=0&limit=1",
      "latitude=0&longitude=181&limit=1", "latitude=nan&longitude=0&limit=1", "latitude=0&longitude=0&radius=0",
      "latitude=0&longitude=0&radius=-1", "latitude=0&longitude=0&radius=1e9", "latitude=0&longitude=0&limit=0",
      "latitude=0&longitude=0&limit=1.5", "latitude=0&longitude=0&limit=1001", "latitude=%zz&longitude=0&limit=1",
    ])
  func badNearby(text: String) {
    #expect(throws: NearbyQuery.Invalid.self) { try NearbyQuery(query(text), maximumLimit: 1000) }
  }

  @Test("development credentials count only where they are allowed")
  func developmentCredentials() throws {
    let good = query("role=driver&id=d1")
    let credential = try Credential(query: good, allowsDevelopmentCredentials: true)
    #expect(credential == Credential(role: .driver, id: Identifier("d1")!))
    #expect(throws: CredentialError.self) { try Credential(query: good, allowsDevelopmentCredentials: false) }
  }

  @Test(
    "a role that does not exist and an id that is none are refused",
    arguments: ["", "role=driver", "id=d1", "role=admin&id=d1", "role=driver&id=", "role=driver&id=a%20b"])
  func badCredentials(text: String) {
    #expect(throws: CredentialError.self) { try Credential(query: query(text), allowsDevelopmentCredentials: true) }
  }

  @Test("the time option has three values and a default")
  func timeOption() {
    #expect(TimeFormat(queryValue: nil) == .unixMilliseconds)
    #expect(TimeFormat(queryValue: "unix_ms") == .unixMilliseconds)
    #expect(TimeFormat(queryValue: "apple") == .apple)
    #expect(TimeFormat(queryValue: "rfc3339") == .rfc3339)
    #expect(TimeFormat(queryValue: "iso") == nil)
  }
}
