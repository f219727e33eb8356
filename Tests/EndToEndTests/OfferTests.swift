// Offers over real sockets: ops have a trip offered, drivers answer, and a hub that is killed continues.
import Foundation
import HubMessages
import HubTestSupport
import Testing

extension EndToEnd {
  @Suite struct Offers {}

  @Suite(.enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  struct KilledOffers {}
}

extension Peer {
  /// A driver that is so many metres east of the trips' pickup, and hears what it is offered.
  @discardableResult
  fileprivate func comeNear(
    _ id: String, metersEast: Double, since: Int? = nil, epoch: String? = nil
  ) throws -> HubMessage {
    let subscribed = try subscribe("driver:\(id)", since: since, epoch: epoch)
    let now = Int(Date().timeIntervalSince1970 * 1000)
    _ = try send(
      "location_update",
      ["latitude": 48.137, "longitude": 11.575 + metersEast / 74_300, "accuracy": 5, "timestamp": now],
      timestamp: now)
    _ = try skip(to: "driver_location")
    return subscribed
  }
}

extension EndToEnd.Offers {
  private var ops: String { "role=ops&id=o1" }

  @Test("ops have a trip offered: the nearest driver declines, the next one takes it", arguments: loopCounts)
  func offered(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let (near, far) = (try hub.driver("d1"), try hub.driver("d2"))
    _ = try near.comeNear("d1", metersEast: 100)
    _ = try far.comeNear("d2", metersEast: 300)
    let place = #"{"latitude":48.137,"longitude":11.575}"#
    #expect(try hub.post("/v1/trips?\(ops)", #"{"tripId":"T1","pickup":\#(place)}"#).status == 201)
    #expect(try hub.get("/v1/trips/T1/offers?\(ops)").status == 404)
    let begun = try hub.post("/v1/trips/T1/offers?\(ops)", #"{"radius":5000,"limit":5,"duration":120}"#)
    #expect(begun.status == 201 && begun.fields["location"] == "/v1/trips/T1/offers")
    #expect(begun.json["state"] as? String == "open")
    #expect(try hub.post("/v1/trips/T1/offers?\(ops)", #"{"radius":5000,"limit":5,"duration":120}"#).status == 200)
    #expect(try hub.post("/v1/trips/T1/offers?\(ops)", #"{"radius":4000}"#).status == 409)
    #expect(try hub.post("/v1/trips/T1/offers?role=rider&id=r1", "{}").status == 403)
    #expect(try hub.post("/v1/trips/none/offers?\(ops)", "").status == 404)

    let offer = try near.skip(to: "offer")
    #expect(offer.string("tripId") == "T1" && (95...105).contains(offer.number("distance") ?? 0))
    let decline = try near.send("offer_decline", ["tripId": "T1"])
    #expect(try near.skip(to: "ack").replyTo == decline)
    _ = try far.skip(to: "offer")
    _ = try far.send("trip_status", ["tripId": "T1", "status": "accepted", "timestamp": 1_763_680_000_000])
    _ = try far.skip(to: "ack")
    let shown = try hub.get("/v1/trips/T1/offers?\(ops)")
    let asked = try #require(shown.json["asked"] as? [[String: Any]])
    #expect(shown.json["state"] as? String == "taken")
    #expect(asked.map { $0["answer"] as? String } == ["declined", "accepted"])
    #expect(try hub.get("/v1/trips/T1?\(ops)").json["driverId"] as? String == "d2")
    #expect(try hub.post("/v1/trips/T1/offers?\(ops)", "").status == 409)
  }

  @Test("a driver that wants events alone is not sent its own positions, and hears what it is offered")
  func eventsOnly() throws {
    let hub = try TestHub()
    let (driver, watcher) = (try hub.driver("d1"), try hub.ops("o2"))
    func drive(_ step: Int) throws {
      let now = Int(Date().timeIntervalSince1970 * 1000) + step
      let east = 11.575 + Double(step) * 1e-5
      let sent = try driver.send(
        "location_update", ["latitude": 48.137, "longitude": east, "accuracy": 5, "timestamp": now], timestamp: now)
      #expect(try watcher.skip(to: "driver_location").string("driverId") == "d1", "\(sent)")
    }
    func subscribe(_ payload: [String: Any]) throws {
      _ = try driver.send("subscribe", payload)
      _ = try driver.skip(to: "subscribed")
    }
    try watcher.subscribe("driver:d1")
    try subscribe(["channel": "driver:d1", "eventsOnly": true])
    for step in 1...3 { try drive(step) }
    let place = #"{"latitude":48.137,"longitude":11.575}"#
    #expect(try hub.post("/v1/trips?\(ops)", #"{"tripId":"T1","pickup":\#(place),"offer":{}}"#).status == 201)
    var seen: Set<String> = []
    while !seen.contains("offer") { if case .message(let message) = try driver.next() { seen.insert(message.type) } }
    #expect(!seen.contains("driver_location"))
    // Asked for anew without the word, states come again.
    try subscribe(["channel": "driver:d1"])
    try drive(4)
    _ = try driver.skip(to: "driver_location")
    let counted = try hub.metrics()
    #expect(counted["subscriptions"] == 2 && counted["positions_out_total"] == 5)
  }

  @Test("a rider requests a trip with offers; when nobody is near it hears so at once", arguments: loopCounts)
  func unserved(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    let place = ["latitude": 48.137, "longitude": 11.575]
    _ = try rider.send(
      "trip_status",
      [
        "tripId": "T1", "status": "requested", "timestamp": 1_763_680_000_000, "pickup": place,
        "offer": ["vehicleType": "van"],
      ])
    let notice = try rider.skip(to: "notification")
    #expect(notice.string("kind") == "unserved" && notice.integer("sequence") == 2)
    let ended = try hub.request(
      "DELETE /v1/trips/T1/offers?\(ops) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    #expect(ended.status == 204)
    #expect(try hub.get("/v1/trips/T1/offers?\(ops)").json["state"] as? String == "unserved")
  }
}

extension EndToEnd.KilledOffers {
  private func join(_ hub: HubProcess, _ query: String) throws -> Peer {
    let peer = try Peer(port: hub.port, query: query)
    _ = try peer.receive("connected")
    return peer
  }

  @Test("over kill -9 no driver is asked twice, and the next one is asked by the hub that comes back")
  func killed() throws {
    let directory = try JournalDirectory()
    let first = try HubProcess.serve(["--data", directory.path, "--session-rate", "0"])
    let (near, far) = (try join(first, "role=driver&id=d1"), try join(first, "role=driver&id=d2"))
    let epoch = try #require(try near.comeNear("d1", metersEast: 100).string("epoch"))
    _ = try far.comeNear("d2", metersEast: 300)
    let ops = try join(first, "role=ops&id=o1")
    _ = try ops.send(
      "trip_status",
      [
        "tripId": "T1", "status": "requested", "timestamp": 1_763_680_000_000,
        "pickup": ["latitude": 48.137, "longitude": 11.575], "offer": ["duration": 120],
      ])
    _ = try ops.skip(to: "ack")
    let offer = try near.skip(to: "offer")
    first.send(signal: SIGKILL)
    #expect(try first.outcome().status == -SIGKILL)

    let second = try HubProcess.serve(["--data", directory.path, "--session-rate", "0"])
    let (back, other) = (try join(second, "role=driver&id=d1"), try join(second, "role=driver&id=d2"))
    let again = try back.comeNear("d1", metersEast: 100, since: offer.integer("sequence"), epoch: epoch)
    #expect(again.payload["recovered"] as? Bool == true && again.integer("sequence") == offer.integer("sequence"))
    _ = try other.comeNear("d2", metersEast: 300)
    _ = try back.send("offer_decline", ["tripId": "T1"])
    #expect(try back.skip(to: "offer_withdrawn").string("reason") == "declined")
    _ = try other.skip(to: "offer")
    _ = try other.send("trip_status", ["tripId": "T1", "status": "accepted", "timestamp": 1_763_680_000_000])
    _ = try other.skip(to: "ack")
    second.send(signal: SIGKILL)
    #expect(try second.outcome().status == -SIGKILL)

    #expect(try HubProcess.run(["journal", "verify", directory.path]).status == 0)
    let export = try HubProcess.run(["journal", "export", directory.path])
    for driver in ["d1", "d2"] {
      let made = export.output.split(separator: "\n").filter {
        $0.contains(#""type":"offer","payload":{"channel":"driver:\#(driver)""#)
      }
      #expect(made.count == 1, "\(driver)")
    }
    #expect(export.output.contains(#""record":"offers""#) && export.output.contains(#""state":"taken""#))
  }
}
