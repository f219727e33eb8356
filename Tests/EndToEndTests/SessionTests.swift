// Sessions: replacement, batches, pings, clocks.
import Foundation
import HubCore
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct Sessions {}
}

extension EndToEnd.Sessions {
  @Test("a driver's second session replaces the first, which is closed with 4409", arguments: loopCounts)
  func replacement(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    let first = try hub.driver("d1")
    try first.sendFix(0, trip: "T1")
    _ = try first.settle()
    let second = try hub.driver("d1")
    #expect(try first.receiveClose().code == 4409)
    try second.sendFix(1, trip: "T1")
    _ = try second.settle()
    #expect(
      try rider.settle().compactMap { $0.type == "driver_location" ? $0.integer("timestamp") : nil }
        == [Peer.firstFix, Peer.firstFix + 1000])
    try hub.metrics { $0["session_replacements_total"] == 1 && $0.closes(4409) == 1 }
  }

  @Test(
    "a newer session with the same token leaves the older one a while, in which it takes no fixes; another's none",
    arguments: loopCounts)
  func takeover(loops: Int) throws {
    let hub = try TokenHub(loops: loops) { $0.timings.takeover = 6 }
    let own = try hub.token(.driver, "d1", jti: "own")
    let first = try hub.join(own)
    let second = try hub.join(own)
    let refused = try first.sendFix(0)
    let error = try first.receive("error")
    #expect(error.replyTo == refused && error.code == "rate_limited" && error.payload["retryAfter"] as? Double == 6)
    try second.sendFix(1)
    #expect(try second.settle().isEmpty)
    #expect(try first.receiveClose().code == 4409)
    let third = try hub.join(hub.token(.driver, "d1", jti: "another"))
    #expect(try second.receiveClose().code == 4409)
    try third.sendFix(2)
    #expect(try third.settle().isEmpty)
    try hub.hub.metrics { $0.fixes("orphaned") == 1 && $0.fixes("accepted") == 2 }
  }

  @Test("more than three replacements in a minute: the newcomer gets 409", arguments: loopCounts)
  func tooManyReplacements(loops: Int) throws {
    let tokens = try TokenHub(loops: loops)
    let hub = tokens.hub
    func token(_ driver: String, _ number: Int) throws -> String { try tokens.token(.driver, driver, jti: "\(number)") }
    var sessions: [Peer] = []
    for number in 0..<4 { sessions.append(try tokens.join(token("d1", number))) }
    let newcomer = try hub.connect()
    try newcomer.send(UpgradeRequest("/v1/ws?access_token=\(try token("d1", 4))").text)
    let refusal = try newcomer.readResponse()
    #expect(refusal.status == 409)
    #expect(refusal.errorCode == "rate_limited")
    let wait = try #require(refusal.fields["retry-after"].flatMap(Int.init))
    #expect((25...30).contains(wait))
    #expect(try sessions[3].settle().isEmpty, "the last session continues")
    #expect(try tokens.join(token("d2", 0)).settle().isEmpty, "other drivers are not concerned")
  }

  @Test("the ack of a batch names duplicates and what was rejected", arguments: loopCounts)
  func batchAck(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    try driver.sendFix(0, trip: "T1")
    var bad = Peer.fix(3)
    bad["latitude"] = -90.5
    var foreign = Peer.fix(4)
    foreign["accuracy"] = "5 m"
    let fixes: [Any] = [Peer.fix(0), Peer.fix(1), Peer.fix(2), bad, foreign, Peer.fix(2), Peer.fix(5)]
    let id = try driver.send("location_batch", ["tripId": "T1", "locations": fixes])
    let ack = try driver.receive("ack")
    #expect(ack.replyTo == id)
    #expect(ack.integer("accepted") == 3)
    #expect(ack.integer("duplicates") == 2)
    let rejected = try #require(ack.payload["rejected"] as? [[String: Any]])
    #expect(rejected.map { $0["index"] as? Int } == [3, 4])
    #expect(rejected.map { $0["code"] as? String } == ["invalid_location", "bad_message"])
    let times = try rider.settle().compactMap { $0.type == "driver_location" ? $0.integer("timestamp") : nil }
    #expect(times == [0, 1, 2, 5].map { Peer.firstFix + $0 * 1000 })
  }

  @Test("a pong has the ping's payload, the hub's time, and for drivers what is stored", arguments: loopCounts)
  func pong(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    let ping = try driver.send("ping", ["note": "hello", "deep": ["a": [1, 2]]])
    let first = try driver.receive("pong")
    #expect(first.replyTo == ping)
    #expect(first.string("note") == "hello")
    #expect((first.object("deep")?["a"] as? [Int]) == [1, 2])
    #expect(first.integer("storedThrough") == nil)
    #expect(first.integer("serverTime") != nil)
    for step in 0..<3 { try driver.sendFix(step) }
    try driver.send("ping", [:])
    #expect(try driver.receive("pong").integer("storedThrough") == Peer.firstFix + 2000)
    let rider = try hub.rider("r1")
    try rider.send("ping", [:])
    #expect(try rider.receive("pong").payload["storedThrough"] == nil)
    try rider.send(bytes: Peer.frame([1, 2, 3], opcode: 9))
    guard case .pong(let payload) = try rider.next() else {
      Issue.record("a WebSocket ping is answered with a pong")
      return
    }
    #expect(payload == [1, 2, 3])
  }

  @Test("every time format is spoken in both directions", arguments: ["unix_ms", "apple", "rfc3339"], loopCounts)
  func timeFormats(format: String, loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.join(.driver, "d1", time: format)
    let rider = try hub.join(.rider, "r1", time: format)
    let plain = try hub.rider("r2")
    try rider.subscribe("trip:T1")
    try plain.subscribe("trip:T1")
    let time: Any
    switch format {
    case "apple": time = Double(Peer.firstFix) / 1000 - 978_307_200 + 0.25
    case "rfc3339": time = "2023-11-14T22:13:20.250Z"
    default: time = Peer.firstFix + 250
    }
    var payload = Peer.fix(0)
    payload["timestamp"] = time
    payload["tripId"] = "T1"
    try driver.send("location_update", payload, timestamp: time)
    let position = try rider.skip(to: "driver_location")
    switch format {
    case "rfc3339":
      #expect(position.string("timestamp") == time as? String)
      #expect((position.envelope["timestamp"] as? String)?.hasSuffix("Z") == true)
    case "apple":
      #expect(position.number("timestamp") == time as? Double)
      let sent = try #require((position.envelope["timestamp"] as? NSNumber)?.doubleValue)
      #expect(abs(sent - Date().timeIntervalSinceReferenceDate) < 60)
    default:
      #expect(position.integer("timestamp") == time as? Int)
    }
    #expect(try plain.skip(to: "driver_location").integer("timestamp") == Peer.firstFix + 250)
  }

  @Test("driver_status is acknowledged and shown", arguments: loopCounts)
  func driverStatus(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    let id = try driver.send("driver_status", ["status": "unavailable", "tags": ["wheelchair"]])
    #expect(try driver.receive("ack").replyTo == id)
    #expect(try hub.get("/v1/drivers/d1?role=ops&id=o1").json["status"] as? String == "unavailable")
    try driver.sendFix(0, trip: "T1")
    _ = try driver.settle()
    #expect(try hub.get("/v1/drivers/d1?role=ops&id=o1").json["status"] as? String == "on_trip")
  }

  @Test("a driver that falls silent is announced as offline, and as online when it is back", arguments: loopCounts)
  func presence(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.timings.stale = 2
      $0.sampling = .fixed(seconds: 0.1)
    }
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    let driver = try hub.driver("d1")
    try driver.sendFix(0, trip: "T1")
    let offline = try rider.skip(to: "notification")
    #expect(offline.string("kind") == "driver_offline")
    #expect(offline.integer("sequence") == 2)
    try driver.sendFix(1, trip: "T1")
    #expect(try rider.skip(to: "notification").string("kind") == "driver_online")
  }

  @Test("what follows the upgrade in the same piece is handled at once", arguments: loopCounts)
  func earlyFrames(loops: Int) throws {
    let ping = try Peer.message("ping", [:], id: "early")
    let isPunctual = try isWithin(0.9) {
      let hub = try TestHub(loops: loops)
      let connection = try hub.connect()
      let start = uptime()
      try connection.send(
        Array(UpgradeRequest("/v1/ws?role=driver&id=d1").text.utf8) + Peer.frame(Array(ping.utf8)))
      #expect(try connection.readResponse().status == 101)
      var text = ""
      while !text.contains(#""replyTo":"early""#) {
        text += String(decoding: try connection.receive(waitingFor: "the pong"), as: UTF8.self)
      }
      return uptime() - start
    }
    #expect(isPunctual, "it must not wait for the loop's next second")
  }
}
