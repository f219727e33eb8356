// Trips over HTTP: asked for, shown, listed.
import Foundation
import HubGateway
import HubMessages
import HubRuntime
import Testing

extension EndToEnd {
  @Suite struct TripEndpoints {}
}

extension EndToEnd.TripEndpoints {
  private var ops: String { "role=ops&id=o1" }

  @Test("a trip that ops ask for is made, published, and shown to its own people", arguments: loopCounts)
  func request(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    let body = """
      {"tripId":"T1","driverId":"d1","riderId":"r1","pickup":{"latitude":48.1,"longitude":11.5},"route":"_p~iF~ps|U_ulLnnqC",
       "timestamp":1763680000000}
      """
    let made = try hub.post("/v1/trips?\(ops)", body)
    #expect(made.status == 201 && made.fields["location"] == "/v1/trips/T1")
    #expect(made.json["status"] as? String == "requested" && made.json["timestamp"] as? Int == 1_763_680_000_000)
    #expect((made.json["pickup"] as? [String: Any])?["longitude"] as? Double == 11.5)
    #expect(try rider.receive("trip_update").string("status") == "requested")
    let again = try hub.post("/v1/trips?\(ops)", body)
    #expect(again.status == 200 && again.json["tripId"] as? String == "T1")
    let other = try hub.post("/v1/trips?\(ops)", #"{"tripId":"T1"}"#)
    #expect(other.status == 409 && other.errorCode == "invalid_transition")
    for query in [ops, "role=driver&id=d1", "role=rider&id=r1"] {
      let shown = try hub.get("/v1/trips/T1?\(query)")
      #expect(shown.status == 200 && shown.json["riderId"] as? String == "r1")
      #expect(shown.json["route"] as? String == "_p~iF~ps|U_ulLnnqC")
    }
    #expect(try hub.get("/v1/trips/T1?role=driver&id=d2").status == 403)
    #expect(try rider.settle().isEmpty)
  }

  @Test("a trip is changed over HTTP and over the socket, and its followers get what", arguments: loopCounts)
  func change(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    #expect(try hub.post("/v1/trips?\(ops)", #"{"tripId":"T1","riderId":"r1","driverId":"d1"}"#).status == 201)
    _ = try rider.receive("trip_update")
    func patch(_ query: String, _ body: String, trip: String = "T1") throws -> HTTPResponse {
      try hub.request(
        "PATCH /v1/trips/\(trip)?\(query) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
          + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }
    let body = #"{"dropoff":{"latitude":48.1402,"longitude":11.5581},"route":"_p~iF~ps|U_ulLnnqC"}"#
    for query in [ops, "role=rider&id=r1"] {
      let changed = try patch(query, body)
      #expect(changed.status == 200 && changed.json["route"] as? String == "_p~iF~ps|U_ulLnnqC")
      #expect((changed.json["dropoff"] as? [String: Any])?["longitude"] as? Double == 11.5581)
    }
    let update = try rider.receive("trip_update")
    #expect(update.string("route") == "_p~iF~ps|U_ulLnnqC" && update.integer("sequence") == 2)
    #expect(update.string("status") == "requested" && update.object("dropoff")?["latitude"] as? Double == 48.1402)
    #expect(try rider.settle().isEmpty, "the second sent nothing new")

    let id = try rider.send("trip_change", ["tripId": "T1", "pickup": ["latitude": 48.15, "longitude": 11.55]])
    let second = try rider.receive("trip_update")
    #expect(second.object("pickup")?["latitude"] as? Double == 48.15 && second.payload["dropoff"] == nil)
    #expect(try rider.receive("ack").replyTo == id)
    #expect(try hub.get("/v1/trips/T1?\(ops)").json["route"] == nil, "it led from another pickup")

    #expect(try patch("role=driver&id=d1", body).status == 403)
    #expect(try patch(ops, body, trip: "T2").errorCode == "unknown_trip")
    #expect(
      try patch(ops, "{}").status == 400 && patch(ops, #"{"tripId":"T2","route":"_p~iF~ps|U_ulLnnqC"}"#).status == 400)
    let driver = try hub.driver("d1")
    for status in ["accepted", "driver_en_route", "arrived_pickup", "trip_started", "arrived_destination"] {
      try driver.send("trip_status", ["tripId": "T1", "status": status, "timestamp": 1_763_680_000_000])
      _ = try driver.receive("ack")
    }
    #expect(try patch(ops, body).status == 409)
    _ = try rider.send("trip_change", ["tripId": "T1", "dropoff": ["latitude": 48.15, "longitude": 11.55]])
    let refusal = try rider.skip(to: "error")
    #expect(refusal.code == "invalid_transition")
    #expect(refusal.object("details")?["status"] as? String == "arrived_destination")
  }

  @Test("a back end moves a trip; a repeated request changes nothing, also after a restart", arguments: loopCounts)
  func moved(loops: Int) throws {
    let directory = try JournalDirectory()
    func start() throws -> TestHub {
      try TestHub(loops: loops) { $0.journal = JournalConfiguration(directory: directory.path) }
    }
    var running: TestHub? = try start()
    func move(_ body: String, key: String? = nil, as query: String? = nil) throws -> HTTPResponse {
      try #require(running).request(
        "POST /v1/trips/T1/status?\(query ?? ops) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
          + (key.map { "Idempotency-Key: \($0)\r\n" } ?? "") + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }
    let body = #"{"tripId":"T1","riderId":"r1","driverId":"d1"}"#
    #expect(try #require(running).post("/v1/trips?\(ops)", body).status == 201)
    let accepted = try move(#"{"status":"accepted"}"#, key: "k1")
    #expect(accepted.status == 200 && accepted.json["status"] as? String == "accepted", "\(accepted.text)")
    #expect(try move(#"{"status":"driver_en_route","messageId":"m2"}"#).json["status"] as? String == "driver_en_route")
    for _ in 0..<2 {
      let again = try move(#"{"status":"accepted"}"#, key: "k1")
      #expect(again.status == 200 && again.json["status"] as? String == "driver_en_route", "\(again.text)")
      #expect(try move(#"{"status":"driver_en_route"}"#, key: "m2").status == 200)
      let impossible = try move(#"{"status":"completed"}"#)
      #expect(impossible.status == 409 && impossible.errorCode == "invalid_transition")
      running = nil
      running = try start()
    }
    #expect(try move(#"{"status":"arrived_pickup","messageId":"a"}"#, key: "b").errorCode == "bad_message")
    #expect(try move(#"{"status":"arrived_pickup","tripId":"T2"}"#).errorCode == "bad_message")
    #expect(try move(#"{"status":"arrived_pickup"}"#, as: "role=rider&id=r1").status == 403)
    #expect(try move(#"{"status":"cancelled"}"#, as: "role=rider&id=r1").json["status"] as? String == "cancelled")
  }

  @Test("a back end says what a driver does, and sees who is connected", arguments: loopCounts)
  func drivers(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    func put(_ body: String, _ query: String) throws -> HTTPResponse {
      try hub.request(
        "PUT /v1/drivers/d1/status?\(query) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
          + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }
    for query in [ops, "role=driver&id=d1"] {
      let set = try put(#"{"status":"unavailable","vehicleType":"van"}"#, query)
      #expect(set.status == 200 && set.json["status"] as? String == "unavailable", "\(set.text)")
      #expect(set.json["vehicleType"] as? String == "van")
    }
    #expect(try put(#"{"status":"available"}"#, "role=driver&id=d2").status == 403)
    #expect(try put(#"{"status":"available"}"#, "role=rider&id=d1").status == 403)
    #expect(try put(#"{"status":"on_trip"}"#, ops).errorCode == "bad_message")
    func sessions(_ id: String) throws -> [String: Int] {
      let answer = try hub.get("/v1/sessions?sub=\(id)&\(ops)")
      #expect(answer.status == 200 && answer.json["sub"] as? String == id, "\(answer.text)")
      let list = try #require(answer.json["sessions"] as? [[String: Any]])
      return Dictionary(
        uniqueKeysWithValues: try list.map { (try #require($0["role"] as? String), try #require($0["count"] as? Int)) })
    }
    #expect(try sessions("d1") == [:])
    let open = (try hub.driver("d1"), try hub.rider("d1"), try hub.rider("d1"))
    #expect(try sessions("d1") == ["driver": 1, "rider": 2])
    withExtendedLifetime(open) {}
    #expect(try hub.get("/v1/sessions?\(ops)").errorCode == "bad_message")
    #expect(try hub.get("/v1/sessions?sub=d1&role=rider&id=r1").status == 403)
  }

  @Test("without an id the hub makes one; without a time its own counts")
  func ids() throws {
    let hub = try TestHub()
    let before = Int(Date().timeIntervalSince1970 * 1000)
    let trips = try (0..<3).map { _ in try hub.post("/v1/trips?\(ops)", "{}") }
    #expect(trips.allSatisfy { $0.status == 201 })
    let ids = trips.compactMap { $0.json["tripId"] as? String }
    #expect(Set(ids).count == 3 && ids.allSatisfy { $0.count == 20 && Identifier($0) != nil })
    #expect(try #require(trips[0].json["timestamp"] as? Int) >= before)
    #expect(try hub.get("/v1/trips/\(ids[0])?\(ops)&time=rfc3339").json["created"] is String)
  }

  @Test(
    "what is no trip, or not theirs to ask for, is refused",
    arguments: [
      ("POST", "/v1/trips?role=rider&id=r1", "{}", 403, "forbidden"),
      ("POST", "/v1/trips?role=driver&id=d1", "{}", 403, "forbidden"),
      ("POST", "/v1/trips", "{}", 401, "unauthorized"),
      ("POST", "/v1/trips?role=ops&id=o", "{", 400, "bad_json"),
      ("POST", "/v1/trips?role=ops&id=o", "[]", 400, "bad_message"),
      ("POST", "/v1/trips?role=ops&id=o", #"{"tripId":"a b"}"#, 400, "bad_message"),
      ("POST", "/v1/trips?role=ops&id=o", #"{"status":"accepted"}"#, 400, "bad_message"),
      ("POST", "/v1/trips?role=ops&id=o", #"{"pickup":{"latitude":91,"longitude":0}}"#, 400, "invalid_location"),
      ("GET", "/v1/trips?role=rider&id=r1", "", 403, "forbidden"),
      ("GET", "/v1/trips?role=ops&id=o&limit=0", "", 400, "bad_message"),
      ("GET", "/v1/trips?role=ops&id=o&limit=1001", "", 400, "bad_message"),
      ("GET", "/v1/trips?role=ops&id=o&status=lost", "", 400, "bad_message"),
      ("GET", "/v1/trips?role=ops&id=o&since=yesterday", "", 400, "bad_message"),
      ("GET", "/v1/trips?role=ops&id=o&driver=a%20b", "", 400, "bad_message"),
      ("GET", "/v1/trips?role=ops&id=o&cursor=x", "", 400, "bad_message"),
      ("GET", "/v1/trips?role=ops&id=o&cursor=t-1", "", 400, "bad_message"),
      ("GET", "/v1/trips/none?role=ops&id=o", "", 404, "unknown_trip"),
      ("GET", "/v1/trips/a%20b?role=ops&id=o", "", 400, "bad_message"),
      ("PUT", "/v1/trips/t?role=ops&id=o", "", 405, "bad_message"),
      ("PUT", "/v1/trips?role=ops&id=o", "", 405, "bad_message"),
    ])
  func refused(method: String, target: String, body: String, status: Int, code: String) throws {
    let hub = try TestHub()
    let answer = try hub.request(
      "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    )
    #expect(answer.status == status && answer.errorCode == code, "\(answer.text)")
  }

  @Test("pages of a list, newest first, by the cursor that each gives", arguments: loopCounts)
  func list(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    for trip in 0..<7 {
      let body = #"{"tripId":"t\#(trip)","driverId":"d\#(trip % 2)"}"#
      #expect(try hub.post("/v1/trips?\(ops)", body).status == 201)
    }
    var ids: [String] = []
    var cursor: String? = ""
    while let at = cursor {
      let page = try hub.get("/v1/trips?\(ops)&limit=3" + (at.isEmpty ? "" : "&cursor=\(at)"))
      let trips = try #require(page.json["trips"] as? [[String: Any]])
      #expect(trips.count <= 3)
      ids += trips.compactMap { $0["tripId"] as? String }
      cursor = page.json["next"] as? String
    }
    #expect(ids == (0..<7).reversed().map { "t\($0)" })
    let some = try hub.get("/v1/trips?\(ops)&driver=d1&status=requested,accepted&since=1")
    #expect((some.json["trips"] as? [[String: Any]])?.count == 3)
    #expect(try hub.get("/v1/trips?\(ops)&status=completed").text == #"{"trips":[]}"#)
  }

  @Test("an answer that is longer than an outbox goes out in pieces, also to who reads slowly", arguments: loopCounts)
  func long(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.answerBytesPerTurn = 4096
      $0.limits.outboxBytesPerSession = 16 * 1024
      $0.limits.messageBytes = 8 * 1024
    }
    let poster = try hub.connect()
    for trip in 0..<400 {
      let body = #"{"tripId":"trip-number-\#(trip)","driverId":"d","pickup":{"latitude":48.1,"longitude":11.5}}"#
      try poster.send(
        "POST /v1/trips?\(ops) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
      #expect(try poster.readResponse().status == 201)
    }
    let reader = try hub.connect(receiveBuffer: 4096)
    let list = "GET /v1/trips?\(ops)&limit=400 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    // The second waits for the first, and what comes between is not lost.
    try reader.send(list + list + "HEAD /v1/trips?\(ops)&limit=400 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    for _ in 0..<2 {
      let page = try reader.readResponse()
      #expect(page.body.count > 50_000 && (page.json["trips"] as? [Any])?.count == 400)
    }
    #expect(try reader.readResponse(toHead: true).status == 200)
    let last = try hub.get("/v1/trips?\(ops)&limit=400")
    #expect((last.json["trips"] as? [Any])?.count == 400)
  }
}
