// Answers that list more drivers than a loop writes in one turn, by turns that the test gives by hand.
import HubCore
import HubMessages
import HubTransport
import Testing

@testable import HubGateway

@Suite struct ChunkedReplyTests {
  private static let tags = (1...8).map { "a tag of 20 bytes \($0)!" }
  private static let target = "/v1/drivers/nearby?role=ops&id=o1&latitude=52.5&longitude=13.4"

  /// A hub with drivers that writes so many of them in a turn.
  private func hub(
    drivers: Int = 1000, reportsPerTurn: Int, tags: [String] = tags, _ change: (inout Limits) -> Void = { _ in }
  ) throws -> HandDrivenHub {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.sessionRate = 0
      $0.limits.reportsPerTurn = reportsPerTurn
      change(&$0.limits)
    }
    try hub.addDrivers(drivers, tags: tags)
    return hub
  }

  private func query(_ id: String, limit: Int = 1000) -> [UInt8] {
    HandDrivenPeer.frame(
      #"{"type":"query","payload":{"kind":"nearby","latitude":52.5,"longitude":13.4,"limit":\#(limit)},"#
        + #""timestamp":1763680000000,"messageId":"\#(id)"}"#)
  }

  /// Asks, and gives the hub turns until so many answers are being written.
  private func begin(_ hub: HandDrivenHub, _ peer: HandDrivenPeer, _ id: String, underWay: Int = 1) throws {
    peer.send(query(id))
    peer.ownTurn()
    try hub.turn { hub.pendingReplies == underWay }
  }

  private func finish(_ hub: HandDrivenHub, _ peer: HandDrivenPeer, messages: Int = 1) throws {
    try hub.turn {
      peer.ownTurn()
      return peer.messages.count == messages
    }
  }

  private func fetch(_ hub: HandDrivenHub, _ target: String) throws -> HandDrivenRequest {
    let request = try HandDrivenRequest(hub, target)
    try hub.turn {
      request.ownTurn()
      return request.body != nil
    }
    return request
  }

  // MARK: The same bytes

  @Test("a message that is written over several turns is the one that one turn would make", arguments: [false, true])
  func sameMessage(isCompressed: Bool) throws {
    func ask(reportsPerTurn: Int) throws -> (String, HandDrivenHub) {
      let hub = try hub(reportsPerTurn: reportsPerTurn)
      let peer = try HandDrivenPeer(hub, role: "ops", id: "o1", isCompressed: isCompressed)
      let compressed = peer.compressedMessages
      peer.send(query("q1"))
      peer.ownTurn()
      try finish(hub, peer)
      #expect(peer.compressedMessages == compressed + (isCompressed ? 1 : 0))
      return (peer.messages[0], hub)
    }
    let (whole, atOnce) = try ask(reportsPerTurn: 10_000)
    #expect(atOnce.counters.answersContinued == 0)
    #expect(whole.utf8.count > 300_000 && whole.hasSuffix(#""messageId":"r2"}"#))
    for reportsPerTurn in [1, 7, 100, 999] {
      let (inPieces, hub) = try ask(reportsPerTurn: reportsPerTurn)
      #expect(inPieces == whole, "\(reportsPerTurn)")
      #expect(hub.counters.answersContinued == 1)
      #expect(hub.counters.fanOut.repliesOut == atOnce.counters.fanOut.repliesOut)
      #expect(hub.counters.fanOut.compression.deflatedBytesIn == atOnce.counters.fanOut.compression.deflatedBytesIn)
    }
  }

  @Test("and so is a response")
  func sameResponse() throws {
    let target = "\(Self.target)&limit=1000&time=rfc3339"
    let whole = try fetch(try hub(reportsPerTurn: 10_000), target).text
    #expect(whole.hasPrefix("HTTP/1.1 200 ") && whole.utf8.count > 300_000)
    for reportsPerTurn in [1, 7, 100, 999] {
      let hub = try hub(reportsPerTurn: reportsPerTurn)
      #expect(try fetch(hub, target).text == whole, "\(reportsPerTurn)")
      #expect(hub.counters.answersContinued == 1)
    }
  }

  @Test("an answer that is too large is refused, as soon as that shows")
  func tooLarge() throws {
    let tags = (1...8).map { "a tag that is as long as somebody may make one, number \($0)" }
    let hub = try hub(reportsPerTurn: 100, tags: tags)
    let peer = try HandDrivenPeer(hub, role: "ops", id: "o1")
    peer.send(query("q1"))
    peer.ownTurn()
    try finish(hub, peer)
    #expect(peer.messages[0].contains(#""code":"too_large""#) && peer.messages[0].contains(#""replyTo":"q1""#))
    let refused = try fetch(hub, "\(Self.target)&limit=1000")
    #expect(refused.status == "413" && refused.body?.contains("too_large") == true)
    #expect(try fetch(hub, "\(Self.target)&limit=500").status == "200")
    #expect(hub.pendingReplies == 0)
  }

  // MARK: Others meanwhile

  @Test("others have their answers while one is written, and it takes as many turns as the limit says")
  func others() throws {
    let hub = try hub(reportsPerTurn: 100)
    let ops = try HandDrivenPeer(hub, role: "ops", id: "o1")
    let other = try HandDrivenPeer(hub)
    try begin(hub, ops, "q1")
    for turn in 1...9 {
      other.send(HandDrivenPeer.frame(HandDrivenPeer.ping("x")))
      ops.send(HandDrivenPeer.frame(HandDrivenPeer.ping("y")))
      other.ownTurn()
      ops.ownTurn()
      hub.loop.runTurn(timeoutMilliseconds: 0)
      other.ownTurn()
      ops.ownTurn()
      #expect(other.messages.count == turn && ops.messages.count == turn)
      #expect(hub.pendingReplies == 1)
    }
    hub.loop.runTurn(timeoutMilliseconds: 0)
    #expect(hub.pendingReplies == 0)
    try finish(hub, ops, messages: 10)
    #expect(ops.messages[9].contains(#""type":"result""#))
    #expect(ops.messages[..<9].allSatisfy { $0.contains(#""type":"pong""#) })
  }

  @Test("a short answer does not wait for the long ones before it")
  func shortAndLong() throws {
    let hub = try hub(reportsPerTurn: 40)
    let long = try (0..<3).map { try HandDrivenPeer(hub, role: "ops", id: "o\($0)") }
    let short = try HandDrivenPeer(hub, role: "ops", id: "o9")
    for (number, peer) in long.enumerated() {
      peer.send(query("q\(number)"))
      peer.ownTurn()
    }
    try hub.turn { hub.pendingReplies == 3 }
    short.send(query("short", limit: 10))
    short.ownTurn()
    try hub.turn { hub.pendingReplies == 4 }
    hub.loop.runTurn(timeoutMilliseconds: 0)
    #expect(hub.pendingReplies == 3, "each has had a quarter of the turn, which is enough for the short one")
    short.ownTurn()
    #expect(short.messages.count == 1)
    for peer in long { try finish(hub, peer) }
    #expect(Set(long.map { $0.messages[0].count }).count == 1)
    #expect(hub.counters.answersContinued == 3)
  }

  @Test("what is short is written at once, as much of it as a turn has room for")
  func atOnce() throws {
    let hub = try hub(drivers: 30, reportsPerTurn: 25)
    let ops = try HandDrivenPeer(hub, role: "ops", id: "o1")
    ops.send(query("q1", limit: 10) + query("q2", limit: 10) + query("q3", limit: 10))
    ops.ownTurn()
    try hub.turn { hub.counters.fanOut.repliesOut == 3 }  // `connected` is one
    #expect(hub.pendingReplies == 1 && hub.counters.answersContinued == 0)
    hub.loop.runTurn(timeoutMilliseconds: 0)
    #expect(hub.pendingReplies == 0 && hub.counters.answersContinued == 0)
    try finish(hub, ops, messages: 3)
  }

  // MARK: Ends

  @Test("an answer ends with its session, and the next session in its slot gets nothing of it")
  func sessionEnds() throws {
    // Each of the others' has its turn before the one whose session has gone is looked at again.
    let others = 40
    let hub = try hub(reportsPerTurn: 1) { $0.hub.queriesPerSession = others }
    let ops = try HandDrivenPeer(hub, role: "ops", id: "o1")
    let slots = hub.openSlots
    let other = try HandDrivenPeer(hub, role: "ops", id: "o2")
    for number in 1...others { other.send(query("q\(number)", limit: 200)) }
    other.ownTurn()
    try hub.turn { hub.pendingReplies == others }
    try begin(hub, ops, "q", underWay: others + 1)
    ops.abort()
    hub.loop.runTurn(timeoutMilliseconds: 0)
    let next = try HandDrivenPeer(hub, role: "ops", id: "o3")
    #expect(hub.openSlots.contains(slots[0]), "it has the slot of the one that is gone")
    #expect(hub.pendingReplies == others + 1)
    try hub.turn(atMost: 2 * others) { hub.pendingReplies == others }
    next.turn()
    #expect(next.messages.isEmpty && next.isOpen && hub.counters.fanOut.repliesOut == 3, "`connected`, three times")
  }

  @Test("a session that is being closed gets no answer any more, nor a request whose connection is gone")
  func closing() throws {
    let hub = try hub(reportsPerTurn: 20)
    let ops = try HandDrivenPeer(hub, role: "ops", id: "o1")
    try begin(hub, ops, "q1")
    let request = try HandDrivenRequest(hub, "\(Self.target)&limit=1000")
    try hub.turn { hub.pendingReplies == 2 }
    request.abort()
    ops.send([0x88, 0x80, 0, 0, 0, 0])  // a Close frame
    ops.ownTurn()
    try hub.turn(atMost: 40) { hub.pendingReplies == 0 }
    ops.turn()
    #expect(ops.messages.isEmpty && ops.closeCode == nil && !ops.isOpen)
    #expect(hub.counters.responses[200] == nil)
  }

  // MARK: Limits

  @Test("a session has so many answers under way, and then gets rate_limited")
  func ofOneSession() throws {
    let hub = try hub(reportsPerTurn: 20) { $0.hub.queriesPerSession = 2 }
    let ops = try HandDrivenPeer(hub, role: "ops", id: "o1")
    let other = try HandDrivenPeer(hub, role: "ops", id: "o2")
    try begin(hub, ops, "q1")
    try begin(hub, ops, "q2", underWay: 2)
    ops.send(query("q3"))
    other.send(query("q4", limit: 5))
    ops.ownTurn()
    other.ownTurn()
    try finish(hub, ops)
    #expect(ops.messages[0].contains(#""code":"rate_limited""#) && ops.messages[0].contains(#""retryAfter":1"#))
    #expect(ops.messages[0].contains(#""replyTo":"q3""#) && hub.counters.queriesRefused == 1)
    try finish(hub, other)
    #expect(other.messages[0].contains(#""type":"result""#))
    try finish(hub, ops, messages: 3)
    ops.send(query("q5", limit: 5))
    ops.ownTurn()
    try finish(hub, ops, messages: 4)
    #expect(ops.messages[3].contains(#""replyTo":"q5","drivers""#))
  }

  @Test("a loop has so many answers under way, and then refuses queries with 503")
  func ofALoop() throws {
    let hub = try hub(reportsPerTurn: 20) { $0.hub.queries = 1 }
    let ops = try HandDrivenPeer(hub, role: "ops", id: "o1")
    try begin(hub, ops, "q1")
    let refused = try fetch(hub, "\(Self.target)&limit=5")
    #expect(refused.status == "503" && refused.text.contains("Retry-After: 1\r\n"))
    #expect(refused.body?.contains("rate_limited") == true && hub.pendingReplies == 1)
    try finish(hub, ops)
    #expect(try fetch(hub, "\(Self.target)&limit=5").status == "200")
  }
}
