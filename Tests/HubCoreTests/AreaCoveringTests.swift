// Which cells an area stands for: what protocol/areas.md promises, and its example.
import Foundation
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct AreaCoveringTests {
  @Test("Ops may watch 500 km around a place up to 80° of latitude, riders 5 km up to 88°")
  func everywhere() throws {
    var random = SplitMix64(seed: 3)
    for latitude in stride(from: 0.0, through: 88, by: 0.5) {
      for _ in 0..<8 {
        let place = at(random.next() % 2 == 0 ? latitude : -latitude, random.fraction() * 360 - 180)
        if latitude <= 80 {
          let cells = AreaCovering.cells(of: .nearby(place, radiusMeters: 500_000), .ops)
          #expect(cells?.isEmpty == false, "\(place)")
        }
        let cells = AreaCovering.cells(of: .nearby(place, radiusMeters: 5_000), .everybody)
        #expect(cells?.isEmpty == false && cells?.allSatisfy { $0.precision >= 5 } == true, "\(place)")
      }
    }
    #expect(AreaCovering.cells(of: .nearby(at(89.5, 0), radiusMeters: 500_000), .ops) == nil)
    let munich = AreaCovering.cells(of: .nearby(at(45, 11), radiusMeters: 500_000), .ops)?.count ?? 0
    let north = AreaCovering.cells(of: .nearby(at(80, 11), radiusMeters: 500_000), .ops)?.count ?? 0
    #expect((55...70).contains(munich) && (210...256).contains(north), "\(munich), \(north)")
  }

  @Test("The example of areas.md is what the hub answers")
  func example() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = try String(contentsOf: root.appending(path: "protocol/areas.md"), encoding: .utf8)
    let name = try #require(text.firstMatch(of: /"channel":"(nearby:[^"]+)"/)?.1)
    let list = try #require(text.firstMatch(of: /"cells":\[([^\]]+)\]/)?.1)
    let channel = try #require(Channel(String(name)))
    let cells = try #require(AreaCovering.cells(of: channel, .everybody))
    #expect(list.split(separator: ",").map { $0.filter { $0 != "\"" } } == cells.map(\.description))
    // The driver of the update: in that cell, in the middle of a field, at a whole second.
    let update = try #require(text.firstMatch(of: /"cell":"(\w+)"[^}]+"latitude":([0-9.]+),"longitude":([0-9.]+)/))
    let place = at(Double(update.2) ?? 0, Double(update.3) ?? 0)
    #expect(GeohashCell(place, precision: update.1.count).description == update.1)
    #expect(PublicGrid.snapped(place) == place)
    #expect(cells.map(\.description).contains(String(update.1)))
    let times = text.matches(of: /"timestamp":([0-9]+)/).compactMap { Int($0.1) }
    #expect(!times.isEmpty && times.allSatisfy { $0 % 1000 == 0 })
  }
}
