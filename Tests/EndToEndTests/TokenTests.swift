// Tokens over sockets: who is let in, what it sees, and how that ends.
import Foundation
import HubBytes
import HubGateway
import HubMessages
import HubTokens
import Testing

extension EndToEnd {
  @Suite struct TokensAndGrants {}
}

extension EndToEnd.TokensAndGrants {
  private func subscribe(_ peer: Peer, _ channel: String) throws -> String { try peer.answer(toSubscribing: channel) }

  @Test(
    "a rider sees the trips that its token names, a driver is entitled to those, and nobody sees more",
    arguments: loopCounts)
  func grants(loops: Int) throws {
    let hub = try TokenHub(loops: loops)
    let rider = try hub.join(hub.token(.rider, "r1", trips: ["T1"], channels: ["trip:z-*", "driver:D7"]))
    let rows = [
      ("trip:T1", "subscribed"), ("trip:z-9", "subscribed"), ("driver:D7", "subscribed"), ("trip:T2", "forbidden"),
      ("trip:z", "forbidden"), ("driver:D1", "forbidden"), ("fleet", "forbidden"),
    ]
    for (channel, answer) in rows { #expect(try subscribe(rider, channel) == answer, "\(channel)") }

    let driver = try hub.join(hub.token(.driver, "D1", trips: ["T1"]))
    #expect(try subscribe(driver, "driver:D1") == "subscribed")
    #expect(try subscribe(driver, "driver:D7") == "forbidden")
    func fix(_ trip: String) -> [String: Any] {
      ["tripId": trip, "latitude": 48.1, "longitude": 11.5, "accuracy": 5, "timestamp": 1_763_680_000_000]
    }
    try driver.send("location_update", fix("T2"))
    #expect(try driver.receive("error").code == "forbidden")
    try driver.send("location_update", fix("T1"))
    #expect(try rider.skip(to: "driver_location").string("tripId") == "T1")
    #expect(try subscribe(hub.join(hub.token(.ops, "o1")), "fleet") == "subscribed")
  }

  @Test("the header admits, given once and alone; anything else is a 401 that says why and repeats nothing")
  func header() throws {
    let hub = try TokenHub()
    let token = try hub.token(.rider, "r1")
    func status(_ fields: [String], query: String = "") throws -> HTTPResponse {
      let lines = fields.map { "Authorization: \($0)\r\n" }.joined()
      let upgrade = UpgradeRequest("/v1/ws\(query)").text
      return try hub.hub.request(upgrade.replacing("Host: 127.0.0.1\r\n", with: "Host: 127.0.0.1\r\n\(lines)"))
    }
    #expect(try status(["Bearer \(token)"]).status == 101)
    #expect(try status(["bearer  \(token)"], query: "?time=apple").status == 101)
    let expired = try hub.token(.rider, "r1", lasts: -31)
    let rows: [([String], String, String)] = [
      ([], "", "unauthorized"), (["Bearer \(token)", "Bearer \(token)"], "", "unauthorized"),
      (["Bearer \(token)"], "?access_token=\(token)", "unauthorized"), (["Basic \(token)"], "", "unauthorized"),
      (["Bearer"], "", "unauthorized"), (["Bearer \(token)x"], "", "unauthorized"),
      (["Bearer \(token) \(token)"], "", "unauthorized"), ([], "?access_token=\(token)%20", "unauthorized"),
      ([], "?role=ops&id=me", "unauthorized"), (["Bearer \(expired)"], "", "token_expired"),
    ]
    for (fields, query, code) in rows {
      let response = try status(fields, query: query)
      #expect(response.status == 401 && response.errorCode == code, "\(fields) \(query): \(response.text)")
      #expect(response.fields["www-authenticate"]?.hasPrefix("Bearer") == true)
      #expect(!response.text.contains(token.prefix(20)))
    }
  }

  @Test("HTTP takes the same tokens as the socket")
  func http() throws {
    let hub = try TokenHub()
    let driver = try hub.token(.driver, "D1")
    let body = #"{"latitude":48.1,"longitude":11.5,"accuracy":5,"timestamp":1763680000000}"#
    #expect(try hub.hub.post("/v1/locations?access_token=\(driver)", body).status == 200)
    #expect(try hub.hub.post("/v1/locations?access_token=\(hub.token(.rider, "r"))", body).status == 403)
    #expect(try hub.hub.get("/v1/drivers/D1?access_token=\(hub.token(.ops, "o"))").status == 200)
    #expect(try hub.hub.get("/v1/drivers/D1?role=ops&id=o").status == 401)
  }

  @Test(
    "a token's vehicle type and tags win over what its driver says: on the socket, after a refresh, and over HTTP",
    arguments: loopCounts)
  func vehicle(loops: Int) throws {
    let hub = try TokenHub(loops: loops)
    let ops = try hub.token(.ops, "o1")
    func found(_ filter: String) throws -> [String] {
      let query = "latitude=37&longitude=-122&radius=500&\(filter)&access_token=\(ops)"
      let list = try hub.hub.get("/v1/drivers/nearby?\(query)").json["drivers"] as? [[String: Any]]
      return try #require(list).compactMap { $0["driverId"] as? String }
    }
    let van = VehicleClaims(vehicleType: .init("van"), tags: [.init("xl")!])
    let driver = try hub.join(hub.token(.driver, "D1", vehicle: van))
    try driver.sendFix(0)
    try driver.send("driver_status", ["status": "available", "vehicleType": "limousine", "tags": ["wheelchair"]])
    _ = try driver.receive("ack")
    #expect(try found("vehicleType=van&tags=xl") == ["D1"])
    #expect(try found("vehicleType=limousine") == [] && found("tags=wheelchair") == [])
    let shown = try hub.hub.get("/v1/drivers/D1?access_token=\(ops)").json
    #expect(shown["vehicleType"] as? String == "van" && shown["tags"] as? [String] == ["xl"])

    let cab = VehicleClaims(vehicleType: .init("cab"))
    try driver.send("refresh", ["token": hub.token(.driver, "D1", vehicle: cab)])
    _ = try driver.receive("ack")
    try driver.send("driver_status", ["status": "available", "vehicleType": "van", "tags": ["wheelchair"]])
    _ = try driver.receive("ack")
    #expect(try found("vehicleType=cab&tags=wheelchair") == ["D1"], "of the tags the new token says nothing")

    let posting = try hub.token(.driver, "D2", vehicle: van)
    let body = #"{"latitude":37,"longitude":-122,"accuracy":5,"timestamp":1763680000000}"#
    #expect(try hub.hub.post("/v1/locations?access_token=\(posting)", body).status == 200)
    #expect(try found("vehicleType=van") == ["D2"])
  }

  @Test("with --dev-auth beside tokens either will do, but a bad token is not made good by a role in the query")
  func both() throws {
    let hub = try TokenHub { $0.allowsDevelopmentCredentials = true }
    _ = try hub.hub.rider("r1")
    _ = try hub.join(hub.token(.rider, "r2"))
    #expect(try hub.hub.get("/v1/drivers/D1?role=ops&id=o&access_token=x").status == 401)
    let development = try hub.hub.rider("r3")
    try development.send("refresh", ["token": hub.token(.rider, "r3")])
    #expect(try development.receive("error").code == "forbidden")
  }

  @Test("a session ends with 4401 within a second of its token's end, busy or idle", arguments: loopCounts)
  func expiry(loops: Int) throws {
    let isPunctual = try isWithin(4) {
      let hub = try TokenHub(loops: loops)
      let start = Date()
      let idle = try hub.join(hub.token(.rider, "r1", lasts: 3))
      let other = try hub.join(hub.token(.rider, "r2", lasts: 60))
      #expect(try idle.receiveClose().code == 4401)
      let lived = Date().timeIntervalSince(start)
      #expect(lived >= 2.9)
      #expect(try other.settle().isEmpty)
      return lived
    }
    #expect(isPunctual)
  }

  @Test(
    "refresh swaps the token in place: the session outlives the first one and gives up what the second does not name")
  func refresh() throws {
    let hub = try TokenHub()
    let start = Date()
    let rider = try hub.join(hub.token(.rider, "r1", trips: ["T1", "T2"], lasts: 4))
    for trip in ["trip:T1", "trip:T2"] { #expect(try subscribe(rider, trip) == "subscribed") }
    let id = try rider.send("refresh", ["token": hub.token(.rider, "r1", trips: ["T2", "T3"], lasts: 6)])
    #expect(try rider.receive("ack").replyTo == id)
    let ended = try rider.receive("unsubscribed")
    #expect(ended.string("channel") == "trip:T1" && ended.string("reason") == "grant_ended" && ended.replyTo == nil)
    #expect(try subscribe(rider, "trip:T1") == "forbidden")
    #expect(try subscribe(rider, "trip:T3") == "subscribed")
    let end = try rider.receiveClose()
    #expect(end.code == 4401 && end.before.isEmpty)
    #expect(Date().timeIntervalSince(start) > 5)
  }

  @Test("refresh with another's, a bad or an expired token is refused, and the session continues with the one it has")
  func refreshRefused() throws {
    let hub = try TokenHub()
    let rider = try hub.join(hub.token(.rider, "r1", trips: ["T1"]))
    let rows = [
      (try hub.token(.rider, "r2"), "forbidden"), (try hub.token(.ops, "r1"), "forbidden"),
      (try hub.token(.rider, "r1") + "A", "unauthorized"), (try hub.token(.rider, "r1", lasts: -40), "token_expired"),
    ]
    for (token, code) in rows {
      let id = try rider.send("refresh", ["token": token])
      let error = try rider.receive("error")
      #expect(error.replyTo == id && error.code == code)
    }
    for payload in [[:], ["token": ""], ["token": 1], ["token": String(repeating: "x", count: 8193)]] as [[String: Any]]
    {
      try rider.send("refresh", payload)
      #expect(try rider.receive("error").code == "bad_message")
    }
    #expect(try subscribe(rider, "trip:T1") == "subscribed")
  }

  @Test(
    "a list of revoked ids ends the sessions of those tokens at once, keeps them out, and touches no others",
    arguments: loopCounts)
  func revocation(loops: Int) throws {
    let hub = try TokenHub(loops: loops)
    let byName = try hub.join(hub.token(.rider, "lost-phone", trips: ["T1"]))
    let stays = try hub.join(hub.token(.rider, "r2", trips: ["T1"], jti: "j-2"))
    let token = try hub.token(.rider, "r2", jti: "j-1")
    let byID = try hub.join(token)
    for peer in [byName, stays] { #expect(try subscribe(peer, "trip:T1") == "subscribed") }
    try hub.revoke("lost-phone\nj-1\n")
    #expect(try byName.receiveClose().code == 4401)
    #expect(try byID.receiveClose().code == 4401)
    #expect(try stays.settle().isEmpty)
    #expect(try hub.hub.get("/v1/drivers/D1?access_token=\(token)").status == 401)
    try stays.send("refresh", ["token": hub.token(.rider, "r2", jti: "j-1")])
    #expect(try stays.receive("error").code == "unauthorized")
    try hub.revoke("")
    #expect(try hub.hub.get("/v1/drivers/D1?access_token=\(token)").status == 403, "nothing is revoked any more")
  }

  @Test("a token's own limits replace the hub's, and connected has them")
  func limits() throws {
    let hub = try TokenHub { $0.limits.sessionRate = 10 }
    let token = try hub.token(.rider, "r1", limits: SessionLimits(rate: 0))
    let fast = try Peer(port: hub.hub.port, query: "access_token=\(token)")
    let limits = try #require(try fast.receive("connected").object("limits"))
    #expect(limits["rate"] as? Double == 0)
    for _ in 0..<500 { try fast.send("ping", [:]) }
    for _ in 0..<500 { _ = try fast.receive("pong") }
  }

  @Test(
    "what `locationhub token` makes, `serve` takes; on SIGHUP it reads keys and list again, and sessions go on",
    .enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  func program() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { do { try FileManager.default.removeItem(at: folder) } catch { Issue.record(error) } }
    let key = folder.appendingPathComponent("key").path
    let list = folder.appendingPathComponent("revoked").path
    func write(_ text: String, to path: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }
    try write("0123456789abcdef0123456789abcdef\n", to: key)
    try write("", to: list)

    let made = try HubProcess.run([
      "token", "--key", key, "--role", "rider", "--sub", "r1", "--trip", "T1", "--trip", "T2*", "--expires", "1h",
      "--issuer", "me",
    ])
    #expect(made.status == 0, "\(made.errors)")
    let token = made.output.trimmingCharacters(in: .whitespacesAndNewlines)
    let hub = try HubProcess.serve(["--token-keys", key, "--revoked", list, "--token-issuer", "me"])
    let rider = try Peer(port: hub.port, query: "access_token=\(token)")
    _ = try rider.receive("connected")
    for trip in ["trip:T1", "trip:T29"] { #expect(try subscribe(rider, trip) == "subscribed") }
    #expect(try subscribe(rider, "trip:T3") == "forbidden")

    try write("abc", to: key)  // too short: the hub keeps what it has
    hub.send(signal: SIGHUP)
    #expect(try rider.settle().isEmpty)
    try write("0123456789abcdef0123456789abcdef", to: key)
    try write("r1\n", to: list)
    hub.send(signal: SIGHUP)
    #expect(try rider.receiveClose().code == 4401)
    hub.send(signal: SIGTERM)
    let outcome = try hub.outcome()
    #expect(outcome.status == 0)
    #expect(outcome.errors.contains("event=reload_failed") || outcome.errors.contains("event=tokens_reloaded"))
    #expect(!outcome.errors.contains(token) && !outcome.errors.contains("0123456789abcdef"))

    let wrong = try HubProcess.run(["token", "--key", key, "--role", "rider", "--sub", "r1", "--alg", "RS256"])
    #expect(wrong.status == 1 && wrong.errors.contains("HS256"))
    #expect(try HubProcess.run(["token", "--role", "rider", "--sub", "r1"]).status == 2)
    #expect(try HubProcess.run(["serve", "--revoked", list]).status == 2)
  }
}

extension EndToEnd.TokensAndGrants {
  private func upgrade(_ hub: TokenHub, _ protocols: String?, query: String = "", _ more: String = "") throws
    -> HTTPResponse
  {
    var request = UpgradeRequest("/v1/ws\(query)")
    if let protocols { request = request.with("Sec-WebSocket-Protocol", protocols) }
    let connection = try hub.hub.connect()
    try connection.send(request.text.dropLast() + more + "\r\n")
    return try connection.readResponse()
  }

  @Test("a token may be offered as a subprotocol, and is never answered with")
  func subprotocol() throws {
    let hub = try TokenHub()
    let token = try hub.token(.rider, "r1")
    for offer in ["locationhub.v1.json, access_token.\(token)", "access_token.\(token),locationhub.v1.json"] {
      let answer = try upgrade(hub, offer)
      #expect(answer.status == 101 && answer.fields["sec-websocket-protocol"] == "locationhub.v1.json")
    }
    let alone = try upgrade(hub, "access_token.\(token)")
    #expect(alone.status == 101 && alone.fields["sec-websocket-protocol"] == nil)
    let refused = try upgrade(hub, "locationhub.v1.json, access_token.\(token)x")
    #expect(refused.status == 401 && !refused.text.contains(token) && !"\(refused.fields)".contains(token))
  }

  @Test("a token that comes twice, or in two ways, is refused")
  func twoWays() throws {
    let hub = try TokenHub()
    let token = try hub.token(.rider, "r1")
    let offer = "locationhub.v1.json, access_token.\(token)"
    #expect(try upgrade(hub, "\(offer), access_token.\(token)").status == 401)
    #expect(try upgrade(hub, offer, query: "?access_token=\(token)").status == 401)
    #expect(try upgrade(hub, offer, "Authorization: Bearer \(token)\r\n").status == 401)
    #expect(try upgrade(hub, nil, query: "?access_token=\(token)", "Authorization: Bearer \(token)\r\n").status == 401)
    #expect(try upgrade(hub, offer).status == 101)
  }
}
