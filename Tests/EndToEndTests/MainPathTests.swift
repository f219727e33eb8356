// The main path over real sockets: what a driver sends is what its riders get.
import Foundation
import HubCore
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct MainPath {}
}

extension EndToEnd.MainPath {
  @Test("the first message is `connected`, with who one is and what one may do", arguments: loopCounts)
  func connected(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.sessionRate = 10 }
    let driver = try Peer(port: hub.port, query: "role=driver&id=d1")
    let message = try driver.receive("connected")
    #expect(message.string("role") == "driver")
    #expect(message.string("id") == "d1")
    #expect(message.number("heartbeatInterval") == 30)
    #expect(abs((message.number("serverTime") ?? 0) / 1000 - Date().timeIntervalSince1970) < 60)
    let limits = try #require(message.object("limits"))
    #expect(limits["maxMessageBytes"] as? Int == 262_144)
    #expect(limits["maxBatch"] as? Int == 500)
    #expect(limits["rate"] as? Double == 10)
    #expect(message.object("sampling")?["interval"] as? Double == 4)
    #expect(message.string("sessionId")?.isEmpty == false)
    let rider = try Peer(port: hub.port, query: "role=rider&id=r1")
    #expect(try rider.receive("connected").object("sampling") == nil)
  }

  @Test("a position that is held back does not go to the subscribers of the next channel with its handle")
  func heldPositionOfAChannelThatIsGone() throws {
    let hub = try TestHub { $0.flushIntervalMilliseconds = 500 }
    let first = try hub.driver("d1")
    let second = try hub.driver("d2")
    try first.subscribe("driver:d1")
    try first.sendFix(0)
    try first.send("unsubscribe", ["channel": "driver:d1"])
    _ = try first.skip(to: "unsubscribed")  // behind the position, where the test stood still for the interval
    try second.subscribe("driver:d2")
    try second.sendFix(0)
    #expect(try second.receive("driver_location").string("driverId") == "d2")
  }

  @Test("a driver's fix reaches the trip's rider, who subscribed before the trip began", arguments: loopCounts)
  func fixToPosition(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    let rider = try hub.rider("r1")
    let answer = try rider.subscribe("trip:T1")
    #expect(answer.object("snapshot") == nil)
    #expect(answer.integer("sequence") == 0)
    #expect(answer.payload["recovered"] as? Bool == false)

    try driver.sendFix(0, trip: "T1")
    let update = try rider.receive("trip_update")
    #expect(update.string("status") == "accepted")
    #expect(update.string("driverId") == "d1")
    #expect(update.integer("sequence") == 1)
    for step in 0..<5 {
      if step > 0 { try driver.sendFix(step, trip: "T1") }
      let position = try rider.receive("driver_location")
      #expect(position.string("channel") == "trip:T1")
      #expect(position.string("driverId") == "d1")
      #expect(position.string("tripId") == "T1")
      #expect(position.integer("timestamp") == Peer.firstFix + step * 1000)
      #expect(position.integer("after") == 1)
      let expected = 37.0 + Double(step) * 10 / 111_195
      #expect(abs((position.number("latitude") ?? 0) - expected) < 1e-4)
      #expect(abs((position.number("longitude") ?? 0) + 122) < 1e-4)
      #expect((position.number("accuracy") ?? -1) > 0)
      #expect(["high", "medium", "low"].contains(position.string("confidence")))
      #expect((position.number("age") ?? -1) >= 0)
    }
    #expect(try driver.settle().isEmpty)
    #expect(try rider.settle().isEmpty)
  }

  @Test("positions for a loop that sleeps come by the thread of another, once and in order")
  func visits() throws {
    let hub = try TestHub(loops: 4)
    let pairs = try (0..<12).map { (driver: try hub.driver("d\($0)"), rider: try hub.rider("r\($0)"), trip: "T\($0)") }
    for pair in pairs { _ = try pair.rider.subscribe("trip:\(pair.trip)") }
    for step in 0..<20 {
      for pair in pairs {
        try pair.driver.sendFix(step, trip: pair.trip)
        if step == 0 { _ = try pair.rider.receive("trip_update") }
        let position = try pair.rider.receive("driver_location")
        #expect(position.integer("timestamp") == Peer.firstFix + step * 1000)
      }
    }
    for pair in pairs { #expect(try pair.rider.settle().isEmpty) }
    try hub.metrics { $0["turns_assisted_total"] > 0 }
  }

  @Test("the driver's own channel and the fleet's have the same positions", arguments: loopCounts)
  func driverAndFleetChannels(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    let other = try hub.driver("d2")
    let ops = try hub.ops()
    try driver.subscribe("driver:d1")
    try ops.subscribe("fleet")
    try ops.subscribe("driver:d1")
    try driver.sendFix(0)
    try other.sendFix(0)
    #expect(try driver.receive("driver_location").string("channel") == "driver:d1")
    var channels: [String] = []
    for _ in 0..<3 { channels.append(try ops.receive("driver_location").string("channel") ?? "") }
    #expect(channels.sorted() == ["driver:d1", "fleet", "fleet"])
    let again = try ops.subscribe("driver:d1")
    let position = try #require(again.object("snapshot")?["position"] as? [String: Any])
    #expect(position["timestamp"] as? Int == Peer.firstFix)
    #expect(try ops.settle().isEmpty)
  }

  @Test(
    "riders and strangers may not subscribe to what is not theirs",
    arguments: [(Role.rider, "driver:d1"), (.rider, "fleet"), (.driver, "driver:d2"), (.driver, "fleet")])
  func forbiddenChannels(role: Role, channel: String) throws {
    let hub = try TestHub()
    let peer = try hub.join(role, "d1")
    let id = try peer.send("subscribe", ["channel": channel])
    let error = try peer.receive("error")
    #expect(error.code == "forbidden")
    #expect(error.replyTo == id)
  }

  @Test("a trip goes through all its states, and its events come in order without a gap", arguments: loopCounts)
  func tripLifeCycle(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    let rider = try hub.rider("r1")
    let ops = try hub.ops()
    try rider.subscribe("trip:T1")
    try ops.subscribe("driver:d1")
    let place: [String: Any] = ["latitude": 37.0, "longitude": -122.0]
    let request: [String: Any] = [
      "tripId": "T1", "status": "requested", "timestamp": 1_763_680_000_001, "driverId": "d1", "pickup": place,
      "dropoff": place,
    ]
    let requested = try rider.send("trip_status", request)
    #expect(try rider.receive("trip_update").string("status") == "requested")
    #expect(try rider.receive("ack").replyTo == requested)

    var before = "requested"
    let states = [
      "accepted", "driver_en_route", "arrived_pickup", "trip_started", "arrived_destination", "completed",
    ]
    for (index, state) in states.enumerated() {
      let id = try driver.send(
        "trip_status", ["tripId": "T1", "status": state, "timestamp": 1_763_680_001_000 + index])
      #expect(try driver.receive("ack").replyTo == id)
      let update = try rider.receive("trip_update")
      #expect(update.string("status") == state)
      #expect(update.string("previousStatus") == before)
      #expect(update.integer("sequence") == index + 2)
      #expect(update.integer("timestamp") == 1_763_680_001_000 + index)
      let atDriver = try ops.skip(to: "trip_update")
      #expect(atDriver.string("channel") == "driver:d1")
      before = state
    }
    let late = try driver.send("trip_status", ["tripId": "T1", "status": "cancelled", "timestamp": 1_763_680_002_000])
    let error = try driver.receive("error")
    #expect(error.code == "invalid_transition")
    #expect(error.replyTo == late)
    #expect(error.object("details")?["status"] as? String == "completed")
  }

  @Test("the same trip_status again gets the same ack and changes nothing", arguments: loopCounts)
  func repeatedTripStatus(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    try driver.sendFix(0, trip: "T1")
    for _ in 0..<2 {
      try driver.send(
        "trip_status", ["tripId": "T1", "status": "driver_en_route", "timestamp": 1_763_680_000_001], id: "once")
      #expect(try driver.receive("ack").replyTo == "once")
    }
    #expect(try rider.settle().map(\.type) == ["trip_update", "driver_location", "trip_update"])
    try driver.send("trip_status", ["tripId": "T9", "status": "accepted", "timestamp": 1_763_680_000_001])
    #expect(try driver.receive("error").code == "unknown_trip")
  }

  @Test("who subscribes again gets what it missed, in order, none twice, then what is live", arguments: loopCounts)
  func recovery(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    try driver.sendFix(0, trip: "T1")  // sequence 1: accepted
    for state in ["driver_en_route", "arrived_pickup", "trip_started"] {
      try driver.send("trip_status", ["tripId": "T1", "status": state, "timestamp": 1_763_680_000_001])
      _ = try driver.receive("ack")
    }
    let rider = try hub.rider("r1")
    let first = try rider.subscribe("trip:T1")
    let epoch = try #require(first.string("epoch"))
    #expect(first.integer("sequence") == 4)
    let trip = try #require(first.object("snapshot")?["trip"] as? [String: Any])
    #expect(trip["status"] as? String == "trip_started")
    #expect((first.object("snapshot")?["position"] as? [String: Any])?["driverId"] as? String == "d1")

    for since in 0...4 {
      let again = try hub.rider("r\(since)")
      let answer = try again.subscribe("trip:T1", since: since, epoch: epoch)
      #expect(answer.payload["recovered"] as? Bool == true)
      for sequence in (since + 1)..<5 { #expect(try again.receive("trip_update").integer("sequence") == sequence) }
      let newest = try again.receive("driver_location")
      try driver.sendFix(1 + since, trip: "T1")
      let live = try again.receive("driver_location")
      #expect(newest.integer("after") == 4 && live.integer("after") == 4)
      #expect(try #require(newest.integer("timestamp")) < (try #require(live.integer("timestamp"))))
    }
    for (since, epoch) in [(1, "other-life"), (5, epoch)] {
      let again = try hub.rider("lost")
      let answer = try again.subscribe("trip:T1", since: since, epoch: epoch)
      #expect(answer.payload["recovered"] as? Bool == false)
      #expect(answer.object("snapshot") != nil)
      #expect(try again.settle().isEmpty)
    }
  }

  @Test("nothing comes after unsubscribe", arguments: loopCounts)
  func unsubscribe(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    try driver.sendFix(0, trip: "T1")
    _ = try rider.receive("trip_update")
    _ = try rider.receive("driver_location")
    let id = try rider.send("unsubscribe", ["channel": "trip:T1"])
    let answer = try rider.receive("unsubscribed")
    #expect(answer.replyTo == id)
    #expect(answer.string("reason") == "asked")
    try driver.sendFix(1, trip: "T1")
    #expect(try driver.settle().isEmpty)
    #expect(try rider.settle().isEmpty)
  }

  @Test("who subscribes twice gets everything once", arguments: loopCounts)
  func subscribedTwice(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    try rider.subscribe("trip:T1")
    try driver.sendFix(0, trip: "T1")
    #expect(try driver.settle().isEmpty)
    #expect(try rider.settle().map(\.type) == ["trip_update", "driver_location"])
  }

  @Test("an ended trip lets its subscribers go after the grace", arguments: loopCounts)
  func tripEnded(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.timings.tripGrace = 0.2 }
    let driver = try hub.driver("d1")
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    try driver.sendFix(0, trip: "T1")
    try driver.send("trip_status", ["tripId": "T1", "status": "cancelled", "timestamp": 1_763_680_000_001])
    let ended = try rider.skip(to: "unsubscribed")
    #expect(ended.string("reason") == "trip_ended")
    #expect(ended.replyTo == nil)
    try driver.sendFix(1, trip: "T1")
    #expect(try driver.settle().map(\.type) == ["ack"])
    #expect(try rider.settle().isEmpty)
  }

  @Test("positions are held back and only the newest is sent where an interval is set", arguments: loopCounts)
  func flushInterval(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.flushIntervalMilliseconds = 300 }
    let driver = try hub.driver("d1")
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    for step in 0..<20 { try driver.sendFix(step, trip: "T1") }
    _ = try rider.receive("trip_update")
    var last = 0
    var count = 0
    while last < Peer.firstFix + 19_000 {
      let time = try rider.receive("driver_location").integer("timestamp") ?? 0
      #expect(time > last)
      last = time
      count += 1
    }
    #expect(count < 20)
    try hub.metrics { $0["dropped_total{reason=\"conflated_interval\"}"] == Double(20 - count) }
  }

  @Test("resuming 256 subscriptions in one piece gets every missed event", arguments: loopCounts)
  func massResume(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let ops = try hub.ops()
    let states = ["requested", "accepted", "driver_en_route", "arrived_pickup", "trip_started", "arrived_destination"]
    for trip in 0..<256 {
      for state in states {
        let place: [String: Any] = ["latitude": 37.0, "longitude": -122.0]
        try ops.send(
          "trip_status",
          ["tripId": "T\(trip)", "status": state, "timestamp": 1_763_680_000_001, "driverId": "d1", "location": place])
      }
      for _ in states { _ = try ops.receive("ack") }
    }
    let rider = try hub.rider("r1")
    let epoch = try #require(try hub.rider("r0").subscribe("trip:T0").string("epoch"))
    var bytes: [UInt8] = []
    for trip in 0..<256 {
      let payload: [String: Any] = ["channel": "trip:T\(trip)", "since": 0, "epoch": epoch]
      bytes += Peer.frame(Array(try Peer.message("subscribe", payload, id: "s\(trip)").utf8))
    }
    // All answers together are more than an outbox takes: they are made as the session reads them.
    try rider.send(bytes: bytes)
    try expectResumed(rider, trips: 256, events: states.count)
  }

  private func expectResumed(_ rider: Peer, trips: Int, events: Int) throws {
    for trip in 0..<trips {
      #expect(try rider.receive("subscribed").string("channel") == "trip:T\(trip)")
      for sequence in 1...events { #expect(try rider.receive("trip_update").integer("sequence") == sequence) }
    }
    #expect(try rider.settle().isEmpty)
  }
}
