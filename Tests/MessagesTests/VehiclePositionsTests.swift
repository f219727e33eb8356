// A feed of vehicles, byte for byte as GTFS-realtime's official bindings for Python (3.0.0) write it.
import HubBytes
import HubGeo
import Testing

@testable import HubMessages

@Suite struct VehiclePositionsTests {
  @Test func `a feed has the bytes of the official bindings`() throws {
    func report(
      _ id: String, trip: String?, _ latitude: Double, _ longitude: Double, heading: Double? = nil,
      speed: Double? = nil, seconds: Int64
    ) throws -> DriverReport {
      var report = DriverReport(driverID: try #require(Identifier(id)), status: .available)
      report.tripID = trip.flatMap { Identifier($0) }
      report.position = DriverReport.Place(
        coordinate: try #require(Coordinate(latitude: latitude, longitude: longitude)), heading: heading, speed: speed,
        accuracy: nil, age: 0, timestamp: seconds == 0 ? nil : Timestamp(milliseconds: seconds * 1000))
      return report
    }
    var buffer = ByteBuffer()
    VehiclePositions.begin(Timestamp(milliseconds: 1_763_683_600_999), into: &buffer)
    let (x, t) = (String(repeating: "x", count: 64), String(repeating: "t", count: 64))
    for report in [
      try report("driver-12", trip: "trip-7", 52.5, -13.25, heading: 90, speed: 12.5, seconds: 1_763_683_599),
      try report("d", trip: nil, 0, 0, seconds: 0), try report(x, trip: t, 1, 2, seconds: 1),
      DriverReport(driverID: try #require(Identifier("nowhere")), status: .available),
    ] {
      VehiclePositions.write(report, into: &buffer)
    }
    let expected =
      "0a0d0a03322e3010001890dafec80612400a096472697665722d313222330a080a06747269702d3712140d0000524215000054c11d0000"
      + "b4422d00004841288fdafec806420b0a096472697665722d313212160a01642211120a0d00000000150000000042030a016412db010a40"
      + String(repeating: "78", count: 64) + "2296010a420a40" + String(repeating: "74", count: 64)
      + "120a0d0000803f1500000040280142420a40" + String(repeating: "78", count: 64)
    #expect(buffer.array().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() == expected)
  }
}
