// How old the feed of all vehicles may be that somebody gets.
import HubMessages
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
}
