// What messages are charged (protocol/rates.md), by clocks that are moved by hand: by their text or what it was
// compressed to, their fixes, their positions; and that a debt alone is within the rate.
import HubBytes
import HubGeo
import HubMessages
import HubTransport
import HubWebSocket
import Testing

@testable import HubGateway

@Suite struct WorkChargeTests {
  private func stage(
    role: String = "driver", burst: Double = 50, isCompressed: Bool = false, rate: Double = 10
  ) throws -> (HandClock, HandDrivenHub, HandDrivenPeer) {
    let clock = HandClock()
    let hub = try HandDrivenHub(clock: clock) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.sessionRate = rate
      $0.limits.sessionBurst = burst
      $0.limits.rateWarningSeconds = 5
      $0.limits.rateCloseSeconds = 60
    }
    return (clock, hub, try HandDrivenPeer(hub, role: role, id: "d1", isCompressed: isCompressed))
  }

  /// After this message, how many units more the session may spend before it waits: short pings are one each.
  private func unitsLeft(_ hub: HandDrivenHub, _ peer: HandDrivenPeer) -> Int {
    var sent = 0
    while hub.counters.ratePauses == 0, sent < 200 {
      peer.send(HandDrivenPeer.frame(HandDrivenPeer.ping("n\(sent)")))
      peer.turn()
      sent += 1
    }
    return sent - 2  // the last one waits, and the one before it was the first beyond what there was
  }

  private func message(_ type: String, _ payload: String) -> String {
    #"{"type":"\#(type)","payload":{\#(payload)},"timestamp":1763680000000,"messageId":"m"}"#
  }

  private func batch(_ count: Int) -> String {
    let fixes = (0..<count).map { #"{"latitude":1,"longitude":2,"timestamp":\#(1_763_680_000_000 + $0)}"# }
    return message("location_batch", #""locations":[\#(fixes.joined(separator: ","))]"#)
  }

  @Test("A message of any size is charged one unit and one for each whole 4 KiB of its text")
  func byText() throws {
    for (bytes, units) in [(100, 1), (4000, 1), (4300, 2), (40_000, 10), (100_000, 25)] {
      let (_, hub, peer) = try stage()
      let text = HandDrivenPeer.ping("", unread: bytes)
      #expect(WorkUnits.of(bytes: text.utf8.count) == units)
      peer.send(HandDrivenPeer.frame(text))
      peer.turn()
      try hub.turn { hub.counters.messagesIn == 1 }
      #expect(unitsLeft(hub, peer) == 50 - units, "\(bytes)")
    }
  }

  @Test("A view is charged for the cells that it begins, so that one of 256 is not moved as fast as messages come")
  func byCells() throws {
    func view(_ west: Double) -> String {  // 16 by 16 cells of 1.2 by 0.6 km
      let sides = [west, 52.000_1, west + 0.164, 52.085].map { "\($0)" }.joined(separator: ",")
      return message("subscribe", #""channel":"box:\#(sides)","viewId":"v","precision":6"#)
    }
    let (_, hub, peer) = try stage(role: "ops")
    peer.send(HandDrivenPeer.frame(view(13.007)))
    peer.turn()
    try hub.turn { peer.messages.contains { $0.contains("\"subscribed\"") } }
    let answer = try #require(peer.messages.first { $0.contains("\"subscribed\"") })
    let cells = answer.matches(of: /"u[0-9a-z]{5}"/).count
    #expect((200...256).contains(cells))
    let units = 1 + WorkUnits.of(newCells: cells)
    #expect(units >= 13 && unitsLeft(hub, peer) == 50 - units)
    // Where it stands, or moves by a cell, it costs what it asks for.
    #expect(WorkUnits.of(newCells: 16) == 0 && WorkUnits.of(newCells: 17) == 1)
  }

  @Test("A compressed message is charged for what it inflates to")
  func byInflatedText() throws {
    let (_, hub, peer) = try stage(isCompressed: true)
    let text = HandDrivenPeer.ping("", unread: 60_000)
    let frame = HandDrivenPeer.compressedFrame(text)
    #expect(frame.count < 1000)
    peer.send(frame)
    peer.turn()
    try hub.turn { hub.counters.messagesIn == 1 }
    #expect(unitsLeft(hub, peer) == 50 - 15)
  }

  @Test("A compressed message is charged for its blocks where these are more work than its bytes")
  func byBlocks() throws {
    let (_, hub, peer) = try stage(isCompressed: true)
    peer.send(HandDrivenPeer.compressedFrame(HandDrivenPeer.ping(""), emptyBlocks: 60))
    peer.turn()
    try hub.turn { hub.counters.messagesIn == 1 }
    // Its own and the tail's make 62, of 192 bytes each.
    #expect(unitsLeft(hub, peer) == 50 - 3)
  }

  @Test("A compressed message of empty blocks ends the session")
  func emptyBlocks() throws {
    let (_, hub, peer) = try stage(isCompressed: true)
    peer.send(HandDrivenPeer.compressedFrame(HandDrivenPeer.ping(""), emptyBlocks: 8000))
    for _ in 0..<4 { peer.turn() }
    #expect(peer.closeCode == .invalidPayload && hub.counters.messagesIn == 0)
  }

  @Test("A batch is charged by its fixes or its text, whichever is more; binary, too")
  func byFixes() throws {
    let (_, hub, peer) = try stage()
    // 200 fixes in 11 KiB: four fifties, two times 4 KiB.
    let text = batch(200)
    #expect(text.utf8.count / 4096 == 2)
    peer.send(HandDrivenPeer.frame(text))
    peer.turn()
    try hub.turn { hub.counters.messagesIn == 1 }
    #expect(unitsLeft(hub, peer) == 50 - 5)
    let fixes = LocationBatch(
      fixes: (0..<500).map {
        .success(
          Fix(
            coordinate: Coordinate(latitude: 1, longitude: 2)!,
            timestamp: Timestamp(milliseconds: 1_763_680_000_000 + $0)
          ))
      })
    #expect(WorkUnits.of(.locationBatch(fixes), bytes: 5000) == 11)
    #expect(WorkUnits.of(.locationBatch(fixes), bytes: 100_000) == 25)
  }

  @Test("A query is charged by the positions of its polygon, and a trip by those of its route")
  func byPositions() throws {
    let (_, hub, peer) = try stage(role: "ops")
    let corners = (0..<400).map { "[\(10.0 + Double($0) / 1000),\($0 % 2)]" }
    let polygon =
      #"{"type":"Polygon","coordinates":[[\#(corners.joined(separator: ",")),[10.5,1],[10.5,5],[9.9,5],[9.9,0],[10.0,0]]]}"#
    let text = message("query", #""kind":"within","polygon":\#(polygon)"#)
    #expect(text.utf8.count < 4 * 4096)
    peer.send(HandDrivenPeer.frame(text))
    peer.turn()
    try hub.turn { hub.counters.messagesIn == 1 }
    #expect(peer.messages.contains { $0.contains("\"result\"") })
    #expect(unitsLeft(hub, peer) == 50 - 9)
    let places = (0..<1000).map { Coordinate(latitude: Double($0 % 80), longitude: 0)! }
    var report = TripStatusReport(
      tripID: Identifier("T")!, status: .requested, timestamp: Timestamp(milliseconds: 1_763_680_000_000))
    report.route = try Route(points: places)
    #expect(WorkUnits.of(.tripStatus(report), bytes: 4000) == 21)
  }

  @Test(
    "A message dearer than a full bucket is taken, and a client in debt that sends nothing is not warned"
  )
  func debt() throws {
    let (clock, hub, peer) = try stage(burst: 5, rate: 1)
    peer.send(HandDrivenPeer.frame(batch(500)))
    peer.turn()
    try hub.turn { hub.counters.messagesIn == 1 }
    // 11 of 5: six seconds in debt.
    for _ in 0..<8 {
      clock.advance(milliseconds: 1000)
      peer.turn()
    }
    #expect(hub.counters.ratePauses == 0 && !peer.messages.contains { $0.contains("rate_limited") })
    peer.send(HandDrivenPeer.frame(HandDrivenPeer.ping("after")))
    peer.turn()
    #expect(peer.messages.contains { $0.contains("after") })
    #expect(hub.counters.ratePauses == 0)
  }

  @Test("What comes from a session in debt waits until it is level, and after five seconds it is warned")
  func inDebt() throws {
    let (clock, hub, peer) = try stage(burst: 5, rate: 1)
    peer.send(HandDrivenPeer.frame(batch(500)))
    peer.turn()
    try hub.turn { hub.counters.messagesIn == 1 }
    peer.send(HandDrivenPeer.frame(HandDrivenPeer.ping("early")))
    peer.turn()
    #expect(hub.counters.ratePauses == 1)
    for second in 1...8 {
      clock.advance(milliseconds: 1000)
      peer.turn()
      // Six units are owed, at one a second.
      if second < 6 { #expect(!peer.messages.contains { $0.contains("early") }, "after \(second) s") }
    }
    #expect(peer.messages.contains { $0.contains("early") })
    #expect(peer.messages.count { $0.contains("rate_limited") } == 1)
    #expect(peer.isOpen)
  }

  @Test("HTTP requests are charged by their bodies, and what one has beyond its text is owed")
  func requests() {
    var table = AddressTable(idleLimit: 10, rate: AddressTable.Rate(perSecond: 10, burst: 20))
    let second: Int64 = 1_000_000_000
    func charge(_ units: Double, at time: Int64) -> Int64? { table.charge(7, units, now: time) }
    #expect(charge(15, at: 0) == nil)
    let wait = charge(15, at: 0)
    #expect(wait.map { $0 > second * 9 / 10 && $0 < second * 11 / 10 } == true)
    #expect(charge(15, at: second * 11 / 10) == nil)
    table.chargeMore(7, 20, now: second * 11 / 10)
    #expect(charge(1, at: 2 * second) != nil)
    #expect(charge(1, at: 4 * second) == nil)
    #expect(charge(65, at: 5 * second) != nil, "dearer than a full bucket: not before it is full")
    #expect(charge(65, at: 7 * second) == nil)
    #expect(charge(1, at: 8 * second) != nil)
  }

  @Test("A polygon that is refused is charged by its positions as one that is taken", arguments: [false, true])
  func refusedPolygon(isCrossing: Bool) throws {
    let (_, hub, peer) = try stage(role: "ops")
    let corners = (0..<400).map { "[\(10.0 + Double($0) / 1000),\($0 % 2)]" }
    let end = isCrossing ? "[10.5,5],[9.9,-5],[9.9,0],[10.0,0]" : "[10.5,1],[10.5,5],[9.9,5],[9.9,0],[10.0,0]"
    let polygon = #"{"type":"Polygon","coordinates":[[\#(corners.joined(separator: ",")),\#(end)]]}"#
    peer.send(HandDrivenPeer.frame(message("query", #""kind":"within","polygon":\#(polygon)"#)))
    peer.turn()
    try hub.turn { hub.counters.messagesIn == 1 }
    #expect(peer.messages.contains { $0.contains("crosses") } == isCrossing)
    #expect(unitsLeft(hub, peer) == 50 - 9)
  }

  @Test("A rider is charged for a long answer, and for what it missed, beyond what is free", arguments: [false, true])
  func answers(isResume: Bool) throws {
    let (_, hub, rider) = try stage(role: "rider", rate: 1)
    let ops = try HandDrivenPeer(hub, role: "ops", id: "o1")
    // 5,000 places of up to 14 characters.
    let places = (0..<5000).map { Coordinate(latitude: $0 % 2 == 0 ? -80 : 80, longitude: Double($0 % 170))! }
    let route = try Route(points: places).polyline.replacing("\\", with: "\\\\")
    let begin = message(
      "trip_status", #""tripId":"T","status":"requested","riderId":"d1","timestamp":1763680000000"#)
    let change = message("trip_change", #""tripId":"T","route":"\#(route)""#)
    ops.send(HandDrivenPeer.frame(begin) + HandDrivenPeer.frame(change.replacing("\"m\"", with: "\"m2\"")))
    for _ in 0..<10 { ops.turn() }
    #expect(ops.messages.count { $0.contains("\"ack\"") } == 2)
    rider.send(HandDrivenPeer.frame(message("subscribe", #""channel":"trip:T""#)))
    rider.turn()
    let subscribed = try #require(rider.messages.last)
    let epoch = try #require(subscribed.firstMatch(of: /"epoch":"(\w+)"/)).1
    rider.send(
      HandDrivenPeer.frame(
        isResume
          ? message("subscribe", #""channel":"trip:T","since":1,"epoch":"\#(epoch)""#)
          : message("query", #""kind":"trip","tripId":"T""#)))
    for _ in 0..<10 { rider.turn() }
    let bytes = rider.messages.dropFirst().reduce(0) { $0 + $1.utf8.count }
    #expect(bytes > 40_000)
    let more = (bytes - 16_384) / 4096
    #expect(abs(unitsLeft(hub, rider) - (50 - 2 - more)) <= 1)
  }

  @Test("What many riders send in the same moment is spread over turns by its work, and a driver does not wait for it")
  func turns() throws {
    let clock = HandClock()
    let hub = try HandDrivenHub(clock: clock) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.requestsPerTurn = 2
      $0.limits.unitsPerPoll = 4
    }
    let riders = try (0..<6).map { try HandDrivenPeer(hub, role: "rider", id: "r\($0)") }
    let driver = try HandDrivenPeer(hub, role: "driver", id: "d1")
    // Nine units each, as much as two looks at the sockets have room for: half of it for who has waited.
    for rider in riders {
      rider.send(
        HandDrivenPeer.frame(HandDrivenPeer.ping("dear", unread: 33_000))
          + HandDrivenPeer.frame(HandDrivenPeer.ping("after")))
    }
    driver.send(HandDrivenPeer.frame(HandDrivenPeer.ping("fix")))
    for peer in riders + [driver] { peer.ownTurn() }
    var (turns, before) = (0, 0)
    while hub.counters.messagesIn < 13, turns < 100 {
      hub.loop.runTurn(timeoutMilliseconds: 0)
      for rider in riders { rider.ownTurn() }
      let dear = riders.reduce(0) { $0 + $1.messages.count { $0.contains("dear") } }
      #expect(dear - before <= 1, "in turn \(turns)")
      (before, turns) = (dear, turns + 1)
    }
    for rider in riders {
      rider.turn()
      let pongs = rider.messages.filter { $0.contains("\"pong\"") }
      #expect(pongs.count == 2 && pongs[0].contains("dear") && pongs[1].contains("after"))
    }
    driver.turn()
    #expect(driver.messages.contains { $0.contains("fix") })
    #expect(hub.counters.turnWaits >= 3 && hub.counters.ratePauses == 0)
    #expect(turns >= 6, "the work of six turns")
  }

  @Test("Messages and replies of just under a unit are spread over turns, too: a burst of them is some ms of work")
  func almostUnits() throws {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.unitsPerPoll = 4
    }
    let riders = try (0..<6).map { try HandDrivenPeer(hub, role: "rider", id: "r\($0)") }
    let ping = HandDrivenPeer.frame(message("ping", #""text":"\#(String(repeating: "x", count: 3800))""#))
    for rider in riders { rider.send(ping + ping + ping) }
    for rider in riders { rider.ownTurn() }
    var (turns, before) = (0, 0)
    while before < 18, turns < 100 {
      hub.loop.runTurn(timeoutMilliseconds: 0)
      for rider in riders { rider.ownTurn() }
      let pongs = riders.reduce(0) { $0 + $1.messages.count { $0.contains("\"pong\"") } }
      // Two of 8 KB with their pongs are four units, for those who come and for those who have waited.
      #expect(pongs - before <= 6, "in turn \(turns)")
      (before, turns) = (pongs, turns + 1)
    }
    #expect(before == 18 && turns > 4)
    #expect(hub.counters.turnWaits > 0 && hub.counters.ratePauses == 0)
  }
}
