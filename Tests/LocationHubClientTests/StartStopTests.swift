// Starting and stopping at any moment, with a token source that is slow, fails or gives up.
import HubMessages
import HubWebSocket
import Synchronization
import Testing

@testable import HubClientCore
@testable import LocationHubClient

@Suite(.timeLimit(.minutes(5))) struct StartStopTests {
  /// A token source whose answers a test gives.
  private final class Source: Sendable {
    private let state = Mutex<(needs: [TokenNeed], answers: [Answer<String>])>(([], []))

    var needs: [TokenNeed] { state.withLock { $0.needs } }

    var tokens: TokenSource {
      TokenSource { [self] need in
        let answer = Answer<String>()
        state.withLock { state in
          state.needs.append(need)
          state.answers.append(answer)
        }
        return try await answer.value()
      }
    }

    /// Answers the question of this number, from 0, when it was asked.
    func answer(_ number: Int, _ outcome: Result<String, HubError>) async {
      while needs.count <= number { await Task.yield() }
      state.withLock { $0.answers[number] }.give(outcome)
    }
  }

  private static let signedOut = HubError(.token, "signed out")
  private static let noNetwork = HubError(.unreachable, "no network", retry: .later(after: nil))

  @Test("a client that stopped because nobody was signed in asks for a token again when it is started again")
  func signedOut() async throws {
    let source = Source()
    let stage = try EngineStage(source.tokens)
    for round in 0..<3 {
      try stage.turn { $0.start($1) }
      #expect(stage.isConnecting)
      await source.answer(round, .failure(Self.signedOut))
      try await stage.takePost()
      #expect(stage.state == .stopped(Self.signedOut))
    }
    try stage.turn { $0.start($1) }
    await source.answer(3, .success("abc"))
    try await stage.takePost()
    try stage.open()
    #expect(stage.tokens == ["abc"] && source.needs == [.first, .first, .first, .first])
  }

  @Test("a token that comes after stop is the next start's, and one that comes after that is not asked for twice")
  func tokenAfterStop() async throws {
    let source = Source()
    let stage = try EngineStage(source.tokens)
    try stage.turn { $0.start($1) }
    try stage.turn { $0.stop($1) }
    #expect(stage.state == .stopped(.stopped))
    try stage.turn { $0.start($1) }
    try stage.turn { $0.stop($1) }
    await source.answer(0, .success("abc"))
    try await stage.takePost()
    #expect(stage.state == .stopped(.stopped) && stage.tokens.isEmpty)
    try stage.turn { $0.start($1) }
    try stage.open()
    #expect(stage.tokens == ["abc"] && source.needs == [.first])
  }

  @Test("a token that the hub has refused is not tried again after stop and start: the source is asked again")
  func refusedToken() async throws {
    let source = Source()
    let stage = try EngineStage(source.tokens)
    try stage.turn { $0.start($1) }
    await source.answer(0, .success("old"))
    try await stage.takePost()
    try stage.turn { engine, now in
      engine.session.giveUp(.refused(status: 401, retryAfter: nil, text: ""))
    }
    await source.answer(1, .failure(Self.signedOut))
    try await stage.takePost()
    #expect(stage.state == .stopped(Self.signedOut))
    try stage.turn { $0.start($1) }
    await source.answer(2, .success("new"))
    try await stage.takePost()
    try stage.open()
    #expect(stage.tokens == ["old", "new"] && source.needs == [.first, .refused, .refused])
  }

  @Test("after a token of another role than the driver's, start asks the source for another one")
  func anotherRole() async throws {
    let source = Source()
    let stage = try EngineStage(source.tokens, files: MemoryFiles())
    try stage.turn { $0.start($1) }
    await source.answer(0, .success("rider"))
    try await stage.takePost()
    try stage.open(as: .rider)
    try stage.end()
    guard case .stopped(let error) = stage.state else { return #expect(Bool(false)) }
    #expect(error.code == .token && source.needs == [.first])
    try stage.turn { $0.start($1) }
    await source.answer(1, .success("driver"))
    try await stage.takePost()
    try stage.open()
    #expect(stage.tokens == ["rider", "driver"] && source.needs == [.first, .refused])
  }

  @Test("after stop a token source that failed, or fails then, is not asked any more", arguments: [false, true])
  func failingSource(stopsFirst: Bool) async throws {
    let source = Source()
    let stage = try EngineStage(source.tokens)
    try stage.turn { $0.start($1) }
    if stopsFirst { try stage.turn { $0.stop($1) } }
    await source.answer(0, .failure(Self.noNetwork))
    try await stage.takePost()
    if !stopsFirst { try stage.turn { $0.stop($1) } }
    #expect(stage.engine.deadline == nil && stage.state == .stopped(.stopped))
    try stage.pass(3600)
    #expect(source.needs == [.first])
    try stage.turn { $0.start($1) }
    await source.answer(1, .success("abc"))
    try await stage.takePost()
    try stage.open()
  }

  @Test("a source that gives up while a session stands does not end it, stopped and started meanwhile or not")
  func standingSession() async throws {
    let source = Source()
    let stage = try EngineStage(source.tokens)
    try stage.turn { $0.start($1) }
    await source.answer(0, .success("abc"))
    try await stage.takePost()
    try stage.open()
    // The question before a token's end, whose answer takes its time.
    try stage.turn { engine, _ in _ = engine.tokens.ask(.expiring) }
    try stage.turn { $0.stop($1) }
    try stage.end()
    try stage.turn { $0.start($1) }
    try stage.open()
    await source.answer(1, .failure(Self.signedOut))
    try await stage.takePost()
    #expect(stage.state.isLive && stage.engine.deadline == nil)
  }

  @Test(
    "start while a stopped connection closes begins anew when that is gone; stop returns, and a second stop ends it")
  func startWhileClosing() throws {
    let stage = try EngineStage()
    try stage.turn { $0.start($1) }
    try stage.open()
    let ended = EngineStage.Outcome<Bool>()
    try stage.turn { $0.stop($1) { ended.set(true) } }
    #expect(stage.session.state == .closing && ended.now == nil)
    let reader = FeedReader<TripEvent>()
    try stage.turn { engine, now in
      engine.start(now)
      engine.feeds.add(reader, to: .trip("T1"))
    }
    try stage.end()
    #expect(ended.now == true && stage.isConnecting)
    try stage.open()
    #expect(stage.messages.contains { if case .subscribe = $0.message { true } else { false } }, "the feed continues")
    try stage.turn { $0.stop($1) }
    try stage.turn { $0.start($1) }
    try stage.turn { $0.stop($1) }
    try stage.end()
    #expect(stage.state == .stopped(.stopped) && stage.session.deadline == nil)
  }

  @Test("stop and start in one turn: stop returns all the same, and the client connects")
  func sameTurn() throws {
    let stage = try EngineStage()
    for _ in 0..<3 {
      let ended = EngineStage.Outcome<Bool>()
      try stage.turn { engine, now in
        engine.start(now)
        engine.stop(now) { ended.set(true) }
        engine.start(now)
      }
      #expect(ended.now == true && stage.isConnecting)
    }
    try stage.open()
    try stage.turn { engine, now in
      engine.stop(now)
      engine.start(now)
    }
    try stage.end()
    #expect(stage.isConnecting)
  }

  @Test("what stop has failed is not sent by the next start, and what it has ended is not subscribed to")
  func failedRequests() throws {
    let stage = try EngineStage()
    let status = EngineStage.Outcome<HubError?>()
    let reader = FeedReader<TripEvent>()
    try stage.turn { engine, now in
      engine.start(now)
      engine.feeds.add(reader, to: .trip("T1"))
      engine.report(DriverStatusReport(status: .available)) {
        if case .failure(let error) = $0 { status.set(error) }
      }
    }
    try stage.turn { $0.stop($1) }
    #expect(status.now == .stopped)
    try stage.turn { $0.start($1) }
    try stage.open()
    #expect(stage.messages.isEmpty && stage.session.unconfirmed == 0)
  }
  @Test("a source that fails is asked again after 1, 2, 4 … 30 s, and up to 30 % of it more at random")
  func delays() async throws {
    let (broker, limits) = (TokenBroker(.fixed("abc")), ClientLimits())
    var now = Moment(uptime: 0, timestamp: Timestamp(milliseconds: 1_763_680_000_000))
    for unit in [0, 0.5] {
      _ = broker.ask(.first)
      _ = broker.takeNeed()
      for seconds in [1.0, 2, 4, 8, 16, 30, 30] {
        broker.failed(limits: limits, unit: unit, now)
        let due = now.uptime + nanoseconds(seconds * (1 + 0.3 * unit))
        #expect(broker.retryAt == due)
        now.uptime = due
        #expect(broker.retry(now) == .first)
      }
      broker.came()
    }
    // The engine draws anew for each.
    let source = Source()
    let stage = try EngineStage(source.tokens)
    try stage.turn { $0.start($1) }
    var parts: Set<Double> = []
    for (number, seconds) in [1.0, 2, 4].enumerated() {
      await source.answer(number, .failure(Self.noNetwork))
      try await stage.takePost()
      let wait = Double(try #require(stage.engine.deadline) - stage.now.uptime) / 1e9
      parts.insert(wait / seconds)
      if number < 2 { try stage.pass(wait + 0.001) }
    }
    #expect(parts.count == 3 && parts.allSatisfy { $0 >= 1 && $0 < 1.3 }, "\(parts)")
  }

  @Test(
    "a driver's move without an answer at the client's end fails as kept, whatever the end, and is sent after a start",
    arguments: [(4409, .replaced), (4400, .refused)] as [(UInt16, HubError.Code)])
  func keptMove(close: UInt16, code: HubError.Code) throws {
    let stage = try EngineStage(files: QueueFiles(QueueDisk()))
    let (outcome, erased) = (EngineStage.Outcome<HubError>(), EngineStage.Outcome<HubError>())
    var sent: [MessageID] {
      stage.messages.compactMap { if case .tripStatus = $0.message { $0.messageID } else { nil } }
    }
    try stage.turn { $0.start($1) }
    try stage.open()
    try stage.turn { Self.move($0, $1, outcome) }
    try stage.turn { engine, _ in engine.session.giveUp(.closed(CloseCode(close))) }
    guard case .stopped(let end) = stage.state else { return #expect(Bool(false)) }
    #expect(end.code == code && outcome.now == .stoppedBeforeAnswer)
    try stage.turn { $0.start($1) }
    try stage.open()
    #expect(sent.count == 2 && sent.first == sent.last)
    // Erased, it is not kept.
    try stage.turn { Self.move($0, $1, erased) }
    try stage.turn { $0.stop($1, erasing: true) }
    #expect(erased.now == .stopped)
  }

  @Test("so does a move of a client whose token is no driver's")
  func keptMoveOfAnotherRole() throws {
    let stage = try EngineStage(files: QueueFiles(QueueDisk()))
    let outcome = EngineStage.Outcome<HubError>()
    try stage.turn { Self.move($0, $1, outcome) }
    try stage.turn { $0.start($1) }
    try stage.open(as: .rider)
    try stage.end()
    guard case .stopped(let end) = stage.state else { return #expect(Bool(false)) }
    #expect(end.code == .token && outcome.now == .stoppedBeforeAnswer)
    #expect(stage.engine.driver?.queue.moves.count == 1)
  }

  private static func move(_ engine: HubEngine, _ now: Moment, _ outcome: EngineStage.Outcome<HubError>) {
    engine.move(TripStatusReport(tripID: "T1", status: .accepted, timestamp: now.timestamp), now) {
      if case .failure(let error) = $0 { outcome.set(error) }
    }
  }
}
