// Live areas over real sockets: what a rider's map and an operator's map are sent.
import Foundation
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct Areas {}
}

extension EndToEnd.Areas {
  private func fix(_ driver: Peer, _ step: Int, trip: String? = nil) throws {
    var fix: [String: Any] = [
      // Over 19.1 m a step: into another field of those that riders see.
      "latitude": 52.52 - Double(step) * 0.0002, "longitude": 13.405, "accuracy": 4, "speed": 22.2, "heading": 180,
      "timestamp": 1_763_680_000_000 + step * 1000,
    ]
    if let trip { fix["tripId"] = trip }
    try driver.send("location_update", fix)
    _ = try driver.settle()
  }

  private func drivers(_ message: HubMessage) -> [[String: Any]] {
    message.payload["drivers"] as? [[String: Any]] ?? []
  }

  @Test("a map gets the cells whole, then what moves; a view moves, and ends by its name", arguments: loopCounts)
  func views(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    // From the full hour on riders see other names.
    while Int(Date().timeIntervalSince1970) % 3600 > 3570 { _ = try hub.metrics() }
    let driver = try hub.driver("d1")
    try fix(driver, 0)
    let rider = try hub.rider("r1")
    let asked = try rider.send("subscribe", ["channel": "nearby:52.52,13.405,300", "viewId": "map"])
    let answer = try rider.receive("subscribed")
    #expect(answer.replyTo == asked && answer.string("viewId") == "map")
    let cells = try #require(answer.payload["cells"] as? [String])
    var shown: [[String: Any]] = []
    for _ in cells {
      let whole = try rider.receive("area_update")
      #expect(whole.payload["full"] as? Bool == true && cells.contains(whole.string("cell") ?? ""))
      #expect(whole.string("channel") == "area:\(whole.string("cell") ?? "")")
      shown += drivers(whole)
    }
    let name = try #require(shown.first?["driverId"] as? String)
    #expect(shown.count == 1 && name != "d1" && shown[0]["status"] as? String == "available")
    #expect(Set(shown[0].keys) == ["driverId", "latitude", "longitude", "status", "timestamp"])
    try fix(driver, 1)
    let moved = try rider.receive("area_update")
    let received = try #require(drivers(moved).first?["timestamp"] as? Int)
    #expect(received % 1000 == 0 && received != 1_763_680_001_000, "the tick's second, not the fix's time")
    #expect(moved.payload["full"] as? Bool == false && drivers(moved).first?["driverId"] as? String == name)
    // Not free any more: the rider's map loses it, and an operator's shows it by its own name.
    let ops = try hub.ops()
    try ops.send("subscribe", ["channel": "area:u33d"])
    _ = try ops.receive("subscribed")
    #expect(drivers(try ops.receive("area_update")).first?["driverId"] as? String == "d1")
    try fix(driver, 2, trip: "T1")
    #expect(try rider.receive("area_update").payload["left"] as? [String] == [name])
    let busy = try #require(drivers(try ops.receive("area_update")).first)
    #expect(busy["status"] as? String == "on_trip" && busy["tripId"] as? String == "T1")
    #expect(busy["accuracy"] is Double && ["high", "medium", "low"].contains(busy["confidence"] as? String))
    // The same view elsewhere: other cells, and nothing of the first ones.
    try rider.send("subscribe", ["channel": "nearby:48.1371,11.5754,300", "viewId": "map"])
    let elsewhere = try #require(try rider.receive("subscribed").payload["cells"] as? [String])
    #expect(Set(elsewhere).isDisjoint(with: cells))
    for _ in elsewhere { #expect(drivers(try rider.receive("area_update")).isEmpty) }
    try rider.send("unsubscribe", ["viewId": "map"])
    #expect(try rider.receive("unsubscribed").string("channel") == "nearby:48.1371,11.5754,300")
    try rider.send("unsubscribe", ["viewId": "map"])
    #expect(try rider.receive("error").code == "unknown_channel")
    try hub.metrics { $0["table_entries{table=\"areas\"}"] == 1 && $0["subscriptions"] == 1 }
  }

  @Test("a view that moves makes room for itself: the cells that it leaves are not counted", arguments: [4, 5])
  func viewsAtTheLimit(limit: Int) throws {
    let hub = try TestHub { $0.limits.subscriptionsPerSession = limit }
    let rider = try hub.rider("r1")
    for place in ["52.52,13.405", "48.1371,11.5754", "52.52,13.405"] {  // four cells, two, four
      try rider.send("subscribe", ["channel": "nearby:\(place),300", "viewId": "map"])
      let cells = try #require(try rider.receive("subscribed").payload["cells"] as? [String])
      for _ in cells { _ = try rider.receive("area_update") }
    }
    try rider.send("subscribe", ["channel": "nearby:48.1371,11.5754,300", "viewId": "other"])
    #expect(try rider.receive("error").code == "rate_limited")
    try hub.metrics { $0["subscriptions"] == 4 && $0["table_entries{table=\"areas\"}"] == 4 }
  }

  @Test("a rider's area has a size, a driver has none, and what is no place gets an error")
  func refusals() throws {
    let hub = try TestHub()
    let rider = try hub.rider("r1")
    for channel in ["area:u33d", "area:u33", "nearby:52.52,13.405,5001", "nearby:52.52,13.405,500000"] {
      try rider.send("subscribe", ["channel": channel])
      #expect(try rider.receive("error").code == "forbidden", "\(channel)")
    }
    for (channel, words) in [
      ("area:u33a1", "area:<geohash>"), ("area:u3", "3 to 8"), ("area:u33db2gqq", "3 to 8"),
      ("area:", "area:<geohash>"),
      ("nearby:91,0,100", "-90 to 90"), ("nearby:0,181,100", "-180 to 180"), ("nearby:0,0,0", "more than 0"),
      ("nearby:0,0", "nearby:<latitude>,<longitude>,<radius"),
      ("nearby:0,x,5", "nearby:<latitude>,<longitude>,<radius"), ("place:1", "nearby:"), ("fleets", "fleet"),
      ("trip:a b", "A-Z a-z 0-9 . _ -"),
    ] {
      try rider.send("subscribe", ["channel": channel])
      let error = try rider.receive("error")
      #expect(error.code == "unknown_channel" && error.string("message")?.contains(words) == true, "\(error.text)")
    }
    let driver = try hub.driver("d1")
    try driver.send("subscribe", ["channel": "area:u33db"])
    #expect(try driver.skip(to: "error").code == "forbidden")
    let ops = try hub.ops()
    try ops.send("subscribe", ["channel": "nearby:52.52,13.405,400000"])
    let cells = try ops.receive("subscribed").payload["cells"] as? [String]
    #expect(cells?.isEmpty == false && cells?.allSatisfy { $0.count == 3 } == true)
    try ops.send("subscribe", ["channel": "nearby:52.52,13.405,500000", "viewId": "wide"])
    #expect(try ops.skip(to: "subscribed").string("viewId") == "wide", "the radius that areas.md promises")
    try ops.send("subscribe", ["channel": "nearby:52.52,13.405,500001"])
    let error = try ops.skip(to: "error")
    #expect(error.code == "bad_message" && error.string("message")?.contains("500000") == true)
    try ops.send("subscribe", ["channel": "nearby:89.5,0,500000"])
    #expect(try ops.skip(to: "error").string("message")?.contains("smaller radius") == true)
  }

  @Test("who does not read misses updates, and gets the cell whole when it does")
  func slowReader() throws {
    let hub = try TestHub()
    let driver = try hub.driver("d1")
    try fix(driver, 0)
    let slow = try hub.join(.ops, "o1", receiveBuffer: 4096)
    try slow.send("subscribe", ["channel": "area:u33"])
    _ = try slow.receive("subscribed")
    #expect(try slow.receive("area_update").payload["full"] as? Bool == true)
    for _ in 0..<100 { try slow.send("ping", ["text": String(repeating: "x", count: 4000)]) }
    try hub.metrics { $0["outbox_bytes"] > 0 }
    try fix(driver, 1)
    try hub.metrics { $0["area_updates_skipped_total"] == 1 }
    var pongs = 0
    var update: HubMessage?
    // What it asks while it does not read waits for that.
    while update == nil || pongs < 100 {
      let event = try slow.next()
      guard case .message(let message) = event else { continue }
      if message.type == "pong" { pongs += 1 }
      if message.type == "area_update" { update = message }
    }
    #expect(update?.payload["full"] as? Bool == true)
    #expect(drivers(try #require(update)).first?["timestamp"] as? Int == 1_763_680_001_000)
  }
}
