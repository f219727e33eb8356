// Notifications that back ends post: to whom, numbered and stored like other events, once for a messageId, and bounded.
import HubBytes
import HubMessages
import Testing

@testable import HubCore

@Suite struct HubNotificationsTests {
  private func post(_ channel: Channel, _ body: String = "b", id: String? = nil) -> NotificationPost {
    var post = NotificationPost(channel: channel, kind: .message, title: "t", body: body)
    post.content = #""gate":4"#
    post.messageID = id.map { message($0) }
    return post
  }

  private func answers(_ outputs: [HubOutput]) -> [NotificationAnswer] {
    outputs.compactMap { if case .notified(_, let answer) = $0 { answer } else { nil } }
  }

  private func send(_ bench: HubBench, _ post: NotificationPost) throws -> (turn: Turn, answer: NotificationAnswer) {
    let turn = bench.turn(.notify(bench.session(slot: 9), post))
    return (turn, try #require(answers(turn.all).first))
  }

  @Test("a notification goes to a trip's, a driver's and a fence's followers, with its number, and is recoverable")
  func received() throws {
    let bench = HubBench()
    bench.turn(bench.move(.rider, "r", "t", .requested), bench.subscribe(bench.trip("t")))
    _ = bench.connect("d")
    let (turn, answer) = try send(bench, post(bench.trip("t")))
    guard case .published(bench.trip("t"), sequence: 2, isNew: true) = answer else { throw Wrong() }
    let notice = try #require(turn.notifications.first)
    #expect(notice.kind == .message && notice.title == "t" && notice.content == #""gate":4"# && notice.sequence == 2)
    guard case .published(_, sequence: 1, isNew: true) = try send(bench, post(bench.driver("d"))).answer else {
      throw Wrong()
    }
    let missed = bench.turn(bench.subscribe(bench.trip("t"), since: 1)).subscribed.first?.missed
    #expect(missed?.compactMap(\.notification?.body) == ["b"])
    #expect(bench.hub.counters.notificationsPosted == 2)
  }

  @Test("what the hub does not know, and a trip whose people were let go, is refused")
  func refused() throws {
    let bench = HubBench()
    bench.turn(bench.move(.rider, "r", "over", .requested))
    bench.turn(bench.move(.rider, "r", "over", .cancelled))
    bench.tick(seconds: 62)
    let rows: [(Channel, ErrorCode)] = [
      (bench.trip("none"), .unknownTrip), (bench.driver("none"), .unknownChannel),
      (.fence(id("none")), .unknownChannel),
      (.fleet, .unknownChannel), (bench.trip("over"), .invalidTransition),
    ]
    for (channel, code) in rows {
      guard case .refused(let error) = try send(bench, post(channel)).answer else { throw Wrong() }
      #expect(error.code == code, "\(channel)")
    }
    #expect(bench.hub.counters.notificationsPosted == 0)
  }

  @Test("where the driver has just moved to another hub, it is to be sent again at once")
  func hasMoved() throws {
    let bench = HubBench(loops: 2)
    bench.hub.joinCluster(outlet: 1)
    _ = bench.connect("d")
    bench.turn(.cluster(.driverElsewhere(id("d"), arrival: 1)))
    let request = TripRequest.notify(bench.session(slot: 9), post(bench.driver("d")))
    let turn = bench.turn(.cluster(.tripRequestHere(request)))
    guard case .refused(let error)? = answers(turn.all).first else { throw Wrong() }
    #expect(error.code == .rateLimited && error.retryAfter == 1)
  }

  @Test("the same messageId on a channel is one notification, also after a restart; with other content it is refused")
  func once() throws {
    let first = try DurableBench()
    let session = SessionRef(outlet: 0, slot: 9, generation: 1)
    first.turn([first.move(.ops, "o", "T", .requested)])
    first.store()
    let made = post(.trip(id("T")), id: "n1")
    #expect(answers(first.turn([.notify(session, made)])).isEmpty, "it is not stored yet")
    guard case .published(_, sequence: 2, isNew: true) = try #require(answers(first.store()).first) else {
      throw Wrong()
    }
    let second = try DurableBench(reading: first.submitted, seed: 4)
    #expect(try second.state() == first.state())
    second.store()
    guard
      case .published(_, sequence: 2, isNew: false) = try #require(answers(second.turn([.notify(session, made)])).first)
    else { throw Wrong() }
    let other = answers(second.turn([.notify(session, post(.trip(id("T")), "other", id: "n1"))]))
    guard case .refused(let error) = try #require(other.first) else { throw Wrong() }
    #expect(error.code == .invalidTransition && second.hub.counters.notificationsPosted == 0)
    second.store(condition: .unavailable)
    guard case .refused(let full) = try #require(answers(second.turn([.notify(session, made)])).first) else {
      throw Wrong()
    }
    #expect(full.code == .storageFull)
  }

  @Test("kept events hold so many bytes of texts; beyond that the oldest are forgotten, and none is refused")
  func limit() throws {
    var limits = HubLimits.roomy
    limits.eventContentBytes = 100
    let bench = HubBench(limits: limits)
    bench.turn(bench.move(.rider, "r", "t", .requested))
    for _ in 0..<2 {
      guard case .published = try send(bench, post(bench.trip("t"), String(repeating: "x", count: 60))).answer else {
        throw Wrong()
      }
    }
    #expect(bench.hub.channels.contentBytes == 69)
    let missed = bench.turn(bench.subscribe(bench.trip("t"), since: 2)).subscribed.first?.missed
    #expect(missed?.compactMap(\.notification?.sequence) == [3])
  }

  @Test("a channel is kept from its first event on, not from when one was to come")
  func opened() {
    let bench = HubBench()
    let channel = bench.hub.eventChannel(ofFence: id("F"))
    #expect(channel != nil)
    for isPublished in [false, true] {
      if isPublished, let channel {
        bench.hub.publishEvent(on: channel) { .notification(.unserved(sequence: $0)) }
      }
      let kept = bench.hub.channels.keptNames()
      #expect(kept == (isPublished ? [.fence(id("F"))] : []))
    }
  }

  @Test("a journal that says a channel is forgotten which it has not begun can be read")
  func forgottenUnbegun() throws {
    let bench = try DurableBench()
    bench.turn([])
    var record = ByteBuffer()
    RecordWriter.write(.channelForgotten(.driver(id("E"))), into: &record)
    #expect(try DurableBench(reading: bench.submitted + [record.array()]).state() == bench.state())
  }

  private struct Wrong: Error {}
}
