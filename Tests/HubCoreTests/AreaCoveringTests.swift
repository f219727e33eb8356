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
        let cells = AreaCovering.cells(of: .nearby(place, radiusMeters: 5_000), .riders)
        #expect(cells?.isEmpty == false && cells?.allSatisfy { $0.precision >= 5 } == true, "\(place)")
      }
    }
    #expect(AreaCovering.cells(of: .nearby(at(89.5, 0), radiusMeters: 500_000), .ops) == nil)
    let munich = AreaCovering.cells(of: .nearby(at(45, 11), radiusMeters: 500_000), .ops)?.count ?? 0
    let north = AreaCovering.cells(of: .nearby(at(80, 11), radiusMeters: 500_000), .ops)?.count ?? 0
    #expect((55...70).contains(munich) && (210...256).contains(north), "\(munich), \(north)")
  }

  @Test(
    "A box gets cells that touch it, few of them and none over four times its area, or of the size that is asked for")
  func boxes() throws {
    var random = SplitMix64(seed: 4)
    for _ in 0..<2000 {
      let (south, west) = (random.fraction() * 160 - 80, random.fraction() * 360 - 180)
      let size = exp(random.fraction() * 12 - 9)
      let (height, width) = (min(size, 80 - south), min(size * exp(random.fraction() * 4 - 2), 180))
      let east = west + width > 180 ? west + width - 360 : west + width
      let box = try #require(BoundingBox(south: south, west: west, north: south + height, east: east))
      let cells = AreaCovering.cells(of: .box(box), .ops)
      guard let cells else { continue }
      #expect(!cells.isEmpty && cells.count <= 256 && cells.allSatisfy { $0.box.intersects(box) }, "\(box)")
      if cells[0].precision < 8 {
        #expect(cells.allSatisfy { $0.box.squareMeters <= 4 * box.squareMeters }, "\(box)")
      }
      let place = at(south + random.fraction() * height, Coordinate.wrappedLongitude(west + random.fraction() * width))
      #expect(cells.contains { $0.contains(place) }, "\(box) has \(place)")
      if cells[0].precision > 3 {
        let larger = AreaCovering.cells(of: .box(box), precision: cells[0].precision - 1, .ops)
        #expect(larger.map { $0.count <= cells.count } == true)
      }
    }
  }

  @Test("A view may cross the antimeridian, has at most 256 cells, and needs another size where it is too narrow")
  func boxLimits() {
    func box(_ west: Double, _ south: Double, _ east: Double, _ north: Double) -> Channel {
      .box(BoundingBox(south: south, west: west, north: north, east: east)!)
    }
    let crossing = AreaCovering.cells(of: box(179.9, 0.1, -179.9, 0.2), .ops) ?? []
    #expect(crossing.contains { $0.contains(at(0.15, 179.95)) } && crossing.contains { $0.contains(at(0.15, -179.95)) })
    let city = box(13, 52.3, 13.8, 52.7)
    #expect(AreaCovering.cells(of: city, precision: 5, .ops).map { (130...256).contains($0.count) } == true)
    #expect(AreaCovering.cells(of: city, precision: 6, .ops) == nil, "over 4,000")
    #expect(AreaCovering.cells(of: .nearby(at(52.5, 13.4), radiusMeters: 9_000), precision: 5, .ops)?.count ?? 0 > 16)
    let line = box(13, 52.5, 14, 52.500_01)
    #expect(AreaCovering.cells(of: line, .ops) == nil && AreaCovering.cells(of: line, precision: 5, .ops) != nil)
    #expect(AreaCovering.cells(of: box(-180, -90, 180, 90), .ops) == nil, "32,768 of three characters")
  }

  @Test("The example of areas.md is what the hub answers")
  func example() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = try String(contentsOf: root.appending(path: "protocol/areas.md"), encoding: .utf8)
    let name = try #require(text.firstMatch(of: /"channel":"(nearby:[^"]+)"/)?.1)
    let list = try #require(text.firstMatch(of: /"cells":\[([^\]]+)\]/)?.1)
    let channel = try #require(Channel(String(name)))
    let cells = try #require(AreaCovering.cells(of: channel, .riders))
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
