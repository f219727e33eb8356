// Sessions that speak locationhub.v1.binary, beside such that speak JSON: they are sent the same.
import Foundation
import HubClientLoop
import HubGeo
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct Binary {}
}

extension EndToEnd.Binary {
  /// The members that both forms have: all but the number of state, which binary leaves out.
  private static func members(_ message: HubMessage) -> NSDictionary {
    var envelope = message.envelope
    if ["driver_location", "eta_update", "area_update"].contains(message.type) { envelope["messageId"] = nil }
    return envelope as NSDictionary
  }

  // MARK: The handshake

  @Test("the subprotocol is the first of the client's that the hub speaks, and JSON where none is asked for")
  func subprotocols() throws {
    let hub = try TestHub()
    for (asked, agreed) in [
      ("locationhub.v1.binary", "locationhub.v1.binary"), ("locationhub.v1.json", "locationhub.v1.json"),
      ("chat, locationhub.v1.binary, locationhub.v1.json", "locationhub.v1.binary"),
      ("locationhub.v1.json, locationhub.v1.binary", "locationhub.v1.json"), ("chat", nil), (nil, nil),
    ] as [(String?, String?)] {
      let connection = try hub.connect()
      var request = UpgradeRequest("/v1/ws?role=ops&id=o1").with(
        "Sec-WebSocket-Extensions", "permessage-deflate; client_no_context_takeover")
      if let asked { request = request.with("Sec-WebSocket-Protocol", asked) }
      try connection.send(request.text)
      let response = try connection.readResponse()
      #expect(response.status == 101)
      #expect(response.fields["sec-websocket-protocol"] == agreed)
      // A binary session is not compressed.
      #expect((response.fields["sec-websocket-extensions"] == nil) == (agreed == "locationhub.v1.binary"))
    }
  }

  @Test("open sessions that speak binary are counted")
  func gauge() throws {
    let hub = try TestHub()
    let one = try hub.join(.driver, "d1", isBinary: true)
    let two = try hub.join(.ops, "o1", isBinary: true)
    _ = try hub.join(.ops, "o2")
    try hub.metrics { $0["binary_sessions"] == 2 && $0["sessions{role=\"ops\"}"] == 2 }
    one.connection.close()
    two.connection.close()
    try hub.metrics { $0["binary_sessions"] == 0 }
  }

  // MARK: What is wrong

  @Test("a text frame closes a binary session with 1003")
  func text() throws {
    let hub = try TestHub()
    let peer = try hub.join(.ops, "o1", isBinary: true)
    try peer.send(text: #"{"type":"ping","payload":{},"timestamp":1,"messageId":"x"}"#)
    #expect(try peer.receiveClose().code == 1003)
  }

  @Test("a malformed message gets bad_message, and more than ten in a minute close with 4400")
  func malformed() throws {
    let hub = try TestHub()
    let peer = try hub.join(.ops, "o1", isBinary: true)
    for number in 0..<11 {
      try peer.send(binary: [6, UInt8(2 * number + 1), 0xFF])
      let error = try peer.receive("error")
      #expect(error.code == "bad_message")
      #expect(error.replyTo == "\(number)")
    }
    #expect(try peer.receiveClose().code == 4400)
    try hub.metrics { $0.errors("bad_message") == 11 && $0.closes(4400) == 1 }
  }

  @Test("a JSON text in a binary frame is JSON on a JSON session, and malformed on a binary one")
  func json() throws {
    let hub = try TestHub()
    let ping = Array(#"{"type":"ping","payload":{},"timestamp":1,"messageId":"x"}"#.utf8)
    let peer = try hub.join(.ops, "o1")
    try peer.send(binary: ping)
    #expect(try peer.receive("pong").replyTo == "x")
    let binary = try hub.join(.ops, "o2", isBinary: true)
    try binary.send(binary: ping)
    #expect(try binary.receive("error").code == "unknown_type")
  }

  // MARK: A trip

  @Test("followers of a trip hear the same in binary and in JSON, whatever the driver speaks", arguments: loopCounts)
  func trip(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    for isBinary in [true, false] {
      let trip = isBinary ? "T1" : "T2"
      let driver = try hub.join(.driver, "d-\(trip)", isBinary: isBinary)
      let riders = [try hub.rider("r1"), try hub.join(.rider, "r2", isBinary: true)]
      for rider in riders { try rider.subscribe("trip:\(trip)") }
      for step in 0..<20 { try driver.sendFix(step, trip: trip) }
      for status in ["driver_en_route", "arrived_pickup"] {
        try driver.send("trip_status", ["tripId": trip, "status": status, "timestamp": Peer.firstFix + 30_000])
        _ = try driver.skip(to: "ack")
      }
      let (json, binary) = (try riders[0].settle(), try riders[1].settle())
      #expect(json.map(Self.members) == binary.map(Self.members))
      #expect(json.filter { $0.type == "driver_location" }.count == 20)
      let late = try hub.join(.rider, "r3", isBinary: true)
      #expect(try snapshot(late, trip) == snapshot(hub.rider("r4"), trip))
    }
  }

  /// Without what changes from one moment to the next.
  private func snapshot(_ rider: Peer, _ trip: String) throws -> NSDictionary {
    let snapshot = try #require(try rider.subscribe("trip:\(trip)").object("snapshot"))
    let position = try #require(snapshot["position"] as? [String: Any])
    return [
      "trip": try #require(snapshot["trip"]), "position": position.filter { $0.key != "age" },
      "members": snapshot.count,
    ]
  }

  @Test("a follower from the start gets the ids once they repeat, and who comes later with subscribed")
  func names() throws {
    let hub = try TestHub()
    let driver = try hub.join(.driver, "driver-12", isBinary: true)
    let rider = try hub.join(.rider, "r1", isBinary: true)
    try rider.subscribe("trip:trip-7")
    let start = Int(Date().timeIntervalSince1970 * 1000) - 60_000
    func send(_ step: Int) throws {
      try driver.sendFix(step, trip: "trip-7", more: ["timestamp": start + step * 1000])
      _ = try rider.skip(to: "driver_location")
    }
    for step in 0..<12 { try send(step) }
    let bytes = try #require(rider.binary?.positionBytes)
    // Two ids of 9 and 6 characters with their lengths. Where the estimate of the clock still moves there is the lag
    // besides.
    #expect(bytes[0] >= bytes[11] + 17)
    #expect(bytes[11] <= 25, "\(bytes)")
    #expect((1...3).contains(rider.binary?.names ?? 0))
    let late = try hub.join(.rider, "r2", isBinary: true)
    try late.subscribe("trip:trip-7")
    try send(12)
    _ = try late.skip(to: "driver_location")
    #expect(try #require(late.binary?.positionBytes.last) <= 25)
    #expect(late.binary?.names == 0)
  }

  @Test("the events of a break come in binary as in JSON, in order and none twice")
  func recovery() throws {
    let hub = try TestHub()
    let driver = try hub.join(.driver, "d1", isBinary: true)
    let rider = try hub.join(.rider, "r1", isBinary: true)
    let answer = try rider.subscribe("trip:T1")
    try driver.sendFix(0, trip: "T1")
    let first = try rider.skip(to: "trip_update")
    rider.connection.close()
    for status in ["driver_en_route", "arrived_pickup", "trip_started"] {
      try driver.send("trip_status", ["tripId": "T1", "status": status, "timestamp": Peer.firstFix + 30_000])
      _ = try driver.skip(to: "ack")
    }
    for isBinary in [false, true] {
      let again = try hub.join(.rider, "r1", isBinary: isBinary)
      let second = try again.subscribe(
        "trip:T1", since: first.integer("sequence"), epoch: answer.string("epoch"))
      #expect(second.payload["recovered"] as? Bool == true)
      let missed = try again.settle().filter { $0.type == "trip_update" }
      #expect(missed.map { $0.integer("sequence") } == [2, 3, 4])
      #expect(missed.map { $0.string("status") } == ["driver_en_route", "arrived_pickup", "trip_started"])
    }
  }

  @Test("a driver that changes its trips with every fix costs its followers no names")
  func restless() throws {
    let hub = try TestHub()
    let driver = try hub.join(.driver, "d1", isBinary: true)
    let both = [try hub.ops("o1"), try hub.join(.ops, "o2", isBinary: true)]
    for ops in both { try ops.subscribe("driver:d1") }
    for step in 0..<60 { try driver.sendFix(step, trip: "T\(step % 3)") }
    _ = try driver.settle()
    let (json, binary) = (try both[0].settle(), try both[1].settle())
    #expect(json.map(Self.members) == binary.map(Self.members))
    #expect(both[1].binary?.names == 0)
  }

  @Test("a reader too slow for all positions gets the newest, and those that it gets are whole")
  func slow() throws {
    let hub = try TestHub()
    let driver = try hub.join(.driver, "d1", isBinary: true)
    let slow = try hub.join(.ops, "slow", receiveBuffer: 4096, isBinary: true)
    let beside = try hub.ops("o2")
    for ops in [slow, beside] { try ops.subscribe("driver:d1") }
    // Trips of ten fixes each: names change often, and most positions give way to newer ones while nobody reads.
    let count = 15_000
    var sent: [Int: NSDictionary] = [:]
    for step in 0..<count {
      try driver.sendFix(step, trip: "T\(step / 10 % 3)")
      guard step % 50 == 49 else { continue }
      _ = try driver.settle()
      for message in try beside.settle() where message.type == "driver_location" {
        sent[try #require(message.integer("timestamp"))] = Self.members(message)
      }
    }
    #expect(sent.count == count)
    let got = try slow.settle().filter { $0.type == "driver_location" }
    #expect(got.count < count, "some must have given way, or nothing was shown")
    for message in got { #expect(Self.members(message) == sent[try #require(message.integer("timestamp"))]) }
    #expect(got.last?.integer("timestamp") == Peer.firstFix + (count - 1) * 1000)
    #expect(slow.binary?.names ?? 0 > 100)
  }

  // MARK: The rest

  @Test("queries, batches, pings and areas are answered in binary as in JSON")
  func others() throws {
    let hub = try TestHub()
    let driver = try hub.join(.driver, "d1", isBinary: true)
    try driver.send("location_batch", ["locations": (0..<3).map(Peer.fix)])
    #expect(try driver.receive("ack").integer("accepted") == 3)
    try driver.send("ping", ["note": "hello"])
    let pong = try driver.receive("pong")
    #expect(pong.string("note") == "hello")
    let answers = try [false, true].map { isBinary in
      let ops = try hub.join(.ops, "o-\(isBinary)", isBinary: isBinary)
      try ops.send("query", ["kind": "nearby", "latitude": 37, "longitude": -122, "limit": 5, "stale": true])
      let result = try ops.receive("result")
      return try #require(result.payload["drivers"] as? [[String: Any]]).map { driver in
        driver.filter { !["age", "predicted"].contains($0.key) } as NSDictionary
      }
    }
    #expect(answers[0] == answers[1] && answers[0].count == 1)
    let rider = try hub.join(.rider, "r1", isBinary: true)
    try rider.send("subscribe", ["channel": "nearby:37,-122,500", "viewId": "map"])
    let answer = try rider.receive("subscribed")
    let cells = try #require(answer.payload["cells"] as? [String])
    let update = try rider.skip(to: "area_update")
    #expect(cells.contains(try #require(update.string("cell"))))
    #expect(update.string("channel") == "area:\(try #require(update.string("cell")))")
    try rider.send("unsubscribe", ["viewId": "map"])
    #expect(try rider.skip(to: "unsubscribed").string("channel") == "nearby:37,-122,500")
  }

  @Test("clients of the library see the same in both codecs", arguments: loopCounts)
  func clientLibrary(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let bench = try ClientBench()
    func client(_ query: String, _ codec: Subprotocol) throws -> ClientID {
      var configuration = ClientConfiguration(url: try HubURL("ws://127.0.0.1:\(hub.port)/v1/ws?\(query)"))
      configuration.codec = codec
      return bench.clients.add(configuration)
    }
    let trip = try #require(Identifier("T1"))
    let riders = [try client("role=rider&id=r1", .json), try client("role=rider&id=r2", .binary)]
    for rider in riders { bench.clients.subscribe(rider, to: .trip(trip)) }
    #expect(bench.run { bench.subscribed == 2 })
    let driver = try client("role=driver&id=d1", .binary)
    #expect(bench.run { bench.openings.count == 3 })
    for step in 0..<40 {
      let place = try #require(Coordinate(latitude: 37.5 + Double(step) * 1e-4, longitude: -122.25))
      bench.clients.send(
        Fix(coordinate: place, timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64(step) * 1000), accuracy: 5),
        trip: trip, from: driver)
    }
    #expect(bench.run { riders.allSatisfy { bench.positions[$0.index]?.count == 40 } })
    #expect(bench.positions[riders[0].index] == bench.positions[riders[1].index])
    #expect(bench.clients.session(riders[1]).form == .binary)
    #expect(bench.clients.session(riders[0]).form == .json(.unixMilliseconds))
    for client in riders + [driver] { #expect(bench.clients.session(client).counters.unreadable == 0) }
    bench.clients.closeAll()
    #expect(bench.run { bench.clients.connections == 0 })
  }
}
