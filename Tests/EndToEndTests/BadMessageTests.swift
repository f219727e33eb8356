// Messages that are wrong: each gets the contract's error, a counter, and harms nobody else.
import Foundation
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct BadMessages {}
}

extension EndToEnd.BadMessages {
  @Test("more than ten bad messages in a minute close the session with 4400", arguments: loopCounts)
  func tooMany(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let witness = try Witness(hub)
    let driver = try hub.driver("bad")
    // In one piece: the hub ends the connection soon after the eleventh.
    try driver.send(bytes: Array((0..<12).map { _ in Peer.frame(Array("{".utf8)) }.joined()))
    let (code, before) = try driver.receiveClose()
    #expect(code == 4400)
    #expect(before.map(\.code) == Array(repeating: "bad_json", count: 11))
    try witness.check()
    try hub.metrics { $0.closes(4400) == 1 && $0.errors("bad_json") == 11 }
  }

  @Test("bad messages that are far enough apart are forgiven", arguments: loopCounts)
  func forgiven(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.badMessages = 2
      $0.limits.badMessageWindowSeconds = 0
    }
    let driver = try hub.driver("bad")
    for _ in 0..<12 {
      try driver.send(text: "{")
      _ = try driver.receive("error")
    }
    #expect(try driver.settle().isEmpty)
  }

  @Test("old, repeated and leaping fixes silence nobody and are published as they should", arguments: loopCounts)
  func timeOfFixes(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let witness = try Witness(hub)
    let driver = try hub.driver("d1")
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    for step in [0, 1, 1, 0, 2] { try driver.sendFix(step, trip: "T1") }
    // A leap of an hour: held back; the next one does not confirm it, so it never counts.
    try driver.sendFix(3, trip: "T1", more: ["timestamp": Peer.firstFix + 3_600_000])
    try driver.sendFix(3, trip: "T1")
    // And one that is confirmed: both come out.
    try driver.sendFix(4, trip: "T1", more: ["timestamp": Peer.firstFix + 7_200_000])
    try driver.sendFix(5, trip: "T1", more: ["timestamp": Peer.firstFix + 7_201_000])
    #expect(try driver.settle().isEmpty, "none of this is an error")
    let times = try rider.settle().compactMap { $0.type == "driver_location" ? $0.integer("timestamp") : nil }
    #expect(times.map { $0 - Peer.firstFix } == [0, 1000, 2000, 3000, 7_200_000, 7_201_000])
    try witness.check()
    try hub.metrics {
      $0.fixes("duplicate") == 1 && $0.fixes("history") == 1 && $0.fixes("held") == 2 && $0.fixes("accepted") == 8
    }
  }

  @Test("what only a driver may send is refused to a rider", arguments: loopCounts)
  func notADriver(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let rider = try hub.rider("r1")
    try rider.sendFix(0)
    #expect(try rider.receive("error").code == "forbidden")
    try rider.send("location_batch", ["locations": [Peer.fix(0)]])
    #expect(try rider.receive("error").code == "forbidden")
    try rider.send("driver_status", ["status": "available"])
    #expect(try rider.receive("error").code == "forbidden")
    try rider.send("subscribe", ["channel": "fence:f1"])
    #expect(try rider.receive("error").code == "forbidden")
  }
}
