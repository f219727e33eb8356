// `filter`: what the hub would publish for a trace, without a hub.
import Glibc
import HubBytes
import HubCommandLine
import HubCore
import HubGeo
import HubMessages
import HubSimulation
import HubSystem

let filter = Verb(
  name: "filter", operands: "TRACE.csv",
  summary: """
    Prints what a hub would publish for a recorded drive.
    One row for each position: \(TraceFile.rowHeader).
    The trace has the columns t_ms, lat, lon and, where known, accuracy_m, speed_mps, bearing_deg; others are ignored.
    The file - is standard input.
    """,
  options: [
    Option(
      "accuracy", nil, "a further column: the radius in metres that contains the true position with 68 % probability"),
    Option("every", "N", "use only every Nth fix, as if the phone sent less often"),
    Option(
      "extrapolate", "STEP", "also print the extrapolated place at each STEP after a position (100ms, 1s, 0.5s)"),
  ],
  run: runFilter)

private func runFilter(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  guard arguments.operands.count == 1, let path = arguments.operands.first else {
    throw .usage("filter takes one trace: locationhub filter TRACE.csv")
  }
  let every = try arguments.value("every", .whole(1...1_000_000)) ?? 1
  let extrapolation = try arguments.string("extrapolate").map { (text) throws(CommandError) in try step(text) }
  let fixes = try readTrace(path)
  try system { () throws(SystemError) in try blockSignals([SIGPIPE]) }
  var rows = FilterRows(extrapolation: extrapolation, showsAccuracy: arguments.has("accuracy"))
  var tracker = RecordedTracker()
  for index in stride(from: 0, to: fixes.count, by: every) {
    tracker.follow(fixes[index]) { rows.add($0) }
    // A reader that closes the pipe, such as `head`, ends the program without an error.
    guard rows.flush(over: 1 << 16) else { return .ok }
  }
  rows.end(at: fixes.map(\.timestamp).max())
  _ = rows.flush(over: 0)
  return .ok
}

/// Milliseconds of `100ms`, `1s`, `0.5s`.
private func step(_ text: String) throws(CommandError) -> Int64 {
  let isMilliseconds = text.hasSuffix("ms")
  let digits = text.dropLast(isMilliseconds ? 2 : 1)
  guard text.hasSuffix("s"), let value = Double(digits), value.isFinite else {
    throw .usage("--extrapolate must be like 100ms or 0.5s, not \(text)")
  }
  let milliseconds = (isMilliseconds ? value : value * 1000).rounded()
  guard (1...60_000).contains(milliseconds) else {
    throw .usage("--extrapolate must be from 1ms to 60s, not \(text)")
  }
  return Int64(milliseconds)
}

/// The printed rows: positions and, if requested, extrapolated ones between them.
private struct FilterRows: ~Copyable {
  let extrapolation: Int64?
  let showsAccuracy: Bool
  private var output = ByteBuffer()
  private var last: Position?

  init(extrapolation: Int64?, showsAccuracy: Bool) {
    self.extrapolation = extrapolation
    self.showsAccuracy = showsAccuracy
    output.append(utf8: TraceFile.rowHeader + (showsAccuracy ? ",accuracy\n" : "\n"))
  }

  mutating func add(_ position: Position) {
    predict(until: position.timestamp)
    write(position, at: position.timestamp, position.coordinate)
    last = position
  }

  /// Extrapolates until the end of the trace, if the last position is older than its last fix.
  mutating func end(at time: Timestamp?) {
    guard let time else { return }
    predict(until: Timestamp(milliseconds: time.milliseconds + 1))
  }

  /// False when the reader has gone.
  mutating func flush(over count: Int) -> Bool {
    guard output.count > count else { return true }
    defer { output.removeAll() }
    return unsafe output.withBytes { unsafe StandardStream.output.write($0) }
  }

  /// The extrapolated position at each step after the last one, up to the limit of extrapolation.
  private mutating func predict(until end: Timestamp) {
    guard let extrapolation, let last else { return }
    let reach = last.timestamp.milliseconds + Int64(Position.longestPrediction * 1000)
    var time = last.timestamp.milliseconds + extrapolation
    while time < end.milliseconds, time <= reach {
      write(last, at: Timestamp(milliseconds: time), last.predicted(at: Timestamp(milliseconds: time)))
      time += extrapolation
    }
  }

  private mutating func write(_ position: Position, at time: Timestamp, _ place: Coordinate) {
    output.append(
      utf8: TraceFile.row(
        timestamp: time, coordinate: place, speed: position.speed, heading: position.heading,
        accuracy: showsAccuracy ? position.accuracy : nil) + "\n")
  }
}

/// The fixes of a file; `-` is standard input.
func readTrace(_ path: String) throws(CommandError) -> [Fix] {
  let bytes = try readBytes(path == "-" ? "/dev/stdin" : path)
  let fixes: [Fix]
  do throws(TraceError) { fixes = try TraceFile.fixes(bytes) } catch { throw .failed("\(path): \(error)") }
  guard !fixes.isEmpty else { throw .failed("\(path): there is no fix in this trace") }
  return fixes
}

/// A tracker on the recording's clock: time passes as when the fixes were measured, so that reading fast makes no
/// leaps.
struct RecordedTracker {
  private var tracker = Tracker()
  private var first: Int64?
  private var uptime: Int64 = 0

  /// Calls `publish` with each position of the fix: none, one, or two.
  mutating func follow(_ fix: Fix, _ publish: (Position) -> Void) {
    let milliseconds = fix.timestamp.milliseconds
    let start = first ?? milliseconds
    first = start
    // The clock never goes back, even if a recording does.
    let (nanoseconds, overflow) = (milliseconds - start).multipliedReportingOverflow(by: 1_000_000)
    uptime = max(uptime, overflow ? .max : nanoseconds)
    switch tracker.update(fix, receivedAt: uptime) {
    case .accepted(let position), .clockBelieved(let position, _): publish(position)
    case .acceptedTwo(let held, let position):
      publish(held)
      publish(position)
    case .acceptedHeld(let held, refused: _): publish(held)
    case .history, .duplicate, .held, .clockDoubted, .refused: break
    }
  }
}
