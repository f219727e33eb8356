// When states leave for other hubs: time is moved by hand.
import Testing

@testable import HubCluster

/// A hub's times of frames, with a gather time of 1000.
private final class Bench {
  private(set) var gathering = StateGathering()

  /// A flush at a time, with states or without; whether they were sent.
  func flush(at now: Int64, hasStates: Bool = true, hasRoom: Bool = true) -> Bool {
    gathering.begin(1000, now: now)
    if hasStates { gathering.noteStates() }
    if !hasRoom { gathering.noteLeft() }
    gathering.end()
    return hasStates && gathering.isDue
  }

  var due: Int64 { gathering.due }
  var until: Int64 { gathering.until }
}

@Suite struct StateGatheringTests {
  private let bench = Bench()

  @Test("Lone states leave at once, and nobody waits for the next")
  func lone() {
    for now in stride(from: Int64(5000), to: 50_000, by: 2000) {
      #expect(bench.flush(at: now))
      #expect(bench.due == .max && bench.until == .min)
    }
  }

  @Test("States for which the bus has no room are tried again when the next frames are due")
  func noRoom() {
    #expect(bench.flush(at: 5000, hasRoom: false))
    #expect(bench.due == 6000)
    #expect(bench.flush(at: 6000))
    #expect(bench.due == .max)
  }

  @Test("States that come soon behind others wait for their time; then they are a stream, until one fails to come")
  func stream() {
    #expect(bench.flush(at: 5000))
    #expect(!bench.flush(at: 5400))
    #expect(bench.due == 6000 && bench.until == 6000)
    #expect(!bench.flush(at: 5999))
    #expect(bench.flush(at: 6000))
    #expect(bench.due == .max && bench.until == 7000, "the next ones are expected")
    #expect(!bench.flush(at: 6500, hasStates: false))
    #expect(bench.due == .max && bench.until == 7000)
    #expect(bench.flush(at: 7100))
    #expect(bench.until == 8100)
    #expect(!bench.flush(at: 8100, hasStates: false))
    #expect(bench.until == .min)
    #expect(bench.flush(at: 8200))
    #expect(bench.until == 9200, "a stream with a short hole")
    #expect(bench.flush(at: 10_200))
    #expect(bench.until == .min)
  }
}
