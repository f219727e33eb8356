// Images of the map whose disk does not answer before the test says so.
import Foundation
import HubPages
import HubTiles
import HubTransport
import Testing

@testable import HubGateway

@Suite struct TileAnswerTests {
  private final class Folder {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("tiles-\(UUID().uuidString)").path

    init() throws {
      try FileManager.default.createDirectory(atPath: path + "/0/0", withIntermediateDirectories: true)
      try Data("image".utf8).write(to: URL(filePath: path + "/0/0/0.png"))
    }

    deinit {
      do { try FileManager.default.removeItem(atPath: path) } catch { Issue.record(error) }
    }
  }

  private func hub(
    _ folder: Folder, _ change: (inout ServerConfiguration) -> Void = { _ in }
  ) throws -> HandDrivenHub {
    var pages = PageConfiguration()
    pages.map.tiles = MapTiles(try TilePack(folder.path))
    return try HandDrivenHub(clock: HandClock()) {
      $0.pages = pages
      $0.limits.tileQuestions = 2
      $0.limits.requestRate = 0
      change(&$0)
    }
  }

  private func answered(_ hub: HandDrivenHub, _ requests: [HandDrivenRequest]) throws {
    try hub.turn {
      for request in requests { request.ownTurn() }
      return requests.allSatisfy { $0.body != nil }
    }
  }

  @Test("more than may wait for the disk are refused for a second, and those that wait come once it answers")
  func many() throws {
    let folder = try Folder()
    let hub = try hub(folder)
    let waiting = try (0..<2).map { _ in try HandDrivenRequest(hub, "/tiles/0/0/0") }
    for _ in 0..<10 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    let refused = try HandDrivenRequest(hub, "/tiles/0/0/0")
    try answered(hub, [refused])
    #expect(refused.text.hasPrefix("HTTP/1.1 503 ") && refused.text.contains("Retry-After: 1\r\n"))
    #expect(refused.text.contains("reads its map for many others") && waiting.allSatisfy { $0.bytes.isEmpty })
    try hub.startTiles()
    try answered(hub, waiting)
    #expect(waiting.allSatisfy { $0.text.hasPrefix("HTTP/1.1 200 ") && $0.body == "image" })
    let next = try HandDrivenRequest(hub, "/tiles/0/0/0")
    try answered(hub, [next])
    #expect(next.body == "image", "there is room again")
  }

  @Test("one address has a part of what may wait, until its images are sent, and others have theirs")
  func perAddress() throws {
    let folder = try Folder()
    let proxies = [try #require(AddressBlock("127.0.0.0/8"))]
    let hub = try hub(folder) {
      $0.limits.tileQuestions = 8
      $0.limits.requestRate = 1000
      $0.limits.tileQuestionsPerAddress = 2
      $0.trustedProxies = proxies
    }
    func image(for address: String) throws -> HandDrivenRequest {
      try HandDrivenRequest(hub, "/tiles/0/0/0", fields: "X-Forwarded-For: \(address)\r\n")
    }
    let waiting = try (0..<2).map { _ in try image(for: "192.0.2.1") }
    for _ in 0..<10 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    let refused = try image(for: "192.0.2.1")
    try answered(hub, [refused])
    #expect(refused.text.hasPrefix("HTTP/1.1 503 ") && refused.text.contains("Retry-After: 1\r\n"))
    #expect(refused.text.contains("at most 2 images at a time from one address"))
    let other = try image(for: "192.0.2.2")
    for _ in 0..<10 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    try hub.startTiles()
    try answered(hub, waiting + [other])
    #expect((waiting + [other]).allSatisfy { $0.body == "image" })
    let next = try image(for: "192.0.2.1")
    try answered(hub, [next])
    #expect(next.body == "image", "there is room again")
  }

  @Test("who leaves while an image is read frees its slot, and who waits too long gets the reason")
  func gone() throws {
    let folder = try Folder()
    let hub = try hub(folder)
    let gone = try HandDrivenRequest(hub, "/tiles/0/0/0")
    let slow = try HandDrivenRequest(hub, "/tiles/0/0/0")
    for _ in 0..<10 { hub.loop.runTurn(timeoutMilliseconds: 0) }
    gone.abort()
    hub.clock.advance(milliseconds: 301_000)
    try answered(hub, [slow])
    #expect(slow.text.hasPrefix("HTTP/1.1 503 ") && slow.text.contains("it could not be read in time"))
    try hub.startTiles()
    let next = try HandDrivenRequest(hub, "/tiles/0/0/0")
    try hub.turn {
      next.ownTurn()
      return next.body != nil
    }
  }
}
