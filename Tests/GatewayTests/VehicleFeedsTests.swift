// How old the feed of all vehicles may be that somebody gets, and over how many turns it is made.
import HubMessages
import HubTransport
import Testing

@testable import HubGateway

@Suite struct VehicleFeedsTests {
  private func at(_ seconds: Double) -> Int64 { Int64(seconds * 1e9) }

  @Test("a feed is good for 5 s, and for 10 s while a newer one is being made: never one of an hour before")
  func age() {
    let feeds = VehicleFeeds()
    #expect(feeds.body(at: at(1)) == nil)
    feeds.keep([1], now: at(100))
    #expect(feeds.body(at: at(104.9)) == [1] && feeds.body(at: at(105)) == nil)
    let newer = VehicleFeed(feeds, nil, at: Timestamp(milliseconds: 0))
    #expect(feeds.isBeingMade)
    #expect(feeds.body(at: at(109.9)) == [1] && feeds.body(at: at(110)) == nil && feeds.body(at: at(3700)) == nil)
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
}
