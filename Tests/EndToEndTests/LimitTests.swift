// Limits of Limits.swift and HubLimits that are reached here, and the files where others are:
//
//     requestHeadBytes, requestBodyBytes, handshakeSeconds, keepAliveSeconds,
//     requestsPerTurn, connectionsPerLoop, acceptsPerTurn, acceptBacklog         AdmissionTests
//     messageBytes, fragments                                                    BadFrameTests
//     badMessages, badMessageWindowSeconds                                       BadMessageTests
//     sessionRate, sessionBurst, rateWarningSeconds, rateCloseSeconds, resumedPerTurn,
//     subscriptionsPerSession, closingSeconds, outboxBytesPerSession, outboxBytes, readBufferBytes, arenaKeepBytes,
//     mailboxMessages, and the hub's tables                                      here
//     metricsSeconds                                                             GatewayTests/StallTests
//     profiles; areas, areasPerIdentity                                          MotionTests; AreaTests
//     the options that set them                                                  LimitOptionTests
import Foundation
import HubCore
import HubGateway
import HubMessages
import HubTransport
import Testing

extension EndToEnd {
  @Suite struct LimitsReached {}
}

extension EndToEnd.LimitsReached {
  // MARK: Rate

  @Test("over the rate reading pauses, then the session is warned, then it is closed with 4429", arguments: loopCounts)
  func rate(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.sessionRate = 1  // so that the bucket is level after minutes
      $0.limits.sessionBurst = 5
      $0.limits.rateWarningSeconds = 0.3
      $0.limits.rateCloseSeconds = 0.9
    }
    let greedy = try hub.rider("greedy")
    var bytes: [UInt8] = []
    for number in 0..<200 { bytes += Peer.frame(Array(try Peer.message("ping", [:], id: "p\(number)").utf8)) }
    let start = uptime()
    try greedy.send(bytes: bytes)
    let warning = try greedy.skip(to: "error")
    #expect(warning.code == "rate_limited" && warning.number("retryAfter") != nil && warning.replyTo == nil)
    #expect(uptime() - start > 0.25)
    #expect(try greedy.receiveClose().code == 4429)
    #expect(uptime() - start > 0.85)
    try hub.metrics { $0["rate_pauses_total"] >= 1 && $0.errors("rate_limited") == 1 && $0.closes(4429) == 1 }
  }

  @Test("who is over the rate for a moment is slowed, and misses nothing", arguments: loopCounts)
  func shortBurst(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.sessionRate = 100
      $0.limits.sessionBurst = 10
      $0.limits.rateWarningSeconds = 50  // however long the hub stands still
    }
    let rider = try hub.rider("r1")
    try rider.send(bytes: (0..<40).flatMap { Peer.frame(Array(try Peer.message("ping", ["n": $0], id: "p").utf8)) })
    for number in 0..<40 { #expect(try rider.receive("pong").integer("n") == number) }
    try hub.metrics { $0["rate_pauses_total"] >= 1 && $0.errors("rate_limited") == 0 }
  }

  @Test("of many over the rate some go on in each turn, and none misses anything", arguments: loopCounts)
  func manyOverRate(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.sessionRate = 500
      $0.limits.sessionBurst = 10
      $0.limits.resumedPerTurn = 2
      $0.limits.rateWarningSeconds = 50  // however long the hub stands still
    }
    let riders = try (0..<16).map { try hub.rider("r\($0)") }
    let bytes = try (0..<60).flatMap { Peer.frame(Array(try Peer.message("ping", ["n": $0], id: "p").utf8)) }
    for rider in riders { try rider.send(bytes: bytes) }
    for rider in riders {
      for number in 0..<60 { #expect(try rider.receive("pong").integer("n") == number) }
      try rider.send("ping", ["n": -1])  // and what comes behind it is read, too
      #expect(try rider.receive("pong").integer("n") == -1)
    }
    try hub.metrics { $0["rate_pauses_total"] >= 16 && $0.errors("rate_limited") == 0 }
  }

  @Test("a batch is charged by its fixes")
  func batchCharge() throws {
    let hub = try TestHub {
      $0.limits.sessionRate = 1
      $0.limits.sessionBurst = 9
      $0.limits.rateWarningSeconds = 0.2
    }
    let small = try hub.driver("small")
    let large = try hub.driver("large")
    // 8 messages and nothing more; 11 and more for 500 fixes, by their number or their text: what comes then waits.
    for _ in 0..<8 { try small.send("location_batch", ["locations": [Peer.fix(0)]]) }
    for _ in 0..<8 { _ = try small.receive("ack") }
    let batch = try Peer.message("location_batch", ["locations": (0..<500).map(Peer.fix)], id: "b")
    let ping = try Peer.message("ping", [:], id: "p")
    try large.send(bytes: Peer.frame(Array(batch.utf8)) + Peer.frame(Array(ping.utf8)))
    #expect(try large.receive("ack").integer("accepted") == 500)
    #expect(try large.receive("error").code == "rate_limited")
    #expect(try small.settle().isEmpty)
  }

  @Test("a session has so many subscriptions and no more", arguments: loopCounts)
  func subscriptions(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.subscriptionsPerSession = 3 }
    let rider = try hub.rider("r1")
    for trip in 0..<3 { try rider.subscribe("trip:T\(trip)") }
    let id = try rider.send("subscribe", ["channel": "trip:T3"])
    let error = try rider.receive("error")
    #expect(error.code == "rate_limited" && error.replyTo == id)
    try rider.subscribe("trip:T1")  // which it has
    try rider.send("unsubscribe", ["channel": "trip:T0"])
    _ = try rider.receive("unsubscribed")
    try rider.subscribe("trip:T3")
    try rider.send("subscribe", ["channel": "trip:T0"])
    #expect(try rider.receive("error").code == "rate_limited")
    try hub.metrics { $0.hits("subscriptions") == 2 }
  }

  // MARK: Output

  /// Fixes of many drivers, by POST and socket alike slow to make; batches are the quickest way to many positions.
  private func publish(_ count: Int, by driver: Peer, trip: String) throws {
    var step = 1
    while step < count {
      let end = min(step + 500, count)
      try driver.send("location_batch", ["tripId": trip, "locations": (step..<end).map(Peer.fix)])
      _ = try driver.receive("ack")
      step = end
    }
  }

  @Test("who reads slowly gets the newest position, in order, and holds up nobody", arguments: loopCounts)
  func conflation(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let witness = try Witness(hub)
    let driver = try hub.driver("d1")
    let slow = try hub.join(.rider, "slow", receiveBuffer: 4096)
    let quick = try hub.rider("quick")
    for rider in [slow, quick] { try rider.subscribe("trip:T1") }
    try driver.sendFix(0, trip: "T1")
    _ = try quick.receive("trip_update")
    _ = try quick.receive("driver_location")
    let count = 10_000
    // The quick one reads meanwhile, the slow one nothing. The kernel takes each part (30 KB), whoever stands still.
    for part in 0..<100 {
      let steps = (part * 100 + 1)..<(part * 100 + 101)
      try driver.send("location_batch", ["tripId": "T1", "locations": steps.map(Peer.fix)])
      _ = try driver.receive("ack")
      for step in steps {
        let time = try quick.receive("driver_location").integer("timestamp")
        #expect(time == Peer.firstFix + step * 1000)
      }
    }
    try witness.check()
    try hub.metrics {
      $0["dropped_total{reason=\"conflated_slow\"}"] > 1000 && $0["outbox_bytes"] > 0 && $0["outbox_bytes"] < 300_000
    }
    // Now it reads: what is left is in order, far less than all, and ends with the newest.
    var last = Peer.firstFix - 1
    var received = 0
    _ = try slow.receive("trip_update")
    while last < Peer.firstFix + count * 1000 {
      let time = try #require(try slow.receive("driver_location").integer("timestamp"))
      #expect(time > last)
      last = time
      received += 1
    }
    #expect(received < count)
    #expect(try slow.settle().isEmpty)
    try hub.metrics { $0["outbox_bytes"] == 0 && $0.closes(4413) == 0 }
  }

  @Test("who reads nothing at all is closed with 4413, and its memory comes back", arguments: loopCounts)
  func slowConsumer(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.closingSeconds = 600 }
    let witness = try Witness(hub)
    let deaf = try hub.join(.rider, "deaf", receiveBuffer: 4096)
    deaf.answersPings = false
    // Pongs are no state that a newer one could replace.
    let ping = Peer.frame(
      Array(try Peer.message("ping", ["text": String(repeating: "x", count: 4000)], id: "p").utf8))
    let deadline = Deadline(seconds: 6 * Deadline.patience)  // some hundred pages of metrics
    var isClosed = false
    while !isClosed, !deadline.isOver {
      // Not more at once than the hub's outbox has room for: what is to be shown is that it fills over time.
      do { for _ in 0..<4 { _ = try deaf.connection.sendWhatFits(ping) } } catch PeerError.system { break }
      isClosed = try hub.metrics().closes(4413) == 1
    }
    #expect(isClosed)
    try witness.check()
    let (code, before) = try deaf.receiveClose()
    #expect(code == 4413)
    #expect(before.allSatisfy { $0.type == "pong" }, "whole messages up to the close frame")
    try hub.metrics { $0["outbox_bytes"] == 0 && $0["dropped_total{reason=\"overflow\"}"] >= 1 }
    try hub.metrics { $0.hits("outbox_bytes") == 1 && $0.hits("all_outbox_bytes") == 0 }
  }

  @Test("a closed session that never reads its close frame is cut off", arguments: loopCounts)
  func closingTime(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.closingSeconds = 0.2 }
    let first = try hub.driver("d1")
    let second = try hub.driver("d1")
    // The first gets 4409 and neither answers nor closes.
    try hub.metrics { $0.closes(4409) == 1 && $0["connections"] == 2 }
    #expect(try first.receiveClose().code == 4409)
    #expect(try second.settle().isEmpty)
  }

  @Test("the outboxes of a loop have a limit together")
  func outboxesTogether() throws {
    let hub = try TestHub {
      $0.limits.messageBytes = 32 * 1024
      $0.limits.outboxBytesPerSession = 64 * 1024
      $0.limits.outboxBytes = 96 * 1024
    }
    let witness = try Witness(hub)
    let ping = Peer.frame(
      Array(try Peer.message("ping", ["text": String(repeating: "x", count: 4000)], id: "p").utf8))
    let deaf = try (0..<3).map { try hub.join(.rider, "deaf\($0)", receiveBuffer: 4096) }
    let deadline = Deadline(seconds: 6 * Deadline.patience)  // some hundred pages of metrics
    var isClosed = false
    while !isClosed, !deadline.isOver {
      for peer in deaf { do { _ = try peer.connection.sendWhatFits(ping) } catch PeerError.system {} }
      let metrics = try hub.metrics()
      #expect(metrics["outbox_bytes"] <= 96 * 1024 + 32 * 1024)
      isClosed = metrics.closes(4413) >= 1 && metrics.hits("all_outbox_bytes") >= 1
    }
    #expect(isClosed)
    try witness.check()
  }

  @Test("small buffers for reading and writing only mean more turns", arguments: loopCounts)
  func smallBuffers(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.loop.readBufferBytes = 32 * 1024  // TLS asks for no less
      $0.limits.loop.arenaKeepBytes = 0
    }
    let rider = try hub.rider("r1")
    let (text, unread) = (String(repeating: "y", count: 4000), String(repeating: "y", count: 100_000))
    let ping = #"{"type":"ping","payload":{"text":"\#(text)"},"timestamp":1,"messageId":"p","unread":"\#(unread)"}"#
    for _ in 0..<3 {
      try rider.send(bytes: Peer.frame(Array(ping.utf8)))
      for _ in 0..<20 { try rider.send("ping", ["text": text]) }
      for _ in 0..<21 { #expect(try rider.receive("pong").string("text") == text) }
    }
  }

  @Test("full mailboxes between loops and hub slow both down and lose nothing")
  func mailboxes() throws {
    let hub = try TestHub(loops: 2) { $0.limits.mailboxMessages = 4 }
    let riders = try (0..<4).map { try hub.rider("r\($0)") }
    for rider in riders { try rider.subscribe("trip:T1") }
    let driver = try hub.driver("d1")
    var bytes: [UInt8] = []
    for step in 0..<500 {
      let payload = Peer.fix(step).merging(["tripId": "T1"]) { $1 }
      bytes += Peer.frame(Array(try Peer.message("location_update", payload, id: "m").utf8))
    }
    try driver.send(bytes: bytes)
    for rider in riders {
      _ = try rider.receive("trip_update")
      for step in 0..<500 {
        #expect(try rider.receive("driver_location").integer("timestamp") == Peer.firstFix + step * 1000)
      }
    }
  }

  // MARK: The hub's tables

  @Test("a full driver table refuses newcomers with 503, and serves those it knows", arguments: loopCounts)
  func drivers(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.hub.drivers = 2 }
    let first = try hub.driver("d1")
    _ = try hub.driver("d2")
    let refusal = try hub.request(UpgradeRequest("/v1/ws?role=driver&id=d3").text)
    #expect(refusal.status == 503)
    #expect(refusal.fields["retry-after"] != nil)
    let fix = #"{"latitude":1,"longitude":1,"timestamp":1763680000001}"#
    #expect(try hub.post("/v1/locations?role=driver&id=d3", fix).status == 503)
    #expect(try hub.post("/v1/locations?role=driver&id=d4", fix).fields["retry-after"] == "60")
    #expect(try first.settle().isEmpty)
    try hub.metrics {
      $0["table_limit_hits_total{table=\"drivers\"}"] == 3 && $0["table_entries{table=\"drivers\"}"] == 2
    }
  }

  @Test("a full trip table refuses new trips with storage_full", arguments: loopCounts)
  func trips(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.hub.trips = 1 }
    let driver = try hub.driver("d1")
    let rider = try hub.rider("r1")
    try driver.sendFix(0, trip: "T1")
    #expect(try driver.settle().isEmpty)
    try driver.sendFix(1, trip: "T2")
    #expect(try driver.receive("error").code == "storage_full")
    try rider.send("trip_status", ["tripId": "T3", "status": "requested", "timestamp": 1_763_680_000_001])
    let error = try rider.receive("error")
    #expect(error.code == "storage_full")
    #expect(error.number("retryAfter") != nil)
    try hub.metrics { $0["table_limit_hits_total{table=\"trips\"}"] == 2 }
  }

  @Test("a full channel table refuses new channels with rate_limited", arguments: loopCounts)
  func channels(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.hub.channels = 2 }
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    try rider.subscribe("trip:T2")
    try rider.send("subscribe", ["channel": "trip:T3"])
    let error = try rider.receive("error")
    #expect(error.code == "rate_limited")
    #expect(error.number("retryAfter") != nil)
    try rider.send("unsubscribe", ["channel": "trip:T1"])
    _ = try rider.receive("unsubscribed")
    try rider.subscribe("trip:T3")
  }

  @Test("of the events of a channel, and of all, the oldest are forgotten: then `recovered` is false")
  func events() throws {
    let states = ["driver_en_route", "arrived_pickup", "trip_started"]
    for (perChannel, all) in [(2, 100), (2, 2)] {
      let hub = try TestHub {
        $0.limits.hub.eventsPerChannel = perChannel
        $0.limits.hub.events = all
      }
      let driver = try hub.driver("d1")
      try driver.sendFix(0, trip: "T1")
      for state in states {
        try driver.send("trip_status", ["tripId": "T1", "status": state, "timestamp": 1_763_680_000_001])
        _ = try driver.receive("ack")
      }
      let rider = try hub.rider("r1")
      let epoch = try #require(try rider.subscribe("trip:T1").string("epoch"))
      #expect(try rider.subscribe("trip:T1", since: 1, epoch: epoch).payload["recovered"] as? Bool == false)
      try hub.metrics { $0["table_entries{table=\"events\"}"] <= Double(all) }
      guard all > 2 else { continue }
      #expect(try rider.subscribe("trip:T1", since: 2, epoch: epoch).payload["recovered"] as? Bool == true)
      #expect(try rider.receive("trip_update").integer("sequence") == 3)
      #expect(try rider.receive("trip_update").integer("sequence") == 4)
    }
  }

  @Test(
    "a query has so many hits, continues where a turn is over, and an answer has so many bytes", arguments: loopCounts)
  func queries(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.hub.queryHits = 20
      $0.limits.hub.queryBudget = SearchBudget(cells: 5, candidates: 20)
      $0.limits.answerBytes = 3072
    }
    for number in 0..<60 {
      let body = #"{"latitude":\#(37 + Double(number) / 1000),"longitude":-122,"timestamp":1763680000001}"#
      #expect(try hub.post("/v1/locations?role=driver&id=d\(number)", body).status == 200)
    }
    let target = "/v1/drivers/nearby?role=ops&id=o1&latitude=37&longitude=-122"
    #expect(try hub.get("\(target)&limit=21").status == 400)
    let answer = try hub.get("\(target)&radius=1000000&limit=10")
    #expect(answer.status == 200)
    let drivers = try #require(answer.json["drivers"] as? [[String: Any]])
    #expect(drivers.compactMap { $0["driverId"] as? String } == (0..<10).map { "d\($0)" })
    try hub.metrics { $0["queries_total"] == 1 && $0["queries_continued_total"] == 1 }
    let tooLarge = try hub.get("\(target)&limit=20")
    #expect(tooLarge.status == 413 && tooLarge.errorCode == "too_large")
    let ops = try hub.ops("o2")
    try ops.send("query", ["kind": "nearby", "latitude": 37, "longitude": -122, "limit": 20])
    #expect(try ops.receive("error").string("code") == "too_large")
  }

  @Test("so many queries of one session are under way at once", arguments: loopCounts)
  func queriesPerSession(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.hub.queriesPerSession = 1 }
    let ops = try hub.ops("o1")
    let payload: [String: Any] = ["kind": "nearby", "latitude": 37, "longitude": -122, "limit": 5]
    // Two messages in one write are read in one turn.
    try ops.send(
      bytes: Peer.frame(Array(try Peer.message("query", payload, id: "q1").utf8))
        + Peer.frame(Array(try Peer.message("query", payload, id: "q2").utf8)))
    #expect(try ops.receive("error").string("code") == "rate_limited")
    #expect((try ops.receive("result").payload["drivers"] as? [Any])?.isEmpty == true)
  }

  @Test("fix times are remembered up to a number; older repeats count as history", arguments: loopCounts)
  func fixTimes(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.hub.fixTimesPerDriver = 3
      $0.limits.hub.driversWithFixTimes = 1
    }
    let batch: [String: Any] = ["locations": (0..<6).map(Peer.fix)]
    let first = try hub.driver("d1")
    try first.send("location_batch", batch)
    #expect(try first.receive("ack").integer("accepted") == 6)
    try first.send("location_batch", batch)
    let again = try first.receive("ack")
    #expect(again.integer("duplicates") == 3)
    #expect(again.integer("accepted") == 3, "history: they came before, but that is not known any more")
    let second = try hub.driver("d2")
    try second.send("location_batch", batch)
    _ = try second.receive("ack")
    try second.send("location_batch", batch)
    #expect(try second.receive("ack").integer("duplicates") == 1, "only the newest is known without the list")
  }
}
