// The HTTP endpoints beside the socket.
import Foundation
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct HTTPEndpoints {}
}

extension EndToEnd.HTTPEndpoints {
  private static func fixText(_ step: Int, _ changes: [String: Any] = [:]) throws -> String {
    let fix = Peer.fix(step).merging(changes) { $1 }
    return String(decoding: try JSONSerialization.data(withJSONObject: fix), as: UTF8.self)
  }

  @Test("a fix that is posted reaches the rider as if it had come on a socket", arguments: loopCounts)
  func postOne(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    let answer = try hub.post("/v1/locations?role=driver&id=d1", try Self.fixText(0, ["tripId": "T1"]))
    #expect(answer.status == 200)
    #expect(answer.text == #"{"accepted":1,"duplicates":0,"rejected":[]}"#)
    #expect(try rider.receive("trip_update").string("status") == "accepted")
    #expect(try rider.receive("driver_location").integer("timestamp") == Peer.firstFix)
  }

  @Test("a posted batch is answered for each of its fixes", arguments: loopCounts)
  func postBatch(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let fixes = try [
      Self.fixText(0), Self.fixText(1), Self.fixText(1), Self.fixText(2, ["latitude": 91]), "7",
      Self.fixText(3, ["accuracy": 5000]), Self.fixText(4),
    ]
    let body = #"{"locations":["# + fixes.joined(separator: ",") + "]}"
    let answer = try hub.post("/v1/locations?role=driver&id=d1", body)
    #expect(answer.status == 200)
    #expect(answer.json["accepted"] as? Int == 3)
    #expect(answer.json["duplicates"] as? Int == 1)
    let rejected = try #require(answer.json["rejected"] as? [[String: Any]])
    #expect(rejected.map { $0["index"] as? Int } == [3, 4, 5])
    #expect(rejected.map { $0["code"] as? String } == ["invalid_location", "bad_message", "implausible_location"])
    let again = try hub.post("/v1/locations?role=driver&id=d1", body)
    #expect(again.json["accepted"] as? Int == 0)
    #expect(again.json["duplicates"] as? Int == 5, "also the one that was implausible: its time was seen")
  }

  @Test(
    "what cannot be posted is refused",
    arguments: [
      ("role=rider&id=r1", "{}", 403, "forbidden"), ("role=driver&id=d1", "{", 400, "bad_json"),
      ("role=driver&id=d1", "{}", 400, "bad_message"), ("", "{}", 401, "unauthorized"),
      ("role=driver&id=d1&time=never", "{}", 400, "bad_message"),
      ("role=driver&id=d1", #"{"latitude":91,"longitude":0,"timestamp":1763680000001}"#, 400, "invalid_location"),
      ("role=driver&id=d1", #"{"latitude":1,"longitude":0,"timestamp":785372800.5}"#, 400, "invalid_location"),
      ("role=driver&id=d1", #"{"locations":[]}"#, 400, "bad_message"),
    ])
  func badPosts(query: String, body: String, status: Int, code: String) throws {
    let hub = try TestHub()
    let answer = try hub.post("/v1/locations?\(query)", body)
    #expect(answer.status == status)
    #expect(answer.errorCode == code)
    try hub.metrics { $0.errors(code) == 1 && $0["http_responses_total{status=\"\(status)\"}"] == 1 }
  }

  @Test("a driver is shown to ops and to itself, and to nobody else", arguments: loopCounts)
  func driver(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let driver = try hub.driver("d1")
    try driver.sendFix(0)
    #expect(try driver.settle().isEmpty)
    for query in ["role=ops&id=o1", "role=driver&id=d1"] {
      let answer = try hub.get("/v1/drivers/d1?\(query)")
      #expect(answer.status == 200)
      #expect(answer.json["driverId"] as? String == "d1")
      #expect(answer.json["status"] as? String == "available")
      #expect(answer.json["online"] as? Bool == true)
      #expect(answer.json["timestamp"] as? Int == Peer.firstFix)
    }
    #expect(try hub.get("/v1/drivers/d1?role=driver&id=d2").status == 403)
    #expect(try hub.get("/v1/drivers/d1?role=rider&id=d1").status == 403)
    #expect(try hub.get("/v1/drivers/d1").status == 401)
    #expect(try hub.get("/v1/drivers/d9?role=ops&id=o1").status == 404)
    #expect(try hub.get("/v1/drivers/a%20b?role=ops&id=o1").status == 400)
  }

  @Test(
    "timestamps are written as the request asks for",
    arguments: [
      ("", "\(Peer.firstFix)"), ("&time=unix_ms", "\(Peer.firstFix)"), ("&time=apple", "721692800"),
      ("&time=rfc3339", "\"2023-11-14T22:13:20.000Z\""),
    ])
  func timeFormats(option: String, written: String) throws {
    let hub = try TestHub()
    #expect(try hub.post("/v1/locations?role=driver&id=d1", Self.fixText(0)).status == 200)
    for target in ["d1?role=ops&id=o1", "nearby?role=ops&id=o1&latitude=37&longitude=-122&limit=1"] {
      let text = try hub.get("/v1/drivers/\(target)\(option)").text
      #expect(text.contains("\"timestamp\":\(written),") || text.contains("\"timestamp\":\(written)}"), "\(text)")
      #expect(try hub.get("/v1/drivers/\(target)&time=never").status == 400)
    }
  }

  @Test("drivers nearby come nearest first, to ops only", arguments: loopCounts)
  func nearby(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    for (index, id) in ["d3", "d1", "d2"].enumerated() {
      let body = try Self.fixText(0, ["latitude": 37 + Double(index) / 100])
      #expect(try hub.post("/v1/locations?role=driver&id=\(id)", body).status == 200)
    }
    let here = "latitude=37&longitude=-122"
    let all = try hub.get("/v1/drivers/nearby?role=ops&id=o1&\(here)&limit=10")
    let drivers = try #require(all.json["drivers"] as? [[String: Any]])
    #expect(drivers.map { $0["driverId"] as? String } == ["d3", "d1", "d2"])
    let distances = drivers.compactMap { $0["distance"] as? Double }
    #expect(distances.count == 3 && distances == distances.sorted())
    #expect(abs(distances[1] - 1112) < 3)
    let near = try hub.get("/v1/drivers/nearby?role=ops&id=o1&\(here)&radius=1500")
    #expect((near.json["drivers"] as? [Any])?.count == 2)
    #expect(try hub.get("/v1/drivers/nearby?role=driver&id=d1&\(here)&limit=10").status == 403)
    for bad in ["latitude=91&longitude=0&limit=1", "\(here)", "\(here)&limit=0", "\(here)&radius=x"] {
      let answer = try hub.get("/v1/drivers/nearby?role=ops&id=o1&\(bad)")
      #expect(answer.status == 400)
      #expect(answer.errorCode == "bad_message")
    }
  }

  @Test("health and readiness are plain, and what does not exist is 404")
  func health() throws {
    let hub = try TestHub()
    #expect(try hub.get("/healthz").text == "ok\n")
    #expect(try hub.get("/readyz").text == "ready\n")
    for path in ["/v1/nothing", "/v1/drivers/d1/track", "/v2/ws"] {
      let answer = try hub.get("\(path)?role=ops&id=o1")
      #expect(answer.status == 404)
      #expect(answer.errorCode != nil)
    }
    let wrongMethod = try hub.post("/v1/drivers/d1?role=ops&id=o1", "{}")
    #expect(wrongMethod.status == 405)
    #expect(wrongMethod.errorCode != nil)
    #expect(try hub.get("/v1/locations?role=driver&id=d1").status == 405)
  }

  @Test("every line of the metrics parses, and the counters move", arguments: loopCounts)
  func metrics(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let before = try hub.metrics()
    #expect(before.fixes("accepted") == 0)
    #expect(before["process_resident_memory_bytes"] > 1_000_000)
    let driver = try hub.driver("d1")
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    for step in 0..<10 { try driver.sendFix(step, trip: "T1") }
    try driver.sendFix(3, trip: "T1")
    #expect(try driver.settle().isEmpty)
    #expect(try rider.settle().count == 11)
    try hub.metrics {
      $0.fixes("accepted") == 10 && $0.fixes("history") == 1 && $0["fixes_received_total"] == 11
        && $0["positions_published_total"] == 10 && $0["positions_out_total"] == 10 && $0["events_total"] >= 1
        && $0["sessions{role=\"driver\"}"] == 1 && $0["sessions{role=\"rider\"}"] == 1 && $0["subscriptions"] == 1
        && $0["delivery_seconds_count"] == 10 && $0["messages_in_total"] == 14
        && $0["table_entries{table=\"trips\"}"] == 1 && $0["written_bytes_total"] > before["written_bytes_total"]
    }
  }

  @Test("what was acked and answered is counted, by its type and by its route")
  func times() throws {
    let hub = try TestHub()
    let move = try hub.post("/v1/trips/T1/status?role=ops&id=o", #"{"status":"requested"}"#)
    #expect(move.status == 200, "\(move.text)")
    let fixes = (0..<3).map { step in
      #"{"latitude":52.5,"longitude":13.4,"timestamp":\#(Peer.firstFix + step * 1000)}"#
    }
    let batch = #"{"batchId":"b","locations":[\#(fixes.joined(separator: ","))]}"#
    #expect(try hub.post("/v1/locations?role=driver&id=d1", batch).status == 200)
    #expect(try hub.post("/v1/nothing?role=ops&id=o", "").status == 404)
    try hub.metrics {
      $0["ack_seconds_count{type=\"trip_status\"}"] == 1 && $0["ack_seconds_count{type=\"location_batch\"}"] == 1
        && $0["ack_seconds_count{type=\"driver_status\"}"] == 0
        && $0["ack_seconds_bucket{type=\"trip_status\",le=\"+Inf\"}"] == 1
        && $0["http_request_seconds_count{route=\"trips\"}"] == 1
        && $0["http_request_seconds_count{route=\"locations\"}"] == 1
        && $0["http_request_seconds_count{route=\"other\"}"] == 1
        && $0["http_request_seconds_count{route=\"operators\"}"] > 0
    }
  }

  @Test("a connection is kept for the next request, and HEAD has no body")
  func keepAlive() throws {
    let hub = try TestHub()
    let connection = try hub.connect()
    for _ in 0..<3 {
      try connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
      #expect(try connection.readResponse().status == 200)
    }
    try connection.send("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    let head = try connection.readResponse(toHead: true)
    #expect(head.fields["content-length"] == "3")
    try connection.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    let last = try connection.readResponse()
    #expect(last.text == "ok\n")
    #expect(last.fields["connection"]?.lowercased() == "close")
    try connection.waitForEnd()
  }

  @Test("HTTP/1.0 is answered, and the connection ends unless it asks to be kept")
  func http10() throws {
    let hub = try TestHub()
    let connection = try hub.connect()
    try connection.send("GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    #expect(try connection.readResponse().text == "ok\n")
    try connection.send("GET /healthz HTTP/1.0\r\n\r\n")
    #expect(try connection.readResponse().text == "ok\n")
    try connection.waitForEnd()
  }

  @Test("requests that come in one piece are answered in order and at once", arguments: loopCounts)
  func pipelining(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    for id in 0..<10 {
      #expect(try hub.post("/v1/locations?role=driver&id=d\(id)", try Self.fixText(0)).status == 200)
    }
    var text = ""
    for id in 0..<10 { text += "GET /v1/drivers/d\(id)?role=ops&id=o HTTP/1.1\r\nHost: localhost\r\n\r\n" }
    text += "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    let isPunctual = try isWithin(8) {
      let connection = try hub.connect()
      let start = uptime()
      try connection.send(text)
      for id in 0..<10 { #expect(try connection.readResponse().json["driverId"] as? String == "d\(id)") }
      #expect(try connection.readResponse().text == "ok\n")
      return uptime() - start
    }
    #expect(isPunctual, "each answer must not wait for the loop's next second")
  }

  @Test(
    "a request that breaks HTTP gets its status, and the connection ends",
    arguments: [
      ("GET / HTTP/2.0\r\n\r\n", 505), ("BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", 501),
      ("GET / HTTP/1.1\r\n\r\n", 400),
      ("GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400), ("\u{1}\u{2}\u{3}\r\n\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
      ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n", 413),
      ("GET /" + String(repeating: "a", count: 7000) + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
      ("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + String(repeating: "a", count: 9000) + "\r\n\r\n", 431),
      ("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400),
    ])
  func brokenRequests(request: String, status: Int) throws {
    let hub = try TestHub()
    let connection = try hub.connect()
    try connection.send(request)
    #expect(try connection.readResponse().status == status)
    try connection.waitForEnd()
    try hub.metrics { $0["bad_requests_total"] == 1 }
    #expect(try hub.get("/healthz").status == 200)
  }
}
