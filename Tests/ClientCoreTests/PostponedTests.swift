// What the hub can't take now, and waits without holding up the rest.
import HubMessages
import Testing

@testable import HubClientCore

@Suite struct PostponedTests {
  @Test("A question or report that the hub can't take now waits alone, each for its own time; all else is sent")
  func postponed() throws {
    let stage = try Stage()
    try stage.open()
    let report = DriverStatusReport(status: .available, vehicleType: nil, tags: [])
    let ids = [report, report].compactMap { stage.session.send($0) }
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
    let id = try #require(stage.session.send(DriverStatusReport(status: .available, vehicleType: nil, tags: [])))
    try stage.flush()
    stage.say(.error(ErrorReply(code: .storageFull, message: "", replyTo: id, retryAfter: 60)))
    stage.messages = []
    try stage.breakAndReopen()
    #expect(stage.ids.filter { $0 == id }.count == 1)
    stage.ack(id)
    #expect(stage.session.unconfirmed == 0)
  }
}
