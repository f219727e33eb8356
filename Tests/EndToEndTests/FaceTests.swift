import Foundation
// What a control room's map asks, over real sockets: who gets it, and who does not.
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct Faces {}
}

extension EndToEnd.Faces {
  private func ask(_ peer: Peer, _ trip: String, _ status: String, _ more: [String: Any] = [:]) throws {
    var report: [String: Any] = ["tripId": trip, "status": status, "timestamp": 1_763_680_000_000]
    report.merge(more) { $1 }
    let id = try peer.send("trip_status", report)
    #expect(try peer.skip(to: "ack").replyTo == id)
  }

  @Test("all trips are told to ops, in JSON and in binary, and recovered after a break", arguments: loopCounts)
  func trips(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let ops = [try hub.ops(), try hub.join(.ops, "o2", isBinary: true)]
    let answers = try ops.map { try $0.subscribe("trips") }
    let rider = try hub.rider("r1")
    try ask(rider, "T1", "requested", ["pickup": ["latitude": 52.5, "longitude": 13.4]])
    let sequence = try #require(answers[0].integer("sequence"))
    for peer in ops {
      let update = try peer.receive("trip_update")
      #expect(update.string("channel") == "trips" && update.string("tripId") == "T1")
      #expect(update.string("riderId") == "r1" && update.object("pickup")?["latitude"] as? Double == 52.5)
      #expect(update.integer("sequence") == sequence + 1)
    }
    let own = try rider.subscribe("trip:T1")
    #expect(own.integer("sequence") == 1)
    try rider.send("trip_status", ["tripId": "T1", "status": "cancelled", "timestamp": 1_763_680_000_000])
    let told = try rider.receive("trip_update")
    _ = try rider.receive("ack")
    #expect(told.payload["riderId"] == nil && told.payload["pickup"] == nil, "a rider's event is as it was")
    let epoch = try #require(answers[0].string("epoch"))
    let late = try hub.ops("o3")
    #expect(try late.subscribe("trips", since: sequence, epoch: epoch).payload["recovered"] as? Bool == true)
    #expect(try (1...2).map { _ in try late.receive("trip_update").string("status") } == ["requested", "cancelled"])
  }

  @Test("what is for ops is for nobody else", arguments: ["trips"])
  func forbidden(channel: String) throws {
    let hub = try TestHub()
    for (peer, role) in [(try hub.rider("r1"), "rider"), (try hub.driver("d1"), "driver")] {
      try peer.send("subscribe", ["channel": channel])
      #expect(try peer.skip(to: "error").code == "forbidden", "\(role), \(channel)")
    }
    #expect(try hub.ops().subscribe(channel).string("channel") == channel)
  }
}
