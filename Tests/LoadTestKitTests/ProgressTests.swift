// What a run says of how far it is, with progress and times made up.
import Testing

@testable import HubLoadTestKit

@Suite struct ProgressTests {
  private func progress(_ sent: Int, worst: UInt64 = 0) -> Progress {
    var progress = Progress()
    (progress.ready, progress.wanted, progress.sent, progress.delivered, progress.worst) = (2, 2, sent, sent, worst)
    return progress
  }

  @Test("a line a second, each for its phase; the first of a phase counts from where that began")
  func phases() {
    let second: Int64 = 1_000_000_000
    var lines = ProgressLines(name: "trip", at: 0)
    var connecting = Progress()
    (connecting.ready, connecting.wanted) = (40, 2000)
    #expect(!lines.isDue(second - 1) && lines.isDue(second))
    #expect(lines.line(connecting, at: second) == "trip: connecting, 40 of 2,000 sessions")
    #expect(!lines.isDue(2 * second - 1))

    lines.begin(.warmUp, at: 3 * second, progress(0))
    #expect(
      lines.line(progress(100, worst: 9000), at: 4 * second)
        == "trip: warm-up, 2 sessions, 100 fixes and 100 positions in this second")

    lines.begin(.window, at: 5 * second, progress(5000))
    #expect(
      lines.line(progress(5100, worst: 250), at: 6 * second)
        == "trip: 2 sessions, 100 fixes and 100 positions in this second, worst 250.0 µs")

    var late = progress(5200)
    lines.begin(.waiting, at: 7 * second, late)
    late.missing = 12
    late.errors = 1
    #expect(lines.line(late, at: 8 * second) == "trip: waiting for what is missing: 12, 1 errors")
    late.missing = 0
    #expect(lines.line(late, at: 9 * second).hasPrefix("trip: waiting whether anything else comes"))
  }

  @Test("the highest latency is that of the whole second, also where a thread has reported several times within it")
  func worst() {
    var board = LoadRun.Board(progress: [Progress(), Progress()])
    board.progress[0].update(progress(1, worst: 700))
    board.progress[0].update(progress(2, worst: 30))
    board.progress[1].update(progress(5, worst: 40))
    let sum = board.takeProgress()
    #expect(sum.worst == 700 && sum.sent == 7 && sum.ready == 4)
    #expect(board.takeProgress().worst == 0)
  }
}
