// What one identity may hold, with sockets: sessions, cells of areas, queries, trips. And that a refusal has its
// the limit, and others notice nothing.
//
//     sessionsPerIdentity, areasPerIdentity, queriesPerIdentity, tripsPerRider      here
//     tripsPerDriver                                                                NewcomerTests
import Foundation
import HubCore
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct IdentityLimits {}
}

extension EndToEnd.IdentityLimits {
  /// What is answered to a message; what else comes before it, of areas, is passed over.
  private func ask(_ peer: Peer, _ type: String, _ payload: [String: Any]) throws -> HubMessage {
    let id = try peer.send(type, payload)
    while true {
      guard case .message(let message) = try peer.next(waitingFor: "the answer to \(type)") else { continue }
      if message.replyTo == id { return message }
    }
  }

  // MARK: Sessions

  @Test(
    "one rider has so many sessions, over all loops, in JSON and binary, and others have theirs", arguments: loopCounts)
  func sessions(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.sessionsPerIdentity = RoleLimits(driver: 2, rider: 6, ops: 3) }
    // Connections are spread over the loops by the kernel.
    let riders = try (0..<6).map { try hub.join(.rider, "r", isBinary: $0 % 2 == 0) }
    for target in ["/v1/ws?role=rider&id=r", "/v1/ws?role=rider&id=r&time=apple"] {
      let refusal = try hub.request(UpgradeRequest(target).text)
      #expect(refusal.status == 429 && refusal.errorCode == "rate_limited")
      #expect(refusal.fields["retry-after"] == "10")
      #expect(refusal.text.contains("max-sessions-per-rider") && refusal.text.contains("6"))
    }
    let ops = try (0..<3).map { _ in try hub.ops("r") }
    #expect(try hub.request(UpgradeRequest("/v1/ws?role=ops&id=r").text).status == 429)
    let other = try hub.rider("r2")
    try hub.metrics {
      $0.hits("sessions_per_identity") == 3 && $0["handshakes_refused_total"] == 3
        && $0["table_entries{table=\"identities\"}"] == 3 && $0["table_entries{table=\"sessions\"}"] == 10
    }
    for peer in riders + ops + [other] { #expect(try peer.settle().isEmpty) }
  }

  @Test("a session frees its slot however it ends", arguments: loopCounts)
  func ends(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.sessionsPerIdentity = RoleLimits(driver: 4, rider: 1, ops: 1)
      $0.limits.badMessages = 0
    }
    func fill(_ end: (Peer) throws -> Void) throws {
      let rider = try hub.rider("r")
      let map = try ask(rider, "subscribe", ["channel": "nearby:52.52,13.405,300", "viewId": "map"])
      #expect(map.type == "subscribed")
      #expect(try hub.request(UpgradeRequest("/v1/ws?role=rider&id=r").text).status == 429)
      try end(rider)
      try hub.metrics {
        $0["sessions{role=\"rider\"}"] == 0 && $0["table_entries{table=\"identities\"}"] == 0
          && $0["table_entries{table=\"areas\"}"] == 0
      }
    }
    try fill { $0.connection.reset() }
    try fill { $0.connection.close() }
    try fill { try $0.send(bytes: Peer.frame([0x03, 0xE8], opcode: 8)) }
    try fill {
      let answer = try ask($0, "unsubscribe", ["channel": 5])
      let end = try $0.receiveClose()
      #expect(answer.code == "bad_message" && end.code == 4400)
    }
    try fill { try $0.send(bytes: [0xF3, 0x80, 0, 0, 0, 0]) }
  }

  @Test("an identity of a token is its sub and role, whatever token it is", arguments: loopCounts)
  func tokens(loops: Int) throws {
    let hub = try TokenHub(loops: loops) { $0.limits.sessionsPerIdentity.rider = 2 }
    let peers = try (0..<2).map { try hub.join(try hub.token(.rider, "r", jti: "t\($0)")) }
    let third = try hub.token(.rider, "r", trips: ["T1"], jti: "t3")
    #expect(try hub.hub.request(UpgradeRequest("/v1/ws?access_token=\(third)").text).status == 429)
    let other = try hub.join(try hub.token(.rider, "s"))
    // Its session ends by revocation, and another one may begin.
    try hub.revoke("t0\n")
    #expect(try peers[0].receiveClose().code == 4401)
    let next = try hub.join(third)
    for peer in [peers[1], other, next] { #expect(try peer.settle().isEmpty) }
  }

  // MARK: Areas

  @Test(
    "one rider watches so many cells over all its sessions, and gives them back with a view or a session",
    arguments: loopCounts)
  func areas(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.areasPerIdentity = RoleLimits(driver: 1, rider: 5, ops: 8) }
    func cell(_ number: Int) -> String { "area:u33d" + String("0123456789bcdefghj".dropFirst(number).prefix(1)) }
    let riders = try (0..<3).map { _ in try hub.rider("r") }
    for number in 0..<5 { #expect(try riders[number % 3].answer(toSubscribing: cell(number)) == "subscribed") }
    let refusal = try ask(riders[2], "subscribe", ["channel": cell(5)])
    #expect(refusal.code == "rate_limited" && refusal.number("retryAfter") == 1)
    #expect(refusal.string("message")?.contains("max-areas-per-rider") == true)
    #expect(try riders[0].answer(toSubscribing: "nearby:52.52,13.405,300") == "rate_limited")
    // What another session watches already counts all the same: who has it twice is sent it twice.
    #expect(try riders[2].answer(toSubscribing: cell(0)) == "rate_limited")
    let other = try hub.rider("r2")
    #expect(try other.answer(toSubscribing: cell(5)) == "subscribed")
    try hub.metrics { $0.hits("areas_per_identity") == 3 && $0["table_entries{table=\"areas\"}"] == 6 }
    // The same view again takes nothing; one that ends makes room for one, a session for all of its.
    #expect(try riders[0].answer(toSubscribing: cell(0)) == "subscribed")
    #expect(try ask(riders[0], "unsubscribe", ["channel": cell(3)]).type == "unsubscribed")
    #expect(try riders[2].answer(toSubscribing: cell(6)) == "subscribed")
    #expect(try riders[2].answer(toSubscribing: cell(7)) == "rate_limited")
    riders[1].connection.reset()
    try hub.metrics { $0["sessions{role=\"rider\"}"] == 3 }
    for number in 7..<9 { #expect(try riders[2].answer(toSubscribing: cell(number)) == "subscribed") }
    #expect(try riders[2].answer(toSubscribing: cell(9)) == "rate_limited")
  }

  @Test("a view that moves takes what its new place has, not both", arguments: loopCounts)
  func movingView(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.areasPerIdentity.rider = 16 }
    let rider = try hub.rider("r")
    for step in 0..<10 {
      let answer = try ask(rider, "subscribe", ["channel": "nearby:\(48 + step),11.5,900", "viewId": "map"])
      let cells = try #require(answer.payload["cells"] as? [String])
      #expect(cells.count > 8, "two of these are over the limit")
    }
  }

  // MARK: Queries

  @Test(
    "one rider has so many queries under way over all its sockets and requests, which get 429", arguments: loopCounts)
  func queries(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.hub.queriesPerIdentity = RoleLimits(driver: 1, rider: 2, ops: 64)
      $0.limits.hub.queryBudget = SearchBudget(cells: 1, candidates: 1000)
    }
    let payload: [String: Any] = ["kind": "nearby", "latitude": 52.5, "longitude": 13.4, "limit": 5]
    // Three messages in one write are read in one turn.
    let rider = try hub.rider("r")
    let three = try (0..<3).flatMap { Peer.frame(Array(try Peer.message("query", payload, id: "q\($0)").utf8)) }
    try rider.send(bytes: three)
    let error = try rider.receive("error")
    #expect(error.code == "rate_limited" && error.replyTo == "q2" && error.number("retryAfter") == 1)
    #expect(error.string("message")?.contains("max-queries-per-rider") == true)
    for _ in 0..<2 { _ = try rider.receive("result") }
    // Pipelined on connections of their own, in one turn or not: whoever is refused gets 429, and is answered later.
    let target = "/v1/drivers/nearby?role=rider&id=r&latitude=52.5&longitude=13.4&limit=5"
    let request = "GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n"
    let connections = try (0..<6).map { _ in try hub.connect() }
    for connection in connections { try connection.send(request) }
    for connection in connections {
      let answer = try connection.readResponse()
      #expect(answer.status == 200 || answer.status == 429 && answer.fields["retry-after"] == "1")
    }
    #expect(try hub.get(target).status == 200)
    try hub.metrics { $0.hits("queries_per_identity") >= 1 && $0["table_entries{table=\"queries\"}"] == 0 }
  }

  // MARK: Trips

  @Test("a rider whose token names trips by a pattern begins so many", arguments: loopCounts)
  func trips(loops: Int) throws {
    let hub = try TokenHub(loops: loops) { $0.limits.hub.tripsPerRider = 3 }
    let rider = try hub.join(try hub.token(.rider, "r", trips: ["z-*"]))
    func request(_ trip: String) throws {
      try rider.send("trip_status", ["tripId": trip, "status": "requested", "timestamp": 1_763_680_000_001])
    }
    for number in 0..<3 {
      try request("z-\(number)")
      _ = try rider.receive("ack")
    }
    try request("z-3")
    let error = try rider.receive("error")
    #expect(error.code == "rate_limited" && error.number("retryAfter") == 60)
    #expect(error.string("message")?.contains("max-trips-per-rider") == true)
    let ops = try hub.join(try hub.token(.ops, "o"))
    try ops.send(
      "trip_status", ["tripId": "z-3", "status": "requested", "riderId": "r", "timestamp": 1_763_680_000_001])
    _ = try ops.receive("ack")
  }
}
