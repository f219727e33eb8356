// Questions about drivers over real sockets: the same answers over HTTP and as messages, for ops and for riders.
import Foundation
import HubGateway
import Testing

extension EndToEnd {
  @Suite struct Queries {}
}

extension EndToEnd.Queries {
  /// Five drivers a kilometre apart along a meridian, each with a van and a tag.
  private func hub(loops: Int, reportsPerTurn: Int = 100) throws -> (TestHub, [Peer]) {
    let hub = try TestHub(loops: loops) { $0.limits.reportsPerTurn = reportsPerTurn }
    var drivers: [Peer] = []
    for number in 0..<5 {
      let driver = try hub.driver("d\(number)")
      try driver.send(
        "driver_status",
        ["status": number == 4 ? "unavailable" : "available", "vehicleType": "van", "tags": ["xl"]])
      _ = try driver.skip(to: "ack")
      try driver.send(
        "location_update",
        ["latitude": 52.5 + Double(number) / 100, "longitude": 179.999, "accuracy": 5, "timestamp": 1_763_680_000_000])
      _ = try driver.settle()
      drivers.append(driver)
    }
    return (hub, drivers)
  }

  private func ids(_ object: [String: Any]) -> [String] {
    (object["drivers"] as? [[String: Any]] ?? []).compactMap { $0["driverId"] as? String }
  }

  private static let area =
    #"{"type":"Polygon","coordinates":[[[179.9,52.495],[-179.9,52.495],[-179.9,52.515],[179.9,52.515],[179.9,52.495]]]}"#

  @Test("the socket and HTTP give ops the same drivers", arguments: loopCounts)
  func operators(loops: Int) throws {
    let (hub, drivers) = try hub(loops: loops)
    defer { _ = drivers }
    let ops = try hub.ops("o1")
    func ask(_ payload: [String: Any]) throws -> [String: Any] {
      let id = try ops.send("query", payload)
      let answer = try ops.receive("result")
      #expect(answer.replyTo == id)
      return answer.payload
    }
    let role = "role=ops&id=o1"
    let near = try hub.get("/v1/drivers/nearby?\(role)&latitude=52.5&longitude=-179.999&radius=2500&status=available")
    #expect(ids(near.json) == ["d0", "d1", "d2"])
    #expect(
      ids(
        try ask([
          "kind": "nearby", "latitude": 52.5, "longitude": -179.999, "radius": 2500, "status": "available",
        ])) == ids(near.json))
    let box = try hub.get("/v1/drivers/within?\(role)&bbox=179.9,52.495,-179.9,52.515")
    #expect(ids(box.json).sorted() == ["d0", "d1"])
    #expect(ids(try ask(["kind": "within", "bbox": [179.9, 52.495, -179.9, 52.515]])).sorted() == ["d0", "d1"])
    let drawn = try hub.post("/v1/drivers/within?\(role)&vehicleType=van&tags=xl&maxAge=1e10", Self.area)
    #expect(ids(drawn.json).sorted() == ["d0", "d1"])
    let polygon = try JSONSerialization.jsonObject(with: Data(Self.area.utf8))
    #expect(ids(try ask(["kind": "within", "polygon": polygon, "vehicleType": "van"])).sorted() == ["d0", "d1"])
    #expect(try hub.post("/v1/drivers/within?\(role)&vehicleType=bus", Self.area).json["drivers"] as? [String] == [])
    let cut = try hub.get("/v1/drivers/within?\(role)&bbox=179.9,52.4,-179.9,52.6&limit=2")
    #expect(ids(cut.json).count == 2 && cut.json["more"] as? Int == 3)
    let one = try ask(["kind": "driver", "driverId": "d3"])
    #expect(one["driverId"] as? String == "d3" && one["online"] as? Bool == true)
    try ops.send("query", ["kind": "driver", "driverId": "nobody"])
    #expect(try ops.receive("error").code == "not_found")
  }

  @Test("answers that are written over several turns have all drivers, nearest first", arguments: loopCounts)
  func overTurns(loops: Int) throws {
    let (hub, drivers) = try hub(loops: loops, reportsPerTurn: 2)
    defer { _ = drivers }
    let ops = try hub.ops("o1")
    try ops.send("query", ["kind": "nearby", "latitude": 52.52, "longitude": 179.999, "limit": 10])
    let answer = try ops.receive("result").payload
    #expect(ids(answer) == ["d2", "d1", "d3", "d0", "d4"] || ids(answer) == ["d2", "d3", "d1", "d0", "d4"])
    let near = try hub.get("/v1/drivers/nearby?role=ops&id=o2&latitude=52.52&longitude=179.999&limit=10")
    #expect(near.status == 200 && ids(near.json) == ids(answer))
    try hub.metrics { $0["answers_continued_total"] == 2 && $0["queries_refused_total"] == 0 }
  }

  @Test("a rider sees free drivers around under pseudonyms, on the socket and over HTTP alike", arguments: loopCounts)
  func riders(loops: Int) throws {
    let (hub, drivers) = try hub(loops: loops)
    defer { _ = drivers }
    let rider = try hub.rider("r1")
    try rider.send("query", ["kind": "nearby", "latitude": 52.5, "longitude": 179.999, "radius": 5000])
    let list = try rider.receive("result").payload
    let answer = try hub.get("/v1/drivers/nearby?role=rider&id=r2&latitude=52.5&longitude=179.999&radius=5000")
    #expect(ids(list).count == 4 && ids(list) == ids(answer.json), "the same names for all riders")
    for driver in try #require(answer.json["drivers"] as? [[String: Any]]) {
      #expect(
        Set(driver.keys).isSubset(of: [
          "driverId", "status", "vehicleType", "latitude", "longitude", "age", "distance",
        ]))
      #expect((driver["driverId"] as? String)?.hasPrefix("p") == true)
    }
    for bad in ["radius=5001", "radius=100&tags=xl", "limit=101", "limit=5&stale=true", "limit=5&status=on_trip"] {
      let refused = try hub.get("/v1/drivers/nearby?role=rider&id=r2&latitude=52.5&longitude=179.999&\(bad)")
      #expect(refused.status == 403 && refused.errorCode == "forbidden", "\(bad)")
    }
    #expect(try hub.get("/v1/drivers/within?role=rider&id=r2&bbox=10,50,11,51").status == 403)
    try rider.send("query", ["kind": "driver", "driverId": "d0"])
    #expect(try rider.receive("error").code == "forbidden")
    try drivers[0].send("query", ["kind": "nearby", "latitude": 52.5, "longitude": 179.999, "limit": 5])
    #expect(try drivers[0].skip(to: "error").code == "forbidden")
  }

  @Test(
    "bad areas get a clear error, and the hub continues",
    arguments: [
      ("GET", "/v1/drivers/within?bbox=1,5,2,3", "", 400, "invalid_location"),
      ("GET", "/v1/drivers/within", "", 400, "bad_message"),
      ("GET", "/v1/drivers/within?bbox=1,2,3,4&limit=1000000", "", 400, "bad_message"),
      ("GET", "/v1/drivers/nearby?latitude=1&longitude=1&radius=0", "", 400, "bad_message"),
      ("GET", "/v1/drivers/nearby?latitude=1&longitude=1&radius=100000000", "", 400, "bad_message"),
      ("GET", "/v1/drivers/nearby?latitude=1&longitude=1&limit=0", "", 400, "bad_message"),
      ("POST", "/v1/drivers/within", "{", 400, "bad_json"),
      (
        "POST", "/v1/drivers/within", #"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,1]]]}"#, 400,
        "bad_message"
      ),
      (
        "POST", "/v1/drivers/within", #"{"type":"Polygon","coordinates":[[[0,0],[1,1],[1,0],[0,1],[0,0]]]}"#, 400,
        "bad_message"
      ),
      (
        "POST", "/v1/drivers/within", #"{"type":"Polygon","coordinates":[[[0,0],[1,0],[2,0],[0,0]]]}"#, 400,
        "bad_message"
      ),
      (
        "POST", "/v1/drivers/within",
        #"{"type":"Polygon","coordinates":[[\#(Array(repeating: "[1.5,2.5]", count: 10_000).joined(separator: ","))]]}"#,
        413, "too_large"
      ),
      ("POST", "/v1/drivers/nearby?latitude=1&longitude=1&limit=1", "{}", 405, "bad_message"),
    ] as [(String, String, String, Int, String)])
  func bad(method: String, target: String, body: String, status: Int, code: String) throws {
    let hub = try TestHub()
    let credential = "\(target.contains("?") ? "&" : "?")role=ops&id=o1"
    let answer =
      method == "GET" ? try hub.get(target + credential) : try hub.post(target + credential, body)
    #expect(answer.status == status && answer.errorCode == code, "\(answer.text)")
    #expect(try hub.get("/v1/drivers/nearby?role=ops&id=o1&latitude=1&longitude=1&limit=1").status == 200)
  }
}
