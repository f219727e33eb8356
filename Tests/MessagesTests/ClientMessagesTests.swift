// What the hub takes from clients, member by member.
import HubBytes
import HubGeo
import HubMessages
import Testing

@Suite struct ClientMessages {
  @Test("a view's cells have 3 to 8 characters", arguments: ["2", "9", "4.5", "-3", "\"5\""])
  func precisions(_ wrong: String) throws {
    func subscribe(_ precision: String) -> String {
      envelope("subscribe", "{\"channel\":\"box:1,2,3,4\",\"precision\":\(precision)}")
    }
    #expect(errorCode(subscribe(wrong)) == .badMessage)
    guard case .subscribe(let read) = try readClient(subscribe("5")).message else { throw Unexpected() }
    #expect(read.precision == 5)
  }

  private func fix(_ members: String) throws -> Fix {
    guard case .locationUpdate(let update) = try readClient(fixPayload(members)).message else {
      throw Unexpected()
    }
    return update.fix
  }

  @Test("the envelope needs type, payload, timestamp and messageId, each of its kind")
  func envelopeMembers() {
    let right = [
      "type": #""type":"unsubscribe""#, "payload": #""payload":{"channel":"fleet"}"#, "timestamp": #""timestamp":1"#,
      "messageId": #""messageId":"m1""#,
    ]
    func message(_ members: [String: String]) -> String { "{" + members.values.sorted().joined(separator: ",") + "}" }
    #expect(errorCode(message(right)) == nil)
    for key in right.keys {
      for wrong in [nil, "\"\(key)\":null", "\"\(key)\":true", "\"\(key)\":[]", "\"\(key)\":\"\""] {
        var members = right
        members[key] = wrong
        let expected: ErrorCode = key == "type" && wrong?.hasSuffix("\"\"") == true ? .unknownType : .badMessage
        #expect(errorCode(message(members)) == expected, "\(key) \(wrong ?? "missing")")
      }
    }
    for wrong in ["[]", "1", "null", "\"a\""] { #expect(errorCode(wrong) == .badMessage) }
    let long = String(repeating: "x", count: 64)
    #expect(errorCode(#"{"type":"ping","payload":1,"timestamp":1,"messageId":"\#(long)"}"#) == nil)
    #expect(errorCode(#"{"type":"ping","payload":1,"timestamp":1,"messageId":"\#(long)x"}"#) == .badMessage)
  }

  @Test("a ping has up to 4,096 bytes of members that are sent back")
  func pingBytes() {
    for (bytes, expected) in [(4096, nil), (4097, ErrorCode.badMessage)] {
      let members = #""text":"\#(String(repeating: "x", count: bytes - 9))""#
      #expect(errorCode(envelope("ping", #"{"replyTo":"the pong's own",\#(members)}"#)) == expected)
      #expect(errorCode(envelope("ping", #"["\#(members.dropFirst(8))]"#)) == nil, "no object: nothing comes back")
    }
  }

  @Test("a refusal names the member, what was expected, and the message it answers")
  func errorText() {
    do {
      _ = try readClient(fixPayload(#""speed":"fast""#))
      Issue.record("it was read")
    } catch {
      #expect(error == MessageError(code: .badMessage, text: "speed: expected a number", messageID: MessageID("m1")))
    }
    #expect(errorID(envelope("query", "{}")) == MessageID("m1"))
    #expect(errorCode(envelope("question", "{}")) == .unknownType)
    #expect(errorCode(envelope("Ping", "{}")) == .unknownType)
    #expect(errorID(#"{"type":"ping","messageId":"m1""#) == nil)
  }

  @Test("members may come in any order, and those that nobody knows are passed over")
  func order() throws {
    let read = try readClient(
      #"""
      { "x": [1, {"type": 2}], "messageId": "m1", "timestamp": 1763680000005.4, "payload": {"y": {"latitude": 9},
        "timestamp": 1763680000007, "longitude": 2, "latitude": 1}, "type": "location_update" }
      """#)
    let fix = Fix(
      coordinate: Coordinate(latitude: 1, longitude: 2)!, timestamp: Timestamp(milliseconds: 1_763_680_000_007))
    #expect(read.message == .locationUpdate(LocationUpdate(fix: fix)))
    #expect(read.timestamp == Timestamp(milliseconds: 1_763_680_000_005))
  }

  @Test("null and, for what can't be negative, a negative number mean absent")
  func absent() throws {
    for name in ["heading", "speed", "accuracy", "headingAccuracy", "speedAccuracy"] {
      for value in ["null", "-1", "-0.001"] {
        let read = try fix(#""\#(name)":\#(value)"#)
        #expect(read.heading == nil && read.speed == nil && read.accuracy == nil)
        #expect(read.headingAccuracy == nil && read.speedAccuracy == nil)
      }
    }
    let nulls = try fix(#""altitude":null,"source":null,"batteryLevel":null,"tripId":null"#)
    #expect(nulls.altitude == nil && nulls.source == nil && nulls.batteryLevel == nil)
    #expect(try fix(#""altitude":-430.5,"batteryLevel":-1"#).altitude == -430.5)
  }

  @Test("a heading of 360 is north, one beyond is no heading")
  func heading() throws {
    #expect(try fix(#""heading":0"#).heading == 0)
    #expect(try fix(#""heading":-0.0"#).heading?.sign == .plus)
    #expect(try fix(#""heading":359.99"#).heading == 359.99)
    #expect(try fix(#""heading":360"#).heading == 0)
    #expect(errorCode(fixPayload(#""heading":360.0001"#)) == .invalidLocation)
  }

  @Test("a place outside the Earth is invalid_location, one of another type bad_message")
  func places() {
    func code(_ latitude: String, _ longitude: String) -> ErrorCode? {
      errorCode(
        envelope("location_update", #"{"latitude":\#(latitude),"longitude":\#(longitude),"timestamp":1763680000001}"#))
    }
    for (latitude, longitude) in [("90", "180"), ("-90", "-180"), ("0", "-0")] {
      #expect(code(latitude, longitude) == nil)
    }
    for (latitude, longitude) in [("90.0001", "0"), ("-91", "0"), ("0", "180.1"), ("0", "-1e9"), ("1e999", "0")] {
      #expect(code(latitude, longitude) == .invalidLocation)
    }
    for (latitude, longitude) in [("null", "0"), ("\"1\"", "0"), ("0", "[]"), ("0", "true")] {
      #expect(code(latitude, longitude) == .badMessage)
    }
    #expect(errorCode(envelope("location_update", #"{"latitude":1,"timestamp":1763680000001}"#)) == .badMessage)
    #expect(errorCode(envelope("location_update", #"{"latitude":1,"longitude":1}"#)) == .badMessage)
  }

  @Test(
    "a member of the wrong type is bad_message",
    arguments: [
      #""heading":"1""#, #""speed":[]"#, #""altitude":1e999"#, #""speed":1e400"#, #""source":1"#, #""source":"GPS""#,
      #""batteryLevel":true"#, #""tripId":7"#, #""tripId":"""#, #""tripId":"a b""#, #""accuracy":{"horizontal":5}"#,
    ])
  func wrongTypes(_ member: String) {
    #expect(errorCode(fixPayload(member)) == .badMessage)
  }

  @Test("a batch has 1–500 fixes, and one that is wrong keeps its index")
  func batches() throws {
    func batch(_ count: Int) -> String {
      let fixes = (0..<count).map { #"{"latitude":1,"longitude":2,"timestamp":\#($0)}"# }
      return envelope("location_batch", #"{"locations":[\#(fixes.joined(separator: ","))]}"#)
    }
    #expect(errorCode(batch(0)) == .badMessage)
    #expect(errorCode(batch(1)) == nil)
    #expect(errorCode(batch(500)) == nil)
    #expect(errorCode(batch(501)) == .tooLarge)
    #expect(errorCode(envelope("location_batch", #"{"locations":{}}"#)) == .badMessage)
    #expect(errorCode(envelope("location_batch", "{}")) == .badMessage)
    let mixed = envelope(
      "location_batch",
      #"""
      {"locations":[{"latitude":1,"longitude":2,"timestamp":1763680000003},{"latitude":91,"longitude":2,"timestamp":1763680000003},null,7,
      {"latitude":1,"longitude":2},{"latitude":1,"longitude":2,"timestamp":-1},{"latitude":1,"longitude":2,"timestamp":1763680000004}]}
      """#)
    guard case .locationBatch(let read) = try readClient(mixed).message else { throw Unexpected() }
    #expect(
      read.fixes.map { $0.map(\.timestamp.milliseconds) } == [
        .success(1_763_680_000_003), .failure(.invalidLocation), .failure(.badMessage), .failure(.badMessage),
        .failure(.badMessage), .failure(.invalidLocation), .success(1_763_680_000_004),
      ])
  }

  @Test("a fix in the nested form of the original design means the same as a flat one")
  func nested() throws {
    let flat =
      #"{"latitude":1,"longitude":2,"altitude":3,"heading":4,"speed":5,"accuracy":6,"timestamp":1763680000007,"source":"gps"}"#
    let place = #"{"latitude":1,"longitude":2,"altitude":3,"heading":4,"speed":5}"#
    for accuracy in [#"{"horizontal":6,"vertical":9}"#, "6"] {
      let nested =
        #"{"id":"x","coordinate":\#(place),"accuracy":\#(accuracy),"timestamp":1763680000007,"source":"gps","metadata":{}}"#
      guard
        case .locationBatch(let read) = try readClient(
          envelope("location_batch", #"{"locations":[\#(flat),\#(nested)]}"#)
        ).message
      else { throw Unexpected() }
      #expect(read.fixes[0] == read.fixes[1])
      #expect(try read.fixes[0].get().accuracy == 6)
    }
  }

  @Test(
    "a time before 2000 is refused in words that name time=, of fixes and of sending them as invalid_location",
    arguments: [
      (TimeFormat.unixMilliseconds, "785372800.123", "946684799999", "946684800000"),
      (.unixMilliseconds, "-1", "0", "1763680000000"),
      (.apple, "-978307200", "-31622400.001", "-31622400"),
      (.rfc3339, #""0001-01-01T00:00:00Z""#, #""1999-12-31T23:59:59.999Z""#, #""2000-01-01T00:00:00Z""#),
    ])
  func earlyTimes(time: TimeFormat, early: String, justEarly: String, good: String) throws {
    func fault(_ text: String) -> MessageError? {
      do throws(MessageError) {
        _ = try readClient(text, time: time)
        return nil
      } catch {
        return error
      }
    }
    func message(_ type: String, _ payload: String, sent: String) -> String {
      #"{"type":"\#(type)","payload":{\#(payload)},"timestamp":\#(sent),"messageId":"m"}"#
    }
    for wrong in [early, justEarly] {
      func fix(_ timestamp: String) -> String { #""latitude":1,"longitude":2,"timestamp":\#(timestamp)"# }
      for text in [
        message("location_update", fix(wrong), sent: good), message("location_update", fix(good), sent: justEarly),
        message("location_batch", #""locations":[{\#(fix(good))}]"#, sent: justEarly),
      ] {
        #expect(fault(text)?.code == .invalidLocation, "\(text)")
        #expect(fault(text)?.text.contains("time=") == true, "\(text)")
      }
      let batch = message("location_batch", #""locations":[{\#(fix(good))},{\#(fix(wrong))}]"#, sent: good)
      guard case .locationBatch(let read) = try readClient(batch, time: time).message else { throw Unexpected() }
      #expect(read.fixes.map { $0.map { _ in true } } == [.success(true), .failure(.invalidLocation)])
      let move = message("trip_status", #""tripId":"t","status":"accepted","timestamp":\#(wrong)"#, sent: good)
      #expect(fault(move)?.code == .badMessage)
      #expect(fault(move)?.text.contains("time=") == true)
      #expect(throws: MessageError.self) {
        try Array("{\(fix(wrong))}".utf8).span.withUnsafeBytes { (bytes) throws(MessageError) in
          try MessageReader().readLocations(bytes, time: time)
        }
      }
    }
    #expect(fault(message("location_update", #""latitude":1,"longitude":2,"timestamp":\#(good)"#, sent: good)) == nil)
    #expect(fault(message("ping", "", sent: good)) == nil)
  }

  @Test("an HTTP body is one fix or a batch, and its bytes are checked to be UTF-8")
  func httpBody() throws {
    func read(_ text: String) throws -> LocationBatch {
      try Array(text.utf8).span.withUnsafeBytes { (bytes) throws(MessageError) in
        try MessageReader().readLocations(bytes, time: .unixMilliseconds)
      }
    }
    let one = try read(#"{"tripId":"t1","latitude":1,"longitude":2,"timestamp":1763680000003}"#)
    #expect(one.tripID == Identifier("t1") && one.fixes.count == 1)
    let two = try read(
      #"{"locations":[{"latitude":1,"longitude":2,"timestamp":1763680000003},{"latitude":1,"longitude":2,"timestamp":1763680000004}]}"#
    )
    #expect(two.tripID == nil && two.fixes.count == 2)
    for wrong in ["", "[]", "{}", #"{"locations":[]}"#, #"{"latitude":91,"longitude":2,"timestamp":1763680000003}"#] {
      #expect(throws: MessageError.self) { try read(wrong) }
    }
  }

  @Test("a driver says available, unavailable or background, never on_trip, with up to 8 tags")
  func driverStatus() {
    func code(_ payload: String) -> ErrorCode? { errorCode(envelope("driver_status", payload)) }
    for status in ["available", "unavailable", "background"] { #expect(code(#"{"status":"\#(status)"}"#) == nil) }
    func tags(_ count: Int) -> String { Array(repeating: "\"t\"", count: count).joined(separator: ",") }
    #expect(code(#"{"status":"available","tags":[\#(tags(8))]}"#) == nil)
    for wrong in [
      "{}", #"{"status":"on_trip"}"#, #"{"status":"busy"}"#, #"{"status":1}"#, #"{"status":"available","tags":"a"}"#,
      #"{"status":"available","tags":[\#(tags(9))]}"#, #"{"status":"available","tags":[""]}"#,
      #"{"status":"available","tags":[1]}"#, #"{"status":"available","vehicleType":""}"#,
    ] { #expect(code(wrong) == .badMessage, "\(wrong)") }
  }

  @Test("a place with more digits is the one that the binary protocol has")
  func placesInSteps() throws {
    let text =
      #"{"status":"requested","tripId":"t","timestamp":1763680000001,"#
      + #""pickup":{"latitude":48.13711234567,"longitude":-11.570000049999}}"#
    guard case .tripStatus(let report) = try readClient(envelope("trip_status", text)).message else {
      throw Unexpected()
    }
    #expect(report.pickup == Coordinate(latitude: 48.1371123, longitude: -11.57))
  }

  @Test("what belongs to requested is read with it and passed over without it")
  func tripStatus() throws {
    let more =
      #""tripId":"t","timestamp":1763680000001,"pickup":{"latitude":1,"longitude":2},"driverId":"d","riderId":"r""#
      + #","route":"_p~iF~ps|U_ulLnnqC""#
    guard
      case .tripStatus(let asked) = try readClient(envelope("trip_status", #"{"status":"requested",\#(more)}"#)).message,
      case .tripStatus(let moved) = try readClient(envelope("trip_status", #"{"status":"accepted",\#(more)}"#)).message
    else { throw Unexpected() }
    #expect(asked.pickup != nil && asked.driverID == Identifier("d") && asked.riderID != nil)
    #expect(asked.route?.points.count == 2)
    #expect(
      moved
        == TripStatusReport(
          tripID: asked.tripID, status: .accepted, timestamp: Timestamp(milliseconds: 1_763_680_000_001),
          driverID: Identifier("d")), "ops give it to that driver")
    #expect(
      errorCode(envelope("trip_status", #"{"tripId":"t","status":"gone","timestamp":1763680000001}"#)) == .badMessage)
    #expect(errorCode(envelope("trip_status", #"{"tripId":"t","status":"accepted"}"#)) == .badMessage)
    let far = #"{"tripId":"t","status":"accepted","timestamp":1763680000001,"location":{"latitude":99,"longitude":0}}"#
    #expect(errorCode(envelope("trip_status", far)) == .invalidLocation)
  }

  @Test("a resume point is a whole number with the epoch that it belongs to, exact over 64 bits")
  func resumePoints() throws {
    func subscribe(_ members: String) -> String { envelope("subscribe", #"{"channel":"trip:t",\#(members)}"#) }
    for (text, value) in [("0", 0), ("41.0", 41), ("4.1e1", 41), ("18446744073709551615", UInt64.max)] {
      guard case .subscribe(let read) = try readClient(subscribe(#""since":\#(text),"epoch":"e""#)).message else {
        throw Unexpected()
      }
      #expect(read.resume?.since == value)
    }
    for wrong in [
      #""since":1"#, #""since":-1,"epoch":"e""#, #""since":1.5,"epoch":"e""#, #""since":"1","epoch":"e""#,
      #""since":1,"epoch":"""#, #""since":1,"epoch":"123456789012345678901234567890123""#,
      #""since":1e999,"epoch":"e""#,
    ] { #expect(errorCode(subscribe(wrong)) == .badMessage, "\(wrong)") }
    #expect(errorCode(subscribe(#""epoch":"e""#)) == nil)
  }

  @Test("a ping may carry anything; what the pong sets itself is left out of the echo")
  func pings() throws {
    func members(_ payload: String) throws -> String? {
      guard case .ping(let ping) = try readClient(envelope("ping", payload)).message else { throw Unexpected() }
      return ping.members.map { String(decoding: $0, as: UTF8.self) }
    }
    for empty in ["{}", " { } ", "null", "1", "[1,2]", "\"a\"", #"{"replyTo":1}"#] {
      #expect(try members(empty) == nil)
    }
    #expect(
      try members(#"{ "a" : [1, {"b":"]}\"\\"}] , "c" : "\u00e9" }"#) == #""a" : [1, {"b":"]}\"\\"}],"c" : "\u00e9""#)
    #expect(
      try members(#"{"serverTime":1,"a":-1.5e3,"reply\u0054o":{},"b":false,"storedThrough":0}"#)
        == #""a":-1.5e3,"b":false"#)
    #expect(errorCode(#"{"type":"ping","timestamp":1,"messageId":"m1"}"#) == .badMessage)
  }

  @Test("a change of a trip names the trip and something to change, each checked")
  func tripChange() throws {
    let full = #"{"tripId":"t","pickup":{"latitude":1,"longitude":2},"dropoff":null,"route":"_p~iF~ps|U_ulLnnqC"}"#
    guard case .tripChange(let change) = try readClient(envelope("trip_change", full)).message else {
      throw Unexpected()
    }
    #expect(change.tripID.description == "t" && change.dropoff == nil && change.pickup?.longitude == 2)
    #expect(change.route?.polyline == "_p~iF~ps|U_ulLnnqC")
    let rows: [(String, ErrorCode)] = [
      (#"{"tripId":"t"}"#, .badMessage), (#"{"tripId":"t","pickup":null}"#, .badMessage),
      (#"{"pickup":{"latitude":1,"longitude":2}}"#, .badMessage), (#"{"tripId":"t","route":"?"}"#, .badMessage),
      (#"{"tripId":"t","dropoff":{"latitude":91,"longitude":2}}"#, .invalidLocation),
    ]
    for (payload, code) in rows {
      let error = #expect(throws: MessageError.self) { try readClient(envelope("trip_change", payload)) }
      #expect(error?.code == code, "\(payload)")
    }
    let early = envelope("trip_change", full).replacing(#""timestamp":1763680000123"#, with: #""timestamp":785372800"#)
    #expect(throws: MessageError.self) { try readClient(early) }
  }
}
