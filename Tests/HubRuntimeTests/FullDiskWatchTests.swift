import Testing

@testable import HubRuntime

@Suite struct FullDiskWatchTests {
  private typealias Losses = FullDiskWatch.Losses

  private func losses(_ refused: UInt64, _ fixes: UInt64 = 0) -> Losses {
    Losses(refused: refused, fixesNotStored: fixes)
  }

  private func seconds(_ count: Int64) -> Int64 { 7_000_000_000 + count * 1_000_000_000 }

  @Test("A full disk is reported at once, each minute while it lasts, and at its end with what it has cost")
  func episode() {
    var watch = FullDiskWatch()
    let start = losses(4, 100)
    #expect(watch.look(isFull: false, before: start, after: start, uptime: seconds(0)) == nil && !watch.isOpen)
    let first = watch.look(isFull: true, before: start, after: losses(5, 100), uptime: seconds(1))
    #expect(first == .full(seconds: 0, losses(1)) && watch.isOpen)
    for second in 2..<61 as Range<Int64> {
      #expect(watch.look(isFull: true, before: start, after: losses(9, 300), uptime: seconds(second)) == nil)
    }
    let again = watch.look(isFull: true, before: losses(9, 300), after: losses(9, 300), uptime: seconds(61))
    #expect(again == .full(seconds: 60, losses(5, 200)))
    #expect(watch.look(isFull: true, before: start, after: start, uptime: seconds(62)) == nil)
    let end = watch.look(isFull: false, before: losses(17, 853), after: losses(17, 853), uptime: seconds(75))
    #expect(end == .writable(seconds: 74, losses(13, 753)) && !watch.isOpen)
    #expect(watch.look(isFull: false, before: start, after: start, uptime: seconds(76)) == nil)
  }

  @Test("A short time that was not reported is not counted to one that begins much later")
  func longAgo() {
    var watch = FullDiskWatch()
    func look(_ isFull: Bool, _ second: Int64, _ refused: UInt64) -> FullDiskWatch.Line? {
      watch.look(isFull: isFull, before: losses(refused), after: losses(refused), uptime: seconds(second))
    }
    #expect(look(true, 0, 0) != nil && look(false, 1, 1) != nil)
    #expect(look(true, 30, 1) == nil && look(false, 31, 5) == nil)
    #expect(look(true, 3600, 5) == .full(seconds: 0, losses(0)))
    #expect(look(false, 3602, 9) == .writable(seconds: 2, losses(4)))
  }

  @Test("A disk on the brink is reported once a minute, unless it stays full for two seconds")
  func brink() {
    var watch = FullDiskWatch()
    var lines = 0
    // Full for half a second of each, for ten minutes.
    for half in 0..<1200 as Range<Int64> {
      let line = watch.look(
        isFull: half % 2 == 0, before: losses(UInt64(half)), after: losses(UInt64(half + 1)),
        uptime: 1_000_000_000 + half * 500_000_000)
      if line != nil { lines += 1 }
    }
    #expect(lines == 20, "ten times that it is full, and that it is not")
    // It stays full: reported after two seconds, with all since the last report.
    let now: Int64 = 1_000_000_000 + 1200 * 500_000_000
    var reported: [FullDiskWatch.Line] = []
    for second in 0..<4 as Range<Int64> {
      let line = watch.look(
        isFull: true, before: losses(2000), after: losses(2000), uptime: now + second * 1_000_000_000)
      if let line { reported.append(line) }
    }
    #expect(reported.count == 1)
  }
}
