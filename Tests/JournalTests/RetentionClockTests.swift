import Testing

@testable import HubJournal

@Suite struct RetentionClockTests {
  private static let hour: Int64 = 3_600_000
  private static let day = 24 * hour
  private static let origin: Int64 = 1_763_680_000_000

  /// A machine whose wall clock can be set.
  private struct Machine {
    var uptime: Int64 = 5_000_000
    /// How wrong the wall clock is.
    var error: Int64 = 0
    var clock: RetentionClock

    var wall: Int64 { origin + uptime + error }

    init(error: Int64 = 0, newest: Int64? = nil) {
      self.error = error
      clock = RetentionClock(uptime: 5_000_000, wall: origin + 5_000_000 + error, newest: newest)
    }

    /// A look, so much later: how far the time that it gives is off the right one, and what it found.
    mutating func look(after passed: Int64) -> (error: Int64, finding: RetentionClock.Finding) {
      uptime += passed
      let (time, finding) = clock.time(uptime: uptime, wall: wall)
      return (time - origin - uptime, finding)
    }
  }

  @Test("A clock that is 40 days ahead for a while changes nothing, and is reported once")
  func leap() {
    var machine = Machine()
    #expect(machine.look(after: 60_000) == (0, .nothing))
    machine.error = 40 * Self.day
    #expect(machine.look(after: 60_000) == (0, .leapt(milliseconds: 40 * Self.day)))
    for _ in 0..<1000 { #expect(machine.look(after: 60_000) == (0, .nothing)) }
    machine.error = 0
    for _ in 0..<3000 { #expect(machine.look(after: 60_000) == (0, .nothing)) }
    machine.error = Self.day
    #expect(machine.look(after: 60_000) == (0, .leapt(milliseconds: Self.day)), "another leap is reported again")
  }

  @Test("A clock that was set right is believed when it has held for a day")
  func setRight() {
    var machine = Machine(error: -100 * Self.day)
    #expect(machine.look(after: 1000) == (-100 * Self.day, .nothing))
    machine.error = 0
    #expect(machine.look(after: 1000) == (-100 * Self.day, .leapt(milliseconds: 100 * Self.day)))
    #expect(machine.look(after: Self.day - 1) == (-100 * Self.day, .nothing))
    #expect(machine.look(after: 1) == (0, .believed))
    #expect(machine.look(after: Self.day) == (0, .nothing))
  }

  @Test("Of leaps that follow each other no more is believed than has held for a day")
  func leaps() {
    var machine = Machine()
    machine.error = Self.day
    #expect(machine.look(after: 1000).error == 0)
    machine.error = 40 * Self.day
    #expect(machine.look(after: Self.day - 1) == (0, .leapt(milliseconds: 39 * Self.day)))
    #expect(machine.look(after: 1) == (Self.day, .believed))
  }

  @Test("A clock that goes back, drifts or is set by seconds is believed at once")
  func small() {
    var machine = Machine()
    for error in [30_000, 59_000, 100_000, 0, -40 * Self.day, -40 * Self.day + 50_000] as [Int64] {
      machine.error = error
      #expect(machine.look(after: 60_000) == (error, .nothing))
    }
  }

  @Test("At a start age counts from the journal's newest file, until the clock has gone on as uptime does for a day")
  func start() {
    let newest = Self.origin + 5_000_000 - 2 * Self.hour
    var machine = Machine(error: 40 * Self.day, newest: newest)
    #expect(machine.look(after: 0) == (-2 * Self.hour, .nothing))
    #expect(machine.look(after: Self.day - 1) == (-2 * Self.hour, .nothing))
    #expect(machine.look(after: 1) == (40 * Self.day, .believed))
    // A segment from the future says nothing.
    var early = Machine(newest: Self.origin + 90 * Self.day)
    #expect(early.look(after: 1000) == (0, .nothing))
  }

  private static func times(days: [Int64]) -> [Int64] { days.map { origin + $0 * day } }

  @Test(
    "Segments that were begun while the clock was wrong do not count at a start",
    arguments: [
      ([0, 1, 2, 42], 2),
      ([0, 1, 2, 42, 42, 42], 2),
      // Leaps that follow each other.
      ([0, 1, 2, 42, 82, 122, 162], 2),
      // It was set right again, with and without a segment meanwhile.
      ([0, 1, 42, 42, 3, 4], 4),
      ([0, 1, 42, 3, 43, 43], 3),
      // A hub that was away for a month; before its new time has held for a day, and after that.
      ([0, 1, 31], 1),
      ([0, 1, 31, 31, 32], 32),
      ([0, 1, 31, 36, 42], 42),
      // Few drivers: a segment a week.
      ([0, 7, 14, 21], 21),
      // The first ones of all were begun by a clock that was ahead.
      ([90, 90, 0, 1], 1),
      ([5], 5),
    ] as [([Int64], Int64)])
  func segments(days: [Int64], believed: Int64) {
    #expect(RetentionClock.newestBelieved(Self.times(days: days)) == Self.origin + believed * Self.day)
  }

  @Test("A clock that is 40 days ahead deletes nothing after a restart either, though files were begun by it")
  func restart() {
    func segment(_ first: UInt64, _ day: Int64) -> JournalInventory.Segment {
      JournalInventory.Segment(
        name: "\(first)", first: first, created: Self.origin + day * Self.day, bytes: 10, indexBytes: nil)
    }
    func snapshot(_ group: UInt64, _ day: Int64) -> JournalInventory.Snapshot {
      JournalInventory.Snapshot(
        name: "s\(group)", group: group, created: Self.origin + day * Self.day, bytes: 10)
    }
    let inventory = JournalInventory(
      segments: [segment(1, 0), segment(5, 1), segment(9, 2), segment(13, 42), segment(17, 42)],
      snapshots: [snapshot(8, 2), snapshot(12, 42), snapshot(16, 42)])
    var machine = Machine(error: 42 * Self.day, newest: inventory.newestCreated)
    for _ in 0..<24 {
      _ = machine.look(after: Self.hour - 1)
      let (time, _) = machine.clock.time(uptime: machine.uptime, wall: machine.wall)
      #expect(inventory.surplus(RetentionRule(), keeping: 2, now: time).segments.isEmpty)
    }
  }
}
