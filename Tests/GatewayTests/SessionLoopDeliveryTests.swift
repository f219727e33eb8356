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

  private func takeAll(_ held: inout HeldPositions, by now: Int64 = .max) -> [Delivery] {
    var taken: [Delivery] = []
    while let delivery = held.takeDue(by: now) { taken.append(delivery) }
    return taken
  }

  @Test("a newer position replaces the older one of its key, and leaves in the older one's turn")
  func newest() {
    var held = HeldPositions(interval: 1600)
    let replaced = [(7, 1), (8, 2), (7, 3), (9, 4), (7, 5)].map { held.put(delivery(key: $0.0, number: $0.1), now: 5) }
    #expect(replaced == [false, false, true, false, true])
    #expect(held.deadline == 1600 && takeAll(&held, by: 1599).isEmpty)
    let taken = takeAll(&held, by: 1600)
    #expect(taken.map(\.conflationKey) == [7, 8, 9])
    #expect(taken.map(\.publication.number) == [5, 2, 4])
    #expect(held.deadline == nil)
  }

  @Test("what was taken is not there any more, and its key counts as new")
  func taken() {
    var held = HeldPositions(interval: 1)
    _ = held.put(delivery(key: 1, number: 1), now: 0)
    _ = takeAll(&held)
    #expect(takeAll(&held).isEmpty)
    let replaced = held.put(delivery(key: 1, number: 2), now: 0)
    #expect(!replaced)
    #expect(takeAll(&held).map(\.publication.number) == [2])
  }

  @Test("each leaves an interval after it came, or up to a sixteenth of that earlier, however many there are")
  func spread() {
    var held = HeldPositions(interval: 1600)
    var (sent, most) = (0, 0)
    for now in 0..<9600 as Range<Int64> {
      _ = held.put(delivery(key: UInt64(now % 3200), number: UInt64(now)), now: now)
      let due = takeAll(&held, by: now)
      #expect(due.allSatisfy { (1500...1600).contains(now - Int64($0.publication.number)) })
      (sent, most) = (sent + due.count, max(most, due.count))
    }
    #expect(sent == 8000 && most == 100)
    #expect(takeAll(&held).count == 1600 && held.deadline == nil)
  }

  @Test("what is held of one channel can be taken before the rest, which keeps its order")
  func ofOneChannel() {
    var held = HeldPositions(interval: 10)
    _ = held.put(delivery(1, 9, 0), now: -100)
    #expect(takeAll(&held, by: 0).count == 1, "it is not there any more, and not taken once more")
    for (channel, driver, number) in [(1, 1, 1), (2, 1, 2), (1, 2, 3), (2, 2, 4), (1, 1, 5)]
      as [(UInt64, UInt64, UInt64)]
    {
      _ = held.put(delivery(channel, driver, number), now: 0)
    }
    #expect(held.take(of: ChannelHandle(index: 1)).map(\.publication.number).sorted() == [3, 5])
    #expect(held.take(of: ChannelHandle(index: 1)).isEmpty)
    #expect(held.take(of: ChannelHandle(index: 7)).isEmpty)
    let isReplaced = held.put(delivery(1, 1, 6), now: 0)
    #expect(!isReplaced, "nothing older of it is there")
    #expect(takeAll(&held).map(\.publication.number) == [6, 2, 4], "6 leaves in the turn of what was taken")
    #expect(held.deadline == nil)
  }

  private func delivery(_ channel: UInt64, _ driver: UInt64, _ number: UInt64) -> Delivery {
    var made = delivery(key: channel << 32 | driver, number: number)
    made.channel = ChannelHandle(index: UInt32(channel))
    return made
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
