import HubGeo
import HubMessages
import HubSimulation
import Testing

@Suite("Trace files")
struct TraceTests {
  private func fixes(_ text: String) throws(TraceError) -> [Fix] { try TraceFile.fixes(Array(text.utf8)) }

  @Test("Columns are found by name, in any order, and others are passed over")
  func columnsByName() throws {
    let read = try fixes(
      "truth_lat,lon,lat,t_ms,bearing_deg,speed_mps,accuracy_m\n9,-122.5,37.25,1000,359.5,12.5,4.2\n")
    let expected = Fix(
      coordinate: try #require(Coordinate(latitude: 37.25, longitude: -122.5)),
      timestamp: Timestamp(milliseconds: 1000),
      accuracy: 4.2, heading: 359.5, speed: 12.5)
    #expect(read == [expected])
  }

  @Test("Empty and negative values are absent, and a bearing of 360 is 0")
  func absentValues() throws {
    let read = try fixes("t_ms,lat,lon,accuracy_m,speed_mps,bearing_deg\r\n1,2,3,,-1,-1\r\n2,2,3,-1,,360\r\n\r\n")
    #expect(read.count == 2)
    #expect(read[0].accuracy == nil && read[0].speed == nil && read[0].heading == nil)
    #expect(read[1].accuracy == nil && read[1].speed == nil && read[1].heading == 0)
  }

  @Test("A file may lack optional columns, its last line end, and have a byte order mark")
  func minimalFile() throws {
    let read = try fixes("\u{FEFF}t_ms,lat,lon\n5,-90,180")
    #expect(read.map(\.coordinate) == [Coordinate(latitude: -90, longitude: 180)])
  }

  @Test(
    "Faults are reported with their line",
    arguments: [
      ("", TraceError.empty),
      ("t_ms,lat\n", .missingColumn("lon")),
      ("t_ms,lat,lon,lat\n", .repeatedColumn("lat")),
      ("t_ms,lat,lon,speed,speed_mps\n", .repeatedColumn("speed_mps")),
      ("t_ms,lat,lon\n1,2,3\n1,2\n", .wrongFieldCount(line: 3, expected: 3, got: 2)),
      ("t_ms,lat,lon\n1,2,x\n", .notANumber(line: 2, column: "lon", text: "x")),
      ("t_ms,lat,lon\n1,,3\n", .notANumber(line: 2, column: "lat", text: "")),
      ("t_ms,lat,lon\n1,nan,3\n", .notANumber(line: 2, column: "lat", text: "nan")),
      ("t_ms,lat,lon\n1,0x1p3,3\n", .notANumber(line: 2, column: "lat", text: "0x1p3")),
      ("t_ms,lat,lon\n1,1e999,3\n", .notANumber(line: 2, column: "lat", text: "1e999")),
      ("t_ms,lat,lon\n1.5,2,3\n", .notANumber(line: 2, column: "t_ms", text: "1.5")),
      ("t_ms,lat,lon\n-1,2,3\n", .outOfRange(line: 2, column: "t_ms", text: "-1")),
      ("t_ms,lat,lon\n1,2,3\n\n1,91,3\n", .outOfRange(line: 4, column: "lat", text: "91")),
      ("t_ms,lat,lon,bearing_deg\n1,2,3,361\n", .outOfRange(line: 2, column: "bearing_deg", text: "361")),
    ])
  func faults(text: String, error: TraceError) {
    #expect(throws: error) { try TraceFile.fixes(Array(text.utf8)) }
    #expect(!error.description.isEmpty)
  }

  @Test("No bytes make the reader trap")
  func randomBytes() {
    var random = SplitMix64(seed: 4)
    let alphabet = Array("t_ms,lat,lon\n\r0123456789.-e,,,\n".utf8) + [0, 0xFF, 0xC3]
    for _ in 0..<2000 {
      var bytes = random.chance(0.7) ? Array("t_ms,lat,lon\n".utf8) : []
      for _ in 0..<random.below(60) { bytes.append(alphabet[random.below(alphabet.count)]) }
      do throws(TraceError) {
        _ = try TraceFile.fixes(bytes)
      } catch {
        #expect(!error.description.isEmpty)
      }
    }
  }

  @Test("A row has fixed decimals, and empty fields for what is absent")
  func rows() throws {
    let place = try #require(Coordinate(latitude: 0.000001, longitude: -122.0000005))
    let row = TraceFile.row(
      timestamp: Timestamp(milliseconds: 7), coordinate: place, speed: 12.5, heading: nil, accuracy: 4)
    #expect(row == "7,0.0000010,-122.0000005,12.50,,4.00")
    let other = TraceFile.row(
      timestamp: Timestamp(milliseconds: 7), coordinate: place, speed: nil, heading: 0.05)
    #expect(other == "7,0.0000010,-122.0000005,,0.05")
  }

  @Test("What is written can be read again without a loss")
  func roundTrip() throws {
    var random = SplitMix64(seed: 11)
    for _ in 0..<5000 {
      let latitude = (random.uniform(-90, 90) * 1e7).rounded() / 1e7
      let longitude = (random.uniform(-180, 180) * 1e7).rounded() / 1e7
      let place = try #require(Coordinate(latitude: latitude, longitude: longitude))
      let speed = (random.uniform(0, 90) * 100).rounded() / 100
      let heading = Double(random.below(36_000)) / 100
      let time = Timestamp(milliseconds: Int64(random.below(1 << 31)))
      let row = TraceFile.row(timestamp: time, coordinate: place, speed: speed, heading: heading, accuracy: 7.25)
      let read = try fixes(TraceFile.rowHeader + ",accuracy\n" + row + "\n")
      #expect(read == [Fix(coordinate: place, timestamp: time, accuracy: 7.25, heading: heading, speed: speed)])
    }
  }
}
