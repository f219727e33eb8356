// How many bytes of texts the kept events of a hub may hold, as its settings say: of one channel, and of all.
import HubCore
import HubMessages
import Testing

@testable import HubGateway

@Suite struct EventContentTests {
  private func hub(all: Int, channel: Int) throws -> HandDrivenHub {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.hub.eventContentBytes = all
      $0.limits.hub.eventContentBytesPerChannel = channel
    }
    for trip in ["A", "B"] {
      let body = #"{"tripId":"\#(trip)","driverId":"D"}"#
      #expect(try answer(hub, "/v1/trips", body).status == "201")
    }
    return hub
  }

  private func answer(_ hub: HandDrivenHub, _ target: String, _ body: String) throws -> HandDrivenRequest {
    let request = try HandDrivenRequest(hub, "\(target)?role=ops&id=o", method: "POST", body: body)
    try hub.turn {
      request.ownTurn()
      return request.body != nil
    }
    return request
  }

  /// Posts a text of 100 bytes, in title and body.
  private func post(_ hub: HandDrivenHub, _ trip: String) throws -> HandDrivenRequest {
    let text = String(repeating: "x", count: 99)
    return try answer(
      hub, "/v1/notifications", #"{"channel":"trip:\#(trip)","kind":"message","title":"t","body":"\#(text)"}"#)
  }

  @Test("A channel forgets its oldest events where they hold more bytes than one channel may keep")
  func ofChannel() throws {
    let hub = try hub(all: 10_000, channel: 300)
    for _ in 0..<5 { #expect(try post(hub, "A").status == "201") }
    // Number 1 is that the trip was asked for; the texts are 2 to 6.
    try expectRecovered(hub, since: 3, notSince: 2)
  }

  @Test("Where the events of all channels hold as much as they may, the oldest of all are forgotten")
  func ofAll() throws {
    let hub = try hub(all: 350, channel: 300)
    for trip in ["A", "B", "A", "B"] { #expect(try post(hub, trip).status == "201") }
    try expectRecovered(hub, since: 2, notSince: 1)
  }

  /// Whether the events of trip A can be resumed from one number, and no longer from another.
  private func expectRecovered(_ hub: HandDrivenHub, since known: Int, notSince forgotten: Int) throws {
    let ops = try HandDrivenPeer(hub, role: "ops", id: "o")
    func subscribe(_ more: String) throws -> String {
      let before = ops.messages.count
      ops.send(
        HandDrivenPeer.frame(
          #"{"type":"subscribe","payload":{"channel":"trip:A"\#(more)},"timestamp":1763680000000,"messageId":"m"}"#))
      ops.turn()
      return try #require(ops.messages.count > before ? ops.messages[before] : nil)
    }
    let epoch = try #require(try subscribe("").firstMatch(of: /"epoch":"(\w+)"/)).1
    #expect(try subscribe(#","since":\#(known),"epoch":"\#(epoch)""#).contains("\"recovered\":true"))
    #expect(try subscribe(#","since":\#(forgotten),"epoch":"\#(epoch)""#).contains("\"recovered\":false"))
  }
}
