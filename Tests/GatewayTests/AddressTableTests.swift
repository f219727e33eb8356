// Connections and requests by address: counted right, and in bounded memory.
import HubHTTP
import HubTestSupport
import Testing

@testable import HubGateway

/// A table that `#expect` can ask: it takes no mutating calls.
private final class Shared {
  private var table: AddressTable

  init(_ table: AddressTable) { self.table = table }

  var count: Int { table.count }
  var active: Int { table.active }
  func enter(_ key: UInt64, now: Int64) -> Int { table.enter(key, now: now) }
  func leave(_ key: UInt64, now: Int64) { table.leave(key, now: now) }
  func keep(_ more: Int, of key: UInt64) -> Int { table.keep(more, of: key, now: 0) }
  func charge(_ key: UInt64, _ units: Double = 1, paid: Double = 0, now: Int64) -> Int64? {
    table.charge(key, units, paid: paid, now: now)
  }
  func allowance(_ key: UInt64, now: Int64) -> [String] { table.allowance(key, now: now).fields.map { "\($0.value)" } }
}

@Suite struct AddressTableTests {
  private static let second: Int64 = 1_000_000_000

  private func table(idle: Int = 100, rate: Double = 10, burst: Double = 20) -> Shared {
    Shared(AddressTable(idleLimit: idle, rate: AddressTable.Rate(perSecond: rate, burst: burst)))
  }

  @Test("an address gets its burst, and when that is refilled")
  func allowance() {
    let table = table()
    #expect(table.allowance(7, now: 0) == ["20", "20", "0"])
    for _ in 0..<15 { #expect(table.charge(7, now: 0) == nil) }
    #expect(table.allowance(7, now: 0) == ["20", "5", "2"])
    #expect(table.allowance(7, now: Self.second) == ["20", "15", "1"])
    #expect(table.allowance(7, now: 2 * Self.second) == ["20", "20", "0"])
  }

  @Test("what costs more than a full bucket is within the rate when that is full but for its head")
  func more() {
    let table = table()
    #expect(table.charge(7, now: 0) == nil && table.charge(7, 99, paid: 1, now: 0) == nil)
    #expect(table.charge(7, now: 0) != nil, "it owes the rest")
    let other = self.table()
    for _ in 0..<2 { #expect(other.charge(7, now: 0) == nil) }
    #expect(other.charge(7, 99, paid: 1, now: 0) != nil)
  }

  @Test("connections are counted for each address, and an address without any is forgotten")
  func connections() {
    let table = table()
    #expect(table.enter(7, now: 0) == 1)
    #expect(table.enter(7, now: 0) == 2)
    #expect(table.enter(8, now: 0) == 1)
    #expect(table.active == 2 && table.count == 2)
    table.leave(7, now: 0)
    #expect(table.enter(7, now: 0) == 2)
    for _ in 0..<2 { table.leave(7, now: 0) }
    table.leave(8, now: 0)
    #expect(table.active == 0 && table.count == 0)
    table.leave(9, now: 0)
    #expect(table.count == 0, "who never came cannot leave")
  }

  @Test("bytes that are kept are counted for each address, also where the connection is a proxy's")
  func kept() {
    let table = table(idle: 1)
    _ = table.enter(7, now: 0)
    #expect(table.keep(5, of: 7) == 5 && table.keep(4, of: 7) == 9 && table.keep(1, of: 8) == 1)
    table.leave(7, now: 0)
    #expect(table.active == 2)
    for key in 100..<110 as Range<UInt64> { #expect(table.charge(key, now: 0) == nil) }
    #expect(table.keep(-5, of: 7) == 4 && table.keep(1, of: 8) == 2, "neither is swept away")
    #expect(table.keep(-4, of: 7) == 0 && table.keep(-2, of: 8) == 0)
    #expect(table.active == 0 && table.count <= 1)
  }

  @Test("requests over the rate get Retry-After, and cost nothing themselves")
  func rate() throws {
    let table = table()
    for _ in 0..<20 { #expect(table.charge(7, now: 0) == nil) }
    let wait = try #require(table.charge(7, now: 0))
    #expect(wait > 90_000_000 && wait < 110_000_000)
    for _ in 0..<1000 { #expect(table.charge(7, now: 0) != nil) }
    #expect(table.charge(8, now: 0) == nil, "another address has its own")
    #expect(table.charge(7, now: 110_000_000) == nil)
    #expect(table.charge(7, now: 110_000_000) != nil)
  }

  @Test("leaving and coming again does not fill the bucket; time does")
  func reconnect() {
    let table = table()
    _ = table.enter(7, now: 0)
    for _ in 0..<20 { _ = table.charge(7, now: 0) }
    table.leave(7, now: 0)
    _ = table.enter(7, now: 1)
    #expect(table.charge(7, now: 1) != nil)
    table.leave(7, now: 3 * Self.second)
    #expect(table.count == 0, "full again: nothing to remember")
  }

  @Test("without a rate nothing is refused and nothing remembered")
  func noRate() {
    let table = table(rate: 0)
    for key in 0..<1000 as Range<UInt64> { #expect(table.charge(key, now: 0) == nil) }
    #expect(table.count == 0)
  }

  @Test("a million addresses that come once take bounded memory, and those that are here are never forgotten")
  func bounded() {
    let table = table(idle: 1000)
    for key in 1...50 as ClosedRange<UInt64> { _ = table.enter(key, now: 0) }
    for key in 1000..<1_001_000 as Range<UInt64> {
      _ = table.charge(key, now: Int64(key))
      if table.count > 1051 { break }
    }
    #expect(table.count <= 1051)
    for key in 1...50 as ClosedRange<UInt64> { #expect(table.enter(key, now: 0) == 2) }
    #expect(table.active == 50)
  }

  @Test("random comings and goings agree with a plain count")
  func oracle() {
    let table = table(idle: 10)
    var counts: [UInt64: Int] = [:]
    var random = SplitMix64(seed: 11)
    for step in 0..<50_000 as Range<Int64> {
      let key = UInt64.random(in: 1...40, using: &random)
      let now = step * 1_000_000
      switch Int.random(in: 0..<3, using: &random) {
      case 0:
        counts[key, default: 0] += 1
        #expect(table.enter(key, now: now) == counts[key])
      case 1:
        table.leave(key, now: now)
        counts[key] = max(0, (counts[key] ?? 0) - 1)
      case _: _ = table.charge(key, now: now)
      }
      let active = counts.values.count { $0 > 0 }
      #expect(table.active == active && table.count <= active + 11)
    }
  }
}
