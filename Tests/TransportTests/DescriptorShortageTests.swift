// What a loop does when the process has no descriptors left. The test fills the table of descriptors of its own thread
// only (unshare(2) by way of close_range), so that tests which run at the same time do not feel it.

import CHubLinux
import Glibc
import HubTransport
import Testing

@testable import HubSystem

@Suite struct `Without descriptors` {
  struct Outcome {
    var pauses: UInt64 = 0
    var errorsWhileFull: UInt64 = 0
    var acceptedWhileFull = 0
    var acceptedTooEarly = 0
    var acceptedInTheEnd = 0
    var failure: String?
  }

  @Test func `accepting pauses for 200 ms instead of spinning, and goes on afterwards`() throws {
    // A test that runs meanwhile may raise the limit, which is the process's: then the table was not full.
    var (limit, result) = (0, Outcome())
    repeat {
      limit = try ProcessFacts.openFileLimit().current
      guard limit <= 1 << 20 else {
        print("skipped: filling a table of \(limit) descriptors would take too long")
        return
      }
      result = try Self.runOnThread(limit)
    } while try ProcessFacts.openFileLimit().current != limit
    #expect(result.failure == nil)
    #expect(result.pauses == 1)
    #expect(result.errorsWhileFull == 1, "asked the kernel once, not once a turn")
    #expect(result.acceptedWhileFull == 0)
    #expect(result.acceptedTooEarly == 0)
    #expect(result.acceptedInTheEnd == 1)
  }

  private static func runOnThread(_ limit: Int) throws -> Outcome {
    let outcome = Locked(Outcome())
    let thread = try startThread(name: "no-descriptors") {
      let result = Self.run(limit)
      outcome.withLock { $0 = result }
    }
    thread.join()
    return outcome.withLock { $0 }
  }

  /// `limit`: how many descriptors fill the table.
  private static func run(_ limit: Int) -> Outcome {
    var outcome = Outcome()
    // From here on this thread has a table of its own with nothing but the standard streams in it.
    let unshare: Int32 = 2  // CLOSE_RANGE_UNSHARE, linux/close_range.h
    guard close_range(3, .max, unshare) == 0 else {
      outcome.failure = "close_range: \(SystemError.text(errno))"
      return outcome
    }
    do {
      let clock = HandClock()
      let pair = try Pair(clock: clock)
      _ = try pair.client.connect(pair.address)
      var fillers: [Int32] = []
      while fillers.count < limit, case let filler = dup(0), filler >= 0 { fillers.append(filler) }
      for _ in 0..<50 { pair.turn(times: 1) }
      outcome.pauses = pair.server.counters.acceptPauses
      outcome.errorsWhileFull = pair.server.counters.acceptErrors
      outcome.acceptedWhileFull = pair.atServer.accepted.count
      for filler in fillers { close(filler) }
      clock.advance(milliseconds: 199)
      pair.turn(times: 5)
      outcome.acceptedTooEarly = pair.atServer.accepted.count
      clock.advance(milliseconds: 1)
      pair.turn(times: 5)
      outcome.acceptedInTheEnd = pair.atServer.accepted.count
    } catch {
      outcome.failure = "\(error)"
    }
    return outcome
  }
}
