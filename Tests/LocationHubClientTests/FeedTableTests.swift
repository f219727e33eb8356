// Who reads what, over the client's end and the hub's refusals.
import HubBytes
import HubGeo
import HubMessages
import Testing

@testable import HubClientCore
@testable import LocationHubClient

@Suite struct FeedTableTests {
  @Test("what was read before stop() is not asked for after the next start: nobody reads it any more")
  func restarted() async throws {
    for role in [HubMessages.Role.rider, .driver] {
      let client = try EngineClient(.json, role)
      client.read()
      client.start()
      #expect(try client.takeWritten().count { $0.type == "subscribe" } == (role == .driver ? 3 : 2))
      client.stop()
      guard case .ended? = await client.trip.next() else { return #expect(Bool(false)) }
      #expect(await client.area.next() == nil)
      #expect(client.area.failure?.code == .stopped)
      guard case .ended(let error)? = await client.offers.next() else { return #expect(Bool(false)) }
      #expect(error.code == .stopped)
      #expect(await client.offers.next() == nil)
      client.start()
      #expect(client.session.state == .open && client.session.subscriptions.list.isEmpty)
      #expect(try client.takeWritten().count { $0.type == "subscribe" } == 0)
    }
  }

  /// Answers the newest request for the trip.
  private func answer(_ client: EngineClient, _ sequence: Int, epoch: String = "e") throws {
    let asked = try client.takeWritten().last { $0.payload["channel"] as? String == "trip:T1" }
    let head = #""replyTo":"\#(try #require(asked).id)","channel":"trip:T1","recovered":false"#
    client.say("subscribed", #"{\#(head),"sequence":\#(sequence),"epoch":"\#(epoch)"}"#)
  }

  @Test("who leaves a trip and follows it again within a round trip has missed nothing")
  func reentered() async throws {
    let client = try EngineClient(.json, .rider)
    client.read()
    client.start()
    let asked = try client.takeWritten()
    let first = try #require(asked.first { $0.payload["channel"] as? String == "trip:T1" }).id
    let again = FeedReader<TripEvent>()
    client.engine.feeds.remove(ObjectIdentifier(client.trip), from: .trip("T1"), client.session)
    client.engine.feeds.add(again, to: .trip("T1"))
    client.turn()
    let head = #""channel":"trip:T1","sequence":0,"epoch":"e","recovered":false"#
    client.say("subscribed", #"{"replyTo":"\#(first)",\#(head)}"#)
    try answer(client, 0)
    client.say("trip_update", update(1))
    #expect(await again.next() == .snapshot(TripSnapshot()))
    guard case .update(let update)? = await again.next() else { return #expect(Bool(false)) }
    #expect(update.sequence == 1)
  }

  @Test("a later reader begins with a snapshot that has the newest position and ETA, whatever comes before its answer")
  func later() async throws {
    let client = try EngineClient(.json, .rider)
    client.read()
    client.start()
    try answer(client, 0)
    func position(_ longitude: Int) -> String {
      let place = #""driverId":"p1","latitude":48,"longitude":\#(longitude),"accuracy":5,"confidence":"high""#
      return #"{"channel":"trip:T1",\#(place),"timestamp":1763680000000,"age":0.1,"after":0}"#
    }
    let leg = #""tripId":"T1","target":"pickup","eta":1,"distance":1,"arrivalTime":1763680000000"#
    client.say("driver_location", position(11))
    client.say("eta_update", #"{"channel":"trip:T1",\#(leg),"basis":"direct","after":0}"#)
    let reader = FeedReader<TripEvent>()
    client.engine.feeds.add(reader, to: .trip("T1"))
    client.turn()
    client.say("driver_location", position(12))
    let asked = try client.takeWritten().last { $0.payload["channel"] as? String == "trip:T1" }
    let head = #""replyTo":"\#(try #require(asked).id)","channel":"trip:T1","recovered":true"#
    client.say("subscribed", #"{\#(head),"sequence":0,"epoch":"e"}"#)
    client.say("trip_update", update(1))
    guard case .snapshot(let snapshot)? = await reader.next() else { return #expect(Bool(false)) }
    #expect(snapshot.position?.coordinate.longitude == 12 && snapshot.eta?.distance == 1)
    guard case .update? = await reader.next() else { return #expect(Bool(false)) }
  }

  private func update(_ sequence: Int) -> String {
    #"{"channel":"trip:T1","tripId":"T1","status":"accepted","timestamp":1763680000000,"sequence":\#(sequence)}"#
  }

  @Test("a reader that left 256 events unread learns of the gap and of the trip's end")
  func slow() async throws {
    let client = try EngineClient(.json, .rider)
    client.read()
    client.start()
    try answer(client, 0)
    for sequence in 1...255 { client.say("trip_update", update(sequence)) }
    client.say("unsubscribed", #"{"channel":"trip:T1","reason":"trip_ended"}"#)
    #expect(await client.trip.next() == .gap)
    #expect(await client.trip.next() == .ended(.tripEnded))
    #expect(await client.trip.next() == nil)
  }

  @Test("a reader that left 256 events unread learns that more were missed in a break")
  func slowInBreak() async throws {
    let client = try EngineClient(.json, .rider)
    client.read()
    client.start()
    try answer(client, 0)
    for sequence in 1...255 { client.say("trip_update", update(sequence)) }
    client.cut()
    client.pass()
    try answer(client, 900, epoch: "f")
    #expect(await client.trip.next() == .gap)
    #expect(await client.trip.next() == .snapshot(TripSnapshot()))
  }

  @Test("words of a newer hub: a snapshot lacks the part that has one, and an end for another reason is an end")
  func newerWords() async throws {
    let client = try EngineClient(.json, .driver)
    client.read()
    client.start()
    let leg = #""tripId":"T1","target":"pickup","eta":1,"distance":1,"arrivalTime":1763680000000,"after":0"#
    let state = #""trip":{"tripId":"T1","status":"accepted","timestamp":1763680000000}"#
    let asked = try client.takeWritten()
    for channel in ["trip:T1", "driver:D1"] {
      let id = try #require(asked.first { $0.payload["channel"] as? String == channel }).id
      let head = #""replyTo":"\#(id)","channel":"\#(channel)","sequence":0,"epoch":"e","recovered":false"#
      client.say("subscribed", #"{\#(head),"snapshot":{\#(state),"eta":{\#(leg),"basis":"road"}}}"#)
      client.say("unsubscribed", #"{"channel":"\#(channel)","reason":"bored"}"#)
    }
    guard case .snapshot(let snapshot)? = await client.trip.next() else { return #expect(Bool(false)) }
    #expect(snapshot.trip?.status == .accepted && snapshot.eta == nil)
    guard case .ended(.refused(let end))? = await client.trip.next() else { return #expect(Bool(false)) }
    #expect(end.code == .refused && end.explanation.contains("newer hub"))
    guard case .ended(let error)? = await client.offers.next() else { return #expect(Bool(false)) }
    #expect(error.explanation.contains("newer hub"))
  }

  @Test("a client reads 4,096 feeds at once; one more ends at once, and a trip's says why")
  func full() async throws {
    let client = try EngineClient(.json, .rider)
    let (trip, area) = (FeedReader<TripEvent>(), FeedReader<AreaMap>())
    for _ in 0..<FeedTable.maximumReaders { client.engine.feeds.add(FeedReader<TripEvent>(), to: .trip("T1")) }
    client.engine.feeds.add(trip, to: .trip("T1"))
    client.engine.feeds.add(area, to: InlineText("a1")!, showing: .fleet)
    guard case .ended(.refused(let error))? = await trip.next() else { return #expect(Bool(false)) }
    #expect(error.code == .full && error.retry == .later(after: nil))
    #expect(await trip.next() == nil)
    #expect(await area.next() == nil)
    #expect(area.failure?.code == .full)
  }

  @Test("an area that the hub refuses, or that has no radius, ends, and says why")
  func areas() async throws {
    let client = try EngineClient(.json, .rider)
    let place = Coordinate(latitude: 48, longitude: 11)!
    func read(_ radius: Double) -> FeedReader<AreaMap> {
      let reader = FeedReader<AreaMap>()
      client.engine.feeds.add(reader, to: InlineText("a1")!, showing: .nearby(place, radiusMeters: radius))
      client.turn()
      return reader
    }
    client.start()
    for radius in [0, -1, Double.nan, .infinity] {
      let none = read(radius)
      #expect(await none.next() == nil)
      #expect(none.failure?.code == .badValue)
    }
    #expect(try client.takeWritten().isEmpty)
    let far = read(50_000)
    client.refuse(try #require(try client.takeWritten().first { $0.type == "subscribe" }).id, "forbidden")
    #expect(await far.next() == nil)
    #expect(far.failure?.code == .hub(.forbidden))
    let moved = read(500)
    client.engine.feeds.move(InlineText("a1")!, to: .nearby(place, radiusMeters: -1), client.session)
    client.turn()
    #expect(await moved.next() == nil)
    #expect(moved.failure?.code == .badValue && client.session.subscriptions.list.isEmpty)
  }

  @Test("a map that is not read is changed in place, and what a reader has is not changed")
  func mapInPlace() async throws {
    let client = try EngineClient(.json, .rider)
    client.read()
    client.start()
    let cells = #""cells":["u281zd"],"sequence":0,"epoch":"e","recovered":false"#
    client.say("subscribed", #"{"replyTo":"x","channel":"nearby:48,11,500","viewId":"a1",\#(cells)}"#)
    func update(_ tick: Int) {
      let place = #""latitude":48,"longitude":11.00\#(tick),"status":"available","timestamp":1763680001000"#
      let drivers = #""full":false,"drivers":[{"driverId":"p1",\#(place)}],"left":[]"#
      client.say("area_update", #"{"channel":"area:u281zd","cell":"u281zd","tick":\#(tick),\#(drivers)}"#)
    }
    /// Where the drivers of the next map are in memory, without keeping them.
    func storage() async throws -> Int {
      let map = try #require(await client.area.next())
      #expect(map.drivers.count == 1)
      return unsafeBitCast(map.drivers, to: Int.self)
    }
    update(1)
    let first = try await storage()
    for tick in 2...5 { update(tick) }
    #expect(try await storage() == first)
    update(6)
    let kept = try #require(await client.area.next())
    for tick in 7...9 { update(tick) }
    let last = try #require(await client.area.next())
    #expect(kept.tick == 6 && last.tick == 9)
    #expect(kept.drivers["p1"]?.coordinate.longitude == 11.006 && last.drivers["p1"]?.coordinate.longitude == 11.009)
  }

  @Test("offers that the hub refuses, or ends, end the loop, and the next one asks again")
  func offers() async throws {
    let client = try EngineClient(.json, .driver)
    let reader = FeedReader<OfferEvent>()
    client.engine.offers.add(reader)
    client.start()
    client.refuse(try #require(try client.takeWritten().first { $0.type == "subscribe" }).id, "forbidden")
    guard case .ended(let refusal)? = await reader.next() else { return #expect(Bool(false)) }
    #expect(refusal.code == .hub(.forbidden))
    #expect(await reader.next() == nil)
    let next = FeedReader<OfferEvent>()
    client.engine.offers.add(next)
    client.turn()
    let asked = try #require(try client.takeWritten().first { $0.type == "subscribe" })
    client.say(
      "subscribed", #"{"replyTo":"\#(asked.id)","channel":"driver:D1","sequence":0,"epoch":"e","recovered":false}"#)
    client.say("unsubscribed", #"{"channel":"driver:D1","reason":"revoked"}"#)
    guard case .ended(let end)? = await next.next() else { return #expect(Bool(false)) }
    #expect(end.code == .refused && end.explanation.contains("revoked"))
    #expect(await next.next() == nil)
  }
}
