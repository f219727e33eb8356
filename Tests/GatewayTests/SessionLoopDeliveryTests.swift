// The pure parts of fan-out: positions that wait for the flush interval, and frames by form.
import HubCore
import HubMessages
import Testing

@testable import HubCore
@testable import HubGateway

@Suite struct HeldPositionsTests {
  private func delivery(key: UInt64, number: UInt64) -> Delivery {
    Delivery(
      channel: ChannelHandle(index: UInt32(truncatingIfNeeded: key)), conflationKey: key, received: 0,
      publication: Publication(
        channel: .fleet, number: number, timestamp: Timestamp(milliseconds: 0),
        body: .notification(Notification(kind: .message, title: "", body: "", driverID: nil, sequence: 1))))
  }

  @Test("a newer position replaces the older one of its key, and leaves in the older one's turn")
  func newest() {
    var held = HeldPositions()
    held.deadline = 5
    let replaced = [(7, 1), (8, 2), (7, 3), (9, 4), (7, 5)].map { held.put(delivery(key: $0.0, number: $0.1)) }
    #expect(replaced == [false, false, true, false, true])
    let taken = held.takeAll()
    #expect(taken.map(\.conflationKey) == [7, 8, 9])
    #expect(taken.map(\.publication.number) == [5, 2, 4])
    #expect(held.deadline == nil)
  }

  @Test("what was taken is not there any more, and its key counts as new")
  func taken() {
    var held = HeldPositions()
    _ = held.put(delivery(key: 1, number: 1))
    _ = held.takeAll()
    #expect(held.takeAll().isEmpty)
    let replaced = held.put(delivery(key: 1, number: 2))
    #expect(!replaced)
    #expect(held.takeAll().map(\.publication.number) == [2])
  }

  @Test("what is held of one channel can be taken before the rest, which keeps its order")
  func ofOneChannel() {
    var held = HeldPositions()
    held.deadline = 5
    for (channel, driver, number) in [(1, 1, 1), (2, 1, 2), (1, 2, 3), (2, 2, 4), (1, 1, 5)]
      as [(UInt64, UInt64, UInt64)]
    {
      var made = delivery(key: channel << 32 | driver, number: number)
      made.channel = ChannelHandle(index: UInt32(channel))
      _ = held.put(made)
    }
    #expect(held.take(of: ChannelHandle(index: 1)).map(\.publication.number).sorted() == [3, 5])
    #expect(held.take(of: ChannelHandle(index: 1)).isEmpty)
    #expect(held.take(of: ChannelHandle(index: 7)).isEmpty)
    var again = delivery(key: 1 << 32 | 1, number: 6)
    again.channel = ChannelHandle(index: 1)
    let isReplaced = held.put(again)
    #expect(!isReplaced, "nothing older of it is there")
    #expect(held.takeAll().map(\.publication.number) == [2, 4, 6])
    #expect(held.deadline == nil)
  }
}

@Suite struct EncodedFramesTests {
  @Test("each encoding has a slot of its own")
  func slots() {
    let all = Encoding.table.map { Encoding($0) }
    #expect(Set(all).count == all.count)
    for encoding in all {
      var frames = EncodedFrames()
      frames[encoding] = 3..<9
      for other in all { #expect(frames[other] == (other == encoding ? 3..<9 : nil)) }
    }
  }
}
