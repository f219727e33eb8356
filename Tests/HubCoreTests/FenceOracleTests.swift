// Fences against brute force: every driver held against every fence at every step.
import Foundation
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct FenceOracleTests {
  /// Who is in which fence, by the rule as it stands in protocol/fences.md and no index.
  private struct Oracle {
    let fences: [Fence]
    var inside: Set<Int> = []

    mutating func look(_ position: Position) -> [String] {
      guard position.absorbed == nil, position.accuracy <= 50 else { return [] }
      var exits: [String] = []
      var enters: [String] = []
      for (number, fence) in fences.enumerated() {
        guard let area = fence.area else { continue }
        let isIn = area.contains(position.coordinate, UnitVector(position.coordinate))
        if isIn, inside.insert(number).inserted { enters.append("+\(fence.id)") }
        guard !isIn, inside.contains(number) else { continue }
        let margin = max(20, min(1000, area.sizeMeters / 10), position.accuracy)
        guard area.distanceToBorder(from: position.coordinate) > margin else { continue }
        inside.remove(number)
        exits.append("-\(fence.id)")
      }
      return exits.sorted() + enters.sorted()
    }
  }

  private static func fence(_ number: Int, _ center: Coordinate, _ random: inout SplitMix64) throws -> Fence {
    let place = center.moved(.random(in: 0..<360, using: &random), .random(in: 0...4000, using: &random))
    let size = Double.random(in: 30...900, using: &random)
    switch number % 3 {
    case 0: return circle("c\(number)", place, size)
    case 1:
      let corners = Int.random(in: 3...30, using: &random)
      var ring = (0..<corners).map {
        place.moved(Double($0) * 360 / Double(corners), size * Double.random(in: 0.3...1, using: &random))
      }
      ring.append(ring[0])
      let hole = [0.0, 120, 240, 0].map { place.moved($0, size * 0.05) }
      return corners > 8 ? try polygon("p\(number)", [ring, hole]) : try polygon("p\(number)", [ring])
    default:
      var places = [place]
      for _ in 0..<5 {
        let step = (Double.random(in: 0..<360, using: &random), Double.random(in: 100...600, using: &random))
        places.append(places[places.count - 1].moved(step.0, step.1))
      }
      return try corridor("k\(number)", places, width: Double.random(in: 20...200, using: &random))
    }
  }

  @Test(
    "Over 100,000 steps of random walks all enters and exits are those of brute force, in order",
    arguments: [at(48.1, 11.5), at(-17.9, 179.995), at(84.9, 20)])
  func walks(center: Coordinate) throws {
    let isBrief = ProcessInfo.processInfo.environment["HUB_TESTS"] == "brief"
    let steps = (isBrief ? 10_000 : 100_000) / 3
    var random = SplitMix64(seed: 11)
    var fences: [Fence] = []
    for number in 0..<40 { fences.append(try FenceOracleTests.fence(number, center, &random)) }
    let bench = HubBench()
    for fence in fences { #expect(bench.turn(.put(fence)).all.fenceAnswers.first?.isNew == true) }
    for fence in fences { bench.turn(bench.subscribe(.fence(fence.id), slot: 80)) }
    let count = 8
    let sessions = (0..<count).map { bench.connect("D\($0)", slot: UInt32($0)) }
    var oracles = [Oracle](repeating: Oracle(fences: fences), count: count)
    var places = sessions.map { _ in center.moved(.random(in: 0..<360, using: &random), 500) }
    var headings = sessions.map { _ in Double.random(in: 0..<360, using: &random) }
    var wrong = 0
    var events = 0
    for step in 0..<steps where wrong < 5 {
      let driver = step % count
      if driver == 0 { bench.advance(seconds: 2) }
      headings[driver] += .random(in: -20...20, using: &random)
      if places[driver].distance(to: center) > 4500 { headings[driver] = places[driver].bearing(to: center) }
      places[driver] = places[driver].moved(headings[driver], 30)
      let noisy = places[driver].moved(.random(in: 0..<360, using: &random), .random(in: 0...6, using: &random))
      let accuracy = step % 97 == 0 ? 80.0 : 6
      let turn = bench.turn(bench.fix(sessions[driver], at: noisy, accuracy: accuracy, speed: 15))
      let received = turn.notifications.map { ($0.kind == .fenceEnter ? "+" : "-") + "\($0.fence!.fenceID)" }
      let found = bench.hub.drivers.find(id("D\(driver)"))
      let index = try #require(found)
      let newest = bench.hub.drivers[index].position
      let position = try #require(newest)
      let due = position.timestamp.milliseconds == bench.clock ? oracles[driver].look(position) : []
      events += received.count
      let sorted = received.filter { $0.hasPrefix("-") }.sorted() + received.filter { $0.hasPrefix("+") }.sorted()
      let firstEnter = received.firstIndex(where: { $0.hasPrefix("+") }) ?? .max
      let lastExit = received.lastIndex(where: { $0.hasPrefix("-") }) ?? -1
      guard firstEnter > lastExit, sorted == due else {
        wrong += 1
        Issue.record("step \(step), driver \(driver): published \(received), due \(due)")
        continue
      }
    }
    #expect(events > steps / 100)
    for driver in 0..<count {
      let found = bench.hub.drivers.find(id("D\(driver)"))
      let index = try #require(found)
      let stays = bench.hub.fences.stays.count(of: index)
      #expect(stays == oracles[driver].inside.count)
    }
  }
}
