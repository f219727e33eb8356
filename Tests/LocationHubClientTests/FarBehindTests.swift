// A client whose thread is far behind: what must not be lost is not.
import Glibc
import HubGeo
import HubMessages
import HubSystem
import Synchronization
import Testing

@testable import HubClientCore
@testable import LocationHubClient

@Suite(.timeLimit(.minutes(5))) struct FarBehindTests {
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
        while gate.now == nil { sched_yield() }
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

  @Test("to a client that is far behind every question and move fails with full, and says that it helps to try later")
  func questions() async throws {
    let gate = Gate()
    var options = HubOptions()
    options.clock = { gate.pass() }
    let url = "ws://127.0.0.1:9"
    let driver = try DriverHub(url, tokens: .development(.driver, "d1"), store: .memory, options: options)
    let rider = try RiderHub(url, tokens: .development(.rider, "r1"), options: options)
    let place = Coordinate(latitude: 48, longitude: 11)!
    let feed = rider.area(around: place, radius: 100)
    gate.isShut.store(true, ordering: .relaxed)
    var second: Int64 = 0
    while driver.send(fix(second, at: place)) != .full { second += 60 }
    for _ in 0...LoopRunner.maximumWork { feed.move(to: place, radius: 200) }
    await expectFull { () async throws(HubError) in try await driver.setStatus(.available) }
    await expectFull { () async throws(HubError) in try await driver.move("T1", to: .accepted) }
    await expectFull { () async throws(HubError) in try await driver.accept("T1") }
    await expectFull { () async throws(HubError) in try await driver.decline("T1") }
    await expectFull { () async throws(HubError) in _ = try await rider.nearby(place, radius: 100) }
    await expectFull { () async throws(HubError) in _ = try await rider.getTrip("T1") }
    await expectFull { () async throws(HubError) in _ = try await rider.share("T1") }
    var trip = rider.trip("T1").makeAsyncIterator()
    #expect(await trip.next() == .ended(.refused(.farBehind)), "a feed that can't begin says why")
    #expect(await trip.next() == nil)
    gate.isShut.store(false, ordering: .relaxed)
    await driver.stop()
    await rider.stop()
  }

  /// Holds up whatever reads the clock.
  private final class Gate: Sendable {
    let isShut = Atomic(false)

    func pass() -> ClockReading {
      while isShut.load(ordering: .relaxed) { sched_yield() }
      return .read()
    }
  }

  private func fix(_ second: Int64, at place: Coordinate) -> Fix {
    Fix(coordinate: place, timestamp: Timestamp(milliseconds: 1_763_680_000_000 + second * 1000), accuracy: 5)
  }

  private func expectFull(_ call: () async throws(HubError) -> Void) async {
    do throws(HubError) {
      try await call()
      Issue.record("it was taken")
    } catch {
      #expect(error.code == .full && error.retry == .later(after: nil))
    }
  }

  private func life(_ connection: LatestSource<ConnectionState>, watching: inout Witness?) throws -> RunningClient {
    let witness = Witness()
    watching = witness
    let tokens = TokenSource { _ in withExtendedLifetime(witness) { "abc" } }
    let options = HubOptions()
    return try makeRunner(
      try options.configuration("ws://127.0.0.1:9", tokens), options, tokens, connection, driver: nil)
  }
}
