// What clients read from a hub, also from a newer one.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

private func read(_ text: String) throws(MessageError) -> ServerMessage {
  try readServer(Array(text.utf8)).message
}

@Suite struct ServerMessages {
  @Test("a type or a word of a newer hub is unknown, and no error")
  func newerHub() throws {
    #expect(try read(envelope("weather_update", #"{"tick":5}"#)) == .unknown(type: "weather_update"))
    let notification = #"{"channel":"fleet","kind":"party","title":"a","body":"b","sequence":1}"#
    #expect(try read(envelope("notification", notification)) == .unknown(type: "notification"))
  }

  @Test("an answer or an end counts whatever word of a newer hub is in it: that part is missing")
  func newerWords() throws {
    let (id, trip) = (try #require(MessageID("m7")), Channel.trip(try #require(Identifier("T1"))))
    let sampling = #"{"interval":2,"minDistance":5,"reason":"moonlight"}"#
    #expect(
      try read(envelope("sampling", sampling))
        == .reply(.sampling(SamplingAdvice(interval: 2, minDistance: 5, reason: nil))))
    let end = #"{"channel":"trip:T1","reason":"bored"}"#
    #expect(
      try read(envelope("unsubscribed", end))
        == .reply(.unsubscribed(Unsubscribed(replyTo: nil, channel: trip, reason: nil))))
    let refusal =
      #"{"code":"invalid_transition","message":"no","replyTo":"m7","details":{"status":"teleported"}}"#
    #expect(
      try read(envelope("error", refusal))
        == .reply(.error(ErrorReply(code: .invalidTransition, message: "no", replyTo: id))))
    let state = #""trip":{"tripId":"T1","status":"teleported","timestamp":1763680000000}"#
    #expect(try read(envelope("ack", #"{"replyTo":"m7",\#(state)}"#)) == .reply(.ack(Ack(replyTo: id))))
    let place = #""latitude":1,"longitude":2,"accuracy":5,"timestamp":1763680000000,"age":0,"after":3"#
    let leg = #""eta":60,"distance":300,"arrivalTime":1763680060000,"after":3"#
    let snapshot = [
      state, #""position":{"driverId":"D1",\#(place),"confidence":"perfect"}"#,
      #""eta":{"tripId":"T1",\#(leg),"target":"pickup","basis":"road"}"#,
    ].joined(separator: ",")
    var answer = Subscribed(
      replyTo: id, channel: trip, sequence: 3, epoch: try #require(InlineText("e")), recovered: false,
      snapshot: Subscribed.Snapshot())
    let head = #""replyTo":"m7","channel":"trip:T1","sequence":3,"epoch":"e","recovered":false"#
    #expect(
      try read(envelope("subscribed", #"{\#(head),"snapshot":{\#(snapshot)}}"#)) == .reply(.subscribed(answer)))
    let known = #""eta":{"tripId":"T1",\#(leg),"target":"pickup","basis":"route"}"#
    answer.snapshot?.eta = ETAUpdate(
      tripID: try #require(Identifier("T1")), target: .pickup, eta: 60, distance: 300,
      arrivalTime: Timestamp(milliseconds: 1_763_680_060_000), basis: .route, after: 3)
    #expect(
      try read(envelope("subscribed", #"{\#(head),"snapshot":{\#(state),\#(known)}}"#)) == .reply(.subscribed(answer)))
  }

  @Test("a result with a word of a newer hub is unknown, and says what it answers")
  func newerResult() throws {
    let times = #""timestamp":1763680000000,"created":1763680000000,"updated":1763680000000"#
    for result in [
      #""tripId":"T1","status":"teleported",\#(times)"#, #""driverId":"D1","status":"asleep""#,
      #""drivers":[{"driverId":"D1","status":"available"},{"driverId":"D2","status":"asleep"}]"#,
    ] {
      let read = try readServer(Array(envelope("result", #"{"replyTo":"m7",\#(result)}"#).utf8))
      #expect(read.message == .unknown(type: "result") && read.unknownReplyTo == MessageID("m7"))
      #expect(read.unknownEvent == nil)
    }
    // Of an unknown type it is not known whether it is the answer.
    let progress = try readServer(Array(envelope("progress", #"{"replyTo":"m7"}"#).utf8))
    #expect(progress.message == .unknown(type: "progress") && progress.unknownReplyTo == nil)
  }

  @Test("an error code of a newer hub is internal to an older client, and keeps what it answers")
  func newerCode() throws {
    let message = try read(envelope("error", #"{"code":"too_hot","message":"x","replyTo":"m7","new":[{}]}"#))
    #expect(
      message == .reply(.error(ErrorReply(code: .internalError, message: "x", replyTo: MessageID("m7")))))
  }

  @Test("a publication's number is in its id, 0 where the id has another form")
  func numbers() throws {
    let payload = #"{"channel":"trip:t","tripId":"t","status":"accepted","timestamp":1,"sequence":1}"#
    for (id, number) in [("p18446744073709551615", UInt64.max), ("p0", 0), ("x5", 0), ("p", 0), ("p1x", 0)] {
      let text = #"{"type":"trip_update","payload":\#(payload),"timestamp":1,"messageId":"\#(id)"}"#
      guard case .publication(let publication) = try read(text) else {
        Issue.record("not a publication")
        return
      }
      #expect(publication.number == number)
    }
  }

  @Test("a message without what it must have is an error")
  func missing() {
    for (type, payload) in [
      ("driver_location", "{}"), ("ack", "{}"), ("pong", #"{"serverTime":1}"#), ("subscribed", #"{"replyTo":"a"}"#),
      ("connected", "{}"), ("error", "{}"), ("trip_update", #"{"channel":"fleet"}"#), ("notification", "[]"),
    ] {
      #expect(throws: MessageError.self) { try read(envelope(type, payload)) }
    }
  }

  /// Each message with a driver's position, with these members more in it.
  private func positions(_ more: String) -> [String] {
    let driver = #""driverId":"d","latitude":1,"longitude":2,"timestamp":1763680000000,\#(more)"#
    let location = driver + #","accuracy":5,"confidence":"high","age":0,"after":1"#
    let subscribed = #""replyTo":"s","channel":"trip:t","sequence":0,"epoch":"e","recovered":false"#
    let area = #""channel":"area:u281z7","cell":"u281z7","tick":1,"full":true,"left":[]"#
    let report = driver + #","status":"available","age":0"#
    return [
      envelope("driver_location", #"{"channel":"trip:t",\#(location)}"#),
      envelope("subscribed", #"{\#(subscribed),"snapshot":{"position":{\#(location)}}}"#),
      envelope("area_update", #"{\#(area),"drivers":[{\#(driver),"status":"available"}]}"#),
      envelope("result", #"{"replyTo":"q","drivers":[{\#(report)}]}"#),
      envelope("result", #"{"replyTo":"q",\#(report)}"#),
    ]
  }

  @Test("a heading beyond 360 and a speed beyond any vehicle are refused wherever a position has them")
  func motion() throws {
    for more in [#""heading":360.01"#, #""heading":1e9"#, #""speed":1000.01"#, #""speed":1e308"#] {
      for text in positions(more) { #expect(throws: MessageError.self, "\(text)") { try read(text) } }
    }
    for text in positions(#""heading":360,"speed":1000"#) {
      let read = try read(text)
      if case .publication(let publication) = read, case .driverLocation(let location) = publication.body {
        #expect(location.heading == 0 && location.speed == 1000)
      }
    }
  }

  @Test("a raw fix has whatever speed the phone says, and a heading")
  func rawMotion() throws {
    func raw(_ more: String) throws(MessageError) -> ServerMessage {
      let place = #""channel":"raw:d","driverId":"d","latitude":1,"longitude":2,"timestamp":1763680000000"#
      return try read(envelope("raw_fix", #"{\#(place),"verdict":"refused",\#(more)}"#))
    }
    #expect(throws: MessageError.self) { try raw(#""heading":1e9"#) }
    guard case .publication(let publication) = try raw(#""speed":1e308"#),
      case .rawFix(let fix) = publication.body
    else { throw Unexpected() }
    #expect(fix.speed == 1e308)
  }

  @Test("text of any kind is escaped so that it is read the same")
  func escaping() throws {
    let nasty = "\"\\/\u{8}\t\n\u{C}\r\u{0}\u{1F}\u{7F}\u{2028}é🚗</script>"
    let body = Notification(kind: .message, title: nasty, body: "", driverID: nil, sequence: 1)
    let publication = Publication(
      channel: .fleet, number: 5, timestamp: Timestamp(milliseconds: 9), body: .notification(body))
    var buffer = ByteBuffer()
    JSONWriter.write(publication, time: .unixMilliseconds, into: &buffer)
    #expect(try readServer(buffer.array()).message == .publication(publication))
  }

  @Test("every random position reads back with the same bits")
  func positions() throws {
    var random = SplitMix64(seed: 8)
    let reader = MessageReader()
    for _ in 0..<2000 {
      func number(_ range: ClosedRange<Double>) -> Double { Double.random(in: range, using: &random) }
      let location = DriverLocation(
        driverID: Identifier("d\(random.next())")!, tripID: Bool.random(using: &random) ? Identifier("t") : nil,
        coordinate: Coordinate(latitude: number(-90...90), longitude: number(-180...180))!,
        heading: Bool.random(using: &random) ? number(0...359) : nil,
        speed: Bool.random(using: &random) ? number(0...70) : nil, accuracy: number(0...500), confidence: .medium,
        timestamp: Timestamp(milliseconds: Int64.random(in: 0...253_402_300_799_999, using: &random)),
        age: number(-5...100), after: random.next())
      let publication = Publication(
        channel: .fleet, number: random.next(), timestamp: location.timestamp, body: .driverLocation(location))
      for time in TimeFormat.allCases {
        var buffer = ByteBuffer()
        JSONWriter.write(publication, time: time, into: &buffer)
        #expect(try readServer(buffer.array(), time: time, reader: reader).message == .publication(publication))
      }
    }
  }

  @Test("the longest position that there can be fits into the room that is reserved for one")
  func longestPosition() throws {
    let id = try #require(Identifier(String(repeating: "i", count: 64)))
    let long = -1.2345678901234567e-300
    let place = try #require(Coordinate(latitude: long, longitude: long))
    let time = Timestamp(milliseconds: 253_402_300_799_999)
    let location = DriverLocation(
      driverID: id, tripID: id, coordinate: place, heading: long, speed: long, accuracy: long, confidence: .medium,
      timestamp: time, age: long, after: .max)
    for channel in [Channel.trip(id), .driver(id), .fence(id), .nearby(place, radiusMeters: -long), .fleet] {
      let publication = Publication(channel: channel, number: .max, timestamp: time, body: .driverLocation(location))
      for format in TimeFormat.allCases {
        var buffer = ByteBuffer()
        JSONWriter.write(publication, time: format, into: &buffer)
        #expect(buffer.count < 850)
        let text = String(decoding: buffer.array(), as: UTF8.self)
        #expect(text.contains("\"after\":18446744073709551615},") && text.hasSuffix("\"p18446744073709551615\"}"))
      }
    }
  }

  @Test("the pong to the fullest ping that a client may send is read by a client")
  func fullestPing() throws {
    let members = (0..<128).map { "\"k\($0)\":0" }.joined(separator: ",")
    guard case .ping(let ping) = try readClient(envelope("ping", "{\(members)}")).message else { throw Unexpected() }
    let time = Timestamp(milliseconds: 1)
    let pong = Pong(replyTo: MessageID("m")!, ping: ping, serverTime: time, storedThrough: time)
    var buffer = ByteBuffer()
    JSONWriter.write(.pong(pong), timestamp: time, messageID: 1, time: .unixMilliseconds, into: &buffer)
    #expect(try readServer(buffer.array()).message == .reply(.pong(pong)))
  }

  @Test("the body of an HTTP error is what the contract says")
  func httpError() {
    var buffer = ByteBuffer()
    JSONWriter.writeError(.unknownTrip, message: "no trip \"x\"", into: &buffer)
    #expect(
      String(decoding: buffer.array(), as: UTF8.self)
        == #"{"error":{"code":"unknown_trip","message":"no trip \"x\""}}"#)
  }
}
