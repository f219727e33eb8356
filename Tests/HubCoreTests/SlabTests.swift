// Records by dense index, and the generations that distinguish a stale reference from a live one.
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct SlabTests {
  @Test("a freed index is used again, and a reference to its former life is not current")
  func generations() {
    var slab = Slab<String>()
    let first = slab.insert("a")
    let old = slab.handle(of: first)
    let isCurrentBefore = slab.current(old) == first
    #expect(isCurrentBefore)
    slab.remove(first, leaving: "")
    let isCurrentAfter = slab.current(old) == first
    #expect(!isCurrentAfter)
    let second = slab.insert("b")
    #expect(second == first)
    let isCurrentAgain = slab.current(old) == first
    #expect(!isCurrentAgain)
    let isNewCurrent = slab.current(slab.handle(of: first)) == first
    #expect(isNewCurrent)
    let record = slab[first]
    #expect(record == "b")
  }

  @Test("an index that was never in use is not current")
  func unknownIndex() {
    let isCurrent = Slab<Int>().current(Handle(index: 0, generation: 0)) != nil
    #expect(!isCurrent)
  }

  @Test("removal leaves the tombstone, so that what the record held is released")
  func tombstone() {
    final class Held {}
    weak var held: Held?
    var slab = Slab<Held?>()
    do {
      let made = Held()
      held = made
      _ = slab.insert(made)
    }
    #expect(held != nil)
    slab.remove(0, leaving: nil)
    #expect(held == nil)
    _ = consume slab
  }

  @Test("agrees with a dictionary, and never grows beyond the most records held at once")
  func model() {
    var random = SplitMix64(seed: 3)
    var slab = Slab<Int>()
    var model: [Int: Int] = [:]
    var most = 0
    for step in 0..<3000 {
      if Int.random(in: 0..<5, using: &random) < 3 || model.isEmpty {
        let index = slab.insert(step)
        #expect(model.updateValue(step, forKey: index) == nil, "an index in use was given out again")
      } else {
        let index = model.keys.sorted().randomElement(using: &random)!
        slab.remove(index, leaving: -1)
        model[index] = nil
      }
      most = max(most, model.count)
      let (count, end) = (slab.count, slab.endIndex)
      #expect(count == model.count)
      #expect(end == most)
    }
    for (index, expected) in model {
      let value = slab[index]
      #expect(value == expected)
    }
  }
}
