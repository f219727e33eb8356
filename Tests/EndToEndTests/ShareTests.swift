// Shares: a link by which somebody follows a trip, what its holder sees, and how it ends.
import Foundation
import HubBytes
import HubGateway
import HubMessages
import HubTokens
import Testing

extension EndToEnd {
  @Suite struct Shares {}
}

extension EndToEnd.Shares {
  /// A hub that signs, with a trip under way that r1 has asked for and D1 drives.
  private func hub(
    loops: Int = 1, _ configure: (inout ServerConfiguration) -> Void = { _ in }
  ) throws -> (TokenHub, driver: Peer) {
    let key = try KeySet(parsing: Array("a secret of the hub's own, long enough\n".utf8)).keys[0]
    let made = try TokenHub(loops: loops) {
      let keys = KeySet(keys: ($0.tokens?.verifier.keys.keys ?? []) + [key])
      $0.tokens = TokenAccess(verifier: TokenVerifier(keys: keys))
      $0.tokenSigner = key
      _ = $0.setPublicURL("https://hub.example")
      configure(&$0)
    }
    let trip =
      #"{"tripId":"T1","driverId":"D1","riderId":"r1","pickup":{"latitude":37,"longitude":-122},"dropoff":{"latitude":37.1,"longitude":-122}}"#
    #expect(try send(made, "POST", "/v1/trips", try made.token(.ops, "o1"), trip).status == 201)
    let driver = try made.join(made.token(.driver, "D1", trips: ["T1"]))
    try move(driver, "accepted")
    try driver.sendFix(0, trip: "T1")
    return (made, driver)
  }

  private func move(_ driver: Peer, _ status: String) throws {
    let id = try driver.send(
      "trip_status", ["tripId": "T1", "status": status, "timestamp": Peer.firstFix])
    while try driver.receive("ack").replyTo != id {}
  }

  private func send(
    _ hub: TokenHub, _ method: String, _ target: String, _ token: String, _ body: String = ""
  ) throws -> HTTPResponse {
    try hub.hub.request(
      "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer \(token)\r\n"
        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
  }

  private func share(_ hub: TokenHub, _ body: String = "") throws -> (id: String, token: String) {
    let made = try send(hub, "POST", "/v1/trips/T1/shares", try hub.token(.rider, "r1"), body)
    #expect(made.status == 201)
    return (try #require(made.json["shareId"] as? String), try #require(made.json["token"] as? String))
  }

  @Test("a share's holder sees the trip, and nobody's id", arguments: loopCounts)
  func follows(loops: Int) throws {
    let (hub, driver) = try hub(loops: loops)
    let made = try send(hub, "POST", "/v1/trips/T1/shares", try hub.token(.rider, "r1"))
    let token = try #require(made.json["token"] as? String)
    #expect(made.json["url"] as? String == "https://hub.example/track/T1#token=\(token)")
    let holder = try hub.join(token)
    let answer = try holder.subscribe("trip:T1", since: 0, epoch: "x")
    #expect(!answer.text.contains("D1") && answer.text.contains(#""driverId":"driver""#))
    try driver.sendFix(1, trip: "T1")
    let position = try holder.skip(to: "driver_location")
    #expect(position.string("driverId") == "driver" && position.string("tripId") == "T1")
    try move(driver, "driver_en_route")
    let update = try holder.skip(to: "trip_update")
    #expect(update.string("driverId") == "driver" && update.string("status") == "driver_en_route")
    let trip = try send(hub, "GET", "/v1/trips/T1", token)
    #expect(trip.status == 200 && trip.json["driverId"] as? String == "driver" && trip.json["riderId"] == nil)
    #expect(trip.json["pickup"] != nil && trip.json["dropoff"] != nil)
    // What is not of the ride is revealed only by its number.
    let ops = try hub.token(.ops, "o1")
    let post = #"{"channel":"trip:T1","kind":"message","title":"Gate","body":"D1 is at gate 4","data":{"at":"gate"}}"#
    #expect(try send(hub, "POST", "/v1/notifications", ops, post).status == 201)
    let fence = #"{"title":"Depot of D1","circle":{"latitude":37,"longitude":-122,"radius":5000}}"#
    #expect(try send(hub, "PUT", "/v1/fences/secret", ops, fence).status == 201)
    try driver.sendFix(2, trip: "T1")
    var last = update.integer("sequence")
    for _ in 0..<2 {
      let received = try holder.skip(to: "notification")
      #expect(received.string("kind") == "message" && received.string("title") == "Hidden")
      #expect(!["D1", "gate", "Gate", "Depot", "secret"].contains { received.text.contains($0) })
      #expect(received.integer("sequence") == last.map { $0 + 1 })
      last = received.integer("sequence")
    }
    // Others continue as before.
    let rider = try hub.join(hub.token(.rider, "r1"))
    #expect(try rider.subscribe("trip:T1").text.contains("D1"))
  }

  @Test("it opens the trip and nothing else, and makes no further shares")
  func nothingElse() throws {
    let (hub, _) = try hub()
    let (_, token) = try share(hub)
    let holder = try hub.join(token)
    for channel in ["trip:T2", "driver:D1", "fleet", "stats", "area:9q8yy", "nearby:37,-122,500"] {
      #expect(try holder.answer(toSubscribing: channel) == "forbidden", "\(channel)")
    }
    for target in [
      "/v1/trips/T1/track", "/v1/drivers/nearby?latitude=37&longitude=-122&limit=10", "/v1/trips/T1/shares",
    ] {
      #expect(try send(hub, "GET", target, token).status == 403, "\(target)")
    }
    #expect(try send(hub, "POST", "/v1/trips/T1/shares", token).status == 403)
    let stranger = try hub.token(.rider, "r2", trips: ["T1"])
    #expect(try send(hub, "POST", "/v1/trips/T1/shares", stranger).status == 403)
    #expect(try send(hub, "POST", "/v1/trips/T9/shares", stranger).status == 403)
    // Who has a token for such an id, and no share, sees nothing.
    let made = try hub.join(hub.token(.rider, "share-made-up", channels: ["trip:T1"]))
    #expect(try made.answer(toSubscribing: "trip:T1") == "forbidden")
  }

  @Test("a share that is ended lets its holder go, and no other", arguments: loopCounts)
  func ends(loops: Int) throws {
    let (hub, driver) = try hub(loops: loops)
    let (first, second) = (try share(hub), try share(hub))
    let rider = try hub.token(.rider, "r1")
    let list = try send(hub, "GET", "/v1/trips/T1/shares", rider)
    let shares = try #require(list.json["shares"] as? [[String: Any]])
    #expect(shares.compactMap { $0["shareId"] as? String } == [first.id, second.id])
    #expect(shares.allSatisfy { $0["token"] == nil && $0["created"] is Int })
    let (one, other) = (try hub.join(first.token), try hub.join(second.token))
    for peer in [one, other] { try peer.subscribe("trip:T1") }
    #expect(try send(hub, "DELETE", "/v1/trips/T1/shares/\(first.id)", rider).status == 204)
    #expect(try one.skip(to: "unsubscribed").string("reason") == "revoked")
    try driver.sendFix(1, trip: "T1")
    #expect(try other.skip(to: "driver_location").string("tripId") == "T1")
    #expect(try hub.join(first.token).answer(toSubscribing: "trip:T1") == "forbidden")
    #expect(try send(hub, "GET", "/v1/trips/T1", first.token).status == 403)
    #expect(try send(hub, "DELETE", "/v1/trips/T1/shares/\(first.id)", rider).status == 404)
  }

  @Test("it ends with its trip, and at its own time")
  func time() throws {
    let (hub, driver) = try hub()
    let soon = Int(Date().timeIntervalSince1970 * 1000) + 3_600_000
    let made = try send(hub, "POST", "/v1/trips/T1/shares", try hub.token(.rider, "r1"), "{\"expires\":\(soon)}")
    #expect(made.json["expires"] as? Int == soon)
    let past = try send(hub, "POST", "/v1/trips/T1/shares", try hub.token(.rider, "r1"), "{\"expires\":1700000000000}")
    #expect(past.status == 400)
    for status in ["driver_en_route", "arrived_pickup", "trip_started", "arrived_destination", "completed"] {
      try move(driver, status)
    }
    #expect(try send(hub, "POST", "/v1/trips/T1/shares", try hub.token(.ops, "o1")).status == 409)
  }

  @Test("a trip has so many shares, and a hub without a key makes none")
  func limits() throws {
    let (hub, _) = try hub()
    let rider = try hub.token(.rider, "r1")
    for _ in 0..<16 { _ = try share(hub) }
    #expect(try send(hub, "POST", "/v1/trips/T1/shares", rider).status == 429)
    // Ended shares make room, but each was written to the journal with the whole trip.
    for _ in 0..<48 {
      let list = try send(hub, "GET", "/v1/trips/T1/shares", rider).json["shares"] as? [[String: Any]]
      let oldest = try #require(list?.first?["shareId"] as? String)
      #expect(try send(hub, "DELETE", "/v1/trips/T1/shares/\(oldest)", rider).status == 204)
      _ = try share(hub)
    }
    let list = try send(hub, "GET", "/v1/trips/T1/shares", rider).json["shares"] as? [[String: Any]]
    let oldest = try #require(list?.first?["shareId"] as? String)
    #expect(try send(hub, "DELETE", "/v1/trips/T1/shares/\(oldest)", rider).status == 204)
    let refused = try send(hub, "POST", "/v1/trips/T1/shares", rider)
    #expect(refused.status == 429 && refused.text.contains("64 times"))
    let without = try TokenHub()
    #expect(try send(without, "POST", "/v1/trips/T1/shares", try without.token(.ops, "o1")).status == 404)
  }

  @Test("the holders of all that one rider shares have so many sessions, those of ended shares included")
  func sessions() throws {
    let (hub, _) = try hub { $0.limits.sessionsPerSharer = 3 }
    let shares = try (0..<4).map { _ in try share(hub) }
    let rider = try hub.token(.rider, "r1")
    #expect(try send(hub, "DELETE", "/v1/trips/T1/shares/\(shares[0].id)", rider).status == 204)
    let holders = try shares[..<3].map { try hub.join($0.token) }
    let refusal = try hub.hub.request(UpgradeRequest("/v1/ws?access_token=\(shares[3].token)").text)
    #expect(refusal.status == 429 && refusal.text.contains("3 sessions together"))
    // The rider has its own, and so have the holders of what another shares: here ops, for one trip.
    let own = try hub.join(rider)
    let other = try send(hub, "POST", "/v1/trips/T1/shares", try hub.token(.ops, "o1"))
    let stranger = try hub.join(try #require(other.json["token"] as? String))
    for peer in holders + [own, stranger] { #expect(try peer.settle().isEmpty) }
  }

  @Test("sharing a trip is no move of it")
  func updated() throws {
    let (hub, _) = try hub()
    let rider = try hub.token(.rider, "r1")
    let before = try send(hub, "GET", "/v1/trips/T1", rider).json["updated"] as? Int
    let (id, _) = try share(hub)
    #expect(try send(hub, "DELETE", "/v1/trips/T1/shares/\(id)", rider).status == 204)
    #expect(try send(hub, "GET", "/v1/trips/T1", rider).json["updated"] as? Int == before)
  }

  @Test("a share, and that another was ended, are there after a kill -9")
  func restart() throws {
    let directory = try JournalDirectory()
    defer { withExtendedLifetime(directory) {} }
    let folder = URL(filePath: directory.path)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let key = folder.appending(path: "key")
    try "a secret of the hub's own, long enough\n".write(to: key, atomically: true, encoding: .utf8)
    // The clients' tokens have a key of their own.
    let issuer = folder.appending(path: "issuer")
    try "the secret of whoever signs the clients' tokens\n".write(to: issuer, atomically: true, encoding: .utf8)
    let options = [
      "--data", folder.appending(path: "data").path, "--token-sign-key", key.path, "--token-keys", issuer.path,
    ]
    func send(_ port: UInt16, _ method: String, _ target: String, _ token: String, _ body: String = "") throws
      -> HTTPResponse
    {
      let connection = try RawConnection(port: port)
      try connection.send(
        "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer \(token)\r\n"
          + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
      return try connection.readResponse()
    }
    let signer = try KeySet(parsing: Array(try Data(contentsOf: issuer))).keys[0]
    let claims = Claims(subject: Identifier("o1")!, role: .ops)
    let ops = String(decoding: try signer.token(TokenRequest(claims: claims)), as: UTF8.self)
    let hub = try HubProcess.serve(options)
    #expect(try send(hub.port, "POST", "/v1/trips", ops, #"{"tripId":"T1","driverId":"D1"}"#).status == 201)
    let shares = try (0..<2).map { _ in try send(hub.port, "POST", "/v1/trips/T1/shares", ops).json }
    let tokens = try shares.map { try #require($0["token"] as? String) }
    let gone = try #require(shares[0]["shareId"] as? String)
    #expect(try send(hub.port, "DELETE", "/v1/trips/T1/shares/\(gone)", ops).status == 204)
    hub.send(signal: SIGKILL)
    _ = try hub.outcome()
    let again = try HubProcess.serve(options)
    #expect(try send(again.port, "GET", "/v1/trips/T1", tokens[0]).status == 403)
    #expect(try send(again.port, "GET", "/v1/trips/T1", tokens[1]).status == 200)
  }
}
