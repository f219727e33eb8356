// Fences over HTTP and sockets: put, seen, crossed, deleted; and over the death of the process.
import Foundation
import HubCore
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct Fences {}
}

extension EndToEnd.Fences {
  private var ops: String { "role=ops&id=o1" }
  private var fencePath: String { "/v1/fences/airport?role=ops&id=o1" }
  /// Round the place that drivers of the tests start from (`Peer.fix`).
  private var circle: String { #"{"title":"Airport","circle":{"latitude":37,"longitude":-122,"radius":100}}"# }

  private func send(_ port: UInt16, _ method: String, _ target: String, _ body: String = "") throws -> HTTPResponse {
    let connection = try RawConnection(port: port)
    let length = body.isEmpty ? "" : "Content-Length: \(body.utf8.count)\r\n"
    try connection.send("\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(length)\r\n\(body)")
    return try connection.readResponse()
  }

  @Test("a fence is put, shown, listed, crossed and deleted", arguments: loopCounts)
  func life(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let made = try send(hub.port, "PUT", fencePath, circle)
    #expect(made.status == 201 && made.fields["location"] == "/v1/fences/airport")
    #expect(made.json["inside"] as? Int == 0 && made.json["kind"] as? String == "area")
    #expect(try send(hub.port, "PUT", fencePath, circle).status == 200)
    let watcher = try hub.ops()
    try watcher.subscribe("fence:airport")
    let driver = try hub.driver("d1")
    try driver.subscribe("driver:d1")
    for step in 0..<16 { try driver.sendFix(step) }
    for (peer, channel) in [(watcher, "fence:airport"), (driver, "driver:d1")] {
      for kind in ["fence_enter", "fence_exit"] {
        let event = try peer.skip(to: "notification")
        #expect(event.string("kind") == kind && event.string("channel") == channel)
        let data = try #require(event.object("data"))
        #expect(data["fenceId"] as? String == "airport" && data["driverId"] as? String == "d1")
        #expect(event.string("body")?.contains("Airport") == true)
      }
    }
    #expect(try hub.get(fencePath).json["inside"] as? Int == 0)
    try hub.metrics { $0["fence_events_total{kind=\"fence_exit\"}"] == 1 && $0["table_entries{table=\"fences\"}"] == 1 }
    let gone = try send(hub.port, "DELETE", fencePath)
    #expect(gone.status == 204 && gone.body.isEmpty)
    #expect(try watcher.skip(to: "notification").string("kind") == "message")
    #expect(try hub.get(fencePath).status == 404 && send(hub.port, "DELETE", fencePath).status == 404)
  }

  @Test("a list comes page by page, the newest first, and has boxes for shapes")
  func list() throws {
    let hub = try TestHub()
    for number in 0..<5 {
      #expect(try send(hub.port, "PUT", "/v1/fences/F\(number)?\(ops)", circle).status == 201)
    }
    let road = #"{"corridor":{"route":"_p~iF~ps|U_ulLnnqC","width":60}}"#
    #expect(try send(hub.port, "PUT", "/v1/fences/road?\(ops)", road).status == 201)
    var ids: [String] = []
    var cursor = ""
    repeat {
      let page = try hub.get("/v1/fences?\(ops)&limit=2\(cursor)")
      let fences = try #require(page.json["fences"] as? [[String: Any]])
      ids += fences.compactMap { $0["fenceId"] as? String }
      if fences.first?["fenceId"] as? String == "road" {
        #expect((fences[0]["bbox"] as? [Double])?.count == 4 && fences[0]["corridor"] == nil)
      }
      cursor = (page.json["next"] as? String).map { "&cursor=\($0)" } ?? ""
    } while !cursor.isEmpty
    #expect(ids == ["road", "F4", "F3", "F2", "F1", "F0"])
    let whole = try #require(
      try hub.get("/v1/fences?\(ops)&limit=2&shape=full").json["fences"] as? [[String: Any]])
    #expect((whole[0]["corridor"] as? [String: Any])?["route"] is String && whole[0]["bbox"] == nil)
    #expect(try hub.get("/v1/fences?\(ops)&shape=half").status == 400)
    #expect(try hub.get("/v1/fences/road?\(ops)").json["corridor"] is [String: Any])
  }

  @Test("a list of many large fences with their shapes comes in pages that fit")
  func largeShapes() throws {
    let hub = try TestHub()
    let corners = (0...900).map { (corner: Int) -> String in
      let angle = Double(corner % 900) / 450 * .pi
      return "[\(13.4 + 0.01234567 * cos(angle)),\(52.5 + 0.01234567 * sin(angle))]"
    }
    let polygon = #"{"polygon":{"type":"Polygon","coordinates":[[\#(corners.joined(separator: ","))]]}}"#
    for number in 0..<30 { #expect(try send(hub.port, "PUT", "/v1/fences/F\(number)?\(ops)", polygon).status == 201) }
    var (ids, cursor, pages) = ([String](), "", 0)
    repeat {
      let page = try hub.get("/v1/fences?\(ops)&limit=500&shape=full\(cursor)")
      try #require(page.status == 200)
      ids += try #require(page.json["fences"] as? [[String: Any]]).compactMap { $0["fenceId"] as? String }
      cursor = (page.json["next"] as? String).map { "&cursor=\($0)" } ?? ""
      pages += 1
    } while !cursor.isEmpty
    #expect(ids == (0..<30).reversed().map { "F\($0)" } && pages == 3)
  }

  @Test(
    "what may not be, or is no fence, is refused with the reason",
    arguments: [
      ("PUT", "/v1/fences/F", "role=rider&id=r", #"{"circle":{}}"#, 403, "forbidden"),
      ("GET", "/v1/fences/F", "role=driver&id=d", "", 403, "forbidden"),
      ("DELETE", "/v1/fences/F", "role=driver&id=d", "", 403, "forbidden"),
      ("GET", "/v1/fences", "role=rider&id=r", "", 403, "forbidden"),
      ("PUT", "/v1/fences/F", "", "{}", 401, "unauthorized"),
      ("PUT", "/v1/fences/a%20b", "role=ops&id=o", "{}", 400, "bad_message"),
      ("PUT", "/v1/fences/F", "role=ops&id=o", "{", 400, "bad_json"),
      ("PUT", "/v1/fences/F", "role=ops&id=o", "{}", 400, "bad_message"),
      (
        "PUT", "/v1/fences/F", "role=ops&id=o", #"{"circle":{"latitude":95,"longitude":0,"radius":5}}"#, 400,
        "invalid_location"
      ),
      (
        "PUT", "/v1/fences/F", "role=ops&id=o", #"{"circle":{"latitude":5,"longitude":0,"radius":1e7}}"#, 400,
        "bad_message"
      ),
      ("POST", "/v1/fences/F", "role=ops&id=o", "{}", 405, "bad_message"),
      ("PUT", "/v1/fences", "role=ops&id=o", "{}", 405, "bad_message"),
      ("GET", "/v1/fences", "role=ops&id=o&limit=0", "", 400, "bad_message"),
      ("GET", "/v1/fences", "role=ops&id=o&limit=1000000", "", 400, "bad_message"),
      ("GET", "/v1/fences", "role=ops&id=o&cursor=x", "", 400, "bad_message"),
      ("GET", "/v1/fences/F", "role=ops&id=o", "", 404, "not_found"),
    ])
  func refused(method: String, path: String, query: String, body: String, status: Int, code: String) throws {
    let hub = try TestHub()
    let answer = try send(hub.port, method, "\(path)?\(query)", body)
    #expect(answer.status == status && answer.errorCode == code, "\(answer.text)")
  }

  @Test("each limit of fences is refused when it is reached, and not before")
  func limits() throws {
    let hub = try TestHub {
      $0.limits.hub.fences = 3
      $0.limits.hub.roamingFences = 1
      $0.limits.hub.fencesPerCell = 2
    }
    func put(_ name: String, _ body: String) throws -> HTTPResponse {
      try send(hub.port, "PUT", "/v1/fences/\(name)?\(ops)", body)
    }
    let roaming = #"{"kind":"roaming","distance":50}"#
    #expect(try put("A", circle).status == 201)
    #expect(try put("B", circle).status == 201)
    let crowded = try put("C", circle)
    #expect(crowded.status == 503 && crowded.errorCode == "storage_full" && crowded.text.contains("one cell"))
    #expect(try put("A", roaming).status == 409)
    #expect(try put("R", roaming).status == 201)
    #expect(try put("S", roaming).text.contains("fence limit reached (3)"))
    #expect(try send(hub.port, "DELETE", "/v1/fences/A?\(ops)").status == 204)
    #expect(try put("S", roaming).text.contains("roaming"))
    #expect(try put("A", circle).status == 201)
  }

  @Test("a large body is for ops: a stranger's is not read")
  func largeBody() throws {
    let hub = try TestHub()
    let body = String(repeating: " ", count: 100_000)
    #expect(try send(hub.port, "PUT", "/v1/fences/F?\(ops)", body + circle).status == 201)
    #expect(try send(hub.port, "PUT", "/v1/fences/F", body + circle).status == 413)
  }

  @Test(
    "kill -9 while a driver is inside: no second enter, the exit comes, and since brings all of it",
    .enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  func killed() throws {
    let directory = try JournalDirectory()
    let first = try HubProcess.serve(port: 0, ["--data", directory.path, "--session-rate", "0", "--sampling", "4"])
    #expect(try send(first.port, "PUT", fencePath, circle).status == 201)
    let watcher = try Peer(port: first.port, query: ops)
    _ = try watcher.receive("connected")
    let epoch = try #require(try watcher.subscribe("fence:airport").string("epoch"))
    let driver = try Peer(port: first.port, query: "role=driver&id=d1")
    for step in 0..<4 { try driver.sendFix(step) }
    #expect(try watcher.receive("notification").string("kind") == "fence_enter")
    first.send(signal: SIGKILL)
    #expect(try first.outcome().status == -SIGKILL)

    let second = try HubProcess.serve(port: 0, ["--data", directory.path, "--session-rate", "0", "--sampling", "4"])
    #expect(try send(second.port, "GET", fencePath).json["inside"] as? Int == 1)
    let back = try Peer(port: second.port, query: "role=driver&id=d1")
    for step in 4..<20 { try back.sendFix(step) }
    let reader = try Peer(port: second.port, query: ops)
    _ = try reader.receive("connected")
    let live = try reader.subscribe("fence:airport", since: 0, epoch: epoch)
    #expect(live.payload["recovered"] as? Bool == true)
    let events = try (0..<2).map { _ in try reader.receive("notification") }
    #expect(events.map { $0.string("kind") } == ["fence_enter", "fence_exit"])
    #expect(events.map { $0.integer("sequence") } == [1, 2])
    #expect(try reader.settle().isEmpty)
    second.send(signal: SIGTERM)
    #expect(try second.outcome().status == 0)
    let export = try HubProcess.run(["journal", "export", directory.path])
    for record in ["fence", "stay", "stay_ended"] { #expect(export.output.contains("\"record\":\"\(record)\"")) }
  }
}
