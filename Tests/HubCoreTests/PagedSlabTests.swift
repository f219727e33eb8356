// A table in pages: what it allocates goes when it goes.
import Foundation
import Testing

@testable import HubCore

@Suite struct PagedSlabTests {
  private struct Record: BitwiseCopyable {
    var numbers: (UInt64, UInt64, UInt64, UInt64) = (1, 2, 3, 4)
  }

  /// Bytes, by proc(5).
  private func residentBytes() throws -> Int {
    let words = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
    return try #require(Int(words[1])) * 4096
  }

  @Test("grown elements are copies of the filler, and what was written stays where it is")
  func growing() {
    var slab = PagedSlab(limit: 100, pageShift: 3, filler: 7)
    slab.grow(to: 5)
    slab[4] = 1
    slab.grow(to: 100)
    let elements = (0..<slab.count).map { slab[$0] }
    #expect(elements == [7, 7, 7, 7, 1] + Array(repeating: 7, count: 95))
    let bytes = slab.allocatedBytes
    #expect(bytes == 104 * MemoryLayout<Int>.stride)
  }

  // A stored property of the type Element kept debug builds from calling deinit.
  @Test(
    "its memory is given back", .enabled(if: ProcessInfo.processInfo.environment["HUB_SANITIZER"] == nil, "not freed"))
  func givenBack() throws {
    let before = try residentBytes()
    for _ in 0..<1000 {
      var slab = PagedSlab(limit: 1 << 20, pageShift: 12, filler: Record())
      slab.grow(to: 1 << 15)  // 1 MiB
    }
    // Other tests run beside it and may take some.
    #expect(try residentBytes() - before < 512 << 20)
  }
}
