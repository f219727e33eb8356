// POST /v1/messages: what a session's message is answered with, to who has no session.
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct PostedMessages {}
}

extension EndToEnd.PostedMessages {
  private func post(
    _ hub: TestHub, _ who: String, _ type: String, _ payload: String, id: String = "m1"
  ) throws -> HTTPResponse {
    try hub.post(
      "/v1/messages?\(who)",
      #"{"type":"\#(type)","payload":\#(payload),"timestamp":1763680000000,"messageId":"\#(id)"}"#)
  }

  private var driver: String { "role=driver&id=d1" }
  private var fix: String { #"{"latitude":37,"longitude":-122,"accuracy":5,"timestamp":1763680000000}"# }

  @Test("a driver without a socket sends fixes, its status and its trip's moves", arguments: loopCounts)
  func driver(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let located = try post(hub, driver, "location_update", fix)
    #expect(located.status == 200 && located.json["type"] as? String == "ack")
    let ack = try #require(located.json["payload"] as? [String: Any])
    #expect(ack["replyTo"] as? String == "m1" && ack["accepted"] as? Int == 1)
    let again = try post(hub, driver, "location_batch", #"{"locations":[\#(fix)]}"#)
    #expect((again.json["payload"] as? [String: Any])?["duplicates"] as? Int == 1)
    #expect(try post(hub, driver, "driver_status", #"{"status":"unavailable","tags":["xl"]}"#).status == 200)
    let shown = try hub.get("/v1/drivers/d1?role=ops&id=o1")
    #expect(shown.json["status"] as? String == "unavailable" && shown.json["tags"] as? [String] == ["xl"])
    let trip = #"{"tripId":"T1","status":"requested","timestamp":1763680000000,"driverId":"d1"}"#
    #expect(try post(hub, driver, "trip_status", trip).status == 200)
    let wrong = #"{"tripId":"T1","status":"completed","timestamp":1763680000001}"#
    let refused = try post(hub, driver, "trip_status", wrong, id: "m2")
    #expect(refused.status == 409 && refused.json["type"] as? String == "error")
    let error = try #require(refused.json["payload"] as? [String: Any])
    #expect(error["code"] as? String == "invalid_transition" && error["replyTo"] as? String == "m2")
    #expect((error["details"] as? [String: Any])?["status"] as? String == "requested")
    let pong = try post(hub, driver, "ping", #"{"sentAt":1}"#).json
    #expect((pong["payload"] as? [String: Any])?["storedThrough"] as? Int == 1_763_680_000_000)
    #expect((pong["payload"] as? [String: Any])?["sentAt"] as? Int == 1)
  }

  @Test("a status makes a driver known that never sent a fix")
  func statusFirst() throws {
    let hub = try TestHub()
    #expect(try post(hub, driver, "driver_status", #"{"status":"background"}"#).status == 200)
    #expect(try hub.get("/v1/drivers/d1?role=ops&id=o1").json["status"] as? String == "background")
  }

  @Test("a status that is posted again takes effect once, even when it comes late")
  func repeatedStatus() throws {
    let hub = try TestHub()
    for (id, status, shown) in [
      ("s1", "unavailable", "unavailable"), ("s2", "available", "available"), ("s1", "unavailable", "available"),
      ("s3", "unavailable", "unavailable"),
    ] {
      let answer = try post(hub, driver, "driver_status", #"{"status":"\#(status)"}"#, id: id)
      #expect(answer.status == 200 && (answer.json["payload"] as? [String: Any])?["replyTo"] as? String == id)
      #expect(try hub.get("/v1/drivers/d1?role=ops&id=o1").json["status"] as? String == shown, "\(id)")
    }
  }

  @Test("a query is answered with a result, also one that is written over several turns", arguments: loopCounts)
  func queries(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.reportsPerTurn = 3 }
    for number in 1...20 {
      #expect(try hub.post("/v1/locations?role=driver&id=d\(number)", fix).status == 200)
    }
    let query = #"{"kind":"nearby","latitude":37,"longitude":-122,"limit":20}"#
    let result = try post(hub, "role=ops&id=o1", "query", query)
    #expect(result.status == 200 && result.json["type"] as? String == "result", "\(result.text)")
    let payload = try #require(result.json["payload"] as? [String: Any])
    #expect(payload["replyTo"] as? String == "m1" && (payload["drivers"] as? [Any])?.count == 20)
    let unknown = try post(hub, "role=ops&id=o1", "query", #"{"kind":"driver","driverId":"d99"}"#)
    #expect(unknown.status == 404 && unknown.json["type"] as? String == "error")
    #expect((unknown.json["payload"] as? [String: Any])?["replyTo"] as? String == "m1")
    #expect(try post(hub, "role=rider&id=r1", "query", #"{"kind":"driver","driverId":"d1"}"#).status == 403)
  }

  @Test(
    "a fault is reported with the message's id where that can be read",
    arguments: [
      ("location_update", "{}", 400, "bad_message"), ("nonsense", "{}", 400, "unknown_type"),
      ("subscribe", #"{"channel":"driver:d1"}"#, 400, "bad_message"),
      ("unsubscribe", #"{"channel":"driver:d1"}"#, 400, "bad_message"),
      ("refresh", #"{"token":"x"}"#, 400, "bad_message"),
      ("trip_status", #"{"tripId":"T9","status":"accepted","timestamp":1763680000000}"#, 404, "unknown_trip"),
      ("location_update", #"{"latitude":91,"longitude":0,"timestamp":1763680000000}"#, 400, "invalid_location"),
    ])
  func faults(type: String, payload: String, status: Int, code: String) throws {
    let hub = try TestHub()
    let answer = try post(hub, driver, type, payload)
    let error = answer.json["payload"] as? [String: Any]
    #expect(answer.status == status && answer.json["type"] as? String == "error", "\(answer.text)")
    #expect(error?["code"] as? String == code && error?["replyTo"] as? String == "m1", "\(answer.text)")
    try hub.metrics { $0.errors(code) == 1 }
  }

  @Test("what is no message at all, or from nobody, is refused like other requests' bodies")
  func notMessages() throws {
    let hub = try TestHub()
    let broken = try hub.post("/v1/messages?\(driver)", "{")
    #expect(broken.status == 400 && (broken.json["payload"] as? [String: Any])?["code"] as? String == "bad_json")
    #expect(try hub.post("/v1/messages", "{}").errorCode == "unauthorized")
    #expect(try post(hub, "role=rider&id=r1", "location_update", fix).status == 403)
    #expect(try hub.get("/v1/messages?\(driver)").status == 405)
  }
}
