// The outcome of messages by who sends them, without a loop.
import HubCore
import HubGeo
import HubMessages
import Testing

@testable import HubGateway

@Suite struct MessageRulesTests {
  private func outcome(
    of message: ClientMessage, by role: HubMessages.Role
  ) throws -> MessageOutcome {
    let credential = Credential(role: role, id: try #require(Identifier("x1")))
    let rules = MessageRules(
      session: SessionRef(outlet: 0, slot: 1, generation: 1), rights: SessionRights(credential, expires: .max),
      envelope: ClientEnvelope(
        messageID: try #require(MessageID("m")), timestamp: Timestamp(milliseconds: 5), message: message),
      now: Moment(uptime: 0, timestamp: Timestamp(milliseconds: 5)),
      areaRadiusMeters: 1000)
    return rules.outcome
  }

  private func subscribe(_ channel: Channel) -> ClientMessage { .subscribe(Subscribe(channel: channel)) }

  private func refusal(_ outcome: MessageOutcome) throws -> MessageRefusal {
    guard case .refuse(let refusal) = outcome else {
      Issue.record("it was not refused: \(outcome)")
      throw CancellationError()
    }
    return refusal
  }

  @Test("what only a driver sends is refused to others, and the answer names the message")
  func roles() throws {
    let status = ClientMessage.driverStatus(DriverStatusReport(status: .available, vehicleType: nil, tags: []))
    guard case .ask(.driverStatus) = try outcome(of: status, by: .driver) else {
      Issue.record("a driver may say its status")
      return
    }
    let refusal = try refusal(outcome(of: status, by: .rider))
    #expect(refusal.error.code == .forbidden && refusal.error.replyTo == MessageID("m") && refusal.limit == nil)
  }

  @Test("a subscription is refused for the role")
  func subscriptions() throws {
    guard case .subscribe = try outcome(of: subscribe(.trip(try #require(Identifier("t1")))), by: .rider) else {
      Issue.record("a rider may follow a trip")
      return
    }
    let fleet = try refusal(outcome(of: subscribe(.fleet), by: .rider))
    #expect(fleet.error.code == .forbidden && fleet.limit == nil)
  }

  @Test("the size of a view's cells is for ops to choose, and goes with a view")
  func precision() throws {
    let place = try #require(Coordinate(latitude: 48, longitude: 11))
    let box = try #require(BoundingBox(south: 48, west: 11, north: 48.1, east: 11.1))
    func subscribe(_ channel: Channel) -> ClientMessage { .subscribe(Subscribe(channel: channel, precision: 6)) }
    for channel in [Channel.nearby(place, radiusMeters: 500), .box(box)] {
      guard case .subscribe = try outcome(of: subscribe(channel), by: .ops) else {
        Issue.record("ops may: \(channel)")
        continue
      }
      for role in [Role.rider, .driver] {
        #expect(try refusal(outcome(of: subscribe(channel), by: role)).error.code == .forbidden)
      }
    }
    #expect(try refusal(outcome(of: subscribe(.fleet), by: .ops)).error.code == .badMessage)
    for role in [Role.rider, .driver] {
      let bare = ClientMessage.subscribe(Subscribe(channel: .box(box)))
      #expect(try refusal(outcome(of: bare, by: role)).error.code == .forbidden, "a box is for ops")
    }
  }

  @Test("a driver's ping goes to the hub, which knows what is stored; others' are answered at once")
  func pings() throws {
    let ping = ClientMessage.ping(Ping())
    guard case .ask(.ping) = try outcome(of: ping, by: .driver), case .reply(.pong) = try outcome(of: ping, by: .ops)
    else {
      Issue.record("a ping went elsewhere")
      return
    }
  }
}
