// Tracks out of the journal: what a driver sent is what is shown, in three forms, also after kill -9.
import Foundation
import HubCore
import HubGateway
import HubRuntime
import Testing

extension EndToEnd {
  @Suite struct Tracks {}
}

extension EndToEnd.Tracks {
  private func hub(_ directory: JournalDirectory, loops: Int = 1, _ change: (inout Limits) -> Void = { _ in }) throws
    -> TestHub
  {
    try TestHub(loops: loops) {
      $0.journal = JournalConfiguration(directory: directory.path)
      change(&$0.limits)
    }
  }

  /// Rows of a CSV track, by the names of its columns.
  private func rows(_ answer: HTTPResponse) -> [[String: String]] {
    let lines = answer.text.components(separatedBy: "\r\n").filter { !$0.isEmpty }
    let names = lines.first?.components(separatedBy: ",") ?? []
    return lines.dropFirst().map { line in
      Dictionary(uniqueKeysWithValues: zip(names, line.components(separatedBy: ",")))
    }
  }

  private func times(_ answer: HTTPResponse) -> [Int] { rows(answer).compactMap { $0["t_ms"].flatMap { Int($0) } } }

  @Test("every fix of a trip is in its track, live ones and a backlog, in three forms", arguments: loopCounts)
  func threeForms(loops: Int) throws {
    let directory = try JournalDirectory()
    let hub = try hub(directory, loops: loops)
    let driver = try hub.driver("d1")
    for step in 0..<20 { try driver.sendFix(step, trip: "T1") }
    for step in 40..<50 { try driver.sendFix(step, trip: "T1") }
    _ = try driver.sendFix(50)  // of no trip
    let backlog = (20..<40).map { Peer.fix($0) }
    let batch = try driver.send("location_batch", ["tripId": "T1", "locations": backlog])
    #expect(try driver.skip(to: "ack").replyTo == batch)

    let expected = (0..<50).map { Peer.firstFix + $0 * 1000 }
    let csv = try hub.get("/v1/trips/T1/track.csv?role=ops&id=o")
    #expect(csv.status == 200 && csv.fields["content-type"]?.hasPrefix("text/csv") == true)
    #expect(csv.fields["content-disposition"] == "attachment; filename=\"T1.csv\"")
    #expect(times(csv) == expected)
    let raw = try hub.get("/v1/trips/T1/track.csv?role=ops&id=o&source=raw")
    let latitudes = rows(raw).compactMap { $0["lat"].flatMap { Double($0) } }
    let sent = (0..<50).compactMap { Peer.fix($0)["latitude"] as? Double }
    #expect(latitudes.count == 50 && zip(latitudes, sent).allSatisfy { abs($0 - $1) < 1e-7 })

    let geoJSON = try hub.get("/v1/trips/T1/track?role=driver&id=d1").json
    let coordinates = (geoJSON["geometry"] as? [String: Any])?["coordinates"] as? [[Double]]
    #expect(coordinates?.count == 50)
    #expect((geoJSON["properties"] as? [String: Any])?["times"] as? [Int] == expected)

    let gpx = try hub.request(
      "GET /v1/trips/T1/track?role=ops&id=o HTTP/1.1\r\nHost: localhost\r\nAccept: application/gpx+xml\r\n"
        + "Connection: close\r\n\r\n")
    #expect(gpx.fields["content-type"] == "application/gpx+xml")
    #expect(gpx.text.components(separatedBy: "<trkpt ").count - 1 == 50)

    // North on one line at one speed: two fixes say it all.
    let simple = try hub.get("/v1/trips/T1/track.csv?role=ops&id=o&source=raw&tolerance=5")
    #expect(times(simple) == [expected[0], expected[49]])
    try hub.metrics { $0["history_questions_total"] >= 5 && $0["history_answer_bytes"] == 0 }
  }

  @Test("a drive of which a part came late in a batch has the track of the same drive sent live", arguments: loopCounts)
  func late(loops: Int) throws {
    let directory = try JournalDirectory()
    let hub = try hub(directory, loops: loops)
    // North on one line, each fix some metres to its side.
    let fixes = (0..<60).map { step in
      var fix = Peer.fix(step)
      fix["longitude"] = -122 + 0.000_08 * sin(Double(step * step))
      return fix
    }
    for (id, late) in [("d1", 60..<60), ("d2", 20..<40)] {
      let driver = try hub.driver(id)
      for (step, fix) in fixes.enumerated() where !late.contains(step) {
        try driver.send("location_update", fix.merging(["tripId": "T-\(id)"]) { $1 })
      }
      if !late.isEmpty {
        try driver.send("location_batch", ["tripId": "T-\(id)", "locations": Array(fixes[late])])
        _ = try driver.skip(to: "ack")
      }
      #expect(try driver.settle().allSatisfy { $0.type == "sampling" })
    }
    let tracks = try ["T-d1", "T-d2"].map { trip in
      try waitFor(count: 60) { try rows(hub.get("/v1/trips/\(trip)/track.csv?role=ops&id=o")) }
    }
    for (live, late) in zip(tracks[0], tracks[1]) {
      #expect(live["t_ms"] == late["t_ms"])
      for name in ["lat", "lon"] {
        let (a, b) = (try #require(Double(live[name] ?? "")), try #require(Double(late[name] ?? "")))
        #expect(abs(a - b) < 1e-6, "\(name) at \(live["t_ms"] ?? "")")
      }
    }
  }

  /// Live fixes are stored within 100 ms: asks until all of them are there.
  private func waitFor(count: Int, _ rows: () throws -> [[String: String]]) throws -> [[String: String]] {
    let deadline = Deadline()
    var found = try rows()
    while found.count < count, !deadline.isOver { found = try rows() }
    #expect(found.count == count)
    return found
  }

  @Test("a track is for whoever may follow the trip; what is asked for wrongly is refused")
  func rights() throws {
    let directory = try JournalDirectory()
    let hub = try hub(directory)
    let body = #"{"tripId":"T1","driverId":"d1","riderId":"r1"}"#
    #expect(try hub.post("/v1/trips?role=ops&id=o", body).status == 201)
    for query in ["role=ops&id=o", "role=rider&id=r1", "role=driver&id=d1"] {
      #expect(try hub.get("/v1/trips/T1/track?\(query)").status == 200)
    }
    #expect(try hub.get("/v1/trips/T1/track?role=driver&id=d2").status == 403)
    #expect(try hub.get("/v1/trips/T1/track").status == 401)
    #expect(try hub.get("/v1/trips/none/track?role=ops&id=o").errorCode == "unknown_trip")
    for (target, status) in [
      ("track?source=best", 400), ("track?tolerance=-1", 400), ("track?tolerance=nan", 400), ("track.kml", 404),
      ("tracks", 404),
    ] {
      let separator = target.contains("?") ? "&" : "?"
      #expect(try hub.get("/v1/trips/T1/\(target)\(separator)role=ops&id=o").status == status, "\(target)")
    }
    let html = try hub.request(
      "GET /v1/trips/T1/track?role=ops&id=o HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nConnection: close\r\n\r\n"
    )
    #expect(html.status == 406)
  }

  @Test("without a journal there are no tracks; a track over the limit is refused")
  func limits() throws {
    let plain = try TestHub()
    #expect(try plain.get("/v1/trips/T1/track?role=ops&id=o").status == 404)
    let directory = try JournalDirectory()
    let hub = try hub(directory) { $0.trackFixes = 5 }
    let driver = try hub.driver("d1")
    let batch = try driver.send("location_batch", ["tripId": "T1", "locations": (0..<6).map { Peer.fix($0) }])
    #expect(try driver.skip(to: "ack").replyTo == batch)
    let answer = try hub.get("/v1/trips/T1/track?role=ops&id=o")
    #expect(answer.status == 413 && answer.errorCode == "too_large")
  }

  @Test("a trip that the hub has forgotten is still in the journal, for ops")
  func forgotten() throws {
    let directory = try JournalDirectory()
    let hub = try TestHub {
      $0.journal = JournalConfiguration(directory: directory.path)
      $0.timings.tripGrace = 0.1
      $0.timings.retention = 0.2
    }
    let body = #"{"tripId":"T1","driverId":"d1","riderId":"r1"}"#
    #expect(try hub.post("/v1/trips?role=ops&id=o", body).status == 201)
    let ops = try hub.ops()
    _ = try ops.send("trip_status", ["tripId": "T1", "status": "cancelled", "timestamp": Peer.firstFix])
    _ = try ops.skip(to: "ack")
    try hub.metrics { $0["table_entries{table=\"trips\"}"] == 0 }
    let shown = try hub.get("/v1/trips/T1?role=ops&id=o")
    #expect(shown.status == 200 && shown.json["status"] as? String == "cancelled" && shown.json["ended"] != nil)
    #expect(try hub.get("/v1/trips/T1/track?role=ops&id=o").status == 200)
    #expect(try hub.get("/v1/trips/T2?role=ops&id=o").errorCode == "unknown_trip")
    #expect(try hub.get("/v1/trips/T1?role=driver&id=d1").status == 404)
  }

  @Test("a list of times long past continues with what the hub has forgotten, page by page")
  func forgottenList() throws {
    let directory = try JournalDirectory()
    let hub = try TestHub {
      $0.journal = JournalConfiguration(directory: directory.path)
      $0.timings.tripGrace = 0.1
      $0.timings.retention = 0.2
    }
    let ops = try hub.ops()
    for trip in 0..<5 {
      #expect(
        try hub.post("/v1/trips?role=ops&id=o", #"{"tripId":"t\#(trip)","driverId":"d\#(trip % 2)"}"#).status == 201)
      _ = try ops.send("trip_status", ["tripId": "t\(trip)", "status": "cancelled", "timestamp": Peer.firstFix])
      _ = try ops.skip(to: "ack")
    }
    try hub.metrics { $0["table_entries{table=\"trips\"}"] == 0 }
    var pages: [[String]] = []
    var cursor: String? = ""
    while let at = cursor, pages.count < 9 {
      let page = try hub.get("/v1/trips?role=ops&id=o&since=1&limit=2" + (at.isEmpty ? "" : "&cursor=\(at)")).json
      pages.append((page["trips"] as? [[String: Any]] ?? []).compactMap { $0["tripId"] as? String })
      cursor = page["next"] as? String
    }
    #expect(pages == [["t4", "t3"], ["t2", "t1"], ["t0"]])
    let some = try hub.get("/v1/trips?role=ops&id=o&since=1&driver=d1").json
    #expect((some["trips"] as? [[String: Any]] ?? []).compactMap { $0["tripId"] as? String } == ["t3", "t1"])
    #expect(try hub.get("/v1/trips?role=ops&id=o").text == #"{"trips":[]}"#, "without since: what the hub knows")
  }

  @Test("a trip is shown over the socket, too")
  func query() throws {
    let hub = try TestHub()
    let rider = try hub.rider("r1")
    _ = try rider.send("trip_status", ["tripId": "T1", "status": "requested", "timestamp": Peer.firstFix])
    _ = try rider.skip(to: "ack")
    let question = try rider.send("query", ["kind": "trip", "tripId": "T1"])
    let result = try rider.receive("result")
    #expect(result.replyTo == question && result.string("status") == "requested" && result.string("riderId") == "r1")
    _ = try rider.send("query", ["kind": "trip", "tripId": "none"])
    #expect(try rider.receive("error").string("code") == "unknown_trip")
  }

  @Test(
    "killed at any moment: every fix of an acked batch is in the track, once",
    .enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  func killed() throws {
    let directory = try JournalDirectory()
    var acked: Set<Int> = []
    for round in 0..<3 {
      let hub = try HubProcess.serve(port: 0, ["--data", directory.path, "--session-rate", "0"])
      let driver = try Peer(port: hub.port, query: "role=driver&id=d1")
      _ = try driver.receive("connected")
      var sent: [String: [Int]] = [:]
      for batch in 0..<20 {
        let steps = (0..<10).map { round * 100 + batch * 5 + $0 }  // half of each comes again with the next
        let id = try driver.send("location_batch", ["tripId": "T1", "locations": steps.map { Peer.fix($0) }])
        sent[id] = steps
      }
      for _ in 0..<(5 + round * 4) {
        let ack = try #require(try driver.skip(to: "ack").replyTo)
        acked.formUnion(try #require(sent[ack]).map { Peer.firstFix + $0 * 1000 })
      }
      hub.send(signal: SIGKILL)
      #expect(try hub.outcome().status == -SIGKILL)
    }
    let hub = try HubProcess.serve(port: 0, ["--data", directory.path])
    let connection = try RawConnection(port: hub.port)
    try connection.send(
      "GET /v1/trips/T1/track.csv?role=ops&id=o HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    let track = times(try connection.readResponse())
    #expect(track == track.sorted() && Set(track).count == track.count)
    #expect(acked.subtracting(track).isEmpty, "\(acked.subtracting(track).count) of \(acked.count) are gone")
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
  }
}
