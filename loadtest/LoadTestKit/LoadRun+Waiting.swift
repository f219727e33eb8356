// What the one who started the threads does meanwhile: waits for them, says once a second how far they are, and sees
// what cuts a run short.
import HubCommandLine
import HubSystem

/// Why a run ends before its time.
enum Cut: Error {
  /// Nothing else is known of it.
  case failed(LoadTestError)
  case interrupted(Int32)
  case hubEnded(String)

  var invalid: [String] {
    switch self {
    case .interrupted(let signal): [Interruption.text(signal)]
    case .failed, .hubEnded: []
    }
  }

  /// Only this: all that did not come, and each session that broke, is of the hub's end.
  var violations: [String] {
    switch self {
    case .hubEnded(let how): [how]
    case .failed, .interrupted: []
    }
  }
}

extension LoadRun {
  /// Until the threads have come so far.
  func wait(
    _ target: Target, _ board: Locked<Board>, _ course: inout Course, _ what: String, until isTrue: (Board) -> Bool
  ) throws(Cut) {
    let end = ClockReading.read().uptimeNanoseconds + Int64((options.connectSeconds + 10) * 1e9)
    while true {
      try look(target, board, course)
      if board.withLock({ isTrue($0) }) { return }
      let now = ClockReading.read().uptimeNanoseconds
      guard now < end else { throw .failed(.failed("gave up waiting until \(what)")) }
      report(board, &course, now)
      pause(microseconds: 2000)
    }
  }

  /// Until a time, or until all threads are done before it.
  func wait(
    _ target: Target, _ board: Locked<Board>, _ course: inout Course, until time: Int64, _ sampler: ModeSampler? = nil
  ) throws(Cut) {
    while true {
      try look(target, board, course)
      let isDone = board.withLock { $0.results.count == threadCount }
      let now = ClockReading.read().uptimeNanoseconds
      if now >= time || isDone { return }
      sampler?.collect()
      report(board, &course, now)
      pause(microseconds: Int(min(20_000, max(1, (time - now) / 1000))))
    }
  }

  /// Throws where the run cannot continue.
  private func look(_ target: Target, _ board: Locked<Board>, _ course: Course) throws(Cut) {
    if let signal = options.interruption.signal { throw .interrupted(signal) }
    let failure = board.withLock { $0.failure }
    // The sessions of a hub that dies break a moment before the kernel says how it ended.
    let limit = ClockReading.read().uptimeNanoseconds + (failure == nil ? 0 : 500_000_000)
    repeat {
      if let ending = target.ending { throw .hubEnded(ending + LoadRun.moment(course)) }
      if failure != nil { pause(microseconds: 5000) }
    } while ClockReading.read().uptimeNanoseconds < limit
    if let failure { throw .failed(failure) }
  }

  private static func moment(_ course: Course) -> String {
    guard let schedule = course.schedule else { return " while sessions were connecting" }
    return " after \(decimals(Double(max(0, ClockReading.read().uptimeNanoseconds - schedule.start)) / 1e9, 1)) s"
  }

  /// Ends the threads before their time, and waits for what they have counted.
  func end(_ board: Locked<Board>) {
    board.withLock { $0.isOver = true }
    guard board.withLock({ $0.schedule != nil }) else { return }
    let limit = ClockReading.read().uptimeNanoseconds + 1_000_000_000
    while board.withLock({ $0.results.count < threadCount }), ClockReading.read().uptimeNanoseconds < limit {
      pause(microseconds: 2000)
    }
  }

  // MARK: Progress

  func enter(_ phase: ProgressLines.Phase, _ board: Locked<Board>, _ course: inout Course) {
    course.lines.begin(phase, at: ClockReading.read().uptimeNanoseconds, board.withLock { $0.takeProgress() })
  }

  private func report(_ board: Locked<Board>, _ course: inout Course, _ now: Int64) {
    guard let progress = options.progress, course.lines.isDue(now) else { return }
    progress(course.lines.line(board.withLock { $0.takeProgress() }, at: now))
  }
}

extension LoadRun.Board {
  /// The progress of all threads together; the highest latency begins anew.
  mutating func takeProgress() -> Progress {
    var sum = Progress()
    for index in progress.indices {
      sum.add(progress[index])
      progress[index].worst = 0
    }
    return sum
  }
}
