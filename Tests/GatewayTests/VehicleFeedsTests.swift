// How old the feed of all vehicles may be that somebody gets, and over how many turns it is made.
import HubMessages
import HubTransport
import Testing

@testable import HubGateway

@Suite struct VehicleFeedsTests {
  private func at(_ seconds: Double) -> Int64 { Int64(seconds * 1e9) }

  @Test("a feed is good for 5 s, and for 10 s while a newer one is being made: never one of an hour before")
  func age() throws {
    let feeds = VehicleFeeds()
    #expect(try feeds.body(at: at(1)) == nil)
    feeds.keep(.success([1]), now: at(100))
    #expect(try feeds.body(at: at(104.9)) == [1] && feeds.body(at: at(105)) == nil)
    let newer = VehicleFeed(feeds, nil, Moment(uptime: at(105), timestamp: Timestamp(milliseconds: 0)))
    #expect(feeds.isBeingMade)
    #expect(try feeds.body(at: at(109.9)) == [1] && feeds.body(at: at(110)) == nil && feeds.body(at: at(3700)) == nil)
    withExtendedLifetime(newer) {}
  }

  @Test("a feed is made over as many turns as the limit says, and others have their answers meanwhile")
  func turns() throws {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.vehiclesPerTurn = 5
    }
    try hub.addDrivers(60)
    let feed = try HandDrivenRequest(hub, "/v1/gtfs-realtime/vehicle-positions?role=ops&id=o1")
    for _ in 0..<3 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    let other = try HandDrivenRequest(hub, "/healthz")
    for _ in 0..<3 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    other.ownTurn()
    feed.ownTurn()
    #expect(other.body == "ok\n" && feed.bytes.isEmpty)
    var turns = 6
    try hub.turn {
      turns += 1
      feed.ownTurn()
      return feed.isComplete
    }
    #expect(turns >= 60 / 5)
    #expect(feed.status == "200" && feed.rawBody.count > 60 * 40)
  }

  @Test("a feed that would have too many vehicles is refused for as long as one is good, and not begun anew meanwhile")
  func tooMany() throws {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.isVehicleFeedPublic = true
      $0.limits.vehiclesPerTurn = 5
      $0.limits.vehiclesPerFeed = 40
    }
    try hub.addDrivers(60)
    /// The turns that an answer takes: one for each page, and a few.
    func turns() throws -> Int {
      let feed = try HandDrivenRequest(hub, "/v1/gtfs-realtime/vehicle-positions")
      var turns = 0
      try hub.turn {
        turns += 1
        feed.ownTurn()
        return feed.isComplete
      }
      #expect(feed.status == "413" && feed.text.contains("at most 40 vehicles"))
      return turns
    }
    #expect(try turns() > 9)
    #expect(try turns() < 9)
    hub.clock.advance(milliseconds: 4900)
    #expect(try turns() < 9)
    hub.clock.advance(milliseconds: 100)
    #expect(try turns() > 9)
  }

  @Test("where whoever asked has gone, who asks next goes on where it ended: strangers who reset hold up no feed")
  func abandoned() throws {
    let clock = HandClock()
    let hub = try HandDrivenHub(clock: clock) {
      $0.allowsDevelopmentCredentials = true
      $0.isVehicleFeedPublic = true
      $0.limits.vehiclesPerTurn = 5
    }
    try hub.addDrivers(60)
    let path = "/v1/gtfs-realtime/vehicle-positions"
    // Each sees a page or two, and resets: twelve pages are to be made.
    for _ in 0..<12 {
      let stranger = try HandDrivenRequest(hub, path)
      for _ in 0..<4 { hub.loop.runTurn(timeoutMilliseconds: 0) }
      stranger.abort()
      for _ in 0..<2 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    }
    let feed = try HandDrivenRequest(hub, path)
    for _ in 0..<6 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    feed.ownTurn()
    #expect(feed.status == "200" && feed.rawBody.count > 60 * 40, "\(feed.text.prefix(200))")
  }

  @Test("one identity has a few feeds of one type under way, which leaves the hub's lists to others")
  func ofOneIdentity() throws {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.vehiclesPerTurn = 1
    }
    try hub.addDrivers(200)
    func ask(_ id: String) throws -> HandDrivenRequest {
      try HandDrivenRequest(hub, "/v1/gtfs-realtime/vehicle-positions?vehicleType=bus&role=ops&id=\(id)")
    }
    func wait(for requests: [HandDrivenRequest]) throws {
      try hub.turn {
        for request in requests { request.ownTurn() }
        return requests.allSatisfy(\.isComplete)
      }
    }
    let feeds = try (0..<Limits.typedVehicleFeedsPerIdentity).map { _ in try ask("o1") }
    try hub.turn { hub.counters.requests == UInt64(feeds.count) }
    let (refused, other) = (try ask("o1"), try ask("o2"))
    try wait(for: [refused])
    #expect(refused.status == "429" && refused.text.contains("Retry-After: 1\r\n"))
    for feed in feeds { feed.ownTurn() }
    #expect(feeds.allSatisfy { $0.bytes.isEmpty }, "all are under way")
    try wait(for: feeds + [other])
    #expect((feeds + [other]).allSatisfy { $0.status == "200" })
    let next = try ask("o1")
    try wait(for: [next])
    #expect(next.status == "200")
  }
}
