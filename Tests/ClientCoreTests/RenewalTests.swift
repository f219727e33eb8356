// Tokens that end before the client does.
import HubBytes
import HubMessages
import HubSystem
import HubTokens
import HubWebSocket
import Testing

@testable import HubClientCore

/// A source of tokens that a test fills, and that notes what it was asked.
private final class Source: Sendable {
  private let state = Locked<(answers: [TokenAnswer], needs: [TokenNeed])>(([], []))

  init(_ answers: TokenAnswer...) { state.withLock { $0.answers = answers } }

  /// Past the end of what it has, none.
  func answer(_ need: TokenNeed) -> TokenAnswer {
    state.withLock {
      $0.needs.append(need)
      return $0.answers.isEmpty ? .none : $0.answers.removeFirst()
    }
  }

  var needs: [TokenNeed] { state.withLock { $0.needs } }
}

extension Stage {
  /// A token without a good signature that ends at a time of the hub's, in seconds since 1970.
  fileprivate static func token(_ name: String, ends seconds: Double) -> String {
    let claims = #"{"sub":"\#(name)","role":"driver","exp":\#(Int(seconds))}"#
    return "e30." + String(decoding: Base64.url.encode(Array(claims.utf8)), as: UTF8.self) + ".AA"
  }

  /// The hub's clock, in seconds, where it is as the phone's.
  fileprivate var seconds: Double { Double(now.timestamp.milliseconds) / 1000 }

  fileprivate convenience init(token: String?, _ source: Source) throws {
    try self.init(token: token) { $0.tokens = { source.answer($0) } }
  }

  fileprivate var refreshes: [(id: MessageID, token: String)] {
    messages.compactMap {
      if case .refresh(let refresh) = $0.message { ($0.messageID, refresh.token) } else { nil }
    }
  }

  /// Lets time pass until the hub has a further `refresh`, or the session has stood for so long.
  fileprivate func passUntilRefresh(_ count: Int, seconds: Double) throws {
    let end = now.uptime + Int64(seconds * 1e9)
    while refreshes.count < count, let deadline = session.deadline, deadline < end {
      try reachDeadline()
      let before = messages.count
      try flush()
      if messages[before...].contains(where: { if case .ping = $0.message { true } else { false } }) {
        try answerPing(storedThrough: nil)
      }
    }
  }
}

@Suite struct RenewalTests {
  @Test(
    "a new token is asked for before the old one ends by the hub's clock, and swapped in place", arguments: [0, -5000])
  func inTime(skew: Double) throws {
    let start = 1_763_680_001.0 + skew
    let first = Stage.token("a", ends: start + 1000)
    let second = Stage.token("b", ends: start + 2000)
    let source = Source(.token(second))
    let stage = try Stage(token: first, source)
    stage.session.start(now: stage.now)
    try stage.flush()
    stage.session.transportConnected(stage.now)
    try stage.flush()
    #expect(stage.request.contains("Authorization: Bearer \(first)\r\n"))
    guard case .connected(var greeting) = stage.connected() else { return }
    greeting.serverTime = Timestamp(milliseconds: Int64(start * 1000))
    try stage.answerUpgrade(with: .connected(greeting))
    let opened = stage.now.uptime

    try stage.passUntilRefresh(1, seconds: 1000)
    #expect(stage.refreshes.map(\.token) == [second])
    let asked = Double(stage.now.uptime - opened) / 1e9
    #expect(asked >= 1000 - 60 * 1.3 && asked <= 1000 - 60, "\(asked)")
    #expect(source.needs == [.expiring])
    stage.delivered = []
    stage.ack(stage.refreshes[0].id)
    #expect(stage.delivered.isEmpty, "that is no business of the application's")
    #expect(stage.session.needsFlush, "there is a new time to be called at")
    try stage.flush()
    #expect(!stage.session.needsFlush)
    #expect(stage.session.counters.refreshes == 1)
    // The next one by the second token's end, for which there is none; then again and again.
    try stage.passUntilRefresh(2, seconds: 1050)
    #expect(source.needs.count > 2 && source.needs.allSatisfy { $0 == .expiring })
    #expect(stage.refreshes.count == 1)
  }

  @Test("a short token is renewed when a fifth of its time is left, one without an end never")
  func short() throws {
    let stage = try Stage(token: nil, Source(.token(Stage.token("a", ends: 1_763_680_011)), .token("b.c.d")))
    try stage.open()
    let opened = stage.now.uptime
    try stage.passUntilRefresh(1, seconds: 100)
    let asked = Double(stage.now.uptime - opened) / 1e9
    #expect(asked >= 10 - 2.6 && asked <= 8, "\(asked)")
    stage.ack(try #require(stage.refreshes.first).id)
    try stage.passUntilRefresh(2, seconds: 10_000)
    #expect(stage.refreshes.count == 1 && stage.session.state == .open)
  }

  @Test("tokens that have ended by the hub's clock, within its leeway, are renewed with a pause")
  func ended() throws {
    let end = 1_763_679_995.0
    let source = Source(
      .token(Stage.token("b", ends: end)), .token(Stage.token("c", ends: end + 1)),
      .token(Stage.token("d", ends: end + 2)))
    let stage = try Stage(token: Stage.token("a", ends: end), source)
    try stage.open()
    for count in 1...3 {
      let before = stage.now.uptime
      try stage.passUntilRefresh(count, seconds: 60)
      try #require(stage.refreshes.count == count)
      #expect(stage.now.uptime - before >= 10_000_000_000)
      stage.ack(stage.refreshes[count - 1].id)
    }
  }

  @Test("a refused refresh changes nothing, is not the application's business, and is tried again with the next token")
  func refused() throws {
    let first = Stage.token("a", ends: 1_763_680_101)
    let source = Source(.token("bad"), .token(Stage.token("c", ends: 1_763_690_000)))
    let stage = try Stage(token: first, source)
    try stage.open()
    try stage.passUntilRefresh(1, seconds: 100)
    stage.delivered = []
    stage.say(
      .error(ErrorReply(code: .unauthorized, message: "no", replyTo: stage.refreshes[0].id, retryAfter: nil)))
    #expect(stage.delivered.isEmpty && stage.session.counters.refreshesRefused == 1)
    let refusedAt = stage.now.uptime
    try stage.passUntilRefresh(2, seconds: 30)
    #expect(stage.refreshes.map(\.token).last == Stage.token("c", ends: 1_763_690_000))
    #expect(stage.now.uptime - refusedAt >= 10_000_000_000, "not at once")
    try stage.breakAndReopen()
    #expect(stage.request.contains("Bearer \(Stage.token("c", ends: 1_763_690_000))\r\n"))
    #expect(stage.refreshes.isEmpty, "the upgrade had it")
  }

  @Test(
    "after 4401 and after HTTP 401 a client with a source comes back, with another token", arguments: [true, false])
  func comesBack(isClose: Bool) throws {
    let source = Source(.token("new.t.k"))
    let stage = try Stage(token: "old.t.k", source)
    if isClose {
      try stage.open()
      stage.sayClose(4401)
    } else {
      stage.session.start(now: stage.now)
      try stage.flush()
      stage.session.transportConnected(stage.now)
      try stage.flush()
      stage.send(Array("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n".utf8))
    }
    try stage.flush()
    guard case .retry(let after) = stage.session.transportEnded(stage.now).next else {
      Issue.record("it must try again")
      return
    }
    #expect(after >= 1 && after < 1.3 && source.needs == [.refused])
    try stage.open()
    #expect(stage.request.contains("Bearer new.t.k\r\n"))
    // The second time there is none.
    stage.sayClose(4401)
    try stage.flush()
    #expect(stage.session.transportEnded(stage.now).next == .ended(.needsToken))
    #expect(stage.session.state == .ended(.needsToken) && stage.session.deadline == nil)
  }

  @Test("a source that answers later holds up what needs a token, and nothing else")
  func later() throws {
    let source = Source(.later, .later, .later)
    let stage = try Stage(token: nil, source)
    stage.session.start(now: stage.now)
    #expect(stage.session.state == .awaitingToken && stage.session.deadline == nil)
    #expect(try stage.flush() == .none)
    stage.session.renew(token: Stage.token("a", ends: stage.seconds + 100), now: stage.now)
    try stage.open()
    try stage.passUntilRefresh(1, seconds: 99)
    #expect(source.needs == [.first, .expiring] && stage.refreshes.isEmpty && stage.session.state == .open)
    stage.session.renew(token: "b.t.k", now: stage.now)
    #expect(stage.session.needsFlush)
    try stage.flush()
    #expect(stage.refreshes.map(\.token) == ["b.t.k"])
    stage.sayClose(4401)
    try stage.flush()
    _ = stage.session.transportEnded(stage.now)
    try stage.reachDeadline()
    #expect(stage.session.state == .awaitingToken && source.needs.last == .refused)
    stage.session.renew(token: "c.t.k", now: stage.now)
    #expect(try stage.flush() == .connect)
    stage.session.transportConnected(stage.now)
    try stage.flush()
    #expect(stage.request.contains("Bearer c.t.k\r\n"))
    stage.session.close(stage.now)
  }

  @Test("a client that waits for a token can be ended")
  func endsWhileWaiting() throws {
    let stage = try Stage(token: nil, Source(.later))
    stage.session.start(now: stage.now)
    stage.session.close(stage.now)
    #expect(stage.session.state == .ended(.closedByUs))
    stage.session.renew(token: "late", now: stage.now)
    #expect(stage.session.state == .ended(.closedByUs))
  }
}
