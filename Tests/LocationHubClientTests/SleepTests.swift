// A device that sleeps: time has passed when it wakes.
import HubMessages
import HubSystem
import Synchronization
import Testing

@testable import HubClientCore
@testable import LocationHubClient

@Suite(.timeLimit(.minutes(5))) struct SleepTests {
  @Test("after an hour's sleep a connection is not believed: it is made anew at once")
  func connection() async throws {
    let hub = try TestHub()
    let asleep = Asleep()
    var options = HubOptions()
    (options.limits.firstDelay, options.limits.spreadSeconds) = (0.05, 0.05)
    options.clock = { asleep.read() }
    let source = TokenSource.development(.rider, "r1")
    let connection = LatestSource<ConnectionState>(.idle)
    let life = try makeRunner(
      try options.configuration("ws://127.0.0.1:\(hub.port)/v1/ws", source), options, source, connection, driver: nil)
    life.submit { $0.start($1) }
    let begin = Timestamp.now
    for await state in Latest(source: connection) where state.isLive { break }
    asleep.nanoseconds.store(3_600_000_000_000, ordering: .relaxed)
    // Whatever the app does first when it wakes.
    life.submit { _, _ in }
    for await state in Latest(source: connection) {
      if case .live(let since) = state, since.milliseconds >= begin.milliseconds + 3_600_000 { break }
    }
    await life.stop()
  }

  @Test("an app that does nothing sees each attempt to connect")
  func attempts() async throws {
    var options = HubOptions()
    (options.limits.firstDelay, options.limits.spreadSeconds) = (0.01, 0.01)
    let source = TokenSource.development(.rider, "r1")
    let connection = LatestSource<ConnectionState>(.idle)
    let life = try makeRunner(
      try options.configuration("ws://127.0.0.1:1/v1/ws", source), options, source, connection, driver: nil)
    life.submit { $0.start($1) }
    for await state in Latest(source: connection) {
      if case .connecting(let attempt) = state, attempt > 2 { break }
    }
    await life.stop()
  }

  /// How long the device has slept so far.
  private final class Asleep: Sendable {
    let nanoseconds = Atomic<Int64>(0)

    func read() -> ClockReading {
      let slept = nanoseconds.load(ordering: .relaxed)
      return ClockReading(
        uptimeNanoseconds: continuousUptime() + slept,
        unixMilliseconds: Timestamp.now.milliseconds + slept / 1_000_000)
    }
  }

  @Test("the client's clock continues from its first reading, by the nanosecond")
  func clock() {
    let first = continuousUptime()
    #expect(first > 0 && continuousUptime() >= first)
  }
}
