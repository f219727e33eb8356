// The hash table against a dictionary, with hashes that collide on purpose.
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct IndexTableTests {
  /// Runs random insertions, look-ups and removals; `hash` decides how bad the collisions are.
  private func compareWithDictionary(seed: UInt64, keys: Int, hash: (Int) -> UInt64) {
    var random = SplitMix64(seed: seed)
    var table = IndexTable()
    var model: [Int: Int] = [:]  // key → index
    var keyOfIndex: [Int: Int] = [:]
    var nextIndex = 0
    for _ in 0..<1500 {
      let key = Int.random(in: 0..<keys, using: &random)
      let found = table.find(hash: hash(key)) { keyOfIndex[$0] == key }
      #expect(found == model[key], "seed \(seed), key \(key)")
      if let index = model[key] {
        guard Bool.random(using: &random) else { continue }
        table.remove(hash: hash(key), index: index)
        model[key] = nil
        keyOfIndex[index] = nil
      } else {
        table.insert(hash: hash(key), index: nextIndex)
        model[key] = nextIndex
        keyOfIndex[nextIndex] = key
        nextIndex += 1
      }
      #expect(table.count == model.count)
    }
    for key in 0..<keys { #expect(table.find(hash: hash(key)) { keyOfIndex[$0] == key } == model[key]) }
    for (key, index) in model { table.remove(hash: hash(key), index: index) }
    #expect(table.count == 0)
  }

  @Test("agrees with a dictionary when hashes are good", arguments: 1...4 as ClosedRange<UInt64>)
  func agreesWithDictionary(seed: UInt64) {
    compareWithDictionary(seed: seed, keys: 300) { UInt64($0) &* 0x9E37_79B9_7F4A_7C15 >> 16 }
  }

  @Test("agrees with a dictionary when every key has one of three hashes")
  func agreesUnderCollisions() {
    compareWithDictionary(seed: 11, keys: 60) { UInt64($0 % 3) }
  }

  @Test("agrees with a dictionary when all probe chains run over the end of the table")
  func agreesAtTheWrap() {
    // The low bits of all hashes are 1s, whatever the table's size, but the fingerprints differ.
    compareWithDictionary(seed: 12, keys: 60) { UInt64($0 % 7) << 20 | 0xF_FFF0 | UInt64(13 + $0 % 3) }
  }

  @Test("distinguishes keys by the caller's comparison when their whole hashes are equal")
  func comparesKeys() {
    var table = IndexTable()
    for index in 0..<40 { table.insert(hash: 7, index: index) }
    for index in 0..<40 { #expect(table.find(hash: 7) { $0 == index } == index) }
    table.remove(hash: 7, index: 20)
    #expect(table.find(hash: 7) { $0 == 20 } == nil)
    #expect(table.find(hash: 7) { $0 == 39 } == 39)
  }
}
