// Streets: read from tables, served as one file or in tiles.
import Foundation
import HubGeo
import HubTestSupport
import Testing

@testable import HubPages

@Suite struct StreetsTests {
  private func ways(_ file: PageFile?) throws -> [(kind: Int, points: [Coordinate])] {
    let bytes = try #require(file).bytes
    let object = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
    return try #require(object["ways"] as? [[String: Any]]).map { way in
      let line = try #require(way["p"] as? String)
      return (try #require(way["c"] as? Int), try Polyline.decode(line, limit: 100))
    }
  }

  @Test("few streets are one file, with its attribution")
  func whole() throws {
    let streets = try Streets(
      [
        Street(.arterial, [at(43.73, 7.42), at(43.74, 7.43)]),
        Street(.residential, [at(43.74, 7.43), at(43.75, 7.41)]),
      ],
      attribution: "© \"us\"")
    #expect(streets.path == "/streets" && streets.file(StreetTile(x: 0, y: 0)) == nil)
    let file = try #require(streets.file(nil))
    let object = try #require(try JSONSerialization.jsonObject(with: Data(file.bytes)) as? [String: Any])
    #expect(object["attribution"] as? String == "© \"us\"")
    let found = try ways(file)
    #expect(found.map(\.kind) == [2, 0] && found[1].points == [at(43.74, 7.43), at(43.75, 7.41)])
    #expect(streets.box == BoundingBox(south: 43.73, west: 7.41, north: 43.75, east: 7.43))
  }

  @Test("no streets have no box, and are a file all the same")
  func none() throws {
    let streets = try Streets([], attribution: nil)
    #expect(streets.box == nil)
    #expect(try ways(streets.file(nil)).isEmpty)
  }

  @Test("many are in tiles: each has the runs that go through it")
  func tiles() throws {
    // Four tiles to the east, there and on into the next one.
    let width = 360.0 / 16384
    let points = (0..<9).map { at(0.01, (Double($0) / 2 + 0.25) * width) }
    let streets = try Streets([Street(.secondary, points)], attribution: nil, inOneFile: 0)
    #expect(streets.path == "/streets/14/{x}/{y}" && streets.file(nil) == nil)
    let row = StreetTile(points[0]).y
    for column in 0..<5 {
      let found = try ways(streets.file(StreetTile(x: 8192 + column, y: row)))
      #expect(found.count == 1 && found[0].kind == 1)
      // Two of its own, and one on each side where the street continues.
      #expect(found[0].points.count == (column == 0 ? 3 : column == 4 ? 2 : 4), "\(column)")
    }
    #expect(try ways(streets.file(StreetTile(x: 8197, y: row))).isEmpty)
    #expect(streets.file(StreetTile(x: 16384, y: 0)) == nil && streets.file(StreetTile(x: -1, y: 0)) == nil)
  }

  @Test("a street that leaves a tile and comes back is two runs there, not one with a short cut")
  func back() throws {
    let width = 360.0 / 16384
    let points = [0.5, 0.9, 1.5, 1.6, 0.9, 0.5].enumerated().map { at(Double($0) / 1000 + 0.001, $1 * width) }
    let streets = try Streets([Street(.residential, points)], attribution: nil, inOneFile: 0)
    let found = try ways(streets.file(StreetTile(points[0])))
    #expect(found.map(\.points.count) == [3, 3])
  }

  @Test("tiles have the numbers that others' have")
  func numbers() {
    // Porto, São Bento, and the corners, as in the OpenStreetMap wiki's "Slippy map tilenames".
    #expect(StreetTile(at(41.1456, -8.6104)) == StreetTile(x: 7800, y: 6133))
    #expect(StreetTile(at(90, -180)) == StreetTile(x: 0, y: 0))
    #expect(StreetTile(at(-90, 180)) == StreetTile(x: 16383, y: 16383))
    #expect(StreetTile(at(0, 0)) == StreetTile(x: 8192, y: 8192))
  }

  @Test("a line over thousands of tiles is refused")
  func tooLong() {
    #expect(throws: StreetError.pieceTooLong(from: at(0, 0), to: at(10, 10))) {
      try Streets([Street(.arterial, [at(0, 0), at(10, 10)])], attribution: nil, inOneFile: 0)
    }
  }

  // MARK: Tables

  private static let nodes = "id,lat,lon\n1,43.1,7.1\n2,43.2,7.2\r\n7,43.3,7.3\n"

  @Test("a way in both directions is one street, drawn by its class")
  func graph() throws {
    let crossings = try RoadGraph.readCrossings(Array(Self.nodes.utf8))
    let edges = "from,to,length_m,class\n1,2,3,motorway_link\n2,1,3,motorway_link\n2,7,1,tertiary\n7,1,1,\n"
    let streets = try RoadGraph.readStreets(Array(edges.utf8), between: crossings)
    #expect(streets.map(\.kind) == [.arterial, .secondary, .residential])
    #expect(streets[0].points == [at(43.1, 7.1), at(43.2, 7.2)])
  }

  @Test(
    "a table that can't be used is refused with its line",
    arguments: [
      ("id,lat\n", "from,to,class\n", RoadGraphError.missingColumn("lon")),
      ("id,lat,lon\n1,91,7\n", "", .badLine(2, column: "lat and lon")), ("", "", .missingColumn("id")),
      ("id,lat,lon\nx,1,7\n", "", .badLine(2, column: "id")), (nodes, "from,class\n", .missingColumn("to")),
      (nodes, "from,to,class\n\n1,2,a\n1,9,a\n", .unknownCrossing(9, line: 4)),
      (nodes, "from,to,class\n1\n", .badLine(2, column: "to")),
    ])
  func bad(nodes: String, edges: String, error: RoadGraphError) {
    #expect(throws: error) {
      let crossings = try RoadGraph.readCrossings(Array(nodes.utf8))
      _ = try RoadGraph.readStreets(Array(edges.utf8), between: crossings)
    }
  }

  @Test(
    "a real city is in tiles of a few kilobytes",
    .enabled(if: FileManager.default.fileExists(atPath: roads.path), "needs ../shared/data"))
  func porto() throws {
    func read(_ name: String) throws -> [UInt8] {
      Array(try Data(contentsOf: Self.roads.appending(path: "porto_portugal_\(name).csv")))
    }
    let graph = try RoadGraph.readStreets(
      read("edges"), between: try RoadGraph.readCrossings(read("nodes")))
    #expect((70_000..<75_000).contains(graph.count))
    let streets = try Streets(graph, attribution: "© OpenStreetMap contributors")
    #expect(streets.path == "/streets/14/{x}/{y}")
    let centre = try #require(streets.file(StreetTile(at(41.1456, -8.6104))))
    #expect((500..<20_000).contains(try #require(centre.compressed).count))
  }

  private static let roads = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "shared/data/roads")
}
