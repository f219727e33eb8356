// What phone apps send, read into fixes: bodies in the apps' own formats, as their documents and sources have them.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@Suite struct PhoneReportTests {
  private let reader = MessageReader()
  private let now = Timestamp(milliseconds: 1_763_680_999_000)

  private func read(_ format: PhoneFormat, _ text: String) throws -> PhoneReport {
    try Array(text.utf8).withUnsafeBytes { try reader.readPhone($0, format) }
  }

  private func osmAnd(_ query: String) -> PhoneReport {
    let parameters = query.split(separator: "&").map { pair -> (name: String, value: String) in
      let halves = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return (String(halves[0]), halves.count > 1 ? String(halves[1]) : "")
    }
    return PhoneReport(osmAnd: parameters, now: now)
  }

  private func fix(_ report: PhoneReport) throws -> Fix { try #require(report.fixes.first).get() }

  private func isNear(_ value: Double?, _ expected: Double) -> Bool { value.map { abs($0 - expected) < 1e-9 } ?? false }

  // MARK: OwnTracks

  @Test("OwnTracks: a location in its units")
  func ownTracks() throws {
    let report = try read(
      .ownTracks,
      """
      {"_type":"location","BSSID":"b0:f2:8:45:94:33","SSID":"Home Wifi","_id":"5f1c","acc":5,"alt":154,"batt":53,"bs":1,
       "cog":270,"conn":"w","created_at":1763680001,"lat":48.8596275,"lon":2.3533,"m":1,"t":"u","tid":"j1",
       "topic":"owntracks/jane/phone","tst":1763680000,"vac":3,"vel":36}
      """)
    let fix = try fix(report)
    #expect(fix.coordinate.latitude == 48.8596275 && fix.coordinate.longitude == 2.3533)
    #expect(fix.timestamp.milliseconds == 1_763_680_000_000 && fix.accuracy == 5 && fix.altitude == 154)
    #expect(isNear(fix.speed, 10) && fix.heading == 270 && isNear(fix.batteryLevel, 0.53))
    #expect(report.deviceIDs.isEmpty)
  }

  @Test("OwnTracks: zeros are left out, and unknown values are negative")
  func ownTracksUnknown() throws {
    let fix = try fix(
      read(.ownTracks, #"{"_type":"location","lat":1.5,"lon":2,"tst":1763680000,"vel":-1,"batt":-1,"acc":0}"#))
    #expect(fix.speed == nil && fix.heading == nil && fix.batteryLevel == nil && fix.accuracy == 0)
  }

  @Test(
    "OwnTracks: what is no position is a report without a fix",
    arguments: [
      #"{"_type":"lwt","tst":1763680000}"#, #"{"_type":"status","android":{"hib":0}}"#,
      #"{"_type":"transition","event":"enter","lat":48,"lon":11,"tst":1763680000,"wtst":1,"acc":5}"#,
      #"{"_type":"waypoints","waypoints":[{"_type":"waypoint","desc":"x","lat":1,"lon":2,"rad":50,"tst":1}]}"#,
      #"{"_type":"encrypted","data":"UgEYUJcTMMAF"}"#, #"{"_type":"card","name":"Jane","face":"iVBOR"}"#, "{}", "",
      "[]", "7",
    ])
  func ownTracksIgnored(body: String) throws {
    #expect(try read(.ownTracks, body) == PhoneReport(.ownTracks))
  }

  @Test("OwnTracks: a location that is no place, or no time, keeps its index among the fixes")
  func ownTracksUnreadable() throws {
    for (body, code) in [
      (#"{"_type":"location","lat":91,"lon":2,"tst":1763680000}"#, ErrorCode.invalidLocation),
      (#"{"_type":"location","lat":1,"lon":2,"tst":5}"#, .invalidLocation),
      (#"{"_type":"location","lat":1,"lon":2}"#, .badMessage), (#"{"_type":"location"}"#, .badMessage),
      (#"{"_type":"location","lat":"1","lon":2,"tst":1763680000}"#, .badMessage),
      (#"{"_type":"location","lat":1,"lon":2,"tst":1e300}"#, .badMessage),
    ] { #expect(try read(.ownTracks, body).fixes == [.failure(code)], "\(body)") }
  }

  // MARK: Traccar

  private func traccar(_ location: String) -> String { #"{"location":\#(location),"device_id":"d1"}"# }

  @Test("Traccar Client: a location, and whose phone it is")
  func traccar() throws {
    let report = try read(
      .traccar,
      traccar(
        """
        {"timestamp":"2025-11-20T23:06:40.500Z","coords":{"latitude":48.1371,"longitude":11.5754,"accuracy":4.7,"speed":8.3,
         "heading":270.5,"altitude":519.4},"is_moving":true,"odometer":1234.5,"event":"motionchange",
         "battery":{"level":0.81,"is_charging":false},"activity":{"type":"in_vehicle"},"extras":{},"_":"&id=d1"}
        """))
    let fix = try fix(report)
    let (own, other) = (try #require(Identifier("d1")), try #require(Identifier("d2")))
    #expect(report.deviceIDs == ["d1"] && report.isOf(own) && !report.isOf(other))
    #expect(fix.timestamp.milliseconds == 1_763_680_000_500 && fix.accuracy == 4.7 && fix.speed == 8.3)
    #expect(fix.heading == 270.5 && fix.altitude == 519.4 && fix.batteryLevel == 0.81)
  }

  @Test("Traccar Client: -1 is unknown, and a battery's too")
  func traccarUnknown() throws {
    let fix = try fix(
      read(
        .traccar,
        traccar(
          #"{"timestamp":"2025-11-20T23:06:40Z","coords":{"latitude":1,"longitude":2,"speed":-1,"heading":-1,"accuracy":9},"battery":{"level":-1}}"#
        )))
    #expect(
      fix.speed == nil && fix.heading == nil && fix.batteryLevel == nil && fix.altitude == nil && fix.accuracy == 9)
  }

  @Test(
    "Traccar Client: without coordinates it is no position",
    arguments: [#"{"event":"heartbeat"}"#, "null", "[]", "[{}]", "3"])
  func traccarIgnored(location: String) throws { #expect(try read(.traccar, traccar(location)).fixes.isEmpty) }

  @Test("Traccar Client: several locations come in order")
  func traccarBatch() throws {
    let one = #"{"timestamp":"2025-11-20T23:06:4#Z","coords":{"latitude":1,"longitude":2}}"#
    let list = (0..<3).map { one.replacing("#", with: "\($0)") }.joined(separator: ",")
    let report = try read(.traccar, traccar("[\(list)]"))
    let times = try report.fixes.map { try $0.get().timestamp.milliseconds % 10_000 }
    #expect(times == [0, 1000, 2000])
  }

  // MARK: OsmAnd

  @Test("OsmAnd: parameters, with speed in knots")
  func osmAndParameters() throws {
    let report = osmAnd(
      "id=d1&lat=48.1371&lon=11.5754&timestamp=1763680000&hdop=2&altitude=519&speed=10&bearing=90&batt=55")
    let fix = try fix(report)
    #expect(report.deviceIDs == ["d1"] && fix.timestamp.milliseconds == 1_763_680_000_000)
    #expect(isNear(fix.speed, 10 * 1852 / 3600) && fix.heading == 90 && fix.altitude == 519)
    #expect(fix.accuracy == nil && isNear(fix.batteryLevel, 0.55))
  }

  private static let metersPerKnot: Double = 1852.0 / 3600

  @Test(
    "OsmAnd: speed as the URL says",
    arguments: zip(["kn", "ms", "kmh", "other"], [metersPerKnot, 1, 1 / 3.6, metersPerKnot] as [Double]))
  func speeds(unit: String, metersPerSecond: Double) throws {
    let fix = try fix(osmAnd("lat=1&lon=2&timestamp=1763680000&speed=10&speed_unit=\(unit)"))
    #expect(isNear(fix.speed, 10 * metersPerSecond))
  }

  @Test(
    "OsmAnd: times in all that trackers write",
    arguments: [
      ("1763680000", 1_763_680_000_000), ("1763680000.5", 1_763_680_000_500), ("1763680000123", 1_763_680_000_123),
      ("2147483647", 2_147_483_647_000), ("2147483648000", 2_147_483_648_000),
      ("2025-11-20T23:06:40Z", 1_763_680_000_000), ("2025-11-21T00:06:40+01:00", 1_763_680_000_000),
      ("2025-11-20T16:06:40-0700", 1_763_680_000_000), ("2025-11-20 23:06:40", 1_763_680_000_000),
      ("2025-11-21T00:06:40 01:00", 1_763_680_000_000), ("2025-11-21 00:06:40.5 0100", 1_763_680_000_500),
      ("2025-11-20T23:06:40", 1_763_680_000_000), ("2025-11-20T23:06:40.250", 1_763_680_000_250),
    ] as [(String, Int64)])
  func times(text: String, milliseconds: Int64) throws {
    #expect(try fix(osmAnd("lat=1&lon=2&timestamp=\(text)")).timestamp.milliseconds == milliseconds)
  }

  @Test("OsmAnd: a time that is none is no fix, and without one it is now")
  func noTime() throws {
    for text in ["x", "2025-13-01 00:00:00", "2025-11-20", "-5", "1e300", "2025-11-20T23:06:40+1:00", "nan"] {
      let fixes = osmAnd("lat=1&lon=2&timestamp=\(text)").fixes
      #expect(fixes == [.failure(.badMessage)] || fixes == [.failure(.invalidLocation)], "\(text)")
    }
    #expect(try fix(osmAnd("lat=1&lon=2")).timestamp == now)
  }

  @Test("OsmAnd: the place in one parameter, another name for the heading and the phone, accuracy 0 unknown")
  func osmAndOthers() throws {
    let report = osmAnd("deviceid=d1&location=48.1,11.5&timestamp=1763680000&heading=360&accuracy=0")
    let fix = try fix(report)
    #expect(report.deviceIDs == ["d1"] && fix.coordinate.latitude == 48.1 && fix.coordinate.longitude == 11.5)
    #expect(fix.heading == 0 && fix.accuracy == nil)
    #expect(try self.fix(osmAnd("lat=1&lon=2&timestamp=1763680000&accuracy=12.5")).accuracy == 12.5)
  }

  @Test(
    "OsmAnd: without a place there is no fix", arguments: ["", "id=d1", "id=d1&alarm=sos", "location=1", "lat=&lon="])
  func osmAndIgnored(query: String) { #expect(osmAnd(query).fixes.isEmpty) }

  @Test("OsmAnd: half a place is one that cannot be read")
  func halfPlace() { #expect(osmAnd("lat=1&timestamp=1763680000").fixes == [.failure(.badMessage)]) }

  // MARK: Overland

  private func feature(_ properties: String, _ coordinates: String = "[11.5754,48.1371]") -> String {
    #"{"type":"Feature","geometry":{"type":"Point","coordinates":\#(coordinates)},"properties":{\#(properties)}}"#
  }

  @Test("Overland: a batch of features, with offsets that RFC 3339 does not know")
  func overland() throws {
    let properties = """
      "timestamp":"2025-11-20T16:06:40-0700","altitude":519,"speed":8,"course":271,"horizontal_accuracy":30,
      "vertical_accuracy":-1,"motion":["driving"],"pauses":false,"activity":"other_navigation","desired_accuracy":100,
      "deferred":1000,"significant_change":"disabled","locations_in_payload":1,"battery_state":"charging",
      "battery_level":0.89,"device_id":"d1","wifi":"Home"
      """
    let report = try read(
      .overland,
      #"{"locations":[\#(feature(properties)),\#(feature(properties))],"current":\#(feature(properties)),"trip":{"distance":1}}"#
    )
    let fix = try fix(report)
    #expect(report.fixes.count == 2 && report.deviceIDs == ["d1"])
    #expect(fix.coordinate.latitude == 48.1371 && fix.coordinate.longitude == 11.5754)
    #expect(fix.timestamp.milliseconds == 1_763_680_000_000 && fix.speed == 8 && fix.heading == 271)
    #expect(fix.accuracy == 30 && fix.altitude == 519 && fix.batteryLevel == 0.89)
  }

  @Test("Overland: unknown values are negative or missing")
  func overlandUnknown() throws {
    let properties = #""timestamp":"2025-11-20T23:06:40Z","speed":-1,"course":-1,"horizontal_accuracy":-1"#
    let fix = try fix(read(.overland, #"{"locations":[\#(feature(properties))]}"#))
    #expect(fix.speed == nil && fix.heading == nil && fix.accuracy == nil && fix.batteryLevel == nil)
  }

  @Test(
    "Overland: notes of the app about itself are no positions, with or without a place",
    arguments: [
      #"{"locations":[]}"#, "{}", "", #"{"locations":null}"#, #"{"locations":[3,"x",null,[]]}"#,
      #"{"locations":[{"type":"Feature","properties":{"action":"started_monitoring_significant_location_changes"}}]}"#,
      #"{"locations":[{"type":"Feature","geometry":{"type":"Point","coordinates":[]},"properties":{}}]}"#,
      #"{"locations":[{"geometry":{"coordinates":["1","2"]},"properties":{"timestamp":"2025-11-20T23:06:40Z"}}]}"#,
      #"{"locations":[{"type":"Feature","geometry":{"type":"Point","coordinates":[11.5,48.1]},"properties":"#
        + #"{"timestamp":"2025-11-20T23:06:40Z","action":"visit","departure_date":"2025-11-20T22:50:00Z"}}]}"#,
      #"{"locations":[{"type":"Feature","geometry":{"type":"Point","coordinates":[11.5,48.1]},"properties":"#
        + #"{"timestamp":"2025-11-20T23:06:40Z","type":"trip","mode":"drive"}}]}"#,
    ])
  func overlandIgnored(body: String) throws { #expect(try read(.overland, body).fixes.isEmpty) }

  @Test("Overland: one feature at fault leaves the others as they are, and several phones are distinguished")
  func overlandMixed() throws {
    let good = #""timestamp":"2025-11-20T23:06:40Z","device_id":"#
    let report = try read(
      .overland,
      #"{"locations":[\#(feature(good + "\"d1\"")),\#(feature("\"speed\":1")),\#(feature(good + "\"d2\"", "[0,91]"))]}"#
    )
    #expect(report.fixes.count == 3 && report.deviceIDs == ["d1", "d2"])
    #expect(report.fixes[1] == .failure(.badMessage) && report.fixes[2] == .failure(.invalidLocation))
    #expect(!report.isOf(try #require(Identifier("d1"))))
  }

  @Test("Overland: of thousands of phones in one body two are kept, which are nobody's together")
  func manyDevices() throws {
    let features = (1000..<8000).map { #"{"properties":{"device_id":"\#($0)"}}"# }
    let report = try read(.overland, #"{"locations":[\#(features.joined(separator: ","))]}"#)
    #expect(report.fixes.isEmpty && report.deviceIDs == ["1000", "1001"])
    #expect(!report.isOf(try #require(Identifier("1000"))))
  }

  @Test("more points than a batch may have are too many")
  func tooMany() throws {
    let one = feature(#""timestamp":"2025-11-20T23:06:40Z""#)
    let body = #"{"locations":[\#(Array(repeating: one, count: 501).joined(separator: ","))]}"#
    #expect(throws: MessageError.self) { try read(.overland, body) }
  }

  // MARK: Anything

  @Test("whatever comes, it is read or refused as no JSON", arguments: [PhoneFormat.ownTracks, .traccar, .overland])
  func hostile(format: PhoneFormat) throws {
    var random = SplitMix64(seed: 22)
    let seed = Array(
      #"{"_type":"location","lat":1,"lon":2,"tst":1763680000,"location":{"timestamp":"2025-11-20T23:06:40Z","coords":{"latitude":1,"longitude":2}},"locations":[{"geometry":{"coordinates":[1,2]},"properties":{"timestamp":"2025-11-20T23:06:40-0700","device_id":"d"}}]}"#
        .utf8)
    for _ in 0..<4000 {
      var bytes = seed
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let index = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes.remove(at: index)
        default: bytes.insert(UInt8.random(in: 0x20...0x7E, using: &random), at: index)
        }
      }
      do {
        let report = try bytes.withUnsafeBytes { try reader.readPhone($0, format) }
        for case .success(let fix) in report.fixes {
          #expect(fix.timestamp >= Timestamp.earliestFromClients && (fix.speed ?? 0) >= 0)
          #expect((fix.heading ?? 0) < 360 && (0...1).contains(fix.batteryLevel ?? 0))
        }
      } catch let error as MessageError {
        #expect(error.code == .badJSON || error.code == .badMessage, "\(error)")
      }
    }
  }
}
