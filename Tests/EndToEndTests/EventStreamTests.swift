// Streams of events (GET /v1/events), and messages that are posted: a rider and a driver without a WebSocket.
import Foundation
import HubCore
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct EventStreams {}
}

extension EndToEnd.EventStreams {
  private func stream(
    _ hub: TestHub, _ channels: String..., by query: String = "role=ops&id=o1", lastEventID: String? = nil,
    receiveBuffer: Int32? = nil
  ) throws -> EventStreamReader {
    let names = channels.map { "channel=\($0)" }.joined(separator: "&")
    return try EventStreamReader(
      port: hub.port, "/v1/events?\(names)&\(query)", lastEventID: lastEventID, receiveBuffer: receiveBuffer)
  }

  @discardableResult
  private func move(_ hub: TestHub, _ trip: String, _ status: String) throws -> HTTPResponse {
    let text = """
      {"type":"trip_status","payload":{"tripId":"\(trip)","status":"\(status)","timestamp":1763680000000,
       "driverId":"d1","riderId":"r1"},"timestamp":1763680000000,"messageId":"\(trip)-\(status)"}
      """
    let answer = try hub.post("/v1/messages?role=ops&id=o1", text)
    #expect(answer.status == 200 && answer.json["type"] as? String == "ack", "\(answer.text)")
    return answer
  }

  private static let moves = [
    "requested", "accepted", "driver_en_route", "arrived_pickup", "trip_started", "arrived_destination", "completed",
  ]

  @Test("a stream of events alone has no positions, and a flag that is neither true nor false is refused")
  func eventsOnly() throws {
    let hub = try TestHub()
    let streams = try ["true", "false"].map { try stream(hub, "trip:T1", by: "eventsOnly=\($0)&role=ops&id=o1") }
    for stream in streams { _ = try stream.receive("subscribed") }
    try move(hub, "T1", "requested")
    try move(hub, "T1", "accepted")
    let fix = #"{"latitude":37,"longitude":-122,"accuracy":5,"timestamp":1763680000000,"tripId":"T1"}"#
    #expect(try hub.post("/v1/locations?role=driver&id=d1", fix).status == 200)
    try move(hub, "T1", "driver_en_route")
    for stream in streams { for _ in 0..<2 { _ = try stream.receive("trip_update") } }
    _ = try streams[0].receive("trip_update")
    _ = try streams[1].receive("driver_location")
    #expect(try hub.get("/v1/events?channel=trip:T1&eventsOnly=yes&role=ops&id=o1").status == 400)
  }

  @Test("data that was posted with line ends reaches a stream as one line")
  func posted() throws {
    let hub = try TestHub()
    _ = try hub.driver("d1")
    let stream = try stream(hub, "driver:d1")
    _ = try stream.receive("subscribed")
    let data = "{\r\n \"order\": {\r \"id\":\n1},\n\"note\":\"a\\nb\"\n}"
    let body = #"{"channel":"driver:d1","kind":"message","title":"t","body":"b","data":\#(data)}"#
    #expect(try hub.post("/v1/notifications?role=ops&id=o1", body).status == 201)
    let received = try #require(try stream.receive("notification").message.object("data"))
    #expect((received["order"] as? [String: Int]) == ["id": 1] && received["note"] as? String == "a\nb")
  }

  @Test("a stream has the messages of a session, to the byte, and ids where they are numbered", arguments: loopCounts)
  func sameAsSocket(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.limits.countsLoopbackRequests = true }
    let socket = try hub.ops()
    let answer = try socket.subscribe("trip:T1")
    let stream = try stream(hub, "trip:T1")
    #expect(stream.head.status == 200 && stream.head.fields["content-type"] == "text/event-stream")
    #expect(stream.head.fields["cache-control"] == "no-store" && stream.head.fields["x-accel-buffering"] == "no")
    #expect(stream.head.fields["content-length"] == nil && stream.head.fields["connection"] == "close")
    #expect(stream.head.fields["ratelimit-limit"] == "\(Int(Limits().requestBurst))")
    #expect(stream.head.fields["ratelimit-remaining"] != nil && stream.head.fields["ratelimit-reset"] != nil)
    let subscribed = try stream.receive("subscribed")
    let epoch = try #require(subscribed.message.string("epoch"))
    #expect(subscribed.message.string("channel") == "trip:T1" && epoch == answer.string("epoch"))
    #expect(subscribed.id == "\(epoch):0")
    #expect((1000...5000).contains(try #require(stream.retry)))
    try move(hub, "T1", "requested")
    try move(hub, "T1", "accepted")
    for (number, type) in ["trip_update", "trip_update"].enumerated() {
      let event = try stream.receive(type)
      #expect(event.message.text == (try socket.receive(type).text))
      #expect(event.id == "\(epoch):\(number + 1)")
    }
    let fix = #"{"latitude":37,"longitude":-122,"accuracy":5,"timestamp":1763680000000,"tripId":"T1"}"#
    #expect(try hub.post("/v1/locations?role=driver&id=d1", fix).status == 200)
    let position = try stream.receive("driver_location")
    #expect(position.message.text == (try socket.receive("driver_location").text))
    #expect(position.id == "\(epoch):2", "it has no id, so the one before holds")
    try hub.metrics {
      $0["sessions_by_transport{transport=\"event_stream\"}"] == 1
        && $0["sessions_by_transport{transport=\"websocket\"}"] == 1 && $0["sessions{role=\"ops\"}"] == 2
    }
    stream.connection.close()
    try hub.metrics {
      $0["sessions_by_transport{transport=\"event_stream\"}"] == 0 && $0["subscriptions"] == 1
    }
  }

  @Test("who comes back gets each event once, in order, wherever the stream was cut", arguments: loopCounts)
  func resume(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    var seen: [String] = []
    var last: String?
    for status in Self.moves {
      // A stream for each move, whose event comes while nobody follows.
      let stream = try stream(hub, "trip:T1", "fleet", "trip:T2", lastEventID: last)
      let isResumed = last != nil
      for channel in ["trip:T1", "fleet", "trip:T2"] {
        let answer = try stream.receive("subscribed").message
        #expect(answer.string("channel") == channel)
        if channel != "fleet" { #expect(answer.payload["recovered"] as? Bool == isResumed) }
        if channel == "trip:T1", !seen.isEmpty, let event = try stream.next() {
          seen.append(try #require(event.message.string("status")))
        } else if channel == "trip:T2", !seen.isEmpty {
          #expect(try stream.receive("trip_update").message.string("status") == seen.last)
        }
        last = stream.lastID
      }
      if seen.isEmpty { seen.append("") }
      stream.connection.reset()
      try move(hub, "T1", status)
      try move(hub, "T2", status)
    }
    #expect(seen.dropFirst() == Self.moves.dropLast()[...])
    let final = try stream(hub, "trip:T1", "fleet", "trip:T2", lastEventID: last)
    #expect(try final.receive("subscribed").message.integer("sequence") == Self.moves.count)
    #expect(try final.receive("trip_update").message.string("status") == "completed")
  }

  @Test("a stream whose trip is over ends, and a client that comes back gets that nothing can come")
  func over() throws {
    let hub = try TestHub { $0.timings.tripGrace = 0.05 }
    let rider = "role=rider&id=r1"
    try move(hub, "T1", "requested")
    let stream = try stream(hub, "trip:T1", by: rider)
    _ = try stream.receive("subscribed")
    try move(hub, "T1", "cancelled")
    #expect(try stream.receive("trip_update").message.string("status") == "cancelled")
    #expect(try stream.receive("unsubscribed").message.string("reason") == "trip_ended")
    #expect(try stream.next() == nil)
    let back = try self.stream(hub, "trip:T1", by: rider, lastEventID: stream.lastID)
    #expect(back.head.status == 204)
    // What it has not seen it still gets, and then the same.
    let epoch = try #require(stream.lastID.split(separator: ":").first)
    let late = try self.stream(hub, "trip:T1", by: rider, lastEventID: "\(epoch):1")
    #expect(try late.receive("subscribed").message.payload["recovered"] as? Bool == true)
    #expect(try late.receive("trip_update").message.string("status") == "cancelled")
    #expect(try late.receive("unsubscribed").message.string("reason") == "trip_ended")
    #expect(try late.next() == nil)
    // To somebody else it is over, too: the same words whether there ever was such a trip.
    let stranger = "role=rider&id=r2"
    #expect(try self.stream(hub, "trip:T1", by: stranger).head.status == 403)
    #expect(try self.stream(hub, "trip:T1", by: stranger, lastEventID: "\(epoch):1").head.status == 204)
    try hub.metrics { $0["sessions_by_transport{transport=\"event_stream\"}"] == 0 }
  }

  @Test(
    "what may not be followed is refused by a status, before a stream begins",
    arguments: [
      ("role=ops&id=o1", 400, "bad_message"), ("channel=trip:T1", 401, "unauthorized"),
      ("channel=fleet&role=rider&id=r1", 403, "forbidden"), ("channel=trip&role=ops&id=o1", 400, "unknown_channel"),
      ("channel=fleet&channel=fleet&role=ops&id=o1", 400, "bad_message"),
      ("channel=fleet&lastEventId=x&role=ops&id=o1", 400, "bad_message"),
      ("channel=fleet&lastEventId=e:1,e:2&role=ops&id=o1", 400, "bad_message"),
      ("channel=fleet&since=1&role=ops&id=o1", 400, "bad_message"),
      ("channel=fleet&time=never&role=ops&id=o1", 400, "bad_message"),
      ("channel=trip:T1&channel=fleet&role=driver&id=d2", 403, "forbidden"),
      ("channel=nearby:48,11,900000&role=ops&id=o1", 400, "bad_message"),
    ])
  func refused(query: String, status: Int, code: String) throws {
    let hub = try TestHub()
    let answer = try hub.get("/v1/events?\(query)")
    #expect(answer.status == status && answer.errorCode == code, "\(answer.text)")
    try hub.metrics { $0["sessions_by_transport{transport=\"event_stream\"}"] == 0 && $0["subscriptions"] == 0 }
    let connection = try hub.connect()
    try connection.send("HEAD /v1/events?channel=fleet&role=ops&id=o1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    #expect(try connection.readResponse(toHead: true).status == 405)
  }

  @Test("a stream has up to 16 channels, and each is let go with it")
  func manyChannels() throws {
    let hub = try TestHub(loops: 2)
    let names = (1...16).map { "channel=trip:T\($0)" }.joined(separator: "&")
    let stream = try EventStreamReader(port: hub.port, "/v1/events?\(names)&role=ops&id=o1")
    for number in 1...16 {
      #expect(try stream.receive("subscribed").message.string("channel") == "trip:T\(number)")
    }
    #expect(stream.lastID.split(separator: ",").count == 16)
    #expect(try hub.get("/v1/events?\(names)&channel=fleet&role=ops&id=o1").status == 400)
    try hub.metrics { $0["subscriptions"] == 16 && $0["table_entries{table=\"channels\"}"] == 16 }
    stream.connection.reset()
    try hub.metrics { $0["subscriptions"] == 0 && $0["table_entries{table=\"channels\"}"] == 0 }
  }

  @Test("streams count as sessions: in all, and of one identity")
  func sessionLimits() throws {
    let hub = try TestHub { $0.limits.sessionsPerIdentity.rider = 2 }
    let open = try (0..<2).map { _ in try stream(hub, "trip:T1", by: "role=rider&id=r1") }
    let answer = try hub.get("/v1/events?channel=trip:T1&role=rider&id=r1")
    #expect(answer.status == 429 && answer.fields["retry-after"] != nil)
    open[0].connection.close()
    try hub.metrics { $0["sessions{role=\"rider\"}"] == 1 }
    let another = try stream(hub, "trip:T1", by: "role=rider&id=r1")
    #expect(another.head.status == 200)
  }

  @Test("a drain ends streams with a word, and lets nobody new in")
  func drain() throws {
    let hub = try TestHub()
    let stream = try stream(hub, "fleet")
    _ = try stream.receive("subscribed")
    hub.server.drain()
    #expect(try stream.receive("error").message.string("code") == "shutting_down")
    #expect(try stream.next() == nil)
  }

  @Test("a token's end ends its stream, and who comes back is asked for a new one")
  func tokens() throws {
    let hub = try TokenHub()
    let token = try hub.token(.rider, "r1", trips: ["T1"], lasts: 600)
    let target = "/v1/events?channel=trip:T1&access_token=\(token)"
    let stream = try EventStreamReader(port: hub.hub.port, target)
    _ = try stream.receive("subscribed")
    try hub.revoke("r1\n")
    #expect(try stream.receive("error").message.string("code") == "token_expired")
    #expect(try stream.next() == nil)
    #expect(try EventStreamReader(port: hub.hub.port, target, lastEventID: stream.lastID).head.status == 401)
  }

  @Test("areas come by a stream as by a socket")
  func areas() throws {
    let hub = try TestHub(loops: 2)
    let fix = #"{"latitude":48.1371,"longitude":11.5754,"accuracy":5,"timestamp":1763680000000}"#
    #expect(try hub.post("/v1/locations?role=driver&id=d1", fix).status == 200)
    let stream = try stream(hub, "nearby:48.1371,11.5754,500", by: "role=rider&id=r1")
    #expect((try stream.receive("subscribed").message.payload["cells"] as? [String])?.isEmpty == false)
    while let event = try stream.next() {
      if (event.message.payload["drivers"] as? [Any])?.isEmpty == false { return }
    }
    Issue.record("no driver came")
  }
}
