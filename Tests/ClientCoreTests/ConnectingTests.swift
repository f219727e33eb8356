// From nothing to open, and how a connection ends.
import HubBytes
import HubGeo
import HubMessages
import HubWebSocket
import Testing

@testable import HubClientCore

@Suite struct ConnectingTests {
  @Test("A client connects, asks for the upgrade with its token, and is open when the hub has greeted it")
  func opens() throws {
    let stage = try Stage(token: "abc.def")
    #expect(stage.session.state == .idle)
    stage.session.start(now: stage.now)
    #expect(stage.session.state == .connecting)
    #expect(try stage.flush() == .connect)
    stage.session.transportConnected(stage.now)
    #expect(try stage.flush() == .none)
    #expect(stage.request.hasPrefix("GET /v1/ws?role=driver&id=D1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"))
    #expect(stage.request.contains("Authorization: Bearer abc.def\r\n"))
    try stage.answerUpgrade()
    #expect(stage.session.state == .greeting)
    stage.say(stage.connected())
    #expect(stage.session.state == .open)
    #expect(stage.session.connected?.limits.rate == 10)
    #expect(stage.session.counters.opened == 1)
  }

  @Test("The hub's bytes may be cut anywhere", arguments: [1, 2, 3, 7, 50])
  func splits(piece: Int) throws {
    let stage = try Stage()
    stage.piece = piece
    try stage.open()
    stage.session.subscribe(.trip(Identifier("T1")!))
    try stage.flush()
    try stage.answerSubscribe(sequence: 3)
    for sequence in 4...6 { stage.say(Stage.event(UInt64(sequence))) }
    #expect(stage.sequences == [4, 5, 6])
  }

  @Test("Messages that come with the handshake's answer are not lost")
  func greetingInOnePiece() throws {
    let stage = try Stage()
    stage.session.start(now: stage.now)
    try stage.flush()
    stage.session.transportConnected(stage.now)
    try stage.flush()
    try stage.answerUpgrade(with: stage.connected())
    #expect(stage.session.state == .open)
  }

  @Test("No answer within the time for the handshake cuts the connection off, in each phase", arguments: 0...2)
  func timesOut(phase: Int) throws {
    let stage = try Stage()
    stage.session.start(now: stage.now)
    try stage.flush()
    if phase > 0 { stage.session.transportConnected(stage.now) }
    try stage.flush()
    if phase > 1 { try stage.answerUpgrade() }
    stage.advance(seconds: 9.9)
    stage.session.timeReached(stage.now)
    #expect(try stage.flush() == .none)
    stage.advance(seconds: 0.2)
    stage.session.timeReached(stage.now)
    #expect(try stage.flush() == .abort)
    let end = stage.session.transportEnded(stage.now)
    #expect(end.cause == .timedOut && !end.wasOpen)
    guard case .retry = end.next else {
      Issue.record("it must try again")
      return
    }
  }

  @Test("close sends 1000, waits for the hub's Close, and ends for good")
  func closes() throws {
    let stage = try Stage()
    try stage.open()
    stage.session.close(stage.now)
    #expect(try stage.flush() == .none)
    #expect(stage.closeCodes == [.normal])
    stage.sayClose(1000)
    try stage.flush()
    #expect(stage.closeCodes == [.normal])
    let end = stage.session.transportEnded(stage.now)
    #expect(end == Disconnection(cause: .closedByUs, next: .ended(.closedByUs), wasOpen: true))
    #expect(stage.session.deadline == nil)
  }

  @Test("A hub that does not answer our Close is cut off after two seconds")
  func closingHasAnEnd() throws {
    let stage = try Stage()
    try stage.open()
    stage.session.close(stage.now)
    try stage.flush()
    try stage.reachDeadline()
    #expect(try stage.flush() == .abort)
    #expect(stage.session.transportEnded(stage.now).next == .ended(.closedByUs))
  }

  @Test("close ends a client in every state")
  func closesEverywhere() throws {
    let idle = try Stage()
    idle.session.close(idle.now)
    #expect(idle.session.state == .ended(.closedByUs))

    let connecting = try Stage()
    connecting.session.start(now: connecting.now)
    connecting.session.close(connecting.now)
    #expect(connecting.session.state == .ended(.closedByUs))
    #expect(try connecting.flush() == .none)

    let underWay = try Stage()
    underWay.session.start(now: underWay.now)
    try underWay.flush()
    underWay.session.close(underWay.now)
    #expect(try underWay.flush() == .abort)
    #expect(underWay.session.transportEnded(underWay.now).next == .ended(.closedByUs))

    let waiting = try Stage()
    waiting.session.start(now: waiting.now)
    try waiting.flush()
    _ = waiting.session.transportEnded(waiting.now, failure: .connectFailed(errno: 111))
    waiting.session.close(waiting.now)
    #expect(waiting.session.state == .ended(.closedByUs))
  }

  @Test("A hub that breaks the WebSocket protocol gets a Close with the right code, and no new connection")
  func protocolError() throws {
    let stage = try Stage()
    try stage.open()
    stage.send([0x83, 0x00])  // a reserved opcode
    #expect(try stage.flush() == .disconnect)
    #expect(stage.closeCodes == [.protocolError])
    let end = stage.session.transportEnded(stage.now)
    #expect(end.next == .ended(.protocolError(.protocolError)))
  }

  @Test("A WebSocket ping is answered with its payload")
  func answersPings() throws {
    let stage = try Stage()
    try stage.open()
    stage.frame(.ping, [1, 2, 3])
    #expect(stage.session.needsFlush)
    try stage.flush()
    #expect(stage.pongs == [[1, 2, 3]])
  }

  @Test("After a token was refused a new one lets the client go on")
  func newToken() throws {
    let stage = try Stage(token: "old")
    stage.session.start(now: stage.now)
    try stage.flush()
    stage.session.transportConnected(stage.now)
    try stage.flush()
    stage.send(Array("HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n\r\nnope".utf8))
    #expect(try stage.flush() == .abort)
    let end = stage.session.transportEnded(stage.now)
    #expect(end.next == .ended(.needsToken))
    #expect(end.cause == .refused(status: 401, retryAfter: nil, text: "nope"))
    stage.session.start(token: "new", now: stage.now)
    try stage.flush()
    stage.session.transportConnected(stage.now)
    try stage.flush()
    #expect(stage.request.contains("Authorization: Bearer new\r\n"))
  }

  @Test("A batch of fixes with every member, in as many digits as there are, is no longer than the hub takes")
  func longestBatch() throws {
    let long = -1.2345678901234567e-100
    let fix = Fix(
      coordinate: try #require(Coordinate(latitude: long, longitude: long)), timestamp: Stage.fix(0).timestamp,
      accuracy: long, heading: long, speed: long, altitude: long, headingAccuracy: long, speedAccuracy: long,
      source: .cellular, batteryLevel: long)
    let trip = Identifier(String(repeating: "t", count: 64))
    let session = try Stage().session
    for bytes in [2048, 16_384, 65_536, 131_072] {
      let greeting = Connected(
        sessionID: InlineText("s1")!, role: .driver, id: Identifier("D1")!, heartbeatInterval: 30,
        serverTime: fix.timestamp, limits: .init(maxMessageBytes: bytes, maxBatch: 500, rate: 10), sampling: nil)
      let fixes = Array(repeating: Result<Fix, ErrorCode>.success(fix), count: session.maximumBatch(greeting))
      var message = ByteBuffer()
      JSONWriter.write(
        .locationBatch(LocationBatch(tripID: trip, fixes: fixes)), messageID: MessageID(number: .max),
        timestamp: fix.timestamp, time: .unixMilliseconds, into: &message)
      #expect(message.count <= bytes && message.count > bytes / 2)
    }
  }
}
