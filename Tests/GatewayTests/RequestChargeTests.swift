// What HTTP requests are charged (protocol/rates.md): those about trips by their bodies' bytes, or by the places of a
// route, whichever is more; feeds of vehicles by those that are looked through.
import HubGeo
import HubMessages
import HubTestCertificates
import HubTransport
import Testing

@testable import HubGateway

@Suite struct RequestChargeTests {
  private static let burst = 150

  /// The bucket of an address that is never filled again.
  private func hub() throws -> HandDrivenHub {
    try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.countsLoopbackRequests = true
      $0.limits.requestRate = 1e-6
      $0.limits.requestBurst = Double(Self.burst)
      $0.limits.vehiclesPerTurn = 100
    }
  }

  private func status(_ hub: HandDrivenHub, _ target: String, _ method: String = "GET", _ body: String = "") throws
    -> String
  {
    let request = try HandDrivenRequest(hub, target, method: method, body: body)
    try hub.turn {
      request.ownTurn()
      return request.status != ""
    }
    return request.status
  }

  /// What the address has spent so far: a short request is one unit.
  private func unitsSpent(_ hub: HandDrivenHub) throws -> Int {
    var left = 0
    while try status(hub, "/healthz") == "200" { left += 1 }
    return Self.burst - left
  }

  private func route(_ places: Int) throws -> String {
    // Places that are near each other, and so of four characters.
    let route = try Route(points: (0..<places).map { Coordinate(latitude: 48 + Double($0 % 2) / 1e4, longitude: 11)! })
    return #""route":"\#(route.polyline.replacing("\\", with: "\\\\"))""#
  }

  @Test("A trip that is posted or changed is charged by its route's places", arguments: ["POST", "PATCH"])
  func places(method: String) throws {
    let hub = try hub()
    let body = try "{\(method == "POST" ? #""tripId":"T2","driverId":"D","# : "")\(route(5000))}"
    #expect(body.utf8.count < 50 * 4096, "its bytes are less")
    #expect(try status(hub, "/v1/trips?role=ops&id=o", "POST", #"{"tripId":"T","driverId":"D"}"#) == "201")
    let answer = try status(hub, "/v1/trips\(method == "POST" ? "" : "/T")?role=ops&id=o", method, body)
    #expect(answer == (method == "POST" ? "201" : "200"))
    #expect(try unitsSpent(hub) == 1 + 101)
  }

  @Test("A trip that is posted or changed is charged by its bytes, where these are more", arguments: ["POST", "PATCH"])
  func bytes(method: String) throws {
    let hub = try hub()
    let more = String(repeating: " ", count: 40_000) + "}"
    let what = method == "POST" ? #"{"tripId":"T2","driverId":"D""# : #"{"pickup":{"latitude":48,"longitude":11}"#
    let body = what + more
    #expect(try status(hub, "/v1/trips?role=ops&id=o", "POST", #"{"tripId":"T","driverId":"D"}"#) == "201")
    let answer = try status(hub, "/v1/trips\(method == "POST" ? "" : "/T")?role=ops&id=o", method, body)
    #expect(answer == (method == "POST" ? "201" : "200"))
    #expect(try unitsSpent(hub) == 1 + 10)
  }

  @Test("A TLS connection is charged as a request, and beyond the rate a new one is reset")
  func handshakes() throws {
    let (certificate, key) = TestAuthority().issue()
    let server = try TLSServer([TLSCertificate(certificate: certificate, key: key)])
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.tls = server
      $0.limits.countsLoopbackRequests = true
      $0.limits.requestRate = 1e-6
      $0.limits.requestBurst = 3
    }
    let loop = try EventLoop()
    for _ in 0..<4 { _ = try loop.connect(hub.address) }
    try hub.turn { hub.loop.counters.accepted == 4 }
    #expect(hub.counters.connections == 3 && hub.counters.hits(.requestRate) == 1)
  }

  @Test("A stream of events is charged for the cells that it watches, once where they are looked at and once more")
  func streams() throws {
    let hub = try hub()
    let stream = try HandDrivenRequest(hub, "/v1/events?channel=nearby:88.6,-170,5000&role=rider&id=r")
    try hub.turn {
      stream.ownTurn()
      return stream.text.contains("\"subscribed\"")
    }
    let cells = try #require(stream.text.firstMatch(of: /"cells":\[([^\]]*)\]/)).1.split(separator: ",").count
    #expect((150...256).contains(cells), "\(cells)")
    #expect(try unitsSpent(hub) == 1 + 2 * WorkUnits.of(newCells: cells))
  }

  @Test("What frames a body's chunks is charged as it comes, complete or not")
  func framing() throws {
    for isComplete in [true, false] {
      let hub = try hub()
      let json = #"{"tripId":"T","driverId":"D"\#(String(repeating: " ", count: 10_000))}"#
      var body = json.map { "1\r\n\($0)\r\n" }.joined()
      if isComplete { body += "0\r\n\r\n" }
      let request = try HandDrivenRequest(
        hub, "/v1/trips?role=ops&id=o", method: "POST", body: body, fields: "Transfer-Encoding: chunked\r\n")
      var turns = 0
      try hub.turn {
        request.ownTurn()
        turns += 1
        return isComplete ? request.status != "" : turns >= 100
      }
      if isComplete { #expect(request.status == "201", "\(request.text)") }
      // 50 kB of framing are 12 units; with the body's bytes a request of 2 more.
      #expect(try unitsSpent(hub) == 1 + 12 + (isComplete ? 2 : 0))
    }
  }

  @Test("A body that never becomes complete is charged for what came of it")
  func unfinished() throws {
    let hub = try hub()
    let request = try HandDrivenRequest(hub, "/v1/trips?role=ops&id=o", method: "POST", announcing: 50_000)
    request.send(String(repeating: " ", count: 40_000))
    for _ in 0..<8 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    request.abort()
    try hub.turn { hub.counters.connections == 0 }
    #expect(try unitsSpent(hub) == 10)
  }

  @Test(
    "A feed of one vehicle type is charged for each page of vehicles, one for everybody is not",
    arguments: zip(["vehicleType=bus&", ""], [1 + 3 * 2, 1]))
  func feeds(query: String, units: Int) throws {
    let hub = try hub()
    try hub.addDrivers(250)
    #expect(try status(hub, "/v1/gtfs-realtime/vehicle-positions?\(query)role=ops&id=o") == "200")
    #expect(try unitsSpent(hub) == units)
  }
}
