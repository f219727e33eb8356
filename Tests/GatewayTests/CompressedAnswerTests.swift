// Answers over HTTP in gzip, by turns that the test gives by hand.
import HubMessages
import HubTestSupport
import HubTransport
import Testing

@testable import HubGateway

@Suite struct CompressedAnswerTests {
  private static let target = "/v1/drivers/nearby?role=ops&id=o1&latitude=52.5&longitude=13.4&limit=1000"

  private func hub(_ change: (inout Limits) -> Void = { _ in }) throws -> HandDrivenHub {
    let hub = try HandDrivenHub(clock: HandClock()) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.reportsPerTurn = 10_000
      change(&$0.limits)
    }
    try hub.addDrivers(600, tags: [])
    return hub
  }

  private func fetch(
    _ hub: HandDrivenHub, _ target: String, _ fields: String = "", method: String = "GET",
    version: String = "1.1"
  ) throws -> HandDrivenRequest {
    let request = try HandDrivenRequest(hub, target, method: method, fields: fields, version: version)
    try hub.turn {
      request.ownTurn()
      return request.isComplete
    }
    return request
  }

  @Test("a long answer is chunks of one gzip file, and what it says is the same")
  func long() throws {
    let hub = try hub()
    let plain = try fetch(hub, Self.target)
    let compressed = try fetch(hub, Self.target, "Accept-Encoding: gzip\r\n")
    #expect(compressed.text.contains("Content-Encoding: gzip\r\n") && compressed.text.contains("chunked\r\n"))
    #expect(!compressed.text.contains("Content-Length"))
    #expect(gunzip(compressed.dechunked) == Array(try #require(plain.body).utf8))
    #expect(compressed.dechunked.count * 3 < plain.body!.utf8.count)
    #expect(plain.text.contains("Vary: Accept-Encoding\r\n") && compressed.text.contains("Vary: Accept-Encoding\r\n"))
  }

  @Test("a turn compresses one piece of it, so that others wait for no more")
  func pieces() throws {
    let hub = try hub { $0.gzipPieceBytes = 4096 }
    let plain = try #require(try fetch(hub, Self.target).body).utf8.count
    let request = try HandDrivenRequest(hub, Self.target, fields: "Accept-Encoding: gzip\r\n")
    var turns = 0
    var sizes: [Int] = []
    try hub.turn {
      turns += 1
      request.ownTurn()
      if sizes.last != request.bytes.count { sizes.append(request.bytes.count) }
      return request.isComplete
    }
    #expect(turns >= plain / 4096 && sizes.count > plain / 4096 / 2)
    #expect(gunzip(request.dechunked)?.count == plain)
  }

  @Test("a long answer has a time for all of it, however steadily it is taken")
  func end() throws {
    let hub = try hub { $0.gzipPieceBytes = 16 }
    let request = try HandDrivenRequest(hub, Self.target, fields: "Accept-Encoding: gzip\r\n")
    var seconds = 0.0
    try hub.turn {
      request.ownTurn()
      guard !request.bytes.isEmpty else { return false }
      hub.clock.advance(milliseconds: 5000)
      seconds += 5
      return request.isClosed
    }
    let limit = Limits().longAnswerSeconds
    #expect(!request.isComplete && (limit...limit + 20).contains(seconds), "\(seconds)")
  }

  @Test("an identity has one long answer unsent where there is no room for two, and the next when that was sent")
  func memory() throws {
    let hub = try hub {
      $0.longAnswerBytes = 100
      $0.answerBytesPerTurn = 1024
    }
    let requests = try (0..<2).map { _ in try HandDrivenRequest(hub, Self.target) }
    try hub.turn {
      for request in requests { request.ownTurn() }
      return requests.allSatisfy(\.isComplete)
    }
    #expect(requests.map(\.status).sorted() == ["200", "503"])
    let refused = try #require(requests.first { $0.status == "503" })
    #expect(refused.text.contains("Retry-After: 1\r\n") && refused.text.contains("too many long answers"))
    #expect(hub.counters.hits(.answerMemory) == 1)
    #expect(try fetch(hub, Self.target).status == "200")
  }

  @Test("a question by POST takes the same room; a feed that all have takes none")
  func otherMemory() throws {
    let hub = try hub {
      $0.longAnswerBytes = 100
      $0.answerBytesPerTurn = 1024
    }
    func ask(_ make: () throws -> HandDrivenRequest) throws -> [String] {
      let requests = try (0..<2).map { _ in try make() }
      try hub.turn {
        for request in requests { request.ownTurn() }
        return requests.allSatisfy(\.isComplete)
      }
      return requests.map(\.status).sorted()
    }
    let box = #"{"type":"Polygon","coordinates":[[[13,52],[14,52],[14,53],[13,53],[13,52]]]}"#
    let within = try ask {
      try HandDrivenRequest(hub, "/v1/drivers/within?limit=1000&role=ops&id=o1", method: "POST", body: box)
    }
    #expect(within == ["200", "503"])
    let feed = "/v1/gtfs-realtime/vehicle-positions?role=ops&id=o1"
    _ = try fetch(hub, feed)
    #expect(try ask { try HandDrivenRequest(hub, feed) } == ["200", "200"])
  }

  @Test("a short answer has its length, and a shorter one is left as it is")
  func short() throws {
    let hub = try hub()
    let target = Self.target.replacing("limit=1000", with: "limit=20")
    let short = try fetch(hub, target, "Accept-Encoding: gzip\r\n")
    #expect(short.text.contains("Content-Encoding: gzip\r\n") && short.text.contains("Content-Length: "))
    #expect(gunzip(short.rawBody) == Array(try #require(try fetch(hub, target).body).utf8))
    let shorter = try fetch(hub, "/healthz", "Accept-Encoding: gzip\r\n")
    #expect(shorter.body == "ok\n" && !shorter.text.contains("Vary"))
  }

  @Test(
    "who does not take it, HEAD, and HTTP/1.0 for a long one have the plain bytes",
    arguments: [
      ("GET", "", "1.1"), ("GET", "Accept-Encoding: br\r\n", "1.1"), ("GET", "Accept-Encoding: gzip;q=0\r\n", "1.1"),
      ("HEAD", "Accept-Encoding: gzip\r\n", "1.1"), ("GET", "Accept-Encoding: gzip\r\n", "1.0"),
    ])
  func plain(method: String, fields: String, version: String) throws {
    let answer = try fetch(try hub(), Self.target, fields, method: method, version: version)
    #expect(!answer.text.contains("Content-Encoding") && answer.text.contains("Content-Length: "))
  }
}
