// When a client comes back, and when it does not.
import HubBytes
import HubMessages
import HubWebSocket
import Testing

@testable import HubClientCore

@Suite struct ReconnectTests {
  /// The delay after the given end of an open connection.
  private func delay(afterClose code: UInt16, seed: UInt64) throws -> Disconnection.Next {
    let stage = try Stage(seed: seed)
    try stage.open()
    stage.sayClose(code)
    try stage.flush()
    #expect(stage.closeCodes == [CloseCode(code)])
    return stage.session.transportEnded(stage.now).next
  }

  @Test("A batch that one hub took is sent to the next in batches of as many as that one takes")
  func smallerBatches() throws {
    let stage = try Stage()
    for time in 1...5 as ClosedRange<Int64> { stage.session.send(Stage.fix(time)) }
    try stage.open()
    #expect(stage.messages.count == 1)
    stage.session.send(Stage.move(.accepted))
    _ = stage.session.transportEnded(stage.now)
    try stage.open(maxBatch: 2)
    let sizes = stage.messages.map { if case .locationBatch(let batch) = $0.message { batch.fixes.count } else { 0 } }
    #expect(sizes == [2, 2, 1, 0] && stage.fixTimes == [1, 2, 3, 4, 5])
    #expect(Set(stage.ids).count == 4)
    for id in stage.ids { stage.ack(id) }
    #expect(stage.session.unconfirmed == 0 && stage.session.queue.bytes == 0)
  }

  @Test("Failures in a row wait min(1 s × 2^(n−1), 30 s) and up to 30 % more", arguments: [1, 7, 99] as [UInt64])
  func backOff(seed: UInt64) throws {
    let stage = try Stage(seed: seed)
    stage.session.start(now: stage.now)
    for expected in [1.0, 2, 4, 8, 16, 30, 30, 30] {
      #expect(try stage.flush() == .connect)
      let end = stage.session.transportEnded(stage.now, failure: .connectFailed(errno: 111))
      #expect(end.cause == .connectFailed(errno: 111))
      guard case .retry(let seconds) = end.next else {
        Issue.record("it must try again")
        return
      }
      #expect(seconds >= expected && seconds < expected * 1.3)
      #expect(stage.session.state == .waiting(until: stage.now.uptime + nanoseconds(seconds)))
      // Just before its time nothing happens.
      stage.advance(seconds: seconds - 0.001)
      stage.session.timeReached(stage.now)
      #expect(try stage.flush() == .none)
      stage.advance(seconds: 0.002)
      stage.session.timeReached(stage.now)
    }
  }

  @Test("A delay is drawn once for each failure, however often it is read")
  func delayIsDrawnOnce() {
    var backOff = BackOff()
    let limits = ClientLimits()
    backOff.failed(.backOff, limits: limits, unit: 0.5)
    #expect(backOff.delay == 1.15 && backOff.delay == 1.15 && backOff.failures == 1)
    backOff.failed(.notBefore(60), limits: limits, unit: 0)
    #expect(backOff.delay == 60 && backOff.failures == 2)
  }

  @Test("The delays of many clients differ")
  func jitter() throws {
    var delays: Set<Double> = []
    for seed in 0..<50 {
      guard case .retry(let seconds) = try delay(afterClose: 4408, seed: UInt64(seed)) else { continue }
      delays.insert(seconds)
    }
    #expect(delays.count == 50)
  }

  @Test("A connection that stood for a while resets the back-off, a short one does not", arguments: [true, false])
  func resets(isLong: Bool) throws {
    let stage = try Stage()
    stage.session.start(now: stage.now)
    for _ in 0..<4 {
      try stage.flush()
      _ = stage.session.transportEnded(stage.now, failure: .connectFailed(errno: 111))
      try stage.reachDeadline()
    }
    try stage.open()
    stage.advance(seconds: isLong ? 11 : 1)
    guard case .retry(let seconds) = stage.session.transportEnded(stage.now).next else {
      Issue.record("it must try again")
      return
    }
    #expect(isLong ? seconds < 5 : seconds >= 16)
  }

  @Test("After a first delay at random in 0–5 s the next one is as usual", arguments: [1001, 4413])
  func spread(code: UInt16) throws {
    let stage = try Stage()
    try stage.open()
    stage.sayClose(code)
    try stage.flush()
    _ = stage.session.transportEnded(stage.now)
    try stage.reachDeadline()
    try stage.flush()
    let refused = stage.session.transportEnded(stage.now, failure: .connectFailed(errno: 111))
    guard case .retry(let second) = refused.next else {
      Issue.record("it must try again")
      return
    }
    #expect(second >= 2 && second < 2.6)
  }

  @Test("Codes that say so end a client for good")
  func final() throws {
    #expect(try delay(afterClose: 1000, seed: 1) == .ended(.closedByHub))
    for code in [1002, 1003, 1007, 1009] as [UInt16] {
      #expect(try delay(afterClose: code, seed: 1) == .ended(.protocolError(CloseCode(code))))
    }
    #expect(try delay(afterClose: 4400, seed: 1) == .ended(.badMessages))
    #expect(try delay(afterClose: 4401, seed: 1) == .ended(.needsToken))
    #expect(try delay(afterClose: 4409, seed: 1) == .ended(.replaced))
  }

  @Test("4429 waits for at least 60 s, 4408 backs off")
  func otherCodes() throws {
    guard case .retry(let overRate) = try delay(afterClose: 4429, seed: 3) else {
      Issue.record("4429")
      return
    }
    #expect(overRate >= 60 && overRate < 78)
    guard case .retry(let silent) = try delay(afterClose: 4408, seed: 3) else {
      Issue.record("4408")
      return
    }
    #expect(silent >= 1 && silent < 1.3)
  }

  @Test("Retry-After is respected, for 409 and 503 alike", arguments: [409, 503])
  func retryAfter(status: Int) throws {
    let stage = try Stage()
    stage.session.start(now: stage.now)
    try stage.flush()
    stage.session.transportConnected(stage.now)
    try stage.flush()
    stage.send(Array("HTTP/1.1 \(status) X\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n".utf8))
    #expect(try stage.flush() == .abort)
    let end = stage.session.transportEnded(stage.now)
    #expect(end.cause == .refused(status: UInt16(status), retryAfter: 30, text: ""))
    guard case .retry(let seconds) = end.next else {
      Issue.record("it must try again")
      return
    }
    #expect(seconds >= 30 && seconds < 39)
  }

  @Test("What is no hub is asked again, a wrong path is not")
  func refusals() throws {
    for (answer, isFinal) in [
      ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", true),
      ("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", true),
      ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false),
      ("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", false),
      ("HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n", false),
      ("SSH-2.0-OpenSSH_9.9\r\n\r\n", false),
    ] {
      let stage = try Stage()
      stage.session.start(now: stage.now)
      try stage.flush()
      stage.session.transportConnected(stage.now)
      try stage.flush()
      stage.send(Array(answer.utf8))
      #expect(try stage.flush() == .abort, "\(answer)")
      if case .ended = stage.session.transportEnded(stage.now).next {
        #expect(isFinal, "\(answer)")
      } else {
        #expect(!isFinal, "\(answer)")
      }
    }
  }

  @Test("A ping goes out within every heartbeat interval, and a hub that is silent for 2.5 of them is left")
  func heartbeat() throws {
    let stage = try Stage()
    try stage.open(heartbeat: 10)
    let opened = stage.now.uptime
    var pings: [Int64] = []
    while stage.session.state == .open, pings.count < 10 {
      try stage.reachDeadline()
      let before = stage.messages.count
      let step = try stage.flush()
      if stage.messages.count > before { pings.append(stage.now.uptime) }
      if step == .abort { break }
    }
    #expect(pings.count >= 2)
    for (earlier, later) in zip([opened] + pings, pings) { #expect(later - earlier <= 10_000_000_000) }
    #expect(stage.now.uptime - opened == 25_000_000_000)
    #expect(stage.session.transportEnded(stage.now).cause == .silent)
  }

  @Test("A hub that answers is never left")
  func answeredPings() throws {
    let stage = try Stage()
    try stage.open(heartbeat: 10)
    for _ in 0..<50 {
      try stage.reachDeadline()
      let before = stage.messages.count
      #expect(try stage.flush() == .none)
      if stage.messages.count > before { try stage.answerPing(storedThrough: nil) }
    }
    #expect(stage.session.state == .open)
  }
}
