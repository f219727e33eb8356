// Streams of events without a loop: what comes of looking at channels, the order of subscribing, and ids.
import HubBytes
import HubCore
import HubMessages
import Testing

@testable import HubGateway

@Suite struct EventStreamTests {
  private let epoch = InlineText("e1")!

  private func input(_ index: Int, _ channel: Channel) throws -> SubscribeInput {
    SubscribeInput(
      session: SessionRef(outlet: 0, slot: 1, generation: 1),
      actor: Actor(role: .rider, id: try #require(Identifier("r1"))), messageID: EventStream.messageID(of: index),
      request: Subscribe(channel: channel), grant: .granted)
  }

  private func trip(_ name: String) throws -> Channel { .trip(try #require(Identifier(name))) }

  private func stream(_ last: String? = nil, open: [Bool] = [true, true]) throws -> EventStream {
    var channels: [(name: Channel, input: SubscribeInput?)] = []
    for (index, isOpen) in open.enumerated() {
      let name = try trip("T\(index + 1)")
      channels.append((name, isOpen ? try input(index, name) : nil))
    }
    return EventStream(channels, try last.map { try #require(LastEventID(Array($0.utf8), channels: open.count)) })
  }

  private func answer(_ index: Int, sequence: UInt64, recovered: Bool = false, isOver: Bool = false) throws
    -> Subscribed
  {
    var answer = Subscribed(
      replyTo: EventStream.messageID(of: index), channel: try trip("T\(index + 1)"), sequence: sequence, epoch: epoch,
      recovered: recovered, snapshot: nil)
    answer.isOver = isOver
    return answer
  }

  private func refusal(_ index: Int, _ code: ErrorCode) -> EventStream.ChannelCheck {
    .refused(ErrorReply(code: code, message: "", replyTo: EventStream.messageID(of: index)))
  }

  private func line(_ stream: EventStream) -> String {
    var buffer = ByteBuffer()
    stream.lastEventID.writeLine(into: &buffer)
    return buffer.withBytes { String(decoding: $0, as: UTF8.self) }
  }

  @Test("all channels are looked at, without what was missed, before it begins")
  func looks() throws {
    let stream = try stream("e1:4,")
    let asked = stream.checks.map { input -> ResumePoint? in
      if case .subscribe(let input) = input { input.request.resume } else { nil }
    }
    #expect(asked == [nil, nil])
    #expect(stream.checked(.subscribed(try answer(1, sequence: 9))) == nil)
    guard case .begin = stream.checked(.subscribed(try answer(0, sequence: 4))) else {
      Issue.record("both are open")
      return
    }
  }

  @Test("one channel that is refused refuses the stream; of who comes back, those that are forbidden do not")
  func refusals() throws {
    let new = try stream()
    _ = new.checked(refusal(0, .forbidden))
    guard case .refuse(let error) = new.checked(.subscribed(try answer(1, sequence: 0))) else {
      Issue.record("it began")
      return
    }
    #expect(error.code == .forbidden)
    let back = try stream("e1:4,e1:2")
    _ = back.checked(refusal(0, .forbidden))
    guard case .begin = back.checked(.subscribed(try answer(1, sequence: 2))) else {
      Issue.record("the second is open")
      return
    }
    guard case .giveUp(try trip("T1")) = back.takeStep(), case .subscribe = back.takeStep() else {
      Issue.record("it receives the first, and follows the second")
      return
    }
    let full = try stream("e1:4,e1:2")
    _ = full.checked(refusal(0, .rateLimited))
    guard case .refuse = full.checked(.subscribed(try answer(1, sequence: 2))) else {
      Issue.record("a full hub refuses it")
      return
    }
  }

  @Test("nothing is left where each channel is over, or forbidden, and all of it was seen")
  func nothingLeft() throws {
    let seen = try stream("e1:4,e1:2")
    _ = seen.checked(refusal(0, .forbidden))
    guard case .nothingLeft = seen.checked(.subscribed(try answer(1, sequence: 2, isOver: true))) else {
      Issue.record("there is nothing left")
      return
    }
    for (last, isOver) in [("e1:4,e1:1", true), ("e1:4,e2:2", true), ("e1:4,", true), ("e1:4,e1:2", false)] {
      let stream = try stream(last)
      _ = stream.checked(refusal(0, .forbidden))
      guard case .begin = stream.checked(.subscribed(try answer(1, sequence: 2, isOver: isOver))) else {
        Issue.record("there is something left behind \(last)")
        return
      }
    }
    guard case .nothingLeft = try stream("e1:4,e1:2", open: [false, false]).verdict else {
      Issue.record("its grants are gone")
      return
    }
  }

  @Test("channels are subscribed to one after the other, and the id says how far the client is on each")
  func following() throws {
    let stream = try stream("e1:4,")
    _ = stream.checked(.subscribed(try answer(0, sequence: 6)))
    _ = stream.checked(.subscribed(try answer(1, sequence: 9)))
    guard case .subscribe(let first) = stream.takeStep(), stream.takeStep() == nil else {
      Issue.record("one at a time")
      return
    }
    #expect(first.request.resume == ResumePoint(since: 4, epoch: epoch) && stream.isAsking)
    let handles = [ChannelHandle(index: 7), ChannelHandle(index: 3)]
    stream.subscribed(try answer(0, sequence: 6, recovered: true), to: handles[0])
    #expect(line(stream) == "id: e1:4,\n", "what it missed still comes")
    stream.sending(5, of: handles[0])
    stream.sending(6, of: handles[0])
    guard case .subscribe(let second) = stream.takeStep() else {
      Issue.record("the second follows")
      return
    }
    #expect(second.request.resume == nil)
    stream.subscribed(try answer(1, sequence: 9), to: handles[1])
    #expect(line(stream) == "id: e1:6,e1:9\n" && !stream.isAsking && stream.takeStep() == nil)
    stream.sending(10, of: handles[1])
    #expect(line(stream) == "id: e1:6,e1:10\n")
  }

  @Test("another owner's epoch and numbers replace those before, also while a channel is asked for")
  func anotherOwner() throws {
    let stream = try stream()
    guard case .subscribe = stream.takeStep() else {
      Issue.record("the first is asked for")
      return
    }
    let handle = ChannelHandle(index: 7)
    stream.subscribed(try answer(0, sequence: 6), to: handle)
    guard case .subscribe = stream.takeStep() else {
      Issue.record("the second follows")
      return
    }
    let restarted = Subscribed(
      replyTo: ClusterOutput.unsolicited, channel: try trip("T1"), sequence: 2, epoch: InlineText("e2")!,
      recovered: false,
      snapshot: nil)
    stream.restarted(restarted, on: ChannelHandle(index: 8))
    #expect(line(stream) == "id: e1:6,\n", "a channel that it does not follow")
    stream.restarted(restarted, on: handle)
    #expect(line(stream) == "id: e2:2,\n" && stream.takeStep() == nil, "the second is not answered by that")
    stream.sending(3, of: handle)
    stream.subscribed(try answer(1, sequence: 9), to: ChannelHandle(index: 3))
    #expect(line(stream) == "id: e2:3,e1:9\n" && !stream.isAsking)
  }

  @Test(
    "an id that the hub never wrote is none",
    arguments: [
      "e1", "e1:", ":1", "e1:x", "e1:-1", "e1:+1", "e1:1,e1:2,e1:3", "e1:1", "e1:18446744073709551616,", "e1:1 ,e1:1",
      String(repeating: "e", count: 33) + ":1,", ",,",
    ])
  func badIDs(text: String) {
    #expect(LastEventID(Array(text.utf8), channels: 2) == nil)
  }

  @Test("an epoch that is no text is none: it would be longer as one than other hubs take")
  func noText() {
    for epoch in ["x\n", "\rx", "x y", "x\u{7F}", "\u{0}"] {
      #expect(LastEventID(Array("\(epoch):1".utf8), channels: 1) == nil, "it is repeated on a line of a stream")
    }
    #expect(LastEventID(Array(repeating: 0xFF, count: 15) + Array(":1".utf8), channels: 1) == nil)
  }

  @Test("an id is read as it was written")
  func ids() throws {
    let points = [
      ResumePoint(since: 18_446_744_073_709_551_615, epoch: epoch), nil, ResumePoint(since: 0, epoch: epoch),
    ]
    var buffer = ByteBuffer()
    LastEventID(points: points).writeLine(into: &buffer)
    let text = buffer.withBytes { String(decoding: $0, as: UTF8.self) }
    #expect(text == "id: e1:18446744073709551615,,e1:0\n")
    #expect(LastEventID(Array(text.dropFirst(4).dropLast().utf8), channels: 3)?.points == points)
  }

  @Test("clients come again at random within 1 to 5 s, not together")
  func retries() {
    let times = (0..<1000).map { EventStream.retryMilliseconds(seed: UInt64($0)) }
    #expect(times.allSatisfy { (1000...5000).contains($0) } && Set(times).count > 800)
    let second = times.count { (1000..<2000).contains($0) }
    #expect((200...300).contains(second), "a quarter of them in each second")
  }
}
