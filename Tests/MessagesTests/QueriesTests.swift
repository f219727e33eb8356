// Questions about drivers as they come: GeoJSON, filters, and what is wrong with them.
import Foundation
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@Suite struct QueriesTests {
  private func polygons(_ text: String) throws(MessageError) -> MultiPolygon {
    let bytes = Array(text.utf8)
    return try bytes.span.withUnsafeBytes { (bytes) throws(MessageError) in try MessageReader().readPolygons(bytes) }
  }

  private static let ring = "[[0,0],[4,0],[4,4],[0,4],[0,0]]"

  @Test("a Polygon, a MultiPolygon and a Feature are read, altitudes and foreign members passed over")
  func forms() throws {
    let ring = [at(0, 0), at(0, 4), at(4, 4), at(4, 0), at(0, 0)]
    for text in [
      #"{"type":"Polygon","coordinates":[\#(Self.ring)]}"#,
      #"{"type":"MultiPolygon","coordinates":[[\#(Self.ring)]],"bbox":[0,0,4,4]}"#,
      #"{"type":"Feature","id":7,"properties":{"a":{"b":[1]}},"geometry":{"type":"Polygon","coordinates":[\#(Self.ring)]}}"#,
      #"{"type":"Polygon","coordinates":[[[0,0,100],[4,0,100.5],[4,4,0],[0,4,0],[0,0,100]]],"x":null}"#,
    ] {
      #expect(try polygons(text).positions == [[ring]], "\(text)")
    }
    let hole = "[[1,1],[2,1],[2,2],[1,1]]"
    #expect(try polygons(#"{"type":"Polygon","coordinates":[\#(Self.ring),\#(hole)]}"#).positions[0].count == 2)
  }

  @Test("positions are taken to 1e-7°, as other hubs get them, and what is no polygon then is refused")
  func steps() throws {
    let read = try polygons(
      #"{"type":"Polygon","coordinates":[[[0.00000004,0],[4.123456789,0],[4,4],[0,4],[0.00000004,0]]]}"#)
    #expect(read.positions[0][0][...1] == [at(0, 0), at(0, 4.1234568)])
    for ring in ["[[0,0],[2e-8,0],[2e-8,2e-8],[0,2e-8],[0,0]]", "[[0,0],[4,0],[4,4],[2,4e-8],[0,4],[0,0]]"] {
      #expect(throws: MessageError.self) { try polygons(#"{"type":"Polygon","coordinates":[\#(ring)]}"#) }
    }
  }

  /// A ring of so many positions that never crosses itself.
  private static func circle(_ count: Int) -> String {
    var positions: [String] = []
    for step in 0..<count - 1 {
      let angle = Double(step) * 2 * .pi / Double(count - 1)
      positions.append("[\(10 + cos(angle)),\(10 + sin(angle))]")
    }
    return "[\((positions + [positions[0]]).joined(separator: ","))]"
  }

  @Test(
    "what is no polygon gets an error that says what is wrong and where",
    arguments: [
      ("[]", "bad_message", "GeoJSON"), ("{}", "bad_message", "type"),
      (#"{"type":"Point","coordinates":[1,2]}"#, "bad_message", "Polygon"),
      (#"{"type":"FeatureCollection","features":[]}"#, "bad_message", "Polygon"),
      (#"{"type":"Feature","geometry":null}"#, "bad_message", "geometry"),
      (#"{"type":"Polygon"}"#, "bad_message", "coordinates"),
      (#"{"type":"Polygon","coordinates":[]}"#, "bad_message", "ring"),
      (#"{"type":"Polygon","coordinates":7}"#, "bad_message", "arrays"),
      (#"{"type":"Polygon","coordinates":[[1,2,3,4]]}"#, "bad_message", "positions"),
      (#"{"type":"Polygon","coordinates":[[["a","b"],[1,1],[2,2],[3,3]]]}"#, "bad_message", "positions"),
      (#"{"type":"Polygon","coordinates":[[[0,0],[400,0],[4,4],[0,0]]]}"#, "invalid_location", "−180"),
      (#"{"type":"Polygon","coordinates":[[[0,0],[4,0],[4,4],[0,4]]]}"#, "bad_message", "first"),
      (#"{"type":"Polygon","coordinates":[[[0,0],[4,4],[0,0]]]}"#, "bad_message", "four"),
      (#"{"type":"Polygon","coordinates":[[[0,0],[4,4],[4,0],[0,4],[0,0]]]}"#, "bad_message", "edges 0 and 2"),
      (#"{"type":"Polygon","coordinates":[[[1,1],[1,1],[1,1],[1,1]]]}"#, "bad_message", "no area"),
      (#"{"type":"Polygon","coordinates":[[[0,60],[120,60],[-120,60],[0,60]]]}"#, "bad_message", "pole"),
      (
        #"{"type":"Polygon","coordinates":[[[0,0],[4,0],[4,4],[0,4],[0,0]],[[9,9],[8,9],[8,8],[9,9]]]}"#, "bad_message",
        "hole"
      ),
      (#"{"type":"Polygon","coordinates":[\#(circle(1_001))]}"#, "too_large", "1,000"),
      (#"{"type":"Polygon","coordinates":[\#(circle(10_000))]}"#, "too_large", ""),
      (#"{"type":"Polygon","type":"Polygon","coordinates":[]}"#, "bad_message", "two members"),
      (#"{"type":"Polygon","coordinates":[[[0,0],[4,0],[4,4],[0,4],[0,0]]"#, "bad_json", ""),
    ])
  func bad(text: String, code: String, part: String) {
    do throws(MessageError) {
      _ = try polygons(text)
      Issue.record("\(text.prefix(80)) was taken")
    } catch {
      #expect("\(error.code.name)" == code, "\(error.text)")
      #expect(part.isEmpty || error.text.contains(part), "\(error.text)")
    }
  }

  @Test("1,000 positions are read")
  func many() throws {
    #expect(try polygons(#"{"type":"Polygon","coordinates":[\#(Self.circle(1_000))]}"#).edgeCount == 999)
  }

  private func query(_ payload: String) throws(MessageError) -> ClientMessage {
    try readClient(
      Array(#"{"type":"query","payload":\#(payload),"timestamp":1,"messageId":"q"}"#.utf8)
    ).message
  }

  @Test("a query is read with its filters, and null means absent")
  func queries() throws {
    let search = DriverSearch(
      area: .nearby(at(52, 13), radiusMeters: nil), limit: 5,
      filter: DriverFilter(
        status: .available, vehicleType: InlineText("van"), tags: [InlineText("xl")!], maxAge: 30, includesStale: true))
    #expect(
      try query(
        #"{"kind":"nearby","latitude":52,"longitude":13,"radius":null,"limit":5,"status":"available","vehicleType":"van","tags":["xl"],"maxAge":30,"stale":true}"#
      ) == .query(.drivers(search)))
    let box = try #require(BoundingBox(south: -20, west: 177, north: -15, east: -178))
    let within = try query(#"{"kind":"within","bbox":[177,-20,-178,-15]}"#)
    #expect(within == .query(.drivers(DriverSearch(area: .box(box)))))
    #expect(try query(#"{"kind":"driver","driverId":"d1"}"#) == .query(.driver(Identifier("d1")!)))
  }

  @Test(
    "a query at fault names its member",
    arguments: [
      ("{}", "kind"), (#"{"kind":"fences"}"#, "kind"), (#"{"kind":"driver"}"#, "driverId"),
      (#"{"kind":"nearby","latitude":1,"radius":5}"#, "longitude"),
      (#"{"kind":"nearby","latitude":1,"longitude":2}"#, "radius"),
      (#"{"kind":"nearby","latitude":1,"longitude":2,"radius":0}"#, "radius"),
      (#"{"kind":"nearby","latitude":1,"longitude":2,"radius":1e8}"#, "radius"),
      (#"{"kind":"nearby","latitude":1,"longitude":2,"radius":-5}"#, "radius"),
      (#"{"kind":"nearby","latitude":1,"longitude":2,"limit":0}"#, "limit"),
      (#"{"kind":"nearby","latitude":1,"longitude":2,"limit":1000000}"#, "limit"),
      (#"{"kind":"nearby","latitude":1,"longitude":2,"limit":2.5}"#, "limit"),
      (#"{"kind":"nearby","latitude":1,"longitude":2,"limit":5,"maxAge":-1}"#, "maxAge"),
      (#"{"kind":"nearby","latitude":1,"longitude":2,"limit":5,"stale":"yes"}"#, "stale"),
      (#"{"kind":"nearby","latitude":1,"longitude":2,"limit":5,"status":"free"}"#, "status"),
      (#"{"kind":"nearby","latitude":1,"longitude":2,"limit":5,"tags":"xl"}"#, "tags"),
      (#"{"kind":"within"}"#, "bbox"), (#"{"kind":"within","bbox":[1,2,3]}"#, "bbox"),
      (#"{"kind":"within","bbox":[1,2,3,"4"]}"#, "bbox"), (#"{"kind":"within","bbox":[0,5,1,-5]}"#, "bbox"),
      (#"{"kind":"within","bbox":[0,0,1,1],"polygon":{}}"#, "polygon"),
      (#"{"kind":"within","polygon":7}"#, "polygon"),
    ])
  func badQueries(payload: String, member: String) {
    do throws(MessageError) {
      _ = try query(payload)
      Issue.record("\(payload) was taken")
    } catch {
      #expect(error.text.hasPrefix("\(member):"), "\(error.text)")
      #expect(error.messageID == MessageID("q"))
    }
  }

  @Test("The longest answer is read in both forms: as many drivers as may be, each with all that it may have")
  func longestAnswer() throws {
    let word = try #require(InlineText(String(repeating: "w", count: 64)))
    let (time, number) = (Timestamp(milliseconds: 1_763_680_000_123), 359.99)
    let place = try #require(Coordinate(latitude: -48.1234567, longitude: -111.1234567))
    let drivers = (0..<DriverSearch.maximumLimit).map { index in
      let name = String(repeating: "d", count: 60) + String(1000 + index)
      var report = DriverReport(driverID: Identifier(name)!, status: .available)
      (report.vehicleType, report.tags) = (word, [InlineText](repeating: word, count: DriverStatusReport.maximumTags))
      report.position = DriverReport.Place(
        coordinate: place, heading: number, speed: number, accuracy: number, age: number, timestamp: time)
      (report.predicted, report.distance) = (place, 12345)
      return report
    }
    let id = try #require(MessageID("s1"))
    let reply = Reply.result(ResultReply(replyTo: id, result: .drivers(DriverList(drivers: drivers, more: 7))))
    let envelope = ServerEnvelope(messageID: id, timestamp: time, message: .reply(reply))
    let text = written(envelope, time: .unixMilliseconds)
    #expect(text.count > 900_000)
    #expect(try readServer(text).message == .reply(reply))
    var peer = BinaryPeer()
    let bytes = peer.write(envelope)
    guard case .reply(.result(let read))? = try peer.readServer(bytes)?.message, case .drivers(let list) = read.result
    else { throw Unexpected() }
    #expect(bytes.count > 600_000 && list.drivers.count == drivers.count)
  }
}
