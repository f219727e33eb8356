// Phone apps that exist already, by their own endpoints: credentials, answers, and a trip that a rider follows.
import Foundation
import HubGateway
import HubMessages
import HubTokens
import Testing

extension EndToEnd {
  @Suite struct Phones {}
}

extension EndToEnd.Phones {
  private static let key = "8mz4w2q9x7c5v3b1n0k6j4h2g8f5d3s1"

  /// A hub that takes tokens, and the key of one phone.
  private func hub(loops: Int = 1) throws -> TokenHub {
    let line = DeviceKeys.line(of: try #require(Identifier("d1")), secret: Self.key)
    let devices = try DeviceKeys(parsing: Array("\(line)\n".utf8))
    return try TokenHub(loops: loops) { $0.tokens?.devices = devices }
  }

  private func basic(_ user: String, _ password: String) -> String {
    "Authorization: Basic \(Data("\(user):\(password)".utf8).base64EncodedString())\r\n"
  }

  private func post(
    _ hub: TokenHub, _ target: String, _ body: String, _ fields: String = "", type: String = "application/json"
  ) throws -> HTTPResponse {
    try hub.hub.request(
      "POST \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: \(type)\r\n\(fields)"
        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
  }

  private var location: String {
    #"{"_type":"location","lat":48.1371,"lon":11.5754,"tst":1763680000,"acc":5,"vel":30,"batt":81}"#
  }

  @Test("each app gets the answer that it takes for success, for whatever it sends", arguments: loopCounts)
  func answers(loops: Int) throws {
    let hub = try hub(loops: loops)
    for body in [
      location, location, #"{"_type":"lwt","tst":1}"#, "", "{}",
      #"{"_type":"location","lat":91,"lon":0,"tst":1763680000}"#,
    ] {
      let answer = try post(hub, "/v1/owntracks", body, basic("d1", Self.key))
      #expect(answer.status == 200 && answer.text == "[]" && answer.fields["content-type"] == "application/json")
    }
    let time = #"{"timestamp":"2025-11-20T16:07:40-0700"}"#
    let feature = #"{"geometry":{"coordinates":[11.5754,48.1371]},"properties":\#(time)}"#
    for body in ["{\"locations\":[\(feature)]}", #"{"locations":[]}"#, ""] {
      let answer = try post(hub, "/v1/overland", body, "Authorization: Bearer \(Self.key)\r\n")
      #expect(answer.status == 200 && answer.text == #"{"result":"ok"}"#, "\(answer.text)")
    }
    let coords = #"{"timestamp":"2025-11-20T23:08:40Z","coords":{"latitude":48.1371,"longitude":11.5754}}"#
    for body in [#"{"location":\#(coords),"device_id":"d1"}"#, #"{"location":{},"device_id":"d1"}"#] {
      #expect(try post(hub, "/v1/osmand?key=\(Self.key)", body).status == 200)
    }
    let query = "id=d1&lat=48.1371&lon=11.5754&timestamp=1763680200&unknown=1&speed=5"
    #expect(try hub.hub.get("/v1/osmand?key=\(Self.key)&\(query)").status == 200)
    #expect(try hub.hub.get("/v1/osmand?key=\(Self.key)&id=d1").status == 200)
    let form = try post(
      hub, "/v1/osmand?key=\(Self.key)", query.replacing("200&", with: "260&"),
      type: "application/x-www-form-urlencoded")
    #expect(form.status == 200 && form.text.isEmpty)
    try hub.hub.metrics {
      $0["phone_fixes_total{app=\"owntracks\",outcome=\"accepted\"}"] == 1
        && $0["phone_fixes_total{app=\"owntracks\",outcome=\"duplicate\"}"] == 1
        && $0["phone_fixes_total{app=\"owntracks\",outcome=\"rejected\"}"] == 1
        && $0["phone_fixes_total{app=\"owntracks\",outcome=\"ignored\"}"] == 3
        && $0["phone_fixes_total{app=\"overland\",outcome=\"accepted\"}"] == 1
        && $0["phone_fixes_total{app=\"overland\",outcome=\"ignored\"}"] == 2
        && $0["phone_fixes_total{app=\"traccar\",outcome=\"accepted\"}"] == 1
        && $0["phone_fixes_total{app=\"traccar\",outcome=\"ignored\"}"] == 1
        && $0["phone_fixes_total{app=\"osmand\",outcome=\"accepted\"}"] == 2
        && $0["phone_fixes_total{app=\"osmand\",outcome=\"ignored\"}"] == 1
    }
  }

  @Test("a credential comes in one of many ways, and opens nothing but the phone's own endpoints")
  func credentials() throws {
    let hub = try hub()
    let token = try hub.token(.driver, "d1")
    let good = [
      ("", basic("d1", Self.key)), ("", basic("", Self.key)), ("", basic("d1", token)),
      ("", "Authorization: Bearer \(token)\r\n"), ("", "authorization: bearer \(Self.key)\r\n"),
      ("?key=\(Self.key)", ""),
      ("?access_token=\(token)", ""),
    ]
    for (query, field) in good {
      #expect(try post(hub, "/v1/owntracks\(query)", location, field).status == 200, "\(query) \(field)")
    }
    let bad = [
      ("", ""), ("?key=x", ""), ("?key=", ""), ("", basic("d2", Self.key)), ("", basic("d1", "wrong")),
      ("", basic("d1", "")),
      ("", "Authorization: Basic !!!\r\n"), ("", "Authorization: Basic ZDE=\r\n"), ("", "Authorization: Digest x\r\n"),
      ("?key=\(Self.key)", basic("d1", Self.key)), ("?key=\(Self.key)&access_token=\(token)", ""),
    ]
    for (query, field) in bad {
      let answer = try post(hub, "/v1/owntracks\(query)", location, field)
      #expect(answer.status == 401 && answer.errorCode == "unauthorized", "\(query) \(field): \(answer.text)")
    }
    #expect(try post(hub, "/v1/owntracks", location, "").text.contains("give a device's key or a token"))
    #expect(try post(hub, "/v1/owntracks?key=x", location, "").text.contains("no device with this key"))
    let rider = try hub.token(.rider, "d1")
    #expect(try post(hub, "/v1/owntracks", location, "Authorization: Bearer \(rider)\r\n").status == 403)
    for target in ["/v1/locations?key=\(Self.key)", "/v1/messages?key=\(Self.key)"] {
      #expect(try post(hub, target, "{}").status == 401)
    }
    #expect(try hub.hub.get("/v1/drivers/d1?key=\(Self.key)").status == 401)
    #expect(try post(hub, "/v1/locations", "{}", basic("d1", Self.key)).status == 401)
  }

  @Test("another device's id is forbidden, in each format that has one")
  func foreignDevice() throws {
    let hub = try hub()
    let key = "key=\(Self.key)"
    #expect(try hub.hub.get("/v1/osmand?\(key)&id=d2&lat=1&lon=2&timestamp=1763680000").status == 403)
    #expect(try hub.hub.get("/v1/osmand?\(key)&deviceid=d2").status == 403)
    let traccar =
      #"{"location":{"timestamp":"2025-11-20T23:06:40Z","coords":{"latitude":1,"longitude":2}},"device_id":"d2"}"#
    #expect(try post(hub, "/v1/osmand?\(key)", traccar).status == 403)
    let overland = #"{"locations":[{"properties":{"device_id":"d2"}}]}"#
    #expect(try post(hub, "/v1/overland?\(key)", overland).errorCode == "forbidden")
    try hub.hub.metrics { $0["fixes_received_total"] == 0 }
  }

  @Test("what is no body of the app, or too large, gets a status")
  func refused() throws {
    let hub = try hub()
    let key = "?key=\(Self.key)"
    #expect(try post(hub, "/v1/owntracks\(key)", "{").errorCode == "bad_json")
    #expect(try hub.hub.get("/v1/osmand\(key)&lat=%zz").status == 400)
    let form = Array(repeating: "a=1", count: 256).joined(separator: "&")
    #expect(try post(hub, "/v1/osmand\(key)", form).status == 200)
    #expect(try post(hub, "/v1/osmand\(key)", form + "&a=1").errorCode == "too_large")
    #expect(try hub.hub.get("/v1/osmand\(key)&\(form)").status == 413)
    #expect(try hub.hub.get("/v1/owntracks\(key)").status == 405)
    let feature = #"{"geometry":{"coordinates":[11.5,48.1]},"properties":{"timestamp":"2025-11-20T16:07:40-0700"}}"#
    let many = Array(repeating: feature, count: 501).joined(separator: ",")
    #expect(try post(hub, "/v1/overland\(key)", "{\"locations\":[\(many)]}").status == 413)
    #expect(try post(hub, "/v1/overland\(key)", String(repeating: " ", count: 300_000)).status == 413)
    #expect(try post(hub, "/v1/overland?key=x", String(repeating: " ", count: 5000)).status == 413, "a stranger's")
  }

  @Test("a key ends with its line, and with its driver on the list of the revoked")
  func reload() throws {
    let hub = try hub()
    #expect(try post(hub, "/v1/owntracks", location, basic("d1", Self.key)).status == 200)
    var access = TokenAccess(verifier: TokenVerifier(keys: hub.keys))
    hub.hub.server.replaceTokens(access)
    #expect(try post(hub, "/v1/owntracks", location, basic("d1", Self.key)).status == 401)
    access.devices = try DeviceKeys(parsing: Array(DeviceKeys.line(of: Identifier("d1")!, secret: "new").utf8))
    hub.hub.server.replaceTokens(access)
    #expect(try post(hub, "/v1/owntracks", location, basic("d1", "new")).status == 200)
    access.revoked = try RevocationList(parsing: Array("d1\n".utf8))
    hub.hub.server.replaceTokens(access)
    #expect(try post(hub, "/v1/owntracks", location, basic("d1", "new")).status == 401)
  }

  /// Somewhere on the way north to the pickup, `step` seconds after the start.
  private func place(_ step: Int, from start: Int) -> (latitude: Double, time: Int) {
    (48.10 + Double(step) * 10 / 111_195, start + step)
  }

  @Test(
    "a phone drives a trip by its app's endpoint, and its rider sees it with an ETA", arguments: PhoneFormat.allCases)
  func trip(format: PhoneFormat) throws {
    let hub = try hub(loops: 2)
    let ops = "access_token=\(try hub.token(.ops, "o1"))"
    let rider = try EventStreamReader(
      port: hub.hub.port, "/v1/events?channel=trip:T1&access_token=\(try hub.token(.rider, "r1", trips: ["T1"]))")
    _ = try rider.receive("subscribed")
    let trip = #"{"tripId":"T1","driverId":"d1","riderId":"r1","pickup":{"latitude":48.2,"longitude":11.5}}"#
    #expect(try hub.hub.post("/v1/trips?\(ops)", trip).status == 201)
    let token = try hub.token(.driver, "d1")
    for status in ["accepted", "driver_en_route"] {
      let move = """
        {"type":"trip_status","payload":{"tripId":"T1","status":"\(status)","timestamp":1763680000000},
         "timestamp":1763680000000,"messageId":"\(status)"}
        """
      #expect(try hub.hub.post("/v1/messages?access_token=\(token)", move).status == 200)
    }
    let start = Int(Date().timeIntervalSince1970) + 1  // what was measured before it was accepted is not the trip's
    for step in 0..<6 { #expect(try send(hub, format, place(step, from: start)).status == 200) }
    var (positions, etas) = ([Int](), 0)
    while positions.count < 6 || etas == 0 {
      guard let message = try rider.next()?.message else { throw PeerError.ended(waitingFor: "positions") }
      if message.type == "driver_location" {
        #expect(message.string("tripId") == "T1" && message.string("driverId") == "d1")
        positions.append(try #require(message.integer("timestamp")))
      } else if message.type == "eta_update" {
        #expect(message.string("target") == "pickup" && (message.number("eta") ?? 0) > 0)
        etas += 1
      }
    }
    #expect(positions == (0..<6).map { (start + $0) * 1000 })
  }

  private func send(
    _ hub: TokenHub, _ format: PhoneFormat, _ place: (latitude: Double, time: Int)
  ) throws -> HTTPResponse {
    let (latitude, time) = place
    let iso = ISO8601DateFormatter().string(from: Date(timeIntervalSince1970: Double(time)))
    switch format {
    case .ownTracks:
      let body = #"{"_type":"location","lat":\#(latitude),"lon":11.5,"tst":\#(time),"acc":5,"vel":36,"batt":90}"#
      return try post(hub, "/v1/owntracks", body, basic("d1", Self.key))
    case .traccar:
      let coords = #"{"latitude":\#(latitude),"longitude":11.5,"accuracy":5,"speed":10,"heading":-1,"altitude":500}"#
      let body = #"{"location":{"timestamp":"\#(iso)","coords":\#(coords),"battery":{"level":0.9}},"device_id":"d1"}"#
      return try post(hub, "/v1/osmand?key=\(Self.key)", body)
    case .osmAnd:
      return try hub.hub.get(
        "/v1/osmand?key=\(Self.key)&id=d1&lat=\(latitude)&lon=11.5&timestamp=\(time)&speed=19.4&accuracy=5")
    case .overland:
      let feature = """
        {"type":"Feature","geometry":{"type":"Point","coordinates":[11.5,\(latitude)]},
         "properties":{"timestamp":"\(iso)","speed":10,"horizontal_accuracy":5,"battery_level":0.9}}
        """
      return try post(hub, "/v1/overland", #"{"locations":[\#(feature)]}"#, "Authorization: Bearer \(Self.key)\r\n")
    }
  }

  @Test("a driver's own app may leave it to the hub, too, which trip it is on")
  func currentTrip() throws {
    let hub = try TestHub()
    #expect(
      try hub.post(
        "/v1/locations?role=driver&id=d1&trip=current", #"{"latitude":1,"longitude":2,"timestamp":1763680000000}"#
      ).status == 200)
    #expect(try hub.post("/v1/locations?role=driver&id=d1&trip=T1", "{}").status == 400)
  }

  @Test(
    "`device add` makes a key that opens the hub from SIGHUP on, and no log has it",
    .enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  func deviceAdd() throws {
    let made = try HubProcess.run(["device", "add", "d1", "--url", "https://hub.example:8443/"])
    #expect(made.status == 0)
    let key = String(try #require(made.output.firstMatch(of: /key +([0-9a-z]{32})\n/)).1)
    let line = String(try #require(made.output.firstMatch(of: /line +(d1 [0-9a-f]{64})\n/)).1)
    #expect(line == DeviceKeys.line(of: try #require(Identifier("d1")), secret: key))
    let inline = try #require(made.output.firstMatch(of: /owntracks:\/\/\/config\?inline=([A-Za-z0-9+\/=]+)/)).1
    let configuration = try JSONSerialization.jsonObject(with: try #require(Data(base64Encoded: String(inline))))
    #expect((configuration as? [String: Any])?["url"] as? String == "https://hub.example:8443/v1/owntracks")
    #expect((configuration as? [String: Any])?["password"] as? String == key)
    #expect(made.output.contains("overland://setup?url=https%3A%2F%2Fhub.example%3A8443%2Fv1%2Foverland&token=\(key)"))
    for wrong in [
      ["device"], ["device", "add"], ["device", "add", "a b"], ["device", "drop", "d1"],
      ["device", "add", "d1", "--url", "ftp://x"], ["device", "add", "d1", "--url", "https://hub.example/?a=b"],
      ["device", "add", "d1", "--url", "https://hub.example/#map"],
    ] { #expect(try HubProcess.run(wrong).status == 2) }

    let file = FileManager.default.temporaryDirectory.appendingPathComponent("device-keys-\(UUID().uuidString)")
    defer {
      do { try FileManager.default.removeItem(at: file) } catch { Issue.record(error) }
    }
    try "# none yet\n".write(to: file, atomically: true, encoding: .utf8)
    let hub = try HubProcess(
      ["serve", "--port", "0", "--loops", "1", "--log-level", "debug", "--device-keys", file.path])
    try hub.waitUntilItListens()
    func send() throws -> Int {
      let connection = try RawConnection(port: hub.port)
      try connection.send(
        "GET /v1/osmand?key=\(key)&id=d1&lat=48.1&lon=11.5 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
      return try connection.readResponse().status
    }
    #expect(try send() == 401)
    try (line + "\n").write(to: file, atomically: true, encoding: .utf8)
    hub.send(signal: SIGHUP)
    let deadline = Deadline()
    var status = try send()
    while status != 200, !deadline.isOver { status = try send() }
    #expect(status == 200)
    hub.send(signal: SIGTERM)
    let end = try hub.outcome()
    #expect(end.status == 0 && !end.errors.contains(key) && !end.output.contains(key))
  }
}
