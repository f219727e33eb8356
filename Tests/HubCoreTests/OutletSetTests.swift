import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct OutletSetTests {
  @Test("An outlet set behaves as a set of the numbers below its capacity", arguments: 1...8 as ClosedRange<UInt64>)
  func likeASet(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var set = OutletSet()
    var oracle = Set<Int>()
    for _ in 0..<2000 {
      let outlet = Int.random(in: 0..<OutletSet.capacity, using: &random)
      switch Int.random(in: 0..<8, using: &random) {
      case 0..<4:
        set.insert(outlet)
        oracle.insert(outlet)
      case 4..<6:
        set.remove(outlet)
        oracle.remove(outlet)
      case 6:
        #expect(set.popFirst() == oracle.min())
        if let first = oracle.min() { oracle.remove(first) }
      default:
        var other = OutletSet()
        other.insert(outlet)
        set.formUnion(other)
        oracle.insert(outlet)
      }
      #expect(set.isEmpty == oracle.isEmpty)
      #expect(set.contains(outlet) == oracle.contains(outlet))
    }
    var members: [Int] = []
    while let next = set.popFirst() { members.append(next) }
    #expect(members == oracle.sorted())
  }

  @Test("A hub of 128 outlets publishes to those with a subscriber alone, the last among them")
  func lastOutlet() {
    #expect(OutletSet.capacity >= 128)
    var table = ChannelTable(limits: .roomy, seed: 1, outletCount: OutletSet.capacity)
    guard let channel = table.findOrInsert(.trip(Identifier("T1")!)) else {
      Issue.record("there is room for a channel")
      return
    }
    for outlet in [0, 63, 64, 127, 127] { table.addSubscriber(channel, outlet: outlet) }
    _ = table.removeSubscriber(channel, outlet: 63)
    _ = table.removeSubscriber(channel, outlet: 127)
    var outlets = table.outlets(channel)
    #expect(outlets.popFirst() == 0 && outlets.popFirst() == 64 && outlets.popFirst() == 127 && outlets.isEmpty)
    #expect(table.subscribers(channel, outlet: 127) == 1)
  }
}
