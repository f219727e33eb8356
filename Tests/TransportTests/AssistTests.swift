// Turns of a loop that sleeps, on another thread. Run with the thread sanitizer, too.

import Glibc
import HubSystem
import Testing

@testable import HubTransport

/// A loop that a thread of its own runs, and others assist.
private final class AssistedLoop {
  /// What the loop's delegate is called with, from any thread.
  struct Notes {
    /// For the end of any turn.
    var posted: [Int] = []
    var seen: [Int] = []
    /// For `woken` alone.
    var called: [Int] = []
    var heard: [Int] = []
    var assisted = 0
    var timers = 0
    /// The assist that comes next is to set the loop's timer.
    var setsTimer = false
    /// The assist that comes next is to stop the loop.
    var stops = false
    /// The assist that comes next is to wake the loop's own thread, and to look whether it is told of that.
    var wakes = false
    var told = 0
  }

  let notes: Locked<Notes>
  let assistant: LoopAssistant
  private let thread: Handle

  /// `@unchecked Sendable`: the test's thread lets go of the loop before the other begins.
  private struct Box: @unchecked Sendable {
    let loop: EventLoop
  }

  init() throws(SystemError) {
    let loop = try EventLoop()
    let notes = Locked(Notes())
    assistant = loop.allowAssists()
    self.notes = notes
    let box = Box(loop: loop)
    thread = Handle(try startThread(name: "assisted") { AssistedLoop.run(box.loop, notes) })
  }

  private static func run(_ loop: EventLoop, _ notes: Locked<Notes>) {
    let recorder = Recorder(loop)
    recorder.onWoken = {
      notes.withLock { notes in
        notes.heard += notes.called
        notes.called = []
      }
    }
    recorder.onTurnEnding = { [unowned recorder] in
      let isAssisted = loop.isAssisted
      let (setsTimer, stops, wakes) = notes.withLock { notes in
        notes.seen += notes.posted
        notes.posted = []
        notes.timers = recorder.loopTimers
        guard isAssisted else { return (false, false, false) }
        notes.assisted += 1
        defer { (notes.setsTimer, notes.stops) = (false, false) }
        return (notes.setsTimer, notes.stops, notes.wakes)
      }
      if wakes {
        loop.waker.signal()
        var told = 0
        for _ in 0..<10_000 {
          if loop.hasUnhandledReports { told += 1 }
          sched_yield()
        }
        notes.withLock { ($0.wakes, $0.told) = (false, told) }
      }
      if setsTimer { loop.setLoopTimer(at: loop.now.uptimeNanoseconds + 1_000_000) }
      if stops { loop.stop() }
    }
    withExtendedLifetime(recorder) { loop.run() }
  }

  /// Waits for what the loop's thread does, for half a minute at most.
  func wait(calling call: () -> Void = {}, until isDone: (Notes) -> Bool) throws {
    let start = ClockReading.read().uptimeNanoseconds
    while !notes.withLock({ isDone($0) }) {
      try #require(ClockReading.read().uptimeNanoseconds - start < 30_000_000_000, "nothing came in time")
      call()
      sched_yield()
    }
  }

  /// Assists until `isDone`: the loop may not sleep yet, and then it looks for itself.
  func assist(until isDone: (Notes) -> Bool) throws { try wait(calling: { assistant.assist() }, until: isDone) }

  func stop() throws {
    notes.withLock { $0.stops = true }
    try assist { !$0.stops }
    thread.join()
  }
}

@Suite struct `Assists to a loop that sleeps` {
  @Test func `what two assistants bring is seen once and in order, some of it without waking the thread`() throws {
    let loop = try AssistedLoop()
    let (each, notes, assistant) = (20_000, loop.notes, loop.assistant)
    @Sendable func bring(_ base: Int) {
      for number in base..<base + each {
        notes.withLock { $0.posted.append(number) }
        assistant.assist()
      }
    }
    let other = try startThread(name: "assistant") { @Sendable in bring(1_000_000) }
    bring(0)
    other.join()
    try loop.assist { $0.seen.count == 2 * each && $0.assisted > 0 }
    try loop.stop()
    let seen = notes.withLock { $0.seen }
    #expect(seen.filter { $0 < 1_000_000 } == Array(0..<each))
    #expect(seen.filter { $0 >= 1_000_000 } == Array(1_000_000..<1_000_000 + each))
  }

  @Test func `no call by the waker is lost among assists: it is for the loop's own thread`() throws {
    let loop = try AssistedLoop()
    let (each, notes, assistant, waker) = (20_000, loop.notes, loop.assistant, loop.assistant.waker)
    let other = try startThread(name: "waker") { @Sendable in
      for number in 0..<each {
        notes.withLock { $0.called.append(number) }
        waker.wake()
      }
    }
    for number in 0..<each {
      notes.withLock { $0.posted.append(number) }
      assistant.assist()
    }
    other.join()
    // Nobody calls any more: the last calls must have been enough.
    try loop.wait { $0.seen.count + $0.heard.count == 2 * each }
    try loop.stop()
    #expect(notes.withLock { $0.seen } == Array(0..<each))
    #expect(notes.withLock { $0.heard } == Array(0..<each))
  }

  @Test func `a timer that an assist sets earlier than the loop's sleep ends, ends that sleep`() throws {
    let loop = try AssistedLoop()
    loop.notes.withLock { $0.setsTimer = true }
    try loop.assist { !$0.setsTimer }
    // The loop slept without end, and is not assisted any more.
    try loop.wait { $0.timers > 0 }
    try loop.stop()
    #expect(loop.notes.withLock { $0.timers } == 1)
  }

  @Test func `a assist can stop the loop, and comes to nothing afterwards`() throws {
    let loop = try AssistedLoop()
    try loop.stop()
    let assisted = loop.notes.withLock { $0.assisted }
    for _ in 0..<10 { loop.assistant.assist() }
    #expect(assisted > 0 && loop.notes.withLock { $0.assisted } == assisted)
  }
  @Test func `an assist sees nothing of what the loop's own thread wakes for meanwhile`() throws {
    let loop = try AssistedLoop()
    loop.notes.withLock { $0.wakes = true }
    try loop.assist { !$0.wakes }
    try loop.stop()
    #expect(loop.notes.withLock { $0.told } == 0)
  }
}
