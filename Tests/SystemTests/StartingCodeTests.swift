// What is resident of the code that only starting needs.
import Testing

@testable import HubSystem

@Suite struct `The code that starting needs` {
  /// KiB of code that are resident, from the mappings of smaps (proc_pid_smaps(5)).
  private func residentCode() throws -> Int {
    let maps = try #require(ProcessFacts.contents(of: "/proc/self/smaps"))
    var (isCode, kilobytes) = (false, 0)
    for line in String(decoding: maps, as: UTF8.self).split(separator: "\n") {
      let columns = line.split(separator: " ")
      if columns[0].contains("-") {
        isCode = columns[1] == "r-xp" && columns.count == 6
      } else if isCode, columns[0] == "Rss:" {
        kilobytes += try #require(Int(columns[1]))
      }
    }
    return kilobytes
  }

  @Test func `is not resident once it is released, and runs when it is called again`() throws {
    // Tests that run meanwhile bring in code of their own, which may be more than was released: then it is tried again.
    var (before, after) = (0, 0)
    for _ in 0..<100 where after >= before {
      before = try residentCode()
      ProcessFacts.releaseStartingCode()
      after = try residentCode()
    }
    #expect(after < before, "\(before) KiB before, \(after) after")
  }
}
