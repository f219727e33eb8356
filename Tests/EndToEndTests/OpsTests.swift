// What a control room's map asks, over real sockets: who gets it, and who does not.
import Foundation
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct Ops {}
}

extension EndToEnd.Ops {
  private func ask(_ peer: Peer, _ trip: String, _ status: String, _ more: [String: Any] = [:]) throws {
    var report: [String: Any] = ["tripId": trip, "status": status, "timestamp": 1_763_680_000_000]
    report.merge(more) { $1 }
    let id = try peer.send("trip_status", report)
    #expect(try peer.skip(to: "ack").replyTo == id)
  }

  @Test("all trips are sent to ops, in JSON and in binary, and recovered after a break", arguments: loopCounts)
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
    let received = try rider.receive("trip_update")
    _ = try rider.receive("ack")
    #expect(received.payload["riderId"] == nil && received.payload["pickup"] == nil, "a rider's event is as it was")
    let epoch = try #require(answers[0].string("epoch"))
    let late = try hub.ops("o3")
    #expect(try late.subscribe("trips", since: sequence, epoch: epoch).payload["recovered"] as? Bool == true)
    #expect(try (1...2).map { _ in try late.receive("trip_update").string("status") } == ["requested", "cancelled"])
  }

  @Test("ops see a driver's fixes as they were measured, in JSON and in binary", arguments: [false, true])
  func raw(isBinary: Bool) throws {
    let hub = try TestHub()
    let ops = try hub.join(.ops, "o1", isBinary: isBinary)
    try ops.subscribe("raw:d1")
    let driver = try hub.driver("d1")
    try driver.sendFix(0, more: ["source": "gps"])
    let fix = try ops.receive("raw_fix")
    #expect(fix.string("channel") == "raw:d1" && fix.string("driverId") == "d1" && fix.string("source") == "gps")
    #expect(fix.string("verdict") == "accepted" && fix.number("offset") == 0 && fix.number("accuracy") == 5)
    #expect(fix.integer("timestamp") == Peer.firstFix)
    try driver.sendFix(1, more: ["accuracy": 900])
    let refused = try ops.receive("raw_fix")
    #expect(refused.string("verdict") == "refused" && refused.string("reason") == "implausible_location")
    #expect(refused.payload["offset"] == nil)
  }

  @Test("ops watch a box, in cells of the size that they ask for, and move it", arguments: loopCounts)
  func boxes(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    try driver.sendFix(0)
    _ = try driver.settle()
    let ops = try hub.ops()
    try ops.send("subscribe", ["channel": "box:-122.1,36.95,-121.95,37.05", "viewId": "map", "precision": 5])
    let cells = try #require(try ops.receive("subscribed").payload["cells"] as? [String])
    #expect(cells.count > 4 && cells.allSatisfy { $0.count == 5 })
    var shown: [String] = []
    for _ in cells {
      let update = try ops.receive("area_update")
      #expect(update.payload["full"] as? Bool == true && cells.contains(update.string("cell") ?? ""))
      shown += (update.payload["drivers"] as? [[String: Any]] ?? []).compactMap { $0["driverId"] as? String }
    }
    #expect(shown == ["d1"])
    try ops.send("subscribe", ["channel": "box:-122.1,36.95,-121.95,37.05", "viewId": "map"])
    let own = try #require(try ops.receive("subscribed").payload["cells"] as? [String])
    #expect(own.count <= 16 && Set(own).isDisjoint(with: cells) == (own[0].count != 5))
    try ops.send("subscribe", ["channel": "box:-122,36,-121,38", "viewId": "map", "precision": 6])
    let error = try ops.skip(to: "error")
    #expect(error.code == "bad_message" && error.string("message")?.contains("256") == true)
    let rider = try hub.rider("r1")
    try rider.send("subscribe", ["channel": "nearby:37,-122,300", "precision": 6])
    #expect(try rider.receive("error").code == "forbidden")
  }

  @Test("ops watch how many drivers are where, in JSON and in binary", arguments: [false, true])
  func counts(isBinary: Bool) throws {
    let hub = try TestHub()
    let driver = try hub.driver("d1")
    try driver.sendFix(0)
    _ = try driver.settle()
    let ops = try hub.join(.ops, "o1", isBinary: isBinary)
    try ops.send("subscribe", ["channel": "counts:-122.1,36.9,-121.9,37.1", "viewId": "heat", "precision": 5])
    let answer = try ops.receive("subscribed")
    let blocks = try #require(answer.payload["blocks"] as? [String])
    #expect(answer.payload["cells"] == nil && blocks.allSatisfy { $0.count == 3 })
    var counted: [[String: Any]] = []
    for _ in blocks {
      let update = try ops.receive("counts_update")
      #expect(update.payload["full"] as? Bool == true && update.string("channel")?.hasSuffix("/5") == true)
      counted += update.payload["cells"] as? [[String: Any]] ?? []
    }
    #expect(counted.count == 1 && counted[0]["available"] as? Int == 1 && counted[0]["on_trip"] as? Int == 0)
    try driver.send("driver_status", ["status": "background"])
    let changed = try #require((try ops.receive("counts_update").payload["cells"] as? [[String: Any]])?.first)
    #expect(changed["cell"] as? String == counted[0]["cell"] as? String && changed["background"] as? Int == 1)
    try ops.send("unsubscribe", ["viewId": "heat"])
    #expect(try ops.skip(to: "unsubscribed").string("channel") == "counts:-122.1,36.9,-121.9,37.1")
  }

  @Test(
    "what is for ops is for nobody else",
    arguments: ["trips", "raw:d1", "box:13,52,14,53", "counts:13,52,14,53", "counts:u33/5"])
  func forbidden(channel: String) throws {
    let hub = try TestHub()
    for (peer, role) in [(try hub.rider("r1"), "rider"), (try hub.driver("d1"), "driver")] {
      try peer.send("subscribe", ["channel": channel])
      #expect(try peer.skip(to: "error").code == "forbidden", "\(role), \(channel)")
    }
    let ops = try hub.ops()
    try ops.send("subscribe", ["channel": channel])
    #expect(try ops.skip(to: "subscribed").string("channel") == channel)
  }
}
