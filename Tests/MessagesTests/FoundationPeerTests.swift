// An app that was written without this project's library: Foundation's coders with their default settings, time=apple.
import Foundation
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

/// The app's own message types, as Swift programmers write them.
private struct AppMessage<Payload: Codable>: Codable {
  var type: String
  var payload: Payload
  var timestamp: Date
  var messageId: String
}

private struct AppFix: Codable {
  var tripId: String?
  var latitude: Double
  var longitude: Double
  var accuracy: Double
  var timestamp: Date
  var heading: Double
  var speed: Double?
}

private struct AppLocation: Codable {
  struct Place: Codable { var latitude, longitude: Double }
  var id = UUID()
  var coordinate: Place
  var accuracy: Double
  var timestamp: Date
  var source = "gps"
  var metadata: [String: String] = [:]
}

private struct AppBatch: Codable {
  var locations: [AppLocation]
}

private struct AppPosition: Codable {
  var channel: String
  var driverId: String
  var latitude: Double
  var longitude: Double
  var speed: Double?
  var confidence: String
  var timestamp: Date
  var after: Int
}

@Suite struct FoundationPeer {
  @Test("what JSONEncoder writes is read, exact to the bit and the millisecond")
  func fromJSONEncoder() throws {
    var random = SplitMix64(seed: 9)
    let reader = MessageReader()
    for _ in 0..<500 {
      let milliseconds = Int64.random(in: 1_000_000_000_000...2_000_000_000_000, using: &random)
      let date = Date(timeIntervalSince1970: Double(milliseconds) / 1000)
      let fix = AppFix(
        tripId: "trip/7".replacing("/", with: "-"), latitude: Double.random(in: -90...90, using: &random),
        longitude: Double.random(in: -180...180, using: &random), accuracy: 4.7, timestamp: date, heading: -1)
      let message = AppMessage(type: "location_update", payload: fix, timestamp: date, messageId: UUID().uuidString)
      let read = try readClient(
        [UInt8](JSONEncoder().encode(message)), time: .apple, isValidUTF8: false, reader: reader)
      let expected = Fix(
        coordinate: try #require(Coordinate(latitude: fix.latitude, longitude: fix.longitude)),
        timestamp: Timestamp(milliseconds: milliseconds), accuracy: 4.7)
      #expect(read.message == .locationUpdate(LocationUpdate(tripID: Identifier("trip-7"), fix: expected)))
      #expect(read.messageID == MessageID(message.messageId))
      #expect(read.timestamp.milliseconds == milliseconds)
    }
  }

  @Test("a batch in the nested form, with accuracy as a plain number, is read")
  func nestedFromJSONEncoder() throws {
    let date = Date(timeIntervalSinceReferenceDate: 785_372_800.25)
    let location = AppLocation(coordinate: .init(latitude: 48.1, longitude: 11.5), accuracy: 7.5, timestamp: date)
    let message = AppMessage(
      type: "location_batch", payload: AppBatch(locations: [location]), timestamp: date, messageId: "1")
    guard
      case .locationBatch(let batch) = try readClient([UInt8](JSONEncoder().encode(message)), time: .apple).message
    else { throw Unexpected() }
    let fix = try #require(batch.fixes.first).get()
    #expect(fix.accuracy == 7.5 && fix.source == .gps && fix.timestamp.milliseconds == 1_763_680_000_250)
  }

  @Test("a payload of [String: Any] written by JSONSerialization is read")
  func fromJSONSerialization() throws {
    let payload: [String: Any] = ["latitude": 48.1371, "longitude": 11, "timestamp": 785_372_800.5, "note": NSNull()]
    let message: [String: Any] = [
      "type": "location_update", "payload": payload, "timestamp": 785_372_801, "messageId": "a/b",
    ]
    let data = try JSONSerialization.data(withJSONObject: message, options: .prettyPrinted)
    let read = try readClient([UInt8](data), time: .apple, isValidUTF8: false)
    #expect(read.messageID == MessageID("a/b"))
    #expect(read.timestamp.milliseconds == 1_763_680_001_000)
  }

  @Test("JSONDecoder reads what the hub writes, exact to the bit and the millisecond")
  func toJSONDecoder() throws {
    var random = SplitMix64(seed: 10)
    for _ in 0..<500 {
      let time = Timestamp(milliseconds: Int64.random(in: 0...4_000_000_000_000, using: &random))
      let location = DriverLocation(
        driverID: Identifier("driver-12")!, tripID: nil,
        coordinate: Coordinate(
          latitude: Double.random(in: -90...90, using: &random),
          longitude: Double.random(in: -180...180, using: &random))!,
        heading: nil, speed: Double.random(in: 0...50, using: &random), accuracy: 5, confidence: .high, timestamp: time,
        age: 0.1, after: 3)
      let publication = Publication(channel: .fleet, number: 7, timestamp: time, body: .driverLocation(location))
      var buffer = ByteBuffer()
      JSONWriter.write(publication, time: .apple, into: &buffer)
      let read = try JSONDecoder().decode(AppMessage<AppPosition>.self, from: Data(buffer.array()))
      #expect(read.type == "driver_location" && read.messageId == "p7")
      #expect(read.payload.latitude == location.coordinate.latitude)
      #expect(read.payload.longitude == location.coordinate.longitude)
      #expect(read.payload.speed == location.speed)
      #expect(Int64((read.payload.timestamp.timeIntervalSince1970 * 1000).rounded()) == time.milliseconds)
      #expect(Int64((read.timestamp.timeIntervalSince1970 * 1000).rounded()) == time.milliseconds)
    }
  }
}
