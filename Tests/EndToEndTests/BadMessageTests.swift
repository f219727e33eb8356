// Messages that are wrong: each gets the contract's error, a counter, and harms nobody else.
import Foundation
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct BadMessages {}
}

extension EndToEnd.BadMessages {
  struct Case: CustomTestStringConvertible {
    var name: String
    var text: String
    var code: String
    /// Whether the message's id could be read, so that the error names it.
    var isNamed = true

    var testDescription: String { name }
  }

  private static func update(_ members: String) -> String {
    #"{"type":"location_update","payload":{\#(members)},"timestamp":1763680000001,"messageId":"x"}"#
  }

  private static let good = #""latitude":37,"longitude":-122,"timestamp":1700000000000"#
  private static let long = String(repeating: "a", count: 65)

  static let cases: [Case] = [
    Case(name: "half a message", text: #"{"type":"#, code: "bad_json", isNamed: false),
    Case(name: "no JSON", text: "hello", code: "bad_json", isNamed: false),
    Case(name: "an empty message", text: "", code: "bad_json", isNamed: false),
    Case(name: "two messages in one", text: update(good) + update(good), code: "bad_json", isNamed: false),
    Case(
      name: "NaN", text: update(#""latitude":NaN,"longitude":0,"timestamp":1763680000001"#), code: "bad_json",
      isNamed: false),
    Case(name: "a NUL byte", text: update(good) + "\u{0}", code: "bad_json", isNamed: false),
    Case(
      name: "nested too deep", text: String(repeating: "[", count: 200) + String(repeating: "]", count: 200),
      code: "too_large", isNamed: false),
    Case(name: "an array", text: "[]", code: "bad_message", isNamed: false),
    Case(name: "no type", text: #"{"payload":{},"timestamp":1763680000001,"messageId":"x"}"#, code: "bad_message"),
    Case(
      name: "a number for type", text: #"{"type":5,"payload":{},"timestamp":1763680000001,"messageId":"x"}"#,
      code: "bad_message"),
    Case(
      name: "unknown type", text: #"{"type":"teleport","payload":{},"timestamp":1763680000001,"messageId":"x"}"#,
      code: "unknown_type"),
    Case(
      name: "no payload", text: #"{"type":"location_update","timestamp":1763680000001,"messageId":"x"}"#,
      code: "bad_message"),
    Case(
      name: "no messageId", text: #"{"type":"ping","payload":{},"timestamp":1}"#, code: "bad_message", isNamed: false),
    Case(
      name: "a messageId of 65 bytes", text: #"{"type":"ping","payload":{},"timestamp":1,"messageId":"\#(long)"}"#,
      code: "bad_message", isNamed: false),
    Case(name: "no timestamp", text: #"{"type":"ping","payload":{},"messageId":"x"}"#, code: "bad_message"),
    Case(
      name: "a text for a timestamp", text: #"{"type":"ping","payload":{},"timestamp":"now","messageId":"x"}"#,
      code: "bad_message"),
    Case(name: "no longitude", text: update(#""latitude":37,"timestamp":1700000000000"#), code: "bad_message"),
    Case(name: "no time of the fix", text: update(#""latitude":37,"longitude":-122"#), code: "bad_message"),
    Case(name: "a member twice", text: update(good + #","latitude":38"#), code: "bad_message"),
    Case(
      name: "a text for a number", text: update(#""latitude":"37","longitude":-122,"timestamp":1700000000000"#),
      code: "bad_message"),
    Case(
      name: "latitude 91", text: update(#""latitude":91,"longitude":0,"timestamp":1763680000001"#),
      code: "invalid_location"),
    Case(
      name: "longitude −181", text: update(#""latitude":1,"longitude":-181,"timestamp":1763680000001"#),
      code: "invalid_location"),
    Case(
      name: "1e999", text: update(#""latitude":1e999,"longitude":0,"timestamp":1763680000001"#),
      code: "invalid_location"),
    Case(
      name: "time=apple forgotten", text: update(#""latitude":37,"longitude":-122,"timestamp":785372800.5"#),
      code: "invalid_location"),
    Case(name: "heading 361", text: update(good + #","heading":361"#), code: "invalid_location"),
    Case(
      name: "null island", text: update(#""latitude":0,"longitude":0,"timestamp":1763680000001"#),
      code: "implausible_location"),
    Case(name: "accuracy 5 km", text: update(good + #","accuracy":5000"#), code: "implausible_location"),
    Case(name: "a trip id of 65 bytes", text: update(good + #","tripId":"\#(long)""#), code: "bad_message"),
    Case(name: "a trip id with foreign characters", text: update(good + #","tripId":"Straße 7""#), code: "bad_message"),
    Case(name: "another driver's trip", text: update(good + #","tripId":"good-trip""#), code: "forbidden"),
    Case(
      name: "a channel that is none",
      text: #"{"type":"subscribe","payload":{"channel":"weather"},"timestamp":1,"messageId":"x"}"#,
      code: "unknown_channel"),
    Case(
      name: "a batch of 501",
      text: #"{"type":"location_batch","payload":{"locations":["# + String(repeating: "0,", count: 500)
        + #"0]},"timestamp":1763680000001,"messageId":"x"}"#,
      code: "too_large"),
    Case(
      name: "a state that is none",
      text:
        #"{"type":"trip_status","payload":{"tripId":"T","status":"lost","timestamp":1763680000001},"timestamp":1,"#
        + #""messageId":"x"}"#,
      code: "bad_message"),
  ]

  @Test("each bad message gets its error, is counted, and harms nobody else", arguments: loopCounts)
  func errors(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let witness = try Witness(hub)
    var expected: [String: Double] = [:]
    for (place, bad) in Self.cases.enumerated() {
      let driver = try hub.driver("bad-\(place)")
      try driver.send(text: bad.text)
      let error = try driver.receive("error")
      #expect(error.code == bad.code, "\(bad.name): \(error.text)")
      #expect(error.replyTo == (bad.isNamed ? "x" : nil), "\(bad.name)")
      #expect(error.string("message")?.isEmpty == false)
      expected[bad.code, default: 0] += 1
      #expect(try driver.settle().isEmpty, "\(bad.name): the connection stays open")
      driver.connection.close()
      try witness.check()
    }
    try hub.metrics { metrics in expected.allSatisfy { metrics.errors($0.key) == $0.value } }
  }

  @Test("more than ten bad messages in a minute close the session with 4400", arguments: loopCounts)
  func tooMany(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let witness = try Witness(hub)
    let driver = try hub.driver("bad")
    for _ in 0..<12 { try driver.send(text: "{") }
    let (code, before) = try driver.receiveClose()
    #expect(code == 4400)
    #expect(before.map(\.code) == Array(repeating: "bad_json", count: 11))
    try witness.check()
    try hub.metrics { $0.closes(4400) == 1 && $0.errors("bad_json") == 11 }
  }

  @Test("bad messages that are far enough apart are forgiven", arguments: loopCounts)
  func forgiven(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.badMessages = 2
      $0.limits.badMessageWindowSeconds = 0
    }
    let driver = try hub.driver("bad")
    for _ in 0..<12 {
      try driver.send(text: "{")
      _ = try driver.receive("error")
    }
    #expect(try driver.settle().isEmpty)
  }

  @Test("old, repeated and leaping fixes silence nobody and are published as they should", arguments: loopCounts)
  func timeOfFixes(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let witness = try Witness(hub)
    let driver = try hub.driver("d1")
    let rider = try hub.rider("r1")
    try rider.subscribe("trip:T1")
    for step in [0, 1, 1, 0, 2] { try driver.sendFix(step, trip: "T1") }
    // A leap of an hour: held back; the next one does not confirm it, so it never counts.
    try driver.sendFix(3, trip: "T1", more: ["timestamp": Peer.firstFix + 3_600_000])
    try driver.sendFix(3, trip: "T1")
    // And one that is confirmed: both come out.
    try driver.sendFix(4, trip: "T1", more: ["timestamp": Peer.firstFix + 7_200_000])
    try driver.sendFix(5, trip: "T1", more: ["timestamp": Peer.firstFix + 7_201_000])
    #expect(try driver.settle().isEmpty, "none of this is an error")
    let times = try rider.settle().compactMap { $0.type == "driver_location" ? $0.integer("timestamp") : nil }
    #expect(times.map { $0 - Peer.firstFix } == [0, 1000, 2000, 3000, 7_200_000, 7_201_000])
    try witness.check()
    try hub.metrics {
      $0.fixes("duplicate") == 1 && $0.fixes("history") == 1 && $0.fixes("held") == 2 && $0.fixes("accepted") == 8
    }
  }

  @Test("what only a driver may send is refused to a rider", arguments: loopCounts)
  func notADriver(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let rider = try hub.rider("r1")
    try rider.sendFix(0)
    #expect(try rider.receive("error").code == "forbidden")
    try rider.send("location_batch", ["locations": [Peer.fix(0)]])
    #expect(try rider.receive("error").code == "forbidden")
    try rider.send("driver_status", ["status": "available"])
    #expect(try rider.receive("error").code == "forbidden")
    try rider.send("subscribe", ["channel": "fence:f1"])
    #expect(try rider.receive("error").code == "forbidden")
  }
}
