// `filter`: what the hub would publish for a trace, without a hub.
import Bytes
import Glibc
import HubCore
import Messages
import Simulation
import Transport

let filter = Verb(
  name: "filter", operands: "TRACE.csv",
  summary: """
    Prints what a hub would publish for a recorded drive.
    One row for each position: \(TraceFile.rowHeader).
    The trace has the columns t_ms, lat, lon and, where known, accuracy_m, speed_mps, bearing_deg; others are ignored.
    The file - is standard input.
    """,
  options: [],
  run: runFilter)

private func runFilter(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  guard arguments.operands.count == 1, let path = arguments.operands.first else {
    throw .usage("filter takes one trace: locationhub filter TRACE.csv")
  }
  let fixes = try readTrace(path)
  try system { () throws(SystemError) in try blockSignals([SIGPIPE]) }
  var output = ByteBuffer()
  output.append(utf8: TraceFile.rowHeader + "\n")
  var tracker = RecordedTracker()
  for fix in fixes {
    tracker.follow(fix) { position in
      output.append(
        utf8: TraceFile.row(
          timestamp: position.timestamp, coordinate: position.coordinate, speed: position.speed,
          heading: position.heading) + "\n")
    }
    // A reader that has gone, as `head` does, is an end like any other.
    if output.count > 1 << 16 {
      guard output.withBytes({ StandardStream.output.write($0) }) else { return .ok }
      output.removeAll()
    }
  }
  _ = output.withBytes { StandardStream.output.write($0) }
  return .ok
}

/// The fixes of a file; `-` is standard input.
func readTrace(_ path: String) throws(CommandError) -> [Fix] {
  let bytes = try readBytes(path == "-" ? "/dev/stdin" : path)
  let fixes: [Fix]
  do throws(TraceError) { fixes = try TraceFile.fixes(bytes) } catch { throw .failed("\(path): \(error)") }
  guard !fixes.isEmpty else { throw .failed("\(path): there is no fix in this trace") }
  return fixes
}

/// A tracker whose clock is the recording's: as much time passes between two fixes as when they were measured, so that
/// nothing counts as a leap because it is read fast.
struct RecordedTracker {
  private var tracker = Tracker()
  private var first: Int64?
  private var uptime: Int64 = 0

  /// Calls `publish` with each position that comes of the fix: none, one, or two.
  mutating func follow(_ fix: Fix, _ publish: (Position) -> Void) {
    let milliseconds = fix.timestamp.milliseconds
    let start = first ?? milliseconds
    first = start
    // A clock never goes back, whatever a recording says.
    let (nanoseconds, overflow) = (milliseconds - start).multipliedReportingOverflow(by: 1_000_000)
    uptime = max(uptime, overflow ? .max : nanoseconds)
    switch tracker.update(fix, receivedAt: uptime) {
    case .accepted(let position): publish(position)
    case .acceptedTwo(let held, let position):
      publish(held)
      publish(position)
    case .acceptedHeld(let held, refused: _): publish(held)
    case .history, .duplicate, .held, .refused: break
    }
  }
}
