// What the hub can't take now, and waits without holding up the rest, but for what must not overtake it.
import HubGeo
import HubMessages
import Testing

@testable import HubClientCore

@Suite struct PostponedTests {
  private static let available = DriverStatusReport(status: .available, vehicleType: nil, tags: [])

  @Test("A question or report that the hub can't take now waits alone, each for its own time; all else is sent")
  func postponed() throws {
    let stage = try Stage()
    try stage.open()
    let ids = [stage.session.send(Self.available), stage.session.send(QueryRequest.trip(Identifier("T1")!))].compactMap(
      \.self)
    try stage.flush()
    for (id, seconds) in zip(ids, [60.0, 5]) {
      stage.say(.error(ErrorReply(code: .storageFull, message: "", replyTo: id, retryAfter: seconds)))
    }
    stage.messages = []
    stage.session.send(Stage.fix(1))
    try stage.flush()
    #expect(stage.fixTimes == [1] && stage.messages.count == 1 && stage.session.unconfirmed == 3)
    for (seconds, expected) in [(4.9, []), (0.2, [ids[1]]), (54.8, []), (0.2, [ids[0]])] {
      stage.advance(seconds: seconds)
      stage.session.timeReached(stage.now)
      stage.messages = []
      try stage.flush()
      #expect(stage.ids.filter(ids.contains) == expected, "after \(seconds) s more")
    }
    for id in ids { stage.ack(id) }
    #expect(stage.session.unconfirmed == 1, "the fix")
  }

  @Test("What waits alone is sent again over the next connection")
  func postponedOverBreak() throws {
    let stage = try Stage()
    try stage.open()
    let id = try #require(stage.session.send(Self.available))
    try stage.flush()
    stage.say(.error(ErrorReply(code: .storageFull, message: "", replyTo: id, retryAfter: 60)))
    stage.messages = []
    try stage.breakAndReopen()
    #expect(stage.ids.filter { $0 == id }.count == 1)
    stage.ack(id)
    #expect(stage.session.unconfirmed == 0)
  }

  @Test(
    "A booking that the hub can't take now holds up only what concerns its trip, also once it is withdrawn",
    arguments: [ErrorCode.rateLimited, .storageFull], [false, true])
  func booking(code: ErrorCode, isWithdrawn: Bool) throws {
    let stage = try Stage()
    try stage.open(role: .rider)
    let booking = try #require(stage.session.send(Stage.move(.requested)))
    try stage.flush()
    stage.say(.error(ErrorReply(code: code, message: "", replyTo: booking, retryAfter: 60)))
    stage.messages = []
    let place = Coordinate(latitude: 48, longitude: 11)
    let behind = [
      stage.session.send(TripChange(tripID: Identifier("T1")!, pickup: place)),
      stage.session.send(Stage.move(.cancelled)),
    ].compactMap(\.self)
    let others = [
      stage.session.send(QueryRequest.trip(Identifier("T2")!)),
      stage.session.send(TripChange(tripID: Identifier("T2")!, pickup: place)),
      stage.session.send(Stage.move(.cancelled, trip: "T2")),
    ].compactMap(\.self)
    try stage.flush()
    #expect(stage.ids == others && stage.session.backlog == 0)
    stage.messages = []
    if isWithdrawn {
      stage.session.withdraw(booking)
    } else {
      stage.advance(seconds: 60.1)
      stage.session.timeReached(stage.now)
      try stage.flush()
      #expect(stage.ids.filter { $0 == booking || behind.contains($0) } == [booking])
      stage.messages = []
      stage.ack(booking)
    }
    try stage.flush()
    #expect(stage.ids == behind)
    for id in behind + others { stage.ack(id) }
    #expect(stage.session.unconfirmed == 0 && stage.session.backlog == 0)
  }

  @Test("A status that the hub can't take now is answered before a newer one is sent, over breaks, too")
  func statuses() throws {
    let stage = try Stage()
    try stage.open()
    let unavailable = DriverStatusReport(status: .unavailable, vehicleType: nil, tags: [])
    let ids = [Self.available, unavailable, Self.available].compactMap { stage.session.send($0) }
    var sent: [MessageID] { stage.ids.filter(ids.contains) }
    try stage.flush()
    #expect(sent == [ids[0]] && stage.session.backlog == 0, "the others wait for no time")
    stage.say(.error(ErrorReply(code: .storageFull, message: "", replyTo: ids[0], retryAfter: 9)))
    for (seconds, expected) in [(8.9, [ids[0]]), (0.2, [ids[0], ids[0]])] {
      stage.advance(seconds: seconds)
      stage.session.timeReached(stage.now)
      try stage.flush()
      #expect(sent == expected, "after \(seconds) s more")
    }
    try stage.breakAndReopen()
    #expect(sent == [ids[0]])
    stage.ack(ids[0])
    try stage.flush()
    #expect(sent == [ids[0], ids[1]])
    // One that is withdrawn holds up none.
    stage.session.withdraw(ids[1])
    try stage.flush()
    #expect(sent == ids)
    stage.ack(ids[2])
    #expect(stage.session.unconfirmed == 0 && stage.session.backlog == 0)
  }

  @Test("Changes of one trip go one by one, beside those of another")
  func changes() throws {
    let stage = try Stage()
    let place = Coordinate(latitude: 48, longitude: 11)
    let ids = ["T1", "T1", "T2"].compactMap { stage.session.send(TripChange(tripID: Identifier($0)!, pickup: place)) }
    var sent: [MessageID] { stage.ids.filter(ids.contains) }
    try stage.open()
    #expect(sent == [ids[0], ids[2]])
    stage.ack(ids[0])
    try stage.flush()
    #expect(sent == [ids[0], ids[2], ids[1]])
    stage.ack(ids[2])
    stage.ack(ids[1])
    #expect(stage.session.unconfirmed == 0)
  }
}
