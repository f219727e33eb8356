// Every event once and in order, over any break.
import HubBytes
import HubGeo
import HubMessages
import HubWebSocket
import Testing

@testable import HubClientCore

@Suite struct SubscriptionTests {
  private let trip = Channel.trip(Identifier("T1")!)

  private func subscribed(sequence: UInt64) throws -> Stage {
    let stage = try Stage()
    stage.session.subscribe(trip)
    try stage.open()
    #expect(stage.subscribes == [Subscribe(channel: trip)])
    try stage.answerSubscribe(sequence: sequence)
    return stage
  }

  @Test("After a break it subscribes again from the last event it saw")
  func resumes() throws {
    let stage = try subscribed(sequence: 3)
    stage.say(Stage.event(4))
    try stage.breakAndReopen()
    #expect(stage.subscribes == [Subscribe(channel: trip, resume: ResumePoint(since: 4, epoch: InlineText("e1")!))])
    try stage.answerSubscribe(sequence: 6, recovered: true)
    stage.say(Stage.event(5))
    stage.say(Stage.event(6))
    stage.say(Stage.event(7))
    #expect(stage.sequences == [4, 5, 6, 7])
  }

  @Test("An event that comes again is dropped")
  func duplicates() throws {
    let stage = try subscribed(sequence: 3)
    for sequence in [4, 4, 3, 5, 5] as [UInt64] { stage.say(Stage.event(sequence)) }
    #expect(stage.sequences == [4, 5])
    #expect(stage.session.counters.eventsDropped == 3)
  }

  @Test("A gap asks for the missing events, once, and delivers all in order")
  func gap() throws {
    let stage = try subscribed(sequence: 3)
    stage.advance(seconds: 5)
    stage.say(Stage.event(4))
    stage.say(Stage.event(6))
    stage.say(Stage.event(7))
    #expect(stage.sequences == [4])
    try stage.flush()
    stage.say(Stage.event(8))
    try stage.flush()
    #expect(stage.subscribes.count == 2)
    #expect(stage.subscribes.last?.resume == ResumePoint(since: 4, epoch: InlineText("e1")!))
    try stage.answerSubscribe(sequence: 8, recovered: true)
    for sequence in 5...8 { stage.say(Stage.event(UInt64(sequence))) }
    #expect(stage.sequences == [4, 5, 6, 7, 8])
  }

  @Test("A position's after reveals a missing event, and the position is delivered all the same")
  func after() throws {
    let stage = try subscribed(sequence: 3)
    stage.advance(seconds: 5)
    stage.say(Stage.position(after: 3))
    #expect(!stage.session.needsFlush)
    stage.say(Stage.position(after: 4))
    #expect(stage.delivered.count == 4)  // connected, subscribed and both positions
    try stage.flush()
    #expect(stage.subscribes.last?.resume?.since == 3)
  }

  @Test("Requests for missed events are at least a second apart")
  func patience() throws {
    let stage = try subscribed(sequence: 3)
    for _ in 0..<20 {
      stage.say(Stage.position(after: 9))
      try stage.flush()
      if stage.subscribes.count == 2 {
        try stage.answerSubscribe(sequence: 3, recovered: true)
        break
      }
      stage.advance(seconds: 0.1)
    }
    #expect(stage.subscribes.count == 2)
    stage.say(Stage.position(after: 9))
    try stage.flush()
    #expect(stage.subscribes.count == 2)
    try stage.reachDeadline()
    try stage.flush()
    #expect(stage.subscribes.count == 3)
  }

  @Test("With another epoch the numbers begin anew")
  func epoch() throws {
    let stage = try subscribed(sequence: 30)
    stage.say(Stage.event(31))
    try stage.breakAndReopen()
    try stage.answerSubscribe(sequence: 2, epoch: "e2")
    stage.say(Stage.event(3))
    #expect(stage.sequences == [31, 3])
    #expect(stage.session.resumePoint(of: trip) == ResumePoint(since: 3, epoch: InlineText("e2")!))
  }

  @Test("What is recovered in another epoch continues from the last event")
  func recoveredEpoch() throws {
    let stage = try subscribed(sequence: 30)
    stage.say(Stage.event(31))
    try stage.breakAndReopen()
    try stage.answerSubscribe(sequence: 33, epoch: "e2", recovered: true)
    for sequence in 32...33 { stage.say(Stage.event(UInt64(sequence))) }
    #expect(stage.sequences == [31, 32, 33])
    #expect(stage.session.resumePoint(of: trip) == ResumePoint(since: 33, epoch: InlineText("e2")!))
  }

  @Test("A refused subscription is not asked for again, one that has to wait is")
  func refusals() throws {
    let stage = try Stage()
    stage.session.subscribe(trip)
    try stage.open()
    stage.say(.error(ErrorReply(code: .rateLimited, message: "", replyTo: stage.ids[0], retryAfter: 2)))
    stage.advance(seconds: 2.1)
    try stage.flush()
    #expect(stage.subscribes.count == 2)
    stage.say(.error(ErrorReply(code: .forbidden, message: "", replyTo: stage.ids[1])))
    try stage.breakAndReopen()
    #expect(stage.subscribes.isEmpty)
  }

  @Test("A subscription that has to wait again and again is asked for ever more seldom")
  func refusedForLong() throws {
    let stage = try Stage()
    stage.session.subscribe(trip)
    try stage.open(heartbeat: 100_000)
    var (asked, first) = (0, 0)
    for second in 0..<300 {
      for id in stage.ids {
        asked += 1
        if second < 10 { first += 1 }
        stage.say(.error(ErrorReply(code: .rateLimited, message: "", replyTo: id, retryAfter: 1)))
      }
      stage.messages = []
      stage.advance(seconds: 1)
      try stage.flush()
    }
    #expect(first >= 4 && asked > 10 && asked < 20, "\(first) of \(asked)")
    for _ in 0..<60 where stage.ids.isEmpty {
      stage.advance(seconds: 1)
      try stage.flush()
    }
    try stage.answerSubscribe(sequence: 5)
    #expect(stage.session.isSubscribed(trip))
  }

  @Test("An answer that nobody asked for has the channel's new numbers, from which it resumes")
  func unasked() throws {
    let stage = try subscribed(sequence: 3)
    let restart = Reply.subscribed(
      Subscribed(
        replyTo: try #require(MessageID("0")), channel: trip, sequence: 70, epoch: try #require(InlineText("e2")),
        recovered: false, snapshot: nil))
    stage.say(restart)
    #expect(stage.delivered.last == .reply(restart))
    stage.say(Stage.event(71))
    #expect(stage.sequences == [71])
    try stage.breakAndReopen()
    #expect(stage.subscribes == [Subscribe(channel: trip, resume: ResumePoint(since: 71, epoch: InlineText("e2")!))])
  }

  @Test("An event that this version does not know counts: what follows it asks for nothing")
  func unknownEvent() throws {
    for (type, more) in [("trip_reroute", ""), ("trip_update", #","tripId":"T1","status":"teleported","timestamp":5"#)]
    {
      let stage = try subscribed(sequence: 3)
      stage.advance(seconds: 5)
      stage.frame(
        .text,
        Array(
          """
          {"type":"\(type)","version":1,"messageId":"p1","timestamp":5,\
          "payload":{"channel":"trip:T1","sequence":4\(more)}}
          """.utf8))
      #expect(stage.delivered.last == .unknown(type: type))
      stage.say(Stage.position(after: 4))
      stage.say(Stage.event(5))
      #expect(stage.sequences == [5])
      try stage.flush()
      #expect(stage.subscribes.count == 1, "\(type)")
    }
  }

  @Test("In binary, too, an event of an unknown type stalls nothing, though its channel and number are not known")
  func unknownEventInBinary() throws {
    let stage = try Stage { $0.codec = .binary }
    stage.session.subscribe(trip)
    try stage.open()
    try stage.answerSubscribe(sequence: 3)
    stage.advance(seconds: 5)
    stage.frame(.binary, [26, 1, 2, 3])
    #expect(stage.delivered.last == .unknown(type: "26"))
    stage.say(Stage.event(5))
    try stage.flush()
    #expect(stage.subscribes.last?.resume == ResumePoint(since: 3, epoch: InlineText("e1")!))
    try stage.answerSubscribe(sequence: 5, recovered: true)
    stage.frame(.binary, [26, 1, 2, 3])
    stage.advance(seconds: 5)
    stage.say(Stage.position(after: 5))
    #expect(!stage.session.needsFlush, "what was not read is not asked for again")
    stage.say(Stage.event(5))
    stage.say(Stage.event(6))
    #expect(stage.sequences == [5, 6])
    stage.say(Stage.event(8))
    try stage.flush()
    #expect(stage.subscribes.count == 3, "a gap is one")
  }

  private func say(_ type: String, _ payload: String, to stage: Stage) {
    let envelope = #"{"type":"\#(type)","messageId":"r1","timestamp":5,"payload":\#(payload)}"#
    stage.frame(.text, Array(envelope.utf8))
  }

  @Test("A subscription is answered, and ended, whatever word of a newer hub is in that")
  func unknownWords() throws {
    let stage = try Stage()
    stage.session.subscribe(trip)
    try stage.open()
    let head = #""replyTo":"\#(stage.ids[0])","channel":"trip:T1","sequence":3,"epoch":"e1","recovered":false"#
    let leg = #""tripId":"T1","target":"pickup","eta":1,"distance":1,"arrivalTime":5,"after":3"#
    say("subscribed", #"{\#(head),"snapshot":{"eta":{\#(leg),"basis":"road"}}}"#, to: stage)
    #expect(stage.session.resumePoint(of: trip) == ResumePoint(since: 3, epoch: InlineText("e1")!))
    stage.advance(seconds: 5)
    stage.say(Stage.position(after: 4))
    try stage.flush()
    #expect(stage.subscribes.count == 2, "the gap is noticed")
    // An answer to an `unsubscribe` does not end what was subscribed since.
    say("unsubscribed", #"{"replyTo":"u1","channel":"trip:T1","reason":"bored"}"#, to: stage)
    #expect(stage.session.isSubscribed(trip))
    say("unsubscribed", #"{"channel":"trip:T1","reason":"bored"}"#, to: stage)
    #expect(!stage.session.isSubscribed(trip))
    try stage.breakAndReopen()
    #expect(stage.subscribes.isEmpty)
  }

  @Test("A subscription that the hub fails at is asked for ever more rarely, until it is answered")
  func failures() throws {
    let stage = try Stage()
    stage.session.subscribe(trip)
    try stage.open()
    for (count, seconds) in [(1, 1.0), (2, 2), (3, 4), (4, 8), (5, 16), (6, 30), (7, 30)] {
      #expect(stage.subscribes.count == count)
      let id = try #require(stage.ids.last)
      stage.say(.error(ErrorReply(code: .internalError, message: "", replyTo: id)))
      stage.advance(seconds: seconds - 0.1)
      try stage.flush()
      #expect(stage.subscribes.count == count)
      stage.advance(seconds: 0.2)
      stage.messages.removeAll { if case .ping = $0.message { true } else { false } }
      try stage.flush()
      stage.messages.removeAll { if case .ping = $0.message { true } else { false } }
    }
    try stage.answerSubscribe(sequence: 3)
    stage.advance(seconds: 5)
    stage.say(Stage.position(after: 9))
    try stage.flush()
    #expect(stage.subscribes.count == 9)
  }

  @Test("A subscription that is refused three times with a code of a newer hub ends")
  func refusedByNewer() throws {
    let stage = try Stage()
    stage.session.subscribe(trip)
    try stage.open()
    for count in 1...3 {
      #expect(stage.subscribes.count == count && stage.session.isSubscribed(trip))
      say("error", #"{"code":"too_hot","message":"no","replyTo":"\#(try #require(stage.ids.last))"}"#, to: stage)
      stage.advance(seconds: 5)
      try stage.flush()
    }
    #expect(stage.subscribes.count == 3 && !stage.session.isSubscribed(trip))
  }

  @Test("A channel that ended, and one that was left, are not asked for again")
  func leaving() throws {
    let stage = try subscribed(sequence: 0)
    #expect(stage.session.unsubscribe(trip))
    try stage.flush()
    #expect(stage.messages.last?.message == .unsubscribe(.channel(trip)))
    #expect(!stage.session.unsubscribe(trip))
    try stage.breakAndReopen()
    #expect(stage.subscribes.isEmpty)

    let other = try subscribed(sequence: 0)
    other.say(.unsubscribed(Unsubscribed(replyTo: nil, channel: trip, reason: .tripEnded)))
    try other.breakAndReopen()
    #expect(other.subscribes.isEmpty)
  }

  @Test("A channel that is left and entered again within a round trip stays subscribed", arguments: [false, true])
  func reentered(isAsked: Bool) throws {
    let stage = try subscribed(sequence: 0)
    #expect(stage.session.unsubscribe(trip))
    try stage.flush()
    let left = try #require(stage.ids.last)
    #expect(stage.session.subscribe(trip))
    if isAsked { try stage.flush() }
    stage.say(.unsubscribed(Unsubscribed(replyTo: left, channel: trip, reason: .asked)))
    try stage.flush()
    #expect(stage.subscribes.count == 2)
    try stage.answerSubscribe(sequence: 3)
    #expect(stage.session.resumePoint(of: trip)?.since == 3)
    stage.advance(seconds: 5)
    stage.say(Stage.position(after: 4))
    try stage.flush()
    #expect(stage.subscribes.count == 3, "the gap is noticed")
    try stage.breakAndReopen()
    #expect(stage.subscribes.count == 1)
  }

  @Test("An answer to a subscription that was left and made again since is not the new one's")
  func answeredLate() throws {
    let stage = try Stage()
    stage.session.subscribe(trip)
    try stage.open()
    let first = try #require(stage.messages.last)
    #expect(stage.session.unsubscribe(trip) && stage.session.subscribe(trip))
    func answer(_ request: ClientEnvelope, sequence: UInt64) {
      stage.say(
        .subscribed(
          Subscribed(
            replyTo: request.messageID, channel: trip, sequence: sequence, epoch: InlineText("e1")!, recovered: false,
            snapshot: nil)))
    }
    let before = stage.delivered.count
    answer(first, sequence: 3)
    #expect(stage.session.resumePoint(of: trip) == nil, "before the new one is sent")
    try stage.flush()
    answer(first, sequence: 3)
    #expect(stage.session.resumePoint(of: trip) == nil && stage.delivered.count == before, "and after that")
    answer(try #require(stage.messages.last), sequence: 4)
    #expect(stage.session.resumePoint(of: trip)?.since == 4 && stage.delivered.count == before + 1)
  }

  @Test("A view that is hidden and shown again within a round trip stays shown")
  func shownAgain() throws {
    let stage = try Stage()
    let view = InlineText("a1")!
    let area = Channel.area(GeohashCell(Coordinate(latitude: 48, longitude: 11)!, precision: 6))
    #expect(stage.session.show(area, as: view))
    try stage.open(role: .rider)
    #expect(stage.session.hide(view) && stage.session.show(area, as: view))
    try stage.flush()
    let left = stage.messages.first { if case .unsubscribe = $0.message { true } else { false } }
    stage.say(.unsubscribed(Unsubscribed(replyTo: try #require(left).messageID, channel: area, reason: .asked)))
    #expect(stage.session.isShown(view))
    try stage.breakAndReopen()
    #expect(stage.subscribes.map(\.viewID) == [view])
  }

  @Test("Subscriptions have a limit")
  func limit() throws {
    let stage = try Stage { $0.limits.subscriptions = 2 }
    #expect(stage.session.subscribe(.trip(Identifier("a")!)))
    #expect(stage.session.subscribe(.trip(Identifier("b")!)))
    #expect(!stage.session.subscribe(.trip(Identifier("c")!)))
    #expect(stage.session.subscribe(.trip(Identifier("a")!)))
  }
}
