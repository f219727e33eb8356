// How many files this process may open, and the kernel's table of them. The test has a thread with a table of its own
// (unshare(2) by way of close_range), so that tests which run at the same time have no part in it.
import CHubLinux
import Glibc
import Testing

@testable import HubSystem

@Suite struct OpenFilesTests {
  private struct Outcome {
    var sizeBefore: Int?
    var sizeAfter: Int?
    var filesBefore: [Int32] = []
    var filesAfter: [Int32] = []
    var failure: String?
  }

  @Test("the kernel's table of open files has the room that was asked for, and no file is left open")
  func room() throws {
    let outcome = Locked(Outcome())
    let thread = try startThread(name: "own-files") {
      let result = Self.makeRoom(1000)
      outcome.withLock { $0 = result }
    }
    thread.join()
    let result = outcome.withLock { $0 }
    #expect(result.failure == nil)
    #expect(try #require(result.sizeBefore) < 1000)
    #expect(try #require(result.sizeAfter) >= 1000)
    #expect(result.filesAfter == result.filesBefore)
  }

  @Test("more than this process may open is refused")
  func tooMany() throws {
    // The most that it may ever: tests that run meanwhile raise what it may now.
    let limit = try ProcessFacts.openFileLimit().maximum
    guard limit < Int(Int32.max) else { return }
    #expect(throws: SystemError.self) { try ProcessFacts.makeRoomForOpenFiles(limit + 1) }
  }

  private static func makeRoom(_ count: Int) -> Outcome {
    var outcome = Outcome()
    let unshare: Int32 = 2  // CLOSE_RANGE_UNSHARE, linux/close_range.h
    guard close_range(3, .max, unshare) == 0 else {
      outcome.failure = "close_range: \(SystemError.text(errno))"
      return outcome
    }
    outcome.sizeBefore = tableSize()
    outcome.filesBefore = openFiles()
    do throws(SystemError) {
      try ProcessFacts.makeRoomForOpenFiles(count)
    } catch {
      outcome.failure = "\(error)"
    }
    outcome.sizeAfter = tableSize()
    outcome.filesAfter = openFiles()
    return outcome
  }

  /// proc(5), "FDSize".
  private static func tableSize() -> Int? {
    let status = ProcessFacts.contents(of: "/proc/thread-self/status").map { String(decoding: $0, as: UTF8.self) }
    let line = status?.split(separator: "\n").first { $0.hasPrefix("FDSize:") }
    return line.flatMap { Int($0.dropFirst(7).filter(\.isNumber)) }
  }

  private static func openFiles() -> [Int32] { (0..<2000).filter { fcntl($0, F_GETFD) >= 0 } }
}
