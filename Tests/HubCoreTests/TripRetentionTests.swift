// How long a hub keeps trips over its own restarts: those that nobody ends, and those that have ended.
import HubBytes
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct TripRetentionTests {
  private let driver = SessionRef(outlet: 0, slot: 1, generation: 1)

  /// A hub with the trip `T`, which its driver has accepted, and perhaps completed.
  private func makeBench(isOver: Bool = false) throws -> DurableBench {
    let bench = try DurableBench()
    bench.turn([bench.move(.ops, "o", "T", .requested), bench.move(.driver, "D", "T", .accepted)])
    if isOver { bench.turn([bench.move(.ops, "o", "T", .cancelled)]) }
    bench.store()
    return bench
  }

  @Test(
    "A trip is abandoned after a day without a word, however often the hub was restarted", arguments: [false, true])
  func abandoned(fromSnapshot: Bool) throws {
    var bench = try makeBench()
    for life in 0..<3 {
      bench.pass(minutes: 60)
      bench = try bench.restarted(after: 6 * 3600, fromSnapshot: fromSnapshot || life > 0)
    }
    bench.pass(minutes: 179)
    #expect(bench.status == .accepted)
    bench.pass(minutes: 2)
    #expect(bench.status == .cancelled)
  }

  @Test("The last position counts as a word, also one before a restart")
  func positions() throws {
    let bench = try makeBench()
    bench.turn([.driverConnecting(driver, id("D"))])
    bench.pass(minutes: 600)
    bench.turn([fix(bench)])
    bench.store()
    let next = try bench.restarted(after: 20 * 3600)
    next.pass(minutes: 239)
    #expect(next.status == .accepted)
    next.pass(minutes: 2)
    #expect(next.status == .cancelled)
  }

  @Test("After an outage of days who was cut off has ten minutes to come back to its trip")
  func outage() throws {
    let (silent, heard) = (try makeBench().restarted(after: 200_000), try makeBench().restarted(after: 200_000))
    heard.turn([.driverConnecting(driver, id("D"))])
    for bench in [silent, heard] { bench.pass(minutes: 9) }
    #expect(silent.status == .accepted && heard.status == .accepted)
    heard.turn([fix(heard)])
    for bench in [silent, heard] { bench.pass(minutes: 2) }
    #expect(silent.status == .cancelled && heard.status == .accepted)
    heard.pass(minutes: 1436)
    #expect(heard.status == .accepted)
    heard.pass(minutes: 3)
    #expect(heard.status == .cancelled)
  }

  @Test("A clock that is far ahead at a start, and set right soon, neither abandons a trip nor forgets one")
  func clockAhead() throws {
    for isOver in [false, true] {
      let bench = try makeBench(isOver: isOver).restarted(after: 60, wallIsAhead: 40 * 86_400_000)
      bench.pass(minutes: 5)
      bench.wallIsAhead = 0
      bench.pass(minutes: 1430)
      #expect(bench.status == (isOver ? .cancelled : .accepted))
      bench.pass(minutes: 6)
      #expect(bench.status == (isOver ? nil : .cancelled), "a day has passed")
    }
  }

  @Test("A trip that ended under a clock that was far ahead is kept for a day from the start")
  func clockWasAhead() throws {
    let bench = try DurableBench(wallIsAhead: 40 * 86_400_000)
    bench.turn([bench.move(.ops, "o", "T", .requested), bench.move(.ops, "o", "T", .cancelled)])
    bench.store()
    let next = try bench.restarted(after: 60)
    next.pass(minutes: 1439)
    #expect(next.status == .cancelled)
    next.pass(minutes: 2)
    #expect(next.status == nil)
  }

  private func fix(_ bench: DurableBench) -> HubInput {
    .fix(
      FixInput(
        session: driver, messageID: bench.freshMessage(), sent: bench.now.timestamp, received: bench.now,
        update: LocationUpdate(
          tripID: id("T"), fix: Fix(coordinate: at(52.5, 13.4), timestamp: bench.now.timestamp, accuracy: 5)),
        tripIsGranted: true))
  }
}

extension DurableBench {
  /// The state of the trip `T`; nil where it is not known.
  fileprivate var status: TripStatus? { hub.trips.find(id("T")).map { hub.trips[$0].status } }

  /// Lets time pass, a turn a minute, everything stored at once.
  fileprivate func pass(minutes: Int) {
    for _ in 0..<minutes {
      advance(seconds: 60)
      turn([])
      store()
    }
  }
}
