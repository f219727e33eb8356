// Tracks: gathered from stored fixes, and written in three forms.
import Foundation
import FoundationXML
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore
@testable import HubRuntime

extension PackedFix {
  /// The fix with the resolutions of the journal.
  fileprivate init(_ fix: StoredFix) {
    let position = fix.position.map { Position($0, at: fix.measured.timestamp) }
    self = withUnsafeTemporaryAllocation(byteCount: StoredFix.size, alignment: 8) { raw in
      StoredFix.write(fix.measured, fix.disposition, position, into: raw)
      return PackedFix(copying: UnsafeRawBufferPointer(raw))
    }
  }
}

@Suite struct TrackTests {
  private func fix(
    _ second: Int64, _ disposition: StoredFix.Disposition, at place: Coordinate = at(48, 11),
    published: Coordinate? = nil
  ) -> StoredFix {
    StoredFix(
      disposition: disposition,
      measured: Fix(
        coordinate: place, timestamp: Timestamp(milliseconds: second * 1000), accuracy: 5, speed: 3, altitude: 519.25),
      position: published.map {
        StoredPosition(coordinate: $0, speed: 2.5, heading: 90, accuracy: 3.21, confidence: .high)
      })
  }

  private func track(_ places: [Coordinate], altitude: Double? = nil) -> Track {
    Track(
      tripID: Identifier("T-1")!, driverID: Identifier("d.1")!, source: .filtered,
      points: places.enumerated().map {
        TrackPoint(
          timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64($0) * 1000), coordinate: $1, altitude: altitude,
          speed: $0 == 0 ? nil : 8.3, heading: $0 == 0 ? nil : 270.5, accuracy: 4.21)
      })
  }

  private func text(_ track: Track, _ format: TrackFormat, time: TimeFormat = .unixMilliseconds) -> String {
    var bytes = ByteBuffer()
    format.write(track, time: time, into: &bytes)
    return String(decoding: bytes.array(), as: UTF8.self)
  }

  private func json(_ track: Track, time: TimeFormat = .unixMilliseconds) throws -> [String: Any] {
    let object = try JSONSerialization.jsonObject(with: Data(text(track, .geoJSON, time: time).utf8))
    return try #require(object as? [String: Any])
  }

  // MARK: Gathering

  @Test("fixes come by their own time, each once; what was published counts before what was only measured")
  func gathered() {
    var filtered = TrackGathering(.filtered, limit: 100)
    var raw = TrackGathering(.raw, limit: 100)
    let fixes = [
      fix(1, .live, published: at(48.1, 11)), fix(5, .live, at: at(48.5, 11), published: at(48.6, 11)),
      fix(3, .history, at: at(48.3, 11)), fix(2, .history, at: at(48.2, 11)), fix(5, .history),  // sent again
      fix(900, .held, at: at(49, 11)), fix(900, .confirmed, published: at(49.1, 11)), fix(5000, .held),
    ]
    for fix in fixes {
      // Of those that came late another test says how they are filtered.
      if fix.disposition != .history || fix.measured.timestamp.milliseconds == 5000 { filtered.add(PackedFix(fix)) }
      raw.add(PackedFix(fix))
    }
    let times = filtered.points().map { $0.timestamp.milliseconds / 1000 }
    #expect(times == [1, 5, 900])
    #expect(filtered.points().map(\.coordinate.latitude) == [48.1, 48.6, 49.1])
    #expect(filtered.points().map(\.speed) == [2.5, 2.5, 2.5])
    #expect(raw.points().map { $0.timestamp.milliseconds / 1000 } == [1, 2, 3, 5, 900, 5000])
    #expect(raw.points().map(\.coordinate.latitude) == [48, 48.2, 48.3, 48.5, 49, 48])
  }

  @Test("no more is gathered than the limit, and the answer says so")
  func limit() {
    var gathering = TrackGathering(.raw, limit: 3)
    for second in 0..<3 as Range<Int64> {
      gathering.add(PackedFix(fix(second, .live, published: at(1, 1))))
    }
    #expect(!gathering.isOverLimit)
    gathering.add(PackedFix(fix(9, .history)))
    #expect(gathering.isOverLimit && gathering.points().count == 3)
  }

  // MARK: Late fixes

  /// A winding drive of a fix a second, each some metres off.
  private func drive(seconds: Int, seed: UInt64) -> [Fix] {
    var random = SplitMix64(seed: seed)
    let plane = LocalPlane(origin: at(48.1, 11.5))
    var (east, north, heading) = (0.0, 0.0, 90.0)
    return (0..<seconds).map { second in
      heading += 3 * sin(Double(second) / 20)
      east += 12 * sin(heading * .pi / 180)
      north += 12 * cos(heading * .pi / 180)
      let off = (Double.random(in: -8...8, using: &random), Double.random(in: -8...8, using: &random))
      return Fix(
        coordinate: plane.coordinate(eastMeters: east + off.0, northMeters: north + off.1),
        timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64(second) * 1000), accuracy: 5,
        heading: heading.truncatingRemainder(dividingBy: 360), speed: 12)
    }
  }

  /// What a hub stores of a drive of which `late` comes in one batch behind the rest.
  private func stored(_ fixes: [Fix], late: Range<Int>) -> [PackedFix] {
    var tracker = Tracker()
    var stored: [PackedFix] = []
    for (index, fix) in fixes.enumerated() where !late.contains(index) {
      let received = (fix.timestamp.milliseconds - 1_763_680_000_000) * 1_000_000
      guard case .accepted(let position) = tracker.update(fix, receivedAt: received) else {
        Issue.record("\(index) was not published")
        continue
      }
      let published = StoredPosition(
        coordinate: position.coordinate, speed: position.speed, heading: position.heading, accuracy: position.accuracy,
        confidence: position.confidence)
      stored.append(PackedFix(StoredFix(disposition: .live, measured: fix, position: published)))
    }
    return stored + fixes[late].map { PackedFix(StoredFix(disposition: .history, measured: $0, position: nil)) }
  }

  private func points(_ fixes: [PackedFix], others: [PackedFix] = [], limit: Int = 10_000) -> [TrackPoint] {
    var gathering = TrackGathering(.filtered, limit: limit)
    for fix in others { gathering.addOther(fix) }
    for fix in fixes { gathering.add(fix) }
    return gathering.points()
  }

  private func length(_ points: [TrackPoint]) -> Double {
    zip(points, points.dropFirst()).reduce(0) { $0 + $1.0.coordinate.distance(to: $1.1.coordinate) }
  }

  private func farthest(_ some: [TrackPoint], _ others: [TrackPoint]) -> Double {
    zip(some, others).map { $0.coordinate.distance(to: $1.coordinate) }.max() ?? .infinity
  }

  @Test("a drive of which a part came late in a batch has the track of the same drive sent live, to some centimetres")
  func late() {
    for seed in 1...5 as ClosedRange<UInt64> {
      let fixes = drive(seconds: 500, seed: seed)
      let live = points(stored(fixes, late: 0..<0))
      for late in [100..<160, 200..<500, 0..<500, 30..<31] {
        let gathered = stored(fixes, late: late)
        let filtered = points(gathered)
        #expect(filtered.map(\.timestamp) == live.map(\.timestamp))
        #expect(farthest(filtered, live) < 0.05, "\(late): \(farthest(filtered, live)) m")
        #expect(abs(length(filtered) / length(live) - 1) < 0.001)
        #expect(Array(filtered[..<late.lowerBound]) == Array(live[..<late.lowerBound]), "as it was published")
      }
      #expect(length(points(stored(fixes, late: 0..<0))) < 12 * 500 * 1.02)
    }
  }

  @Test("what the driver sent before the trip is what the filter begins with, as far as there is room")
  func others() {
    let fixes = drive(seconds: 300, seed: 9)
    let all = stored(fixes, late: 0..<0)
    let live = Array(points(all)[60...])
    let (before, trip) = (
      Array(all[..<60]), stored(fixes, late: 70..<120).filter { $0.timestamp >= fixes[60].timestamp }
    )
    #expect(farthest(points(trip, others: before), live) < 0.05)
    let cold = points(trip, others: before, limit: 240)
    #expect(cold.count == 240)
    #expect(points(trip, others: before + before + before + before + before, limit: 240) == points(trip))
  }

  @Test("a simplified track keeps the fixes of the places that remain")
  func simplified() {
    let places = (0..<100).map { at(48 + ($0 == 50 ? 0.001 : 0), 11 + Double($0) * 0.001) }
    let simple = track(places).simplified(toleranceMeters: 20)
    #expect(simple.points.count < 12 && simple.points.contains { $0.coordinate == places[50] })
    #expect(simple.points.first == track(places).points.first && simple.points.last == track(places).points.last)
  }

  // MARK: GeoJSON

  @Test("a line of longitude, latitude and altitude, with the time of each place")
  func line() throws {
    let feature = try json(track([at(48.1371, 11.5754), at(48.1372, 11.5749)], altitude: 519.25))
    #expect(feature["type"] as? String == "Feature")
    let geometry = try #require(feature["geometry"] as? [String: Any])
    #expect(geometry["type"] as? String == "LineString")
    #expect(geometry["coordinates"] as? [[Double]] == [[11.5754, 48.1371, 519.25], [11.5749, 48.1372, 519.25]])
    let properties = try #require(feature["properties"] as? [String: Any])
    #expect(properties["tripId"] as? String == "T-1" && properties["driverId"] as? String == "d.1")
    #expect(properties["times"] as? [Int] == [1_763_680_000_000, 1_763_680_001_000])
    #expect(properties["source"] as? String == "filtered" && properties["count"] as? Int == 2)
    let dated = try json(track([at(1, 1), at(2, 2)]), time: .rfc3339)
    #expect(((dated["properties"] as? [String: Any])?["times"] as? [String])?.first == "2025-11-20T23:06:40.000Z")
  }

  @Test("one fix is a point, and none is no geometry")
  func short() throws {
    let point = try #require(try json(track([at(1, 2)]))["geometry"] as? [String: Any])
    #expect(point["type"] as? String == "Point" && point["coordinates"] as? [Double] == [2, 1])
    #expect(try json(track([]))["geometry"] is NSNull)
    #expect((try json(track([]))["properties"] as? [String: Any])?["times"] as? [Int] == [])
  }

  @Test("a track over the antimeridian is cut there, on both sides at the same place")
  func cut() throws {
    let feature = try json(track([at(10, 179), at(12, -179), at(12, -178), at(11, 179.5)]))
    let geometry = try #require(feature["geometry"] as? [String: Any])
    #expect(geometry["type"] as? String == "MultiLineString")
    let lines = try #require(geometry["coordinates"] as? [[[Double]]])
    #expect(
      lines == [
        [[179, 10], [180, 11]], [[-180, 11], [-179, 12], [-178, 12], [-180, 11.2]], [[180, 11.2], [179.5, 11]],
      ])
    let times = try #require((feature["properties"] as? [String: Any])?["times"] as? [[Int]])
    #expect(times.map(\.count) == lines.map(\.count))
    #expect(times[0] == [1_763_680_000_000, 1_763_680_000_500])
  }

  @Test("places on the antimeridian itself lose nothing and make no line of one place")
  func onAntimeridian() {
    func lines(_ places: [Coordinate]) -> [[[Double]]] {
      TrackGeoJSON.lines(track(places).points).map { $0.map { [$0.longitude, $0.latitude] } }
    }
    #expect(lines([at(1, 179), at(2, -180)]) == [[[179, 1], [180, 2]]])
    #expect(lines([at(1, 179), at(2, -180), at(3, -179)]) == [[[179, 1], [180, 2]], [[-180, 2], [-179, 3]]])
    #expect(lines([at(1, 180), at(2, -179)]) == [[[-180, 1], [-179, 2]]])
    #expect(lines([at(1, 180), at(2, -180)]) == [[[-180, 1], [-180, 2]]])
    #expect(lines([at(1, 180), at(1, -180)]).count == 1)
    #expect(lines([at(1, -180), at(2, 179), at(3, 178)]) == [[[180, 1], [179, 2], [178, 3]]])
  }

  @Test(
    "whatever the way, no piece of a line is longer than half of the world, and every fix is there",
    arguments: 1...20 as ClosedRange<UInt64>)
  func pieces(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let places = (0..<200).map { _ in
      at(
        Double.random(in: -80...80, using: &random).rounded(),
        [-180, -179.5, 179.5, 180, 178, -178].randomElement(using: &random)!)
    }
    let lines = TrackGeoJSON.lines(track(places).points)
    for line in lines {
      #expect(line.count >= 2)
      #expect(zip(line, line.dropFirst()).allSatisfy { abs($0.longitude - $1.longitude) <= 180 })
      #expect(zip(line, line.dropFirst()).allSatisfy { $0.milliseconds <= $1.milliseconds })
    }
    let times = Set(lines.joined().map(\.milliseconds))
    #expect(track(places).points.allSatisfy { times.contains($0.timestamp.milliseconds) })
  }

  // MARK: GPX and CSV

  @Test("GPX has the schema's elements in the schema's order, and no longitude of 180")
  func gpx() throws {
    let text = text(track([at(48.1371, 11.5754), at(-0.0000001, 180)], altitude: 0.001), .gpx)
    let parser = XMLParser(data: Data(text.utf8))
    let outline = Outline()
    parser.delegate = outline
    #expect(parser.parse())
    let point = ["trkpt", "ele", "/ele", "time", "/time", "/trkpt"]
    #expect(
      outline.elements == ["gpx", "trk", "name", "/name", "src", "/src", "trkseg"] + point + point
        + ["/trkseg", "/trk", "/gpx"])
    #expect(outline.points == [["lat": "48.1371", "lon": "11.5754"], ["lat": "-0.0000001", "lon": "-180"]])
    #expect(text.contains("<time>2025-11-20T23:06:40.000Z</time>") && text.contains("<ele>0.001</ele>"))
    #expect(outline.root == ["version": "1.1", "creator": "locationhub", "xmlns": "http://www.topografix.com/GPX/1/1"])
  }

  /// https://www.topografix.com/GPX/1/1/gpx.xsd: latitudeType, longitudeType, xsd:decimal and xsd:dateTime.
  @Test("whatever was measured, GPX's numbers and times are of the schema's types, and inside their ranges")
  func gpxTypes() throws {
    var random = SplitMix64(seed: 11)
    var places = [at(90, 180), at(-90, -180), at(0, -0.0), at(1e-9, -1e-9), at(-1e-300, 179.99999999)]
    for _ in 0..<500 {
      let scale = Double.random(in: -12...0, using: &random)
      places.append(
        at(
          Double.random(in: -90...90, using: &random) * pow(10, scale),
          Double.random(in: -180...180, using: &random) * pow(10, scale)))
    }
    for altitude in [nil, -430.5, 8848.123456, 1e-7, -1e-9, 2_147_483.647] as [Double?] {
      let parser = XMLParser(data: Data(text(track(places, altitude: altitude), .gpx).utf8))
      let outline = Outline()
      parser.delegate = outline
      #expect(parser.parse() && outline.points.count == places.count)
      for point in outline.points {
        let (latitude, longitude) = (try #require(point["lat"]), try #require(point["lon"]))
        #expect(latitude.wholeMatch(of: Self.decimal) != nil && longitude.wholeMatch(of: Self.decimal) != nil)
        #expect((-90.0...90).contains(try #require(Double(latitude))))
        #expect((-180.0..<180).contains(try #require(Double(longitude))))
      }
      #expect(outline.texts["ele", default: []].allSatisfy { $0.wholeMatch(of: Self.decimal) != nil })
      #expect(outline.texts["ele", default: []].count == (altitude == nil ? 0 : places.count))
      let times = outline.texts["time", default: []]
      #expect(times.count == places.count)
      #expect(times.allSatisfy { $0.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil })
    }
  }

  private nonisolated(unsafe) static let decimal = /-?[0-9]+(\.[0-9]+)?/

  private final class Outline: NSObject, XMLParserDelegate {
    var elements: [String] = []
    var points: [[String: String]] = []
    var root: [String: String] = [:]
    var texts: [String: [String]] = [:]
    private var text = ""

    func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }

    func parser(
      _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
      attributes: [String: String]
    ) {
      text = ""
      if name == "gpx" { root = attributes }
      if name == "trkpt" { points.append(attributes) }
      elements.append(name)
    }

    func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) {
      elements.append("/" + name)
      texts[name, default: []].append(text)
    }
  }

  @Test("CSV has a row for each fix; what is not known is empty")
  func csv() {
    #expect(
      text(track([at(48.1371, 11.5754), at(48.1372, 11.5749)]), .csv) == """
        t_ms,lat,lon,speed,bearing,accuracy,altitude\r
        1763680000000,48.1371,11.5754,,,4.21,\r
        1763680001000,48.1372,11.5749,8.3,270.5,4.21,\r

        """)
  }

  // MARK: Which form

  @Test(
    "the form that Accept prefers",
    arguments: [
      (nil, .geoJSON), ("*/*", .geoJSON), ("text/csv", .csv), ("application/gpx+xml", .gpx), ("text/html", nil),
      ("text/csv;q=0.5, application/gpx+xml", .gpx), ("text/html, */*;q=0.1", .geoJSON), ("Text/CSV ; q=1", .csv),
      ("text/csv;q=0", nil), ("application/json", .geoJSON), ("", nil),
    ] as [(String?, TrackFormat?)])
  func accept(field: String?, format: TrackFormat?) {
    #expect(TrackFormat(accept: field) == format)
  }
}
