// What this process may open.
import Glibc
import Testing

@testable import HubSystem

@Suite struct OpenFilesTests {
  @Test("the kernel's table of open files has the room that was asked for, and no file is left open")
  func room() throws {
    let before = try #require(openFiles())
    try ProcessFacts.makeRoomForOpenFiles(1000)
    #expect(try #require(tableSize()) >= 1000)
    #expect(openFiles() == before)
  }

  @Test("more than this process may open is refused")
  func tooMany() throws {
    let limit = try ProcessFacts.openFileLimit().current
    guard limit < Int(Int32.max) else { return }
    #expect(throws: SystemError.self) { try ProcessFacts.makeRoomForOpenFiles(limit + 1) }
  }

  /// proc(5), "FDSize".
  private func tableSize() -> Int? {
    let status = ProcessFacts.contents(of: "/proc/self/status").map { String(decoding: $0, as: UTF8.self) }
    let line = status?.split(separator: "\n").first { $0.hasPrefix("FDSize:") }
    return line.flatMap { Int($0.dropFirst(7).filter(\.isNumber)) }
  }

  /// Descriptors of /dev/null: other tests, which run beside this, open files of their own.
  private func openFiles() -> Int? {
    guard let folder = opendir("/proc/self/fd") else { return nil }
    defer { closedir(folder) }
    var count = 0
    while let entry = readdir(folder) {
      let number = withUnsafeBytes(of: entry.pointee.d_name) { name in
        Int32(String(decoding: name.prefix { $0 != 0 }, as: UTF8.self))
      }
      guard let number else { continue }
      var facts = stat()
      if fstat(number, &facts) == 0, facts.st_mode & S_IFMT == S_IFCHR, facts.st_rdev == 0x103 { count += 1 }
    }
    return count
  }
}
