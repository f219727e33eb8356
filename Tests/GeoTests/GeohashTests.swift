import Foundation
import HubGeo
import HubTestSupport
import Testing

@Suite struct GeohashTests {
  @Test(
    "Places have the cells that the world knows",
    arguments: [
      (57.64911, 10.40744, "u4pruydqqvj"), (42.6, -5.6, "ezs42"), (48.208889, 16.3725, "u2edk84j"),
      (0, 0, "s0000000"), (-90, -180, "000000000000"), (90, 180, "zzzzzzzzzzzz"),
      (-25.382708, -49.265506, "6gkzwgjzn820"),
    ])
  func known(latitude: Double, longitude: Double, text: String) {
    #expect(GeohashCell(at(latitude, longitude), precision: text.utf8.count).description == text)
  }

  @Test("A border belongs to the cell to its north and east, and not a hair less does")
  func borders() {
    let origin = GeohashCell(at(0, 0), precision: 12)
    #expect(origin.description == "s00000000000")
    #expect(GeohashCell(at(0, (0.0).nextDown), precision: 1).description == "e")
    #expect(GeohashCell(at((0.0).nextDown, 0), precision: 1).description == "k")
    var random = SplitMix64(seed: 7)
    for _ in 0..<5_000 {
      let box = GeohashCell(random.coordinate(), precision: .random(in: 1...12, using: &random)).box
      if box.south > -90 {
        let corner = at(box.south, box.west)
        let below = at(box.south.nextDown, box.west)
        #expect(GeohashCell(corner, precision: 12).box.south == box.south)
        #expect(GeohashCell(below, precision: 12).box.north == box.south)
      }
      if box.west > -180 {
        #expect(GeohashCell(at(box.south, box.west), precision: 12).box.west == box.west)
        #expect(GeohashCell(at(box.south, box.west.nextDown), precision: 12).box.east == box.west)
      }
    }
  }

  @Test("Cell, text, box and centre lead back to the cell, at every precision")
  func roundTrip() {
    var random = SplitMix64(seed: 8)
    for _ in 0..<5_000 {
      let place = random.coordinate()
      for precision in GeohashCell.precisions {
        let cell = GeohashCell(place, precision: precision)
        #expect(cell.box.contains(place) && cell.contains(place))
        #expect(GeohashCell(cell.description) == cell)
        #expect(GeohashCell(cell.center, precision: precision) == cell)
        #expect(GeohashCell(bits: cell.bits, precision: precision) == cell)
        #expect(cell.ancestor(precision: 1) == GeohashCell(place, precision: 1))
      }
    }
  }

  @Test("Only lower-case texts of 1 to 12 characters of the alphabet are cells")
  func strict() {
    for text in ["", "a", "i", "l", "o", "U4PR", "u4 r", "u4pruydqqvj1x", "é", "u4pr\n", "-"] {
      #expect(GeohashCell(text) == nil)
    }
    for byte in UInt8.min...UInt8.max {
      let isInAlphabet = "0123456789bcdefghjkmnpqrstuvwxyz".utf8.contains(byte)
      #expect((GeohashCell(utf8: [byte]) != nil) == isInAlphabet)
    }
    #expect(GeohashCell(bits: 32, precision: 1) == nil && GeohashCell(bits: 0, precision: 0) == nil)
    #expect(GeohashCell(bits: 0, precision: 13) == nil && GeohashCell(bits: 1 << 60, precision: 12) == nil)
  }

  @Test("Cells are in the order of their texts, and are in the cells whose texts begin theirs")
  func order() throws {
    let cell = try #require(GeohashCell("u2ed"))
    let children = (0..<32).compactMap { GeohashCell(bits: cell.bits << 5 | $0, precision: 5) }
    #expect(children.count == 32 && children.allSatisfy { $0.ancestor(precision: 4) == cell })
    #expect(children.map(\.description) == children.map(\.description).sorted())
    #expect(children == children.sorted() && cell < children[0] && children[31] < GeohashCell("u2ee")!)
    #expect(children.allSatisfy { cell.contains($0.center) })
  }

  @Test("Encoding vectors")
  func encodeVectors() throws {
    guard let rows = Vectors.rows("geohash_encode.csv") else { return }
    for row in rows {
      let place = at(try #require(Double(row[0])), try #require(Double(row[1])))
      #expect(GeohashCell(place, precision: try #require(Int(row[2]))).description == row[3])
    }
    #expect(rows.count == 515)
  }

  @Test("Decoding vectors")
  func decodeVectors() throws {
    guard let rows = Vectors.rows("geohash_decode.csv") else { return }
    for row in rows {
      let box = try #require(GeohashCell(row[0])).box
      for (value, text) in zip([box.south, box.north, box.west, box.east], row.dropFirst()) {
        // Ours are exact; those in the file are rounded to as many decimals as they are written with.
        let decimals = text.split(separator: ".").dropFirst().first?.count ?? 0
        #expect(abs(value - (try #require(Double(text)))) <= 0.501 * pow(10, -Double(decimals)))
      }
    }
    #expect(rows.count == 512)
  }
}
