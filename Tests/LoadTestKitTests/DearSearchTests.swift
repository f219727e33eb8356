// The search for messages that cost more than they are charged for, against prices that are known; and that the
// messages it begins with are what they are meant to be.
import HubMessages
import Testing

@testable import HubLoadTestKit

@Suite struct DearSearchTests {
  private let reader = MessageReader()

  private func read(_ message: DearMessage) throws -> ClientMessage {
    try message.bytes.span.withUnsafeBytes { bytes in
      switch message.carrier {
      case .plain, .deflated: try reader.readAny(bytes, time: .unixMilliseconds, isValidUTF8: true).message
      case .binary: try BinaryReader.read(bytes, tripBefore: nil).message
      }
    }
  }

  /// Bytes of a message here: short ones take a test less time.
  private static let bytes = 8192

  /// Measures so many messages by a price.
  private func search(
    _ count: Int, seed: UInt64 = 1, seeds: [DearMessage] = DearMessage.ordinary, price: (DearMessage) -> Double
  ) -> DearSearch {
    var search = DearSearch(seeds: seeds, seed: seed, limit: Self.bytes)
    for _ in 0..<count {
      let message = search.next()
      search.note(message, cost: price(message))
    }
    return search
  }

  @Test("the known dear messages are good ones of a size that a hub takes, on every carrier that has them")
  func known() throws {
    for message in DearMessage.known + DearMessage.ordinary {
      _ = try read(message)
      #expect(message.bytes.count <= 256 * 1024, "\(message.name)")
    }
    for name in ["star", "crowd", "views", "zoom"] {
      let carriers = DearMessage.known.filter { $0.name == name }.map(\.carrier)
      #expect(Set(carriers) == Set(Carrier.allCases), "\(name)")
    }
    for name in ["deep", "wide", "names", "numbers", "strings", "echo"] {
      let message = try #require(DearMessage.known.first { $0.name == name })
      // Pieces of 64 bytes, few of which come twice: it does not deflate to nothing.
      let pieces = stride(from: 0, to: message.bytes.count - 64, by: 64).map { Array(message.bytes[$0..<$0 + 64]) }
      #expect(Set(pieces).count > pieces.count / 4, "\(name)")
    }
    let star = try #require(DearMessage.known.first { $0.name == "star" })
    #expect(star.units(reader) == 1 + 999 / 50)
    let names = try #require(DearMessage.known.first { $0.name == "names" })
    #expect(names.bytes.count > 200_000 && names.units(reader) == 1 + names.bytes.count / 4096)
  }

  @Test("the same seed changes messages in the same way, another one in another, and none gets too long")
  func seeds() {
    let price = { (message: DearMessage) in Double(message.bytes.count) }
    let first = search(300, seed: 7, price: price).dearest.map(\.message)
    #expect(search(300, seed: 7, price: price).dearest.map(\.message) == first)
    #expect(search(300, seed: 8, price: price).dearest.map(\.message) != first)
    #expect(first.allSatisfy { $0.bytes.count <= Self.bytes })
    #expect(first.contains { $0.bytes.count > Self.bytes / 2 })
  }

  @Test("it finds what is over the threshold where there is such a thing: many names, deep nests, long numbers")
  func needles() {
    func count(_ byte: Character, _ message: DearMessage) -> Double {
      Double(message.bytes.count { $0 == byte.asciiValue }) / Double(message.units(reader))
    }
    for byte in [":", "[", "9", "\\"] as [Character] {
      let ordinary = RankTest.median(DearMessage.ordinary.map { 1 + count(byte, $0) })
      let found = search(1000) { 1 + count(byte, $0) }
      #expect((found.dearest.first?.cost ?? 0) > DearSearch.maximumTimesMedian * ordinary, "\(byte)")
    }
  }

  @Test("where all cost the same nothing is over the threshold, and each kind stays in view")
  func flat() {
    let found = search(500) { _ in 10 }
    #expect(found.measured == 500 && found.dearest.allSatisfy { $0.cost == 10 })
    #expect(Set(found.dearestByName.map(\.message.name)).count >= 5)
  }
}
