// Streams of events on a loop whose clock a test moves: comments, slow readers, a channel that gets another owner.
import Glibc
import HubBytes
import HubGeo
import HubMessages
import Testing

@testable import HubCore
@testable import HubGateway
@testable import HubTransport

@Suite struct StreamTimeTests {
  private func hub(_ change: (inout ServerConfiguration) -> Void = { _ in }) throws -> HandDrivenHub {
    try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      change(&$0)
    }
  }

  private func open(_ hub: HandDrivenHub, _ channel: String) throws -> HandDrivenRequest {
    let request = try HandDrivenRequest(hub, "/v1/events?channel=\(channel)&role=ops&id=o1")
    try hub.turn {
      request.ownTurn()
      return request.text.contains("\"subscribed\"")
    }
    return request
  }

  @Test("while nothing comes there is a comment at least every 15 s, and none is there without an end of line")
  func comments() throws {
    let hub = try hub()
    let stream = try open(hub, "driver:d1")
    func comments() -> Int { stream.text.split(separator: "\n\n").count { $0 == ":" } }
    for second in 1...60 {
      hub.clock.advance(milliseconds: 1000)
      for _ in 0..<3 { hub.loop.runTurn(timeoutMilliseconds: 0) }
      stream.ownTurn()
      #expect(comments() >= second / 15)
    }
    #expect((4...6).contains(comments()) && stream.text.hasSuffix("\n\n") && !stream.isClosed)
  }

  @Test("who does not read gets the newest positions, and ends when events do not fit any more")
  func slow() throws {
    let hub = try hub {
      $0.limits.outboxBytesPerSession = 256 * 1024
      $0.limits.outboxBytes = 256 * 1024
    }
    let stream = try open(hub, "fleet")
    var sent = 0
    // The kernel's buffers take some megabytes before the outbox has anything.
    while hub.loop.counters.conflated == 0, sent < 200 {
      hub.clock.advance(milliseconds: 1000)
      try post(hub, drivers: 400)
      sent += 1
    }
    #expect(hub.loop.counters.conflated > 0 && hub.openSlots.count == 1, "positions give way to newer ones")
    #expect(hub.loop.counters.outboxBytes <= 256 * 1024)
    stream.abort()
    try hub.turn { hub.openSlots.isEmpty }
    #expect(hub.counters.sessionsByCarrier == [0, 0])
  }

  @Test("a stream of more cells than its session, or its client, may watch is refused with 429 before it begins")
  func tooManyCells() throws {
    let hub = try hub {
      $0.limits.subscriptionsPerSession = 3
      $0.limits.areasPerIdentity = RoleLimits(driver: 4, rider: 4, ops: 4)
    }
    var streams: [HandDrivenRequest] = []
    func status(_ channels: String...) throws -> String {
      let query = channels.map { "channel=\($0)&" }.joined()
      let stream = try HandDrivenRequest(hub, "/v1/events?\(query)role=rider&id=r1")
      streams.append(stream)
      try hub.turn {
        stream.ownTurn()
        let subscribed = stream.text.ranges(of: "\"subscribed\"").count
        return stream.status == "200" ? subscribed == channels.count : stream.isComplete
      }
      return stream.status
    }
    #expect(try status("area:u33d8", "area:u33d9", "area:u33dc", "area:u33dd") == "429")
    #expect(hub.counters.hits(.subscriptions) == 1 && hub.openSlots.isEmpty)
    #expect(try status("area:u33d8", "area:u33d9", "trip:t1") == "200")
    #expect(try status("area:u33d8", "area:u33d9", "area:u33dc") == "429")
    #expect(hub.counters.hits(.areasPerIdentity) == 1 && hub.openSlots.count == 1)
    #expect(try status("area:u33d8", "area:u33d9") == "200")
  }

  @Test("the kernel ends a stream whose client has gone without a word, as soon as a silent session ends")
  func gone() throws {
    let hub = try hub()
    let stream = try open(hub, "driver:d1")
    let slot = try #require(hub.openSlots.first)
    guard let connection = hub.loop.slab.live(hub.sessions.sessions.pointee.sessions[slot].connection) else {
      Issue.record("it has no connection")
      return
    }
    var (milliseconds, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
    getsockopt(connection.pointee.descriptor, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, &length)
    #expect(milliseconds == 75_000 && Double(milliseconds) == 2500 * ServerConfiguration().heartbeatInterval)
    withExtendedLifetime(stream) {}
  }

  @Test("what its client sends is not looked at, and more than a head of it ends the stream")
  func talkative() throws {
    let hub = try hub()
    let stream = try open(hub, "driver:d1")
    for _ in 0..<8 {
      stream.send(String(repeating: "GET / HTTP/1.1\r\n", count: 64))
      for _ in 0..<3 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    }
    #expect(hub.openSlots.count == 1, "8 KiB in all")
    stream.send("x")
    for _ in 0..<3 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    #expect(hub.openSlots.isEmpty && hub.counters.sessionsByCarrier == [0, 0])
  }

  @Test("where a channel gets another owner, ids go on with that one's epoch and numbers")
  func anotherOwner() throws {
    let hub = try hub()
    let stream = try open(hub, "driver:d1")
    let other = try open(hub, "driver:d1")
    let slot = try #require(hub.openSlots.first)
    var handles: [ChannelHandle] = []
    hub.sessions.sessions.pointee.fanOut.subscriptions.forEach(
      of: hub.sessions.sessions.pointee.sessions[slot].open.subscriptions
    ) { channel, _ in handles.append(channel) }
    let handle = try #require(handles.first)
    let channel = Channel.driver(try #require(Identifier("d1")))
    let answer = Subscribed(
      replyTo: ClusterOutput.unsolicited, channel: channel, sequence: 7, epoch: try #require(InlineText("another")),
      recovered: false, snapshot: nil)
    let event = Publication(
      channel: channel, number: 1, timestamp: Timestamp(milliseconds: 1_763_680_000_000),
      body: .notification(Notification(kind: .message, title: "t", body: "b", driverID: nil, sequence: 8)))
    hub.sessions.sessions.pointee.outputs.append(.channelRestarted(handle, answer))
    hub.sessions.sessions.pointee.outputs.append(
      .delivery(Delivery(channel: handle, conflationKey: 0, received: 0, publication: event)))
    hub.sessions.sessions.pointee.deliverOutputs()
    try hub.turn {
      stream.ownTurn()
      other.ownTurn()
      return stream.text.contains("\"notification\"") && other.text.contains("\"notification\"")
    }
    let lines = stream.text.split(separator: "\n").filter { $0.hasPrefix("id: ") || $0.hasPrefix("data: ") }
    let data = other.text.split(separator: "\n").filter { $0.hasPrefix("data: ") }
    #expect(data.count == 3 && data.suffix(2) == lines.filter { $0.hasPrefix("data: ") }.suffix(2), "encoded once")
    #expect(lines.count == 6 && lines.enumerated().allSatisfy { $1.hasPrefix($0 % 2 == 0 ? "id: " : "data: ") })
    #expect(lines.filter { $0.hasPrefix("id: ") }.dropFirst() == ["id: another:7", "id: another:8"])
  }

  /// A fix of each of so many drivers without a session, by a turn of the hub.
  private func post(_ hub: HandDrivenHub, drivers: Int) throws {
    let moment = hub.sessions.sessions.pointee.now
    for number in 0..<drivers {
      let id: Identifier = try #require(Identifier("driver-\(number)"))
      let place = Coordinate(clampingLatitude: 52.5 + Double(number) * 1e-5, wrappingLongitude: 13.4)
      let fix = Fix(coordinate: place, timestamp: moment.timestamp, accuracy: 5)
      hub.sessions.sessions.pointee.inputs.append(
        .batch(
          BatchInput(
            session: SessionRef(outlet: 0, slot: UInt32(1 << 20), generation: 1),
            driverID: id, messageID: try #require(MessageID("m")),
            sent: moment.timestamp, received: moment, batch: LocationBatch(fixes: [.success(fix)]), tripIsGranted: false
          )))
    }
    for _ in 0..<4 { hub.loop.runTurn(timeoutMilliseconds: 0) }
  }
}
