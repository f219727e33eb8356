// The order of trips, against a sorted array.
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct CreationOrderTests {
  private func all(_ order: CreationOrder, below number: UInt64 = .max) -> [UInt64] {
    var numbers: [UInt64] = []
    order.visit(below: number) {
      #expect($0.trip == UInt32(truncatingIfNeeded: $0.number) ^ 5)
      numbers.append($0.number)
      return true
    }
    return numbers
  }

  @Test("agrees with a sorted array, whatever comes in whatever order", arguments: 1...4 as ClosedRange<UInt64>)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var order = CreationOrder()
    var model: [UInt64] = []
    var newest: UInt64 = 0
    for step in 0..<6000 {
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<(step < 4000 ? 6 : 2):
        newest += UInt64.random(in: 1...3, using: &random)
        order.insert(newest, trip: Int(newest) ^ 5)
        model.append(newest)
      case 6:
        let old = UInt64.random(in: 0...newest, using: &random)
        guard !model.contains(old) else { continue }
        order.insert(old, trip: Int(old) ^ 5)
        model.append(old)
        model.sort()
      default:
        let index = Int.random(in: 0...max(0, model.count), using: &random)
        let number = index < model.count ? model.remove(at: index) : newest + 1
        order.remove(number)
      }
      #expect(order.count == model.count)
      if step % 100 == 0 {
        let below = UInt64.random(in: 0...(newest + 2), using: &random)
        #expect(all(order, below: below) == model.filter { $0 < below }.reversed(), "seed \(seed), step \(step)")
      }
    }
    for number in model { order.remove(number) }
    #expect(order.count == 0 && all(order).isEmpty)
  }

  @Test("a visit ends where its body says so")
  func ends() {
    var order = CreationOrder()
    for number in 1...2000 as ClosedRange<UInt64> { order.insert(number, trip: Int(number) ^ 5) }
    var seen: [UInt64] = []
    order.visit(below: 1500) {
      seen.append($0.number)
      return seen.count < 3
    }
    #expect(seen == [1499, 1498, 1497])
  }
}
