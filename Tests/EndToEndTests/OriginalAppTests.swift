// An app written to the original design works unchanged: Foundation's JSONEncoder and JSONDecoder with their default
// settings, messages in binary frames, dates as JSONEncoder writes them, batches in the nested form.
import Foundation
import HubGateway
import HubMessages
import HubTestSupport
import Testing

extension EndToEnd {
  @Suite struct OriginalApp {}
}

/// A value of any type, as such apps have it in their payloads.
private enum AnyCodable: Codable, ExpressibleByStringLiteral, ExpressibleByFloatLiteral, ExpressibleByArrayLiteral,
  ExpressibleByDictionaryLiteral
{
  case text(String)
  case number(Double)
  case flag(Bool)
  case date(Date)
  case list([AnyCodable])
  case object([String: AnyCodable])
  case null

  init(stringLiteral value: String) { self = .text(value) }
  init(floatLiteral value: Double) { self = .number(value) }
  init(arrayLiteral elements: AnyCodable...) { self = .list(elements) }
  init(dictionaryLiteral elements: (String, AnyCodable)...) {
    self = .object(Dictionary(uniqueKeysWithValues: elements))
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .text(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .flag(let value): try container.encode(value)
    case .date(let value): try container.encode(value)
    case .list(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    case .null: try container.encodeNil()
    }
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .flag(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .text(value)
    } else if let value = try? container.decode([AnyCodable].self) {
      self = .list(value)
    } else {
      self = .object(try container.decode([String: AnyCodable].self))
    }
  }
}

/// The original design's message.
private struct Message: Codable {
  var type: String
  var payload: [String: AnyCodable]
  var timestamp = Date()
  var messageId = UUID().uuidString
}

private struct Answer<Payload: Decodable>: Decodable {
  var type: String
  var payload: Payload
  var timestamp: Date
  var messageId: String
}

private struct Position: Decodable {
  var driverId: String
  var latitude: Double
  var longitude: Double
  var accuracy: Double
  var timestamp: Date
}

private struct Update: Decodable {
  var tripId: String
  var status: String
  var timestamp: Date
  var sequence: Int
}

private struct Acknowledgement: Decodable {
  var replyTo: String
  var accepted: Int?
}

private struct PongPayload: Decodable {
  var replyTo: String
  var serverTime: Date
  var storedThrough: Date?
}

extension Peer {
  fileprivate func send(_ message: Message) throws {
    try send(bytes: Peer.frame(Array(JSONEncoder().encode(message)), opcode: 2))
  }

  fileprivate func receive<Payload>(_ type: String, as _: Payload.Type) throws -> Answer<Payload> {
    let text = try receive(type).text
    return try JSONDecoder().decode(Answer<Payload>.self, from: Data(text.utf8))
  }
}

extension EndToEnd.OriginalApp {
  /// A fix as the original design nests it.
  private func nestedFix(_ step: Int, _ start: Date) -> AnyCodable {
    .object([
      "id": .text(UUID().uuidString),
      "coordinate": [
        "latitude": .number(37 + Double(step) * 10 / 111_195), "longitude": -122.0, "altitude": 12.5, "heading": 0.0,
        "speed": 10.0,
      ],
      "accuracy": ["horizontal": 5.0, "vertical": 8.0, "speed": 0.5, "course": 3.0],
      "timestamp": .date(start + Double(step)), "source": "gps", "metadata": ["battery": 0.8, "network": "lte"],
    ])
  }

  @Test(
    "updates, batches, states, subscriptions and pings are understood, and all answers decode", arguments: loopCounts)
  func wholeWay(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let start = Date(timeIntervalSinceReferenceDate: 700_000_000.125)
    let driver = try hub.join(.driver, "d1", time: "apple")
    let rider = try hub.join(.rider, "r1", time: "apple")

    let subscribe = Message(type: "subscribe", payload: ["channel": "trip:T1"])
    try rider.send(subscribe)
    #expect(try rider.receive("subscribed", as: Acknowledgement.self).payload.replyTo == subscribe.messageId)

    try driver.send(
      Message(
        type: "location_update",
        payload: [
          "tripId": "T1", "latitude": 37.0, "longitude": -122.0, "accuracy": 5.0, "heading": .number(-1),
          "speed": 10.0, "altitude": .null, "source": "gps", "timestamp": .date(start),
        ]))
    let begun = try rider.receive("trip_update", as: Update.self)
    #expect(begun.payload.status == "accepted" && begun.payload.sequence == 1)
    let first = try rider.receive("driver_location", as: Position.self)
    #expect(first.payload.timestamp == start)
    #expect(first.payload.driverId == "d1")
    #expect(abs(first.timestamp.timeIntervalSinceNow) < 60)

    let batch = Message(
      type: "location_batch",
      payload: ["tripId": "T1", "locations": .list((1...3).map { nestedFix($0, start) })])
    try driver.send(batch)
    let ack = try driver.receive("ack", as: Acknowledgement.self)
    #expect(ack.payload.replyTo == batch.messageId && ack.payload.accepted == 3)
    for step in 1...3 {
      let position = try rider.receive("driver_location", as: Position.self)
      #expect(position.payload.timestamp == start + Double(step))
      #expect(position.payload.accuracy > 0)
    }

    let status = Message(
      type: "trip_status", payload: ["tripId": "T1", "status": "driver_en_route", "timestamp": .date(start + 9)])
    try driver.send(status)
    #expect(try driver.receive("ack", as: Acknowledgement.self).payload.replyTo == status.messageId)
    let update = try rider.receive("trip_update", as: Update.self)
    #expect(update.payload.tripId == "T1")
    #expect(update.payload.status == "driver_en_route")
    #expect(update.payload.timestamp == start + 9)

    let ping = Message(type: "ping", payload: [:])
    try driver.send(ping)
    let pong = try driver.receive("pong", as: PongPayload.self)
    #expect(pong.payload.replyTo == ping.messageId)
    #expect(pong.payload.storedThrough == start + 3)
    #expect(abs(pong.payload.serverTime.timeIntervalSinceNow) < 60)

    try driver.send(Message(type: "hello", payload: [:]))
    #expect(try driver.receive("error").code == "unknown_type")
  }

  @Test("dates of any fraction come back as they were, to the millisecond")
  func dates() throws {
    let hub = try TestHub()
    let driver = try hub.join(.driver, "d1", time: "apple")
    var random = SplitMix64(seed: 5)
    for step in 0..<50 {
      let date = Date(
        timeIntervalSinceReferenceDate: 700_000_000 + Double(step) + Double.random(in: 0..<1, using: &random))
      try driver.send(
        Message(
          type: "location_update",
          payload: [
            "latitude": .number(37 + Double(step) / 11_120), "longitude": -122.0, "accuracy": 5.0,
            "timestamp": .date(date),
          ]))
      try driver.send(Message(type: "ping", payload: [:]))
      let stored = try #require(try driver.receive("pong", as: PongPayload.self).payload.storedThrough)
      #expect(abs(stored.timeIntervalSince(date)) <= 0.000_501)
    }
  }
}
