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
}
