// What is begun and not finished, and what comes faster than it may: messages, bodies, pings.
//
//     incompleteBytes, incompleteFreeBytes                                         here
//     messageSeconds                                                               SlowMessageTests of GatewayTests
import Foundation
import HubGateway
import HubMessages
import HubTransport
import Testing

extension EndToEnd {
  @Suite struct IncompleteInput {}
}

extension EndToEnd.IncompleteInput {
  @Test(
    "incomplete messages of all sessions have a limit together; ordinary ones are never over it", arguments: loopCounts)
  func incompleteMessages(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.messageBytes = 64 * 1024
      $0.limits.incompleteBytes = 160 * 1024
    }
    let driver = try hub.driver("d1")
    let whole = Peer.frame([UInt8](repeating: 0x20, count: 60 * 1024))
    let half = Array(whole.dropLast(10))
    var holders: [Peer] = []
    for number in 0..<2 {
      holders.append(try hub.rider("h\(number)"))
      try holders[number].send(bytes: half)
    }
    try hub.metrics { $0["incomplete_bytes"] > 110_000 }
    let third = try hub.rider("third")
    try third.send(bytes: half)
    #expect(try third.receiveClose().code == 1013)
    try hub.metrics { $0.hits("incomplete_bytes") == 1 && $0["incomplete_bytes"] < 125_000 }
    // A fix that is cut in two, meanwhile.
    let fix = Peer.frame(Array(try Peer.message("location_update", Peer.fix(0), id: "f").utf8))
    try driver.send(bytes: Array(fix[..<100]))
    try hub.metrics { $0["read_bytes_total"] > 0 }
    try driver.send(bytes: Array(fix[100...]))
    #expect(try driver.settle().isEmpty)
    // A body of someone who may send one.
    let post = try hub.connect()
    try post.send("POST /v1/locations?role=driver&id=d2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99000\r\n\r\n")
    try post.send([UInt8](repeating: 0x20, count: 60_000))
    let refusal = try post.readResponse()
    #expect(refusal.status == 503 && refusal.fields["retry-after"] == "10")
    // Complete, and gone: the room comes back.
    try holders[0].send(bytes: Array(whole.suffix(10)))
    #expect(try holders[0].receive("error").code == "bad_json")
    holders[1].connection.reset()
    try hub.metrics { $0["incomplete_bytes"] == 0 }
    let fourth = try hub.rider("fourth")
    try fourth.send(bytes: whole)
    #expect(try fourth.receive("error").code == "bad_json")
  }

  @Test("one address has a part of that limit; what it gives back it can have again", arguments: loopCounts)
  func oneAddress(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.messageBytes = 64 * 1024
      $0.limits.incompleteBytesPerAddress = 80 * 1024
      $0.limits.countsLoopbackConnections = true
    }
    let whole = Peer.frame([UInt8](repeating: 0x20, count: 60 * 1024))
    let half = Array(whole.dropLast(10))
    let (first, second) = (try hub.rider("r1"), try hub.rider("r2"))
    try first.send(bytes: half)
    try hub.metrics { $0["incomplete_bytes"] > 55_000 }
    try second.send(bytes: half)
    #expect(try second.receiveClose().code == 1013)
    try first.send(bytes: Array(whole.suffix(10)))
    #expect(try first.receive("error").code == "bad_json")
    try hub.metrics { $0["incomplete_bytes"] == 0 }
    let third = try hub.rider("r3")
    try third.send(bytes: whole)
    #expect(try third.receive("error").code == "bad_json")
  }

  @Test("what came behind a driver's upgrade is not counted once it was handled", arguments: loopCounts)
  func behindUpgrade(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.connect()
    let ping = try Peer.message("ping", ["text": String(repeating: "y", count: 4000)], id: "p")
    try driver.send(Array(UpgradeRequest("/v1/ws?role=driver&id=d1").text.utf8) + Peer.frame(Array(ping.utf8)))
    #expect(try driver.readResponse().status == 101)
    try hub.metrics { $0["messages_in_total"] == 1 && $0["incomplete_bytes"] == 0 }
  }

  // MARK: Pings

  @Test(
    "a flood of WebSocket pings or pongs is slowed, warned and closed as one of messages is", arguments: [UInt8(9), 10])
  func pings(opcode: UInt8) throws {
    let hub = try TestHub {
      $0.limits.sessionRate = 10
      $0.limits.sessionBurst = 5
      $0.limits.rateWarningSeconds = 0.2
      $0.limits.rateCloseSeconds = 0.6
    }
    let witness = try Witness(hub)
    let flood = try hub.rider("flood")
    try flood.send(bytes: Array((0..<200).map { _ in Peer.frame([1, 2, 3], opcode: opcode) }.joined()))
    #expect(try flood.skip(to: "error").code == "rate_limited")
    #expect(try flood.receiveClose().code == 4429)
    try witness.check()
    try hub.metrics { $0["rate_pauses_total"] >= 1 && $0.closes(4429) == 1 }
  }

  @Test("of what is read at once over the rate, nothing is handled before its time", arguments: loopCounts)
  func overTheRate(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.sessionRate = 10
      $0.limits.sessionBurst = 5
      $0.limits.rateWarningSeconds = 50  // however long the hub stands still
    }
    let rider = try hub.rider("r1")
    let frames = try (0..<15).map { Peer.frame(Array(try Peer.message("ping", ["n": $0], id: "p").utf8)) }
    let start = uptime()
    try rider.send(bytes: Array(frames.joined()))
    for number in 0..<15 { #expect(try rider.receive("pong").integer("n") == number, "in order, and none is lost") }
    #expect(uptime() - start > 0.8, "five at once and one more, the others at 10 a second")
    try hub.metrics { $0["messages_in_total"] == 15 && $0["rate_pauses_total"] >= 1 && $0["incomplete_bytes"] == 0 }
  }
}
