// The subscription table against sets that say the same the slow way.
import HubCore
import Messages
import Testing
import Transport

@testable import Gateway

@Suite struct SubscriptionTableTests {
  private func connection(_ session: Int) -> ConnectionID { ConnectionID(slot: UInt32(session), generation: 1) }

  @Test("is the same as sets of subscribers, whatever is added and removed in which order")
  func model() {
    var random = SplitMix64(seed: 11)
    var table = SubscriptionTable()
    var firsts = [UInt32](repeating: SubscriptionTable.none, count: 20)
    var model: [Int: Set<Int>] = [:]
    for _ in 0..<5000 {
      let session = Int.random(in: 0..<20, using: &random)
      let channel = Int.random(in: 0..<10, using: &random)
      let handle = ChannelHandle(index: UInt32(channel))
      switch Int.random(in: 0..<20, using: &random) {
      case 0:
        var told: Set<Int> = []
        table.removeAll(first: &firsts[session]) { told.insert(Int($0.index)) }
        #expect(told == Set(model.keys.filter { model[$0]!.contains(session) }))
        for channel in told { model[channel]!.remove(session) }
      case 1..<12:
        let isNew = model[channel, default: []].insert(session).inserted
        let added = table.add(connection(session), time: .unixMilliseconds, to: handle, first: &firsts[session])
        #expect(added == isNew)
      default:
        let wasThere = model[channel, default: []].remove(session) != nil
        let removed = table.remove(handle, first: &firsts[session])
        #expect(removed == wasThere)
      }
      let found = table.subscribers(of: handle).map { Int($0.connection.slot) }
      #expect(found.sorted() == model[channel, default: []].sorted())
    }
    #expect(table.count == model.values.reduce(0) { $0 + $1.count })
  }

  @Test("a channel that nobody ever had has no subscribers")
  func unknown() {
    #expect(SubscriptionTable().subscribers(of: ChannelHandle(index: 1_000_000)).isEmpty)
  }
}
