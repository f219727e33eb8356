import HubTestSupport
import Testing

@testable import HubBytes

@Suite struct `Lists of two kinds` {
  private enum Thing: Equatable {
    case common(Int)
    case rare(String)
  }

  private func all(_ list: borrowing MixedList<Int, String>) -> [Thing] {
    var things: [Thing] = []
    var cursor = MixedList<Int, String>.Cursor()
    while let step = list.next(&cursor) {
      switch step {
      case .common(let index): things.append(.common(list[common: index]))
      case .rare(let index): things.append(.rare(list[rare: index]))
      }
    }
    return things
  }

  @Test func `whatever is appended, moved over and emptied, the order is that of appending`() {
    var random = SplitMix64(seed: 7)
    var list = MixedList<Int, String>()
    var other = MixedList<Int, String>()
    var expected: [Thing] = []
    var expectedOther: [Thing] = []
    for number in 0..<20_000 {
      switch Int.random(in: 0..<40, using: &random) {
      case 0..<24:
        if number % 2 == 0 {
          list.append(common: number)
        } else {
          let slot = list.nextCommonSlot(-1)
          slot.pointee = number
          if number % 3 == 0 { list.append(common: number) } else { list.appendCommonSlot() }
        }
        expected.append(.common(number))
      case 24..<32:
        list.append("\(number)")
        expected.append(.rare("\(number)"))
      case 32..<38:
        let count = Int.random(in: 0...min(12, expected.count), using: &random)
        other.append(first: count, of: &list)
        expectedOther += expected.prefix(count)
        expected.removeFirst(count)
      case 38:
        swap(&list, &other)
        swap(&expected, &expectedOther)
      case _:
        list.removeAll()
        expected.removeAll()
      }
      #expect(list.count == expected.count)
      #expect(list.isEmpty == expected.isEmpty)
      if number % 16 == 0 {
        #expect(all(list) == expected)
        #expect(all(other) == expectedOther)
      }
    }
  }

  @Test func `a list grows, is changed in place, shortened from the front and emptied`() {
    var list = TurnList<Int>()
    for number in 0..<1000 { list.append(number) }
    list[999] += 1
    #expect(list.count == 1000)
    list.removeFirst(990)
    #expect(list.count == 10)
    #expect(list[0] == 990)
    #expect(list[9] == 1000)
    var copy = TurnList<Int>()
    copy.append(list, from: 2, count: 8)
    #expect(copy.count == 8)
    #expect(copy[7] == 1000)
    list.removeAll()
    #expect(list.count == 0)
    list.removeFirst(0)
    copy.append(list, from: 0, count: 0)
    #expect(copy.count == 8)
  }
}
