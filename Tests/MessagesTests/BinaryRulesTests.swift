// The rules of binary messages, each by itself: what is refused and with which code, what a reader remembers, what it
// does not need to.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@Suite struct BinaryRules {
  private let time = Timestamp(milliseconds: 1_763_680_000_131)

  private func code(_ bytes: [UInt8]) -> ErrorCode? {
    var hub = BinaryPeer()
    do throws(MessageError) {
      _ = try hub.readClient(bytes)
      return nil
    } catch {
      return error.code
    }
  }

  private func fix(_ latitude: Int32, _ longitude: Int32, flags: UInt8 = 0, _ rest: [UInt8] = []) -> [UInt8] {
    let places = [latitude, longitude].flatMap { place in (0..<4).map { UInt8(truncatingIfNeeded: place >> (8 * $0)) } }
    return [0x80 | flags, 3] + places + [0, 0, 0, 0, 0, 1] + [0] + rest
  }

  @Test("each fault has the code that JSON's has")
  func codes() {
    #expect(code(fix(900_000_000, -1_800_000_000)) == nil)
    #expect(code(fix(900_000_001, 0)) == .invalidLocation)
    #expect(code(fix(0, 1_800_000_001)) == .invalidLocation)
    #expect(code(fix(0, 0, flags: 2, [0xA0, 0x8C])) == nil)  // 360.00°
    #expect(code(fix(0, 0, flags: 2, [0xA1, 0x8C])) == .invalidLocation)
    #expect(code(fix(0, 0, flags: 0x60)) == .badMessage)  // no such way to name a trip
    #expect(code(fix(0, 0, flags: 0x20)) == .badMessage)  // as before, and there is none
    #expect(code([11, 3, 0, 0, 0, 0, 0, 1]) == .unknownType)
    #expect(code([0, 3, 0, 0, 0, 0, 0, 1]) == .unknownType)
    #expect(code([]) == .badMessage)
    #expect(code([1, 3, 0, 0, 0, 0, 0, 1, 0, 0]) == .badMessage)  // a batch of none
    #expect(code([1, 3, 0, 0, 0, 0, 0, 1, 0, 0xF5, 3] + [UInt8](repeating: 0x80, count: 501)) == .tooLarge)
    #expect(code([1, 3, 0, 0, 0, 0, 0, 1, 0, 0xF4, 3] + [UInt8](repeating: 0x80, count: 500)) == nil)
    #expect(code([6, 3, 0, 0, 0, 0, 0, 1, 0xFF, 0xFF, 3]) == .badMessage)  // a ping that says it is longer than it is
    #expect(code([4, 3, 0, 0, 0, 0, 0, 1, 99, 0]) == .unknownChannel)
    #expect(code([6, 3, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0]) == .badMessage)  // a time after 9999
    #expect(code([UInt8](repeating: 6, count: 256 * 1024 + 1)) == .tooLarge)
  }

  @Test("a number of steps beyond all measures is the same when it is written again")
  func largeNumbers() throws {
    func written(_ message: [UInt8]) throws -> [UInt8] {
      var peer = BinaryPeer()
      let read = try peer.readClient(message)
      var buffer = ByteBuffer()
      BinaryWriter.write(
        read.message, messageID: read.messageID, timestamp: read.timestamp, tripBefore: nil, into: &buffer)
      return buffer.array()
    }
    var random = SplitMix64(seed: 50)
    for _ in 0..<10_000 {
      let steps = UInt64.random(in: 0 ... .max, using: &random) >> UInt64.random(in: 0..<64, using: &random)
      var rest: [UInt8] = []
      var left = steps
      while left > 127 {
        rest.append(UInt8(truncatingIfNeeded: left) | 0x80)
        left >>= 7
      }
      // An accuracy; and a speed, of which fuzz_binary found one of 2^53 hundredths, less some.
      for flags in [1, 4] as [UInt8] {
        let message = fix(0, 0, flags: flags, rest + [UInt8(left)])
        let once = try written(message)
        #expect(try written(once) == once)
        if steps < 1 << 50 { #expect(once == message) }
      }
    }
  }

  @Test("an error names the message where its id could be read")
  func errorsAreNamed() throws {
    var hub = BinaryPeer()
    for (message, id) in [
      (fix(900_000_001, 0), "1"), ([6, 4, 0x68, 0x69], "hi"), ([2, 0x0F, 0], "7"), ([0xFF], nil),
    ] as [([UInt8], String?)] {
      let error = #expect(throws: MessageError.self) { _ = try hub.readClient(message) }
      #expect(error?.messageID?.description == id)
    }
  }

  @Test("an invalid fix keeps its index in a batch, and the ones behind it count from it")
  func batchFaults() throws {
    var hub = BinaryPeer()
    let far: [UInt8] = [0x80, 0xE8, 0x92, 0xA6, 0x0E]  // 1.9e9 steps, 190°
    let back: [UInt8] = [0xFF, 0xE7, 0x92, 0xA6, 0x0E]
    let read = try hub.readClient(
      [1, 3, 0, 0, 0, 0, 0, 1, 0, 4] + [0, 2, 2, 0x82, 0x80, 0x80, 0x80, 0x80, 0x40] + ([0, 0] + far + [2]) + [0x80]
        + ([0, 2] + back + [2]))
    guard case .locationBatch(let batch) = read.message else { throw Unexpected() }
    #expect(batch.fixes.count == 4)
    #expect(batch.fixes[1] == .failure(.invalidLocation))
    #expect(batch.fixes[2] == .failure(.badMessage))
    guard case .success(let first) = batch.fixes[0], case .success(let last) = batch.fixes[3] else {
      throw Unexpected()
    }
    #expect(first.coordinate == Coordinate(latitude: 1e-7, longitude: 1e-7))
    #expect(last.coordinate == Coordinate(latitude: 2e-7, longitude: 1e-7))
    #expect(last.timestamp == Timestamp(milliseconds: 1 << 40 + 3))
  }

  @Test(
    "times before 2000 are refused: of fixes and of sending them as invalid_location, of a trip's move as bad_message")
  func earlyTimes() throws {
    let earliest = Timestamp.earliestFromClients.milliseconds
    func time(_ milliseconds: Int64) -> [UInt8] { (0..<6).map { UInt8(truncatingIfNeeded: milliseconds >> (8 * $0)) } }
    func update(_ fix: Int64, sentLater: UInt8) -> [UInt8] {
      [0x80, 3, 0, 0, 0, 0, 0, 0, 0, 0] + time(fix) + [sentLater]
    }
    #expect(code(update(earliest, sentLater: 0)) == nil)
    #expect(code(update(earliest - 1, sentLater: 2)) == .invalidLocation)
    #expect(code(update(earliest, sentLater: 1)) == .invalidLocation, "sent a millisecond before")
    var hub = BinaryPeer()
    let error = #expect(throws: MessageError.self) { _ = try hub.readClient(update(785_372_800, sentLater: 0)) }
    #expect(error?.text.contains("time=") == true)
    #expect(code([1, 3] + time(earliest - 1) + [0, 1, 0x80]) == .invalidLocation, "a batch, by its envelope")
    let batch = try hub.readClient([1, 3] + time(earliest) + [0, 1] + [0, 2, 2, 2])
    guard case .locationBatch(let read) = batch.message else { throw Unexpected() }
    #expect(read.fixes == [.failure(.invalidLocation)])
    let trip: [UInt8] = [1, 0x74, 1]
    #expect(code([3, 3] + time(earliest) + trip + time(earliest) + [0]) == nil)
    #expect(code([3, 3] + time(earliest) + trip + time(earliest - 1) + [0]) == .badMessage)
    #expect(code([6, 3] + time(1) + [0]) == nil, "a ping's time says nothing")
    #expect(code([6, 3] + time(1) + [0x80, 32] + [UInt8](repeating: 0x78, count: 4096)) == nil)
    #expect(code([6, 3] + time(1) + [0x81, 32] + [UInt8](repeating: 0x78, count: 4097)) == .badMessage)
  }

  @Test("texts must be UTF-8, and ids what ids are")
  func texts() {
    #expect(code([6, 4, 0xC3, 0x28, 0, 0, 0, 0, 0, 1, 0]) == .badMessage)  // the message's id
    #expect(code([6, 4, 0xC3, 0xA9, 0, 0, 0, 0, 0, 1, 0]) == nil)
    #expect(code([6, 0, 0, 0, 0, 0, 0, 1, 0]) == .badMessage)  // an empty one
    #expect(code([6, 130, 1] + [UInt8](repeating: 0x61, count: 65) + [0, 0, 0, 0, 0, 1, 0]) == .badMessage)
    #expect(code([4, 3, 0, 0, 0, 0, 0, 1, 0, 2, 0x61, 0x20, 0]) == .badMessage)  // "a "
    #expect(code([7, 3, 0, 0, 0, 0, 0, 1, 1, 0x80]) == .badMessage)  // a token
    #expect(code([7, 3, 0, 0, 0, 0, 0, 1, 0]) == .badMessage)
  }

  @Test("numbers of variable length have up to 64 bits")
  func varints() throws {
    var buffer = ByteBuffer()
    for value in [0, 127, 128, 16_383, 16_384, UInt64(UInt32.max), 1 << 63, .max] {
      buffer.removeAll()
      buffer.append(varint: value)
      #expect(buffer.count == max(1, (64 - value.leadingZeroBitCount + 6) / 7))
    }
    // `since` of a subscribe: 2^64 − 1 is read, and what is more is not.
    let most = [UInt8](repeating: 0xFF, count: 9)
    #expect(code([4, 3, 0, 0, 0, 0, 0, 1, 5, 1] + most + [1] + [1, 0x61]) == nil)
    #expect(code([4, 3, 0, 0, 0, 0, 0, 1, 5, 1] + most + [2] + [1, 0x61]) == .badMessage)
    #expect(code([4, 3, 0, 0, 0, 0, 0, 1, 5, 1] + most + [0x81, 0] + [1, 0x61]) == .badMessage)
  }

  @Test("a pseudonym is nine bytes, and comes back as it was")
  func pseudonyms() throws {
    let others = ["phzzzzzzzzzzzz", "p4kd02nx7t9wba", "p4kd02nx7t9wbM"]
    for text in ["p4kd02nx7t9wbm", "p0000000000000", "pgzzzzzzzzzzzz"] + others {
      var peer = BinaryPeer()
      let id = try #require(Identifier(text))
      let envelope = ClientEnvelope(
        messageID: MessageID(number: 1), timestamp: time, message: .query(.driver(id)))
      let written = peer.write(envelope)
      #expect(try peer.readClient(written) == envelope)
      #expect(written.count == 9 + (others.contains(text) ? 15 : 9), "\(text)")
    }
  }

  @Test("any position may be missing: each says the same without those before it")
  func independence() throws {
    let driver = try #require(Identifier("driver-12"))
    let channel = Channel.driver(driver)
    var (all, some) = (BinaryPeer(), BinaryPeer())
    try all.name(channel, 9, ImpliedNames(driverID: driver), at: time)
    try some.name(channel, 9, ImpliedNames(driverID: driver), at: time)
    var random = SplitMix64(seed: 3)
    for second in 0..<1000 {
      let now = Timestamp(milliseconds: time.milliseconds + Int64(second) * 1000)
      let location = DriverLocation(
        driverID: driver, tripID: second % 7 == 0 ? driver : nil,
        coordinate: try #require(Coordinate(latitude: 48 + Double(second) * 1e-4, longitude: -11)), heading: 12.34,
        speed: 8.3, accuracy: 4, confidence: .high, timestamp: Timestamp(milliseconds: now.milliseconds - 130),
        age: 0.12, after: 3)
      let envelope = ServerEnvelope(
        messageID: try #require(MessageID("p0")), timestamp: now,
        message: .publication(Publication(channel: channel, number: 0, timestamp: now, body: .driverLocation(location)))
      )
      let message = all.write(envelope)
      #expect(try all.readServer(message) == envelope)
      if Int.random(in: 0..<20, using: &random) == 0 { #expect(try some.readServer(message) == envelope) }
    }
  }

  @Test("a speed beyond any vehicle is refused wherever a position has one, as in JSON")
  func speeds() throws {
    let driver = try #require(Identifier("d"))
    let place = try #require(Coordinate(latitude: 1, longitude: 2))
    let cell = GeohashCell(place, precision: 6)
    func publication(_ channel: Channel, _ body: Publication.Body) -> ServerMessage {
      .publication(Publication(channel: channel, number: 0, timestamp: time, body: body))
    }
    for (speed, isRead) in [(1000.0, true), (1000.01, false), (1e308, false)] {
      let location = DriverLocation(
        driverID: driver, tripID: nil, coordinate: place, heading: 12.34, speed: speed, accuracy: 5, confidence: .low,
        timestamp: time, age: 0, after: 0)
      var update = AreaUpdate(cell: cell, tick: 1, isFull: true, drivers: [])
      update.drivers = [
        AreaUpdate.Driver(
          driverID: driver, coordinate: place, heading: nil, speed: speed, status: .available, timestamp: time)
      ]
      var report = DriverReport(driverID: driver, status: .available)
      report.position = DriverReport.Place(
        coordinate: place, heading: nil, speed: speed, accuracy: 5, age: 0, timestamp: time)
      let answer = Subscribed(
        replyTo: try #require(MessageID("s")), channel: .driver(driver), sequence: 0,
        epoch: try #require(InlineText("e")), recovered: false, snapshot: Subscribed.Snapshot(position: location))
      for message in [
        publication(.driver(driver), .driverLocation(location)), publication(.area(cell), .areaUpdate(update)),
        .reply(.subscribed(answer)),
        .reply(.result(ResultReply(replyTo: answer.replyTo, result: .driver(report)))),
      ] {
        var peer = BinaryPeer()
        try peer.name(.driver(driver), 1, at: time)
        let id = try #require(MessageID("r1"))
        let bytes = peer.write(ServerEnvelope(messageID: id, timestamp: time, message: message))
        if isRead {
          #expect(try peer.readServer(bytes)?.message == message)
        } else {
          #expect(throws: MessageError.self, "\(message)") { try peer.readServer(bytes) }
        }
      }
    }
  }

  @Test("an event with a keyword of a newer hub is unknown, and its number on its channel counts, as in JSON")
  func unknownKeywords() throws {
    let trip = try #require(Identifier("T1"))
    let update = TripUpdate(
      tripID: trip, status: .driverEnRoute, previousStatus: .accepted, driverID: nil, timestamp: time, location: nil,
      sequence: 4)
    // `keyword`: where its byte is, from the end.
    let events: [(body: Publication.Body, type: String, keyword: Int)] = [
      (.tripUpdate(update), "trip_update", 9),
      (.tripUpdate(update), "trip_update", 8),
      (.offer(Offer(tripID: trip, state: .withdrawn(.expired), sequence: 4)), "offer_withdrawn", 2),
    ]
    for (body, type, keyword) in events {
      var peer = BinaryPeer()
      try peer.name(.trip(trip), 1, at: time)
      let publication = Publication(channel: .trip(trip), number: 7, timestamp: time, body: body)
      let id = try #require(MessageID("p7"))
      var bytes = peer.write(ServerEnvelope(messageID: id, timestamp: time, message: .publication(publication)))
      #expect(try peer.readServer(bytes)?.message == .publication(publication))
      bytes[bytes.count - keyword] = 200
      let read = try #require(try peer.readServer(bytes))
      #expect(read.message == .unknown(type: type))
      #expect(read.unknownEvent?.channel == .trip(trip))
      #expect(read.unknownEvent?.sequence == 4)
      #expect(read.messageID == id && read.timestamp == time)
      // Cut short it is no event: its number is not known.
      #expect(throws: MessageError.self) { try peer.readServer(Array(bytes.dropLast())) }
    }
  }

  @Test("the time of state is found over the end of its 32 bits, in both directions")
  func wrappingTime() throws {
    let border: Int64 = 411 << 32
    let driver = try #require(Identifier("d"))
    for (known, sent) in [(-1, 1), (1, -1), (-2_000_000_000, 100), (100, -2_000_000_000), (0, 0)] as [(Int64, Int64)] {
      var peer = BinaryPeer()
      try peer.name(.driver(driver), 1, at: Timestamp(milliseconds: border + known))
      let published = Timestamp(milliseconds: border + sent)
      let update = AreaUpdate(
        cell: GeohashCell(try #require(Coordinate(latitude: 1, longitude: 2)), precision: 6), tick: 1, isFull: true,
        drivers: [])
      let envelope = ServerEnvelope(
        messageID: try #require(MessageID("p0")), timestamp: published,
        message: .publication(
          Publication(channel: .area(update.cell), number: 0, timestamp: published, body: .areaUpdate(update))))
      #expect(try peer.readServer(peer.write(envelope)) == envelope)
    }
  }

  @Test("names count from where they come, and a number that was given away means the new channel")
  func namesChange() throws {
    let (one, two) = (try #require(Identifier("one")), try #require(Identifier("two")))
    var peer = BinaryPeer()
    try peer.name(.trip(one), 5, at: time)
    let location = DriverLocation(
      driverID: two, tripID: one, coordinate: try #require(Coordinate(latitude: 1, longitude: 2)), heading: nil,
      speed: nil, accuracy: 5, confidence: .low, timestamp: time, age: 0, after: 0)
    func position(on channel: Channel) throws -> ServerEnvelope {
      ServerEnvelope(
        messageID: try #require(MessageID("p0")), timestamp: time,
        message: .publication(
          Publication(channel: channel, number: 0, timestamp: time, body: .driverLocation(location))))
    }
    let long = peer.write(try position(on: .trip(one)))
    let names = ImpliedNames(driverID: two, tripID: one)
    var buffer = ByteBuffer()
    BinaryWriter.write(names, handle: 5, into: &buffer)
    #expect(try peer.readServer(buffer.array()) == nil)
    peer.naming[.trip(one)] = (5, names)
    let short = peer.write(try position(on: .trip(one)))
    #expect(short.count == long.count - 8)
    #expect(try peer.readServer(short) == position(on: .trip(one)))
    #expect(try peer.readServer(long) == position(on: .trip(one)))
    try peer.name(.driver(two), 5, names, at: time)
    #expect(try peer.readServer(short) == position(on: .driver(two)))
    let ended = Unsubscribed(replyTo: nil, channel: .driver(two), reason: .asked)
    let id = try #require(MessageID("r4"))
    _ = try peer.readServer(
      peer.write(ServerEnvelope(messageID: id, timestamp: time, message: .reply(.unsubscribed(ended)))))
    #expect(throws: MessageError.self) { _ = try peer.readServer(short) }
  }

  @Test("a type and a word of a newer hub are passed over")
  func newerHub() throws {
    var peer = BinaryPeer()
    try peer.name(.fleet, 1, at: time)
    guard case .unknown(let type)? = try peer.readServer([99, 1, 2])?.message else { throw Unexpected() }
    #expect(type == "99")
    let fix = RawFix(
      driverID: try #require(Identifier("d")), coordinate: try #require(Coordinate(latitude: 1, longitude: 2)),
      timestamp: time, verdict: .held)
    try peer.name(.raw(fix.driverID), 2, at: time)
    let publication = Publication(channel: .raw(fix.driverID), number: 0, timestamp: time, body: .rawFix(fix))
    let id = try #require(MessageID("p0"))
    var message = peer.write(ServerEnvelope(messageID: id, timestamp: time, message: .publication(publication)))
    #expect(try peer.readServer(message)?.message == .publication(publication))
    // Behind type, channel and flags.
    message[3] = 200
    #expect(try peer.readServer(message)?.message == .unknown(type: "raw_fix"))
  }
}
