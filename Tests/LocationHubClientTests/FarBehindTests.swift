// A client whose thread is far behind: what must not be lost is not.
import HubMessages
import Testing

@testable import HubClientCore
@testable import LocationHubClient

@Suite(.timeLimit(.minutes(1))) struct FarBehindTests {
  /// Lives as long as the client that asks it for tokens.
  private final class Witness: Sendable {}

  @Test("to a client that is far behind fixes are refused; a feed's end, a token, stop and the end are not")
  func farBehind() async throws {
    weak var witness: Witness?
    let connection = LatestSource<ConnectionState>(.idle)
    do {
      let life = try life(connection, watching: &witness)
      let (isBlocked, gate) = (EngineStage.Outcome<Bool>(), EngineStage.Outcome<Bool>())
      var lease: FeedLease<TripEvent>? = life.read {
        $0.feeds.add($1, to: .trip("T1"))
      } removing: { engine, key in
        engine.feeds.remove(key, from: .trip("T1"), engine.session)
      }
      life.submit { _, _ in
        isBlocked.set(true)
        while gate.now == nil {}
      }
      while isBlocked.now == nil { await Task.yield() }
      while life.submit({ _, _ in }) {}
      #expect(lease != nil)
      lease = nil
      let late: FeedLease<TripEvent> = life.read {
        $0.feeds.add($1, to: .trip("T2"))
      } removing: { _, _ in
        Issue.record("it was never added")
      }
      #expect(await late.reader.next() == nil, "a feed that can't begin ends")
      let readers = EngineStage.Outcome<Int>()
      #expect(life.submitRequired { engine, _ in readers.set(engine.session.backlog) })
      async let stopped: Void = life.stop()
      gate.set(true)
      await stopped
      #expect(connection.current == .stopped(.stopped) && readers.now == 0)
    }
    // Its thread ends, and lets go of all.
    while witness != nil { await Task.yield() }
  }

  private func life(_ connection: LatestSource<ConnectionState>, watching: inout Witness?) throws -> ClientLife {
    let witness = Witness()
    watching = witness
    let tokens = TokenSource { _ in withExtendedLifetime(witness) { "abc" } }
    let options = HubOptions()
    return try makeRunner(
      try options.configuration("ws://127.0.0.1:9", tokens), options, tokens, connection, driver: nil)
  }
}
