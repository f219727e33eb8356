// Who listens to what on one loop, against sets.
import HubCore
import HubMessages
import HubTestSupport
import HubTransport
import Testing

@testable import HubGateway

@Suite struct SubscriptionTableTests {
  private func connection(_ slot: Int) -> ConnectionID { ConnectionID(slot: UInt32(slot), generation: 1) }
  private let apple = Encoding(Encoding.Row(form: .json(.apple)))
  private func channel(_ index: Int) -> ChannelHandle { ChannelHandle(index: UInt32(index)) }

  @Test("a session listens to a channel once, and leaving what it does not listen to changes nothing")
  func once() {
    var table = SubscriptionTable()
    var session = SessionSubscriptions()
    #expect(table.add(connection(1), encoding: apple, to: channel(5), of: &session))
    #expect(!table.add(connection(1), encoding: apple, to: channel(5), of: &session))
    #expect(!table.remove(channel(4), of: &session))
    #expect(table.count == 1)
    #expect(table.subscribers(of: channel(5)).map(\.encoding) == [apple])
    #expect(table.remove(channel(5), of: &session))
    #expect(session.count == 0 && table.count == 0)
  }

  @Test("what is asked for anew is for events alone, or not, by the latest request")
  func eventsOnly() {
    var table = SubscriptionTable()
    var session = SessionSubscriptions()
    for isEventsOnly in [true, false, true] {
      _ = table.add(connection(1), encoding: apple, to: channel(5), isEventsOnly: isEventsOnly, of: &session)
      #expect(table.subscribers(of: channel(5)).map(\.isEventsOnly) == [isEventsOnly])
    }
    #expect(table.count == 1)
  }

  @Test("a channel that nobody ever listened to has no subscribers")
  func unknownChannel() {
    #expect(SubscriptionTable().subscribers(of: channel(1_000_000)).isEmpty)
  }

  @Test(
    "agrees with a set of pairs while sessions come, go, subscribe and leave", arguments: 1...6 as ClosedRange<UInt64>)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var table = SubscriptionTable()
    var sessions = [SessionSubscriptions](repeating: SessionSubscriptions(), count: 12)
    var model = [Set<Int>](repeating: [], count: 12)  // channels by session
    for _ in 0..<3000 {
      let session = Int.random(in: 0..<12, using: &random)
      let channel = Int.random(in: 0..<9, using: &random)
      switch Int.random(in: 0..<20, using: &random) {
      case 0:
        var received: [Int] = []
        while let channel = table.removeAny(of: &sessions[session]) { received.append(Int(channel.index)) }
        #expect(received.count == model[session].count && Set(received) == model[session], "seed \(seed)")
        model[session] = []
      case 1..<12:
        let isNew = table.add(
          connection(session), encoding: Encoding(Encoding.Row(form: .binary)), to: self.channel(channel),
          of: &sessions[session])
        #expect(isNew == model[session].insert(channel).inserted, "seed \(seed)")
      default:
        let wasThere = table.remove(self.channel(channel), of: &sessions[session])
        #expect(wasThere == (model[session].remove(channel) != nil), "seed \(seed)")
      }
      #expect(sessions[session].count == model[session].count)
      #expect(table.count == model.reduce(0) { $0 + $1.count })
      let listeners = table.subscribers(of: self.channel(channel)).map { Int($0.connection.slot) }
      #expect(listeners.sorted() == (0..<12).filter { model[$0].contains(channel) }, "seed \(seed)")
    }
  }
}
