// Sampling, prediction, plausibility, trip distance and vehicle types over real sockets, and their options.
import Foundation
import HubCore
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct Motion {}
}

extension EndToEnd.Motion {
  // MARK: Sampling

  @Test("a driver is advised to send every 2 s while somebody follows its trip", arguments: loopCounts)
  func demand(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.sampling = SamplingRules() }
    let driver = try Peer(port: hub.port, query: "role=driver&id=d1")
    let connected = try #require(try driver.receive("connected").object("sampling"))
    #expect(connected["interval"] as? Double == 30 && connected["minDistance"] as? Double == 0)
    try driver.sendFix(0, trip: "T1")
    let onTrip = try driver.receive("sampling")
    #expect(onTrip.number("interval") == 4, "at 36 km/h")
    #expect(onTrip.number("minDistance") == 10 && onTrip.string("reason") == "trip_medium")
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    let watched = try driver.receive("sampling")
    #expect(watched.number("interval") == 2 && watched.string("reason") == "watched")
    try driver.subscribe("trip:T1")
    try hub.ops().subscribe("fleet")
    #expect(try driver.settle().isEmpty, "neither its own subscription nor the fleet's changes anything")
    try hub.metrics {
      $0["sampling_advice_total{reason=\"moving\"}"] == 1 && $0["sampling_advice_total{reason=\"watched\"}"] == 1
        && $0["sampling_advice_total{reason=\"trip_medium\"}"] == 1
    }
  }

  @Test("a driver that goes to the background is advised so, after its ack", arguments: loopCounts)
  func background(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.sampling = SamplingRules() }
    let driver = try hub.driver("d1")
    try driver.send("driver_status", ["status": "background"])
    _ = try driver.receive("ack")
    #expect(try driver.receive("sampling").number("interval") == 300)
  }

  // MARK: What is believed

  @Test("the largest accuracy radius is the operator's", arguments: loopCounts)
  func accuracy(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.hub.tracking.maximumAccuracyMeters = 30 }
    let driver = try hub.driver("d1")
    let id = try driver.sendFix(0, more: ["accuracy": 30.5])
    let error = try driver.receive("error")
    #expect(error.code == "implausible_location" && error.replyTo == id)
    try driver.sendFix(1, more: ["accuracy": 30])
    try driver.sendFix(2, more: ["speed": 91])
    #expect(try driver.settle().isEmpty)
    try hub.metrics {
      $0.fixes("refused_inaccurate") == 1 && $0.fixes("accepted") == 2 && $0["fix_speeds_ignored_total"] == 1
    }
  }

  // MARK: Where drivers are by now

  @Test("ops see where a driver should be by now, beside where it was", arguments: loopCounts)
  func predicted(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    // The last is 2 s old when it is sent: without that it would be where it was.
    let start = Int(Date().timeIntervalSince1970 * 1000) - 6000
    for step in 0..<5 {
      var fix = Peer.fix(step)
      fix["timestamp"] = start + step * 1000
      try driver.send("location_update", fix)
    }
    _ = try driver.settle()
    let report = try hub.get("/v1/drivers/d1?role=ops&id=o1").json
    let predicted = try #require(report["predicted"] as? [String: Double])
    let ahead = (try #require(predicted["latitude"]) - #require(report["latitude"] as? Double)) * 111_195
    #expect(ahead > 10 && ahead < 105, "10 m/s for 2 s or more, and 10 at most")
    #expect(abs(try #require(predicted["longitude"]) + 122) < 1e-4)
    let nearby = try hub.get("/v1/drivers/nearby?role=ops&id=o1&latitude=37&longitude=-122&limit=1").json
    let first = try #require((nearby["drivers"] as? [[String: Any]])?.first)
    #expect(first["predicted"] as? [String: Double] != nil)
  }

  // MARK: Vehicles

  @Test("vehicle type and tags are shown to ops and to the driver", arguments: loopCounts)
  func vehicle(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    try driver.send(
      "driver_status", ["status": "available", "vehicleType": "van \"L\"", "tags": ["wheelchair", "xl"]])
    _ = try driver.receive("ack")
    try driver.send("driver_status", ["status": "unavailable"])
    _ = try driver.receive("ack")
    try driver.sendFix(0)
    _ = try driver.settle()
    let nearby = try hub.get("/v1/drivers/nearby?role=ops&id=o1&latitude=37&longitude=-122&limit=1").json
    let first = try #require((nearby["drivers"] as? [[String: Any]])?.first)
    for report in [first, try hub.get("/v1/drivers/d1?role=driver&id=d1").json] {
      #expect(report["vehicleType"] as? String == "van \"L\"")
      #expect(report["tags"] as? [String] == ["wheelchair", "xl"])
      #expect(report["status"] as? String == "unavailable")
    }
    try hub.metrics { $0["table_entries{table=\"profiles\"}"] == 1 }
  }

  @Test("a full table of vehicles refuses another one with storage_full", arguments: loopCounts)
  func profileLimit(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.hub.profiles = 1 }
    let first = try hub.driver("d1")
    let second = try hub.driver("d2")
    try first.send("driver_status", ["status": "available", "vehicleType": "van"])
    _ = try first.receive("ack")
    try second.send("driver_status", ["status": "available", "vehicleType": "bus"])
    let error = try second.receive("error")
    #expect(error.code == "storage_full" && error.number("retryAfter") == 60)
    try second.send("driver_status", ["status": "available", "vehicleType": "van"])
    _ = try second.receive("ack")
    try hub.metrics { $0["table_limit_hits_total{table=\"profiles\"}"] == 1 }
  }

  // MARK: Trips

  @Test("the end of a trip says how far it was", arguments: loopCounts)
  func distance(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    func move(_ status: String) throws {
      try driver.send("trip_status", ["tripId": "T1", "status": status, "timestamp": 1_763_680_000_001])
      _ = try driver.receive("ack")
    }
    for step in 0...30 { try driver.sendFix(step, trip: "T1") }
    for status in ["driver_en_route", "arrived_pickup", "trip_started"] { try move(status) }
    for step in 31...130 { try driver.sendFix(step, trip: "T1") }
    for status in ["arrived_destination", "completed"] { try move(status) }
    let updates = try rider.settle().filter { $0.type == "trip_update" }
    #expect(updates.count == 6 && updates.dropLast().allSatisfy { $0.object("summary") == nil })
    let summary = try #require(updates.last?.object("summary"))
    #expect(abs((summary["distance"] as? Double ?? 0) - 1000) < 10)
    #expect(abs((summary["approach"] as? Double ?? 0) - 300) < 10)
  }

  // MARK: Options

  @Test("serve takes --sampling and --max-accuracy", .enabled(if: HubProcess.executable != nil))
  func options() throws {
    let hub = try HubProcess.serve(port: 0, ["--sampling", "7", "--max-accuracy", "20"])
    let driver = try Peer(port: hub.port, query: "role=driver&id=d1")
    #expect(try driver.receive("connected").object("sampling")?["interval"] as? Double == 7)
    try driver.sendFix(0, more: ["accuracy": 21])
    #expect(try driver.receive("error").code == "implausible_location")
    for bad in [["--sampling", "0"], ["--max-accuracy", "often"]] {
      let outcome = try HubProcess.run(["serve", "--port", "0"] + bad)
      #expect(outcome.status == 2 && outcome.errors.contains(bad[0]))
    }
  }

  @Test(
    "simulated drivers send as often as the hub advises, where configured", .enabled(if: HubProcess.executable != nil)
  )
  func adaptive() throws {
    let hub = try HubProcess.serve(port: 0, ["--sampling", "100"])
    let run = { (more: [String]) in
      try HubProcess.run(
        [
          "simulate", "--url", "ws://127.0.0.1:\(hub.port)/v1/ws", "--drivers", "5", "--rate", "2", "--duration", "8",
        ] + more)
    }
    func fixes(_ outcome: ProcessOutcome) throws -> Int {
      let match = try #require(outcome.output.firstMatch(of: /drivers sent ([0-9]+) fixes/), "\(outcome)")
      return try #require(Int(match.1))
    }
    #expect(try fixes(try run(["--adaptive"])) == 5, "each its first, and no second within 90 s")
    #expect(try fixes(try run([])) > 5)
  }
}
