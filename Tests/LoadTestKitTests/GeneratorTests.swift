// One thread's load by hand, without a hub: what is due, what comes, and what the run then says is missing.
import HubBytes
import HubSystem
import HubTransport
import Testing

@testable import HubLoadTestKit

@Suite struct GeneratorTests {
  private func generator(_ set: (inout Scenario) -> Void) throws -> Generator {
    var scenario = Scenario()
    (scenario.warmUp, scenario.duration) = (0, 10)
    set(&scenario)
    return try Generator(scenario, address: .loopback(port: 1), tls: nil)
  }

  private func violations(_ generator: Generator, _ figures: [Figure: Double] = [:]) -> [String] {
    generator.countMissingUpdates()
    return LoadRun(generator.scenario, RunOptions(executable: "")).violations(generator.counts, figures)
  }

  private func receive(_ text: String, by peer: UnsafeMutablePointer<Peer>, _ generator: Generator) {
    Array(text.utf8).withUnsafeBytes { generator.received(peer, $0) }
  }

  private func receiveFix(_ number: Int, _ generator: Generator) {
    receive(
      #"{"type":"driver_location","payload":{"driverId":"d0","timestamp":\#(FixTime.timestamp(number))},"timestamp":9}"#,
      by: generator.riders[0][0], generator)
  }

  @Test("what was due in a phase is measured when it comes behind its end, and what was due elsewhere is not")
  func phase() throws {
    let generator = try generator { ($0.drivers, $0.ridersPerTrip, $0.rate) = (1, 1, 1) }
    // Fixes are due at each second from a hundred seconds ago on.
    let start = ClockReading.read().uptimeNanoseconds - 100_000_000_000
    generator.begin(Schedule(generator.scenario, start: start))
    receiveFix(0, generator)
    generator.beginPhase(at: start + 500_000_000)
    #expect(generator.counts.latency.count == 0 && generator.missingOfPhase == 0)
    // Two are sent, one of which comes only when the phase is over.
    for _ in 0..<2 { generator.counts.lateness.record(nanoseconds: 0) }
    receiveFix(1, generator)
    generator.endPhase(at: start + 2_500_000_000)
    #expect(generator.missingOfPhase == 1)
    receiveFix(2, generator)
    receiveFix(3, generator)
    #expect(generator.missingOfPhase == 0 && generator.counts.latency.count == 2)
    generator.beginPhase(at: start + 4_500_000_000)
    #expect(generator.counts.latency.count == 0 && generator.counts.lateness.count == 0)
  }

  @Test("a phase is one part, however long it is")
  func longPhase() throws {
    let generator = try generator { ($0.drivers, $0.ridersPerTrip, $0.duration) = (1, 1, 0.1) }
    let start = ClockReading.read().uptimeNanoseconds - 100_000_000_000
    generator.begin(Schedule(generator.scenario, start: start))
    generator.beginPhase(at: start)
    generator.endPhase(at: start + 90_000_000_000)
    receiveFix(80, generator)
    #expect(generator.counts.latency.count == 1 && generator.counts.parts.count == 1)
  }

  @Test("who was due to leave and come again, and does not come, is a violation")
  func churn() throws {
    let generator = try generator { ($0.drivers, $0.churners, $0.churn) = (1, 2, 10) }
    let schedule = Schedule(generator.scenario, start: 0)
    for peer in generator.churners { peer.pointee.isReady = true }
    generator.begin(schedule)
    #expect(violations(generator).isEmpty)
    generator.join(schedule, 150_000_000)
    #expect(generator.leaving.count == 2 && violations(generator) == ["only 0 of 2 came (again)"])
    for peer in generator.leaving {
      peer.pointee.isReady = false
      generator.becameReady(peer)
    }
    #expect(violations(generator).isEmpty)
  }

  @Test("a storm that does not break is one that nobody comes in")
  func storm() throws {
    let generator = try generator { ($0.drivers, $0.storm) = (1, 3) }
    generator.begin(Schedule(generator.scenario, start: 0))
    #expect(violations(generator) == ["only 0 of 3 came (again)"])
  }

  @Test("sessions that were due outside of the window came, and their time does not count")
  func joins() throws {
    let generator = try generator { ($0.drivers, $0.churners, $0.churn, $0.warmUp) = (1, 2, 10, 5) }
    generator.begin(Schedule(generator.scenario, start: 0))
    for (peer, due) in zip(generator.churners, [4_900_000_000, 5_100_000_000] as [Int64]) {
      peer.pointee.dueAt = due
      generator.becameReady(peer)
    }
    #expect(generator.counts.joined == 2 && generator.counts.joins.count == 1)
  }

  private func update(_ tick: Int, isWhole: Bool = false, sent: Int64) -> String {
    #"{"type":"area_update","payload":{"cell":"u281z7","tick":\#(tick),"full":\#(isWhole),"drivers":[]},"#
      + #""timestamp":\#(sent),"messageId":"1"}"#
  }

  @Test("a watcher without its updates is a violation, unless the hub left some out")
  func watchers() throws {
    let generator = try generator { ($0.drivers, $0.rate, $0.watchers, $0.duration) = (20, 1, 2, 4) }
    #expect(generator.scenario.fewestUpdates == 3)
    generator.waiting = []  // they stand
    for tick in 1...3 { receive(update(tick, isWhole: tick == 1, sent: 0), by: generator.watchers[0], generator) }
    receive(update(1, isWhole: true, sent: 0), by: generator.watchers[1], generator)
    #expect(!generator.hasAll)
    let said = "2 updates of the cell missing, of 3 that each watcher gets at least"
    #expect(violations(generator) == [said] && violations(generator, [.areasSkipped: 1]).isEmpty)
    for tick in 2...3 { receive(update(tick, sent: 0), by: generator.watchers[1], generator) }
    #expect(generator.hasAll && violations(generator).isEmpty)
  }

  @Test("few fixes change what riders are shown less often than each second", arguments: [(1, 1.0, 1), (20, 1.0, 9)])
  func fewFixes(drivers: Int, rate: Double, updates: Int) throws {
    let scenario = try generator { ($0.drivers, $0.rate, $0.watchers) = (drivers, rate, 1) }.scenario
    #expect(scenario.fewestUpdates == updates)
  }

  @Test("an update counts by when it was sent: also one that comes behind the window")
  func spread() throws {
    let generator = try generator { ($0.drivers, $0.watchers) = (1, 1) }
    let now = ClockReading.read()
    // The window ended five seconds ago.
    generator.begin(Schedule(generator.scenario, start: now.uptimeNanoseconds - 15_000_000_000))
    receive(update(1, sent: now.unixMilliseconds), by: generator.watchers[0], generator)
    #expect(generator.counts.spread.count == 0)
    receive(update(2, sent: now.unixMilliseconds - 7000), by: generator.watchers[0], generator)
    #expect(generator.counts.spread.count == 1 && generator.counts.areaUpdates == 2)
  }

  @Test("no address has more sessions than it may, whatever they are for and on how many threads", arguments: [1, 3])
  func addresses(threads: Int) throws {
    var scenario = Scenario()
    (scenario.drivers, scenario.ridersPerTrip, scenario.idle, scenario.watchers) = (7, 2, 9, 0)
    (scenario.churners, scenario.churn, scenario.storm, scenario.sessionsPerAddress) = (5, 1, 6, 4)
    var sessions: [String: Int] = [:]
    for index in 0..<threads {
      let generator = try Generator(
        scenario, address: .loopback(port: 1), tls: nil, share: Share(index: index, of: threads))
      for peer in generator.peers { sessions["\(try #require(generator.localAddress(peer)))", default: 0] += 1 }
    }
    #expect(sessions.values.reduce(0, +) == scenario.maximumSessions && sessions.values.allSatisfy { $0 <= 4 })
  }
}
