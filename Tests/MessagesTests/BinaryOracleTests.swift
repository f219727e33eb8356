// Random messages through both forms: what JSON says and reads, binary says and reads, byte for byte the same value.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@Suite struct BinaryOracle {
  @Test("a random message of a client means the same by JSON and then by binary")
  func clients() throws {
    var random = RandomMessages(seed: 5)
    var (client, hub) = (BinaryPeer(), BinaryPeer())
    for _ in 0..<4000 {
      let made = try random.fromClient()
      for time in [TimeFormat.unixMilliseconds, .rfc3339] {
        let byJSON = try readClient(written(made, time: time), time: time)
        #expect(byJSON == made)
        #expect(try hub.readClient(client.write(byJSON)) == made)
      }
    }
  }

  @Test("a random message of the hub means the same by JSON and then by binary, whatever was agreed on")
  func hubs() throws {
    var random = RandomMessages(seed: 6)
    for _ in 0..<4000 {
      let made = try random.fromHub()
      let byJSON = try readServer(written(made, time: .unixMilliseconds))
      #expect(byJSON == made)
      var peer = BinaryPeer()
      if case .publication(let publication) = made.message {
        try peer.name(publication.channel, random.handle(), try random.names(of: publication), at: made.timestamp)
      }
      #expect(try peer.readServer(peer.write(byJSON)) == withoutNumberOfState(made))
    }
  }
}

/// Messages whose numbers lie on the steps of binary ones.
private struct RandomMessages {
  var random: SplitMix64

  init(seed: UInt64) { random = SplitMix64(seed: seed) }

  mutating func whole(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &random) }
  mutating func chance() -> Bool { Bool.random(using: &random) }
  mutating func steps(_ most: Int64, _ unit: Double) -> Double { Double(whole(0...most)) / unit }
  mutating func maybe(_ most: Int64, _ unit: Double) -> Double? { chance() ? steps(most, unit) : nil }
  /// Small as often as large.
  mutating func handle() -> UInt32 {
    let bits = UInt32.random(in: 0...31, using: &random)
    return UInt32.random(in: 0...UInt32.max >> bits, using: &random)
  }

  mutating func one<T: CaseIterable>(_: T.Type) throws -> T {
    guard let one = T.allCases.randomElement(using: &random) else { throw Unexpected() }
    return one
  }

  mutating func time() -> Timestamp {
    Timestamp(milliseconds: chance() ? whole(1_763_000_000_000...1_764_000_000_000) : whole(0...253_402_300_799_999))
  }

  mutating func id() throws -> Identifier {
    let characters = Array("abcXYZ019._-")
    let text = String((0..<whole(1...64)).map { _ in characters[Int(whole(0...11))] })
    guard let id = Identifier(whole(0...3) == 0 ? "p4kd02nx7t9wbm" : text) else { throw Unexpected() }
    return id
  }

  mutating func maybeID() throws -> Identifier? { chance() ? try id() : nil }

  mutating func messageID() throws -> MessageID {
    let number = handle()
    guard let id = MessageID(chance() ? "\(number)" : "é-\(number)") else { throw Unexpected() }
    return id
  }

  mutating func place() throws -> Coordinate {
    guard
      let place = Coordinate(
        latitude: Double(whole(-900_000_000...900_000_000)) / 1e7,
        longitude: Double(whole(-1_800_000_000...1_800_000_000)) / 1e7)
    else { throw Unexpected() }
    return place
  }

  mutating func box() throws -> BoundingBox {
    let (a, b) = (try place(), try place())
    let (south, north) = (min(a.latitude, b.latitude), max(a.latitude, b.latitude))
    guard let box = BoundingBox(south: south, west: a.longitude, north: north, east: b.longitude) else {
      throw Unexpected()
    }
    return box
  }

  mutating func maybePlace() throws -> Coordinate? { chance() ? try place() : nil }

  mutating func text() throws -> InlineText {
    guard let text = InlineText(["van", "ü", "\"\\\n", "xl"][Int(whole(0...3))]) else { throw Unexpected() }
    return text
  }

  mutating func channel() throws -> Channel {
    switch whole(0...10) {
    case 0: .trip(try id())
    case 1: .driver(try id())
    case 2: .fence(try id())
    case 3: .area(GeohashCell(try place(), precision: Int(whole(3...8))))
    case 4: .nearby(try place(), radiusMeters: steps(100_000, 8) + 0.125)
    case 5: .trips
    case 6: .raw(try id())
    case 7: .box(try box())
    case 8: .counts(try box())
    case 9: .countsBlock(GeohashCell(try place(), precision: Int(whole(1...6))))
    case _: .fleet
    }
  }

  // MARK: Clients

  /// A time that a client may name.
  mutating func clientTime() -> Timestamp { max(time(), Timestamp.earliestFromClients) }

  mutating func fix() throws -> Fix {
    Fix(
      coordinate: try place(), timestamp: clientTime(), accuracy: maybe(20_000, 100), heading: maybe(35_999, 100),
      speed: maybe(9000, 100), altitude: chance() ? Double(whole(-40_000...900_000)) / 100 : nil,
      headingAccuracy: maybe(18_000, 100), speedAccuracy: maybe(1000, 100),
      source: chance() ? try one(FixSource.self) : nil, batteryLevel: maybe(100, 100))
  }

  mutating func fromClient() throws -> ClientEnvelope {
    let message: ClientMessage
    switch whole(0...10) {
    case 10: message = .offerDecline(OfferDecline(tripID: try id()))
    case 9: message = .tripChange(try tripChange())
    case 0...2: message = .locationUpdate(LocationUpdate(tripID: try maybeID(), fix: try fix()))
    case 3:
      let fixes = try (0..<whole(1...20)).map { _ in try .success(fix()) as Result<Fix, ErrorCode> }
      message = .locationBatch(LocationBatch(tripID: try maybeID(), fixes: fixes))
    case 4:
      let tags = chance() ? try (0..<whole(0...8)).map { _ in try text() } : nil
      let vehicleType = chance() ? try text() : nil
      message = .driverStatus(DriverStatusReport(status: .background, vehicleType: vehicleType, tags: tags))
    case 5: message = .tripStatus(try tripStatus())
    case 6:
      guard let epoch = InlineText("k3v9q2") else { throw Unexpected() }
      let resume = chance() ? ResumePoint(since: UInt64(handle()), epoch: epoch) : nil
      message = .subscribe(
        Subscribe(
          channel: try channel(), resume: resume, viewID: chance() ? try text() : nil,
          precision: chance() ? Int(whole(3...8)) : nil))
    case 7: message = .unsubscribe(chance() ? .channel(try channel()) : .view(try text()))
    case _:
      var search = DriverSearch(area: .nearby(try place(), radiusMeters: maybe(1000, 8).map { $0 + 1 }), limit: 7)
      search.filter = DriverFilter(
        status: chance() ? try one(DriverStatus.self) : nil, vehicleType: chance() ? try text() : nil,
        tags: chance() ? [try text()] : [], maxAge: maybe(600, 8), includesStale: chance())
      message = .query([.drivers(search), .driver(try id()), .trip(try id())][Int(whole(0...2))])
    }
    return ClientEnvelope(messageID: try messageID(), timestamp: clientTime(), message: message)
  }

  private mutating func tripChange() throws -> TripChange {
    TripChange(
      tripID: try id(), pickup: try place(), dropoff: try maybePlace(),
      route: chance() ? try Route(points: [place(), place()]) : nil)
  }

  private mutating func offerCriteria() throws -> OfferCriteria {
    var criteria = OfferCriteria()
    criteria.vehicleType = chance() ? try text() : nil
    criteria.tags = try (0..<whole(0...3)).map { _ in try text() }
    criteria.radiusMeters = Double(whole(1...100_000))
    (criteria.atOnce, criteria.seconds, criteria.limit) = (Int(whole(1...16)), Int(whole(5...120)), Int(whole(1...64)))
    return criteria
  }

  private mutating func offer() throws -> Offer {
    let terms = Offer.Terms(
      pickup: try place(), dropoff: try maybePlace(), distance: steps(99, 1), eta: steps(9000, 1), expires: time())
    let state: Offer.State = chance() ? .made(terms) : .withdrawn(try one(Offer.Withdrawal.self))
    return Offer(tripID: try id(), state: state, sequence: UInt64(handle()))
  }

  private mutating func tripStatus() throws -> TripStatusReport {
    var report = TripStatusReport(tripID: try id(), status: try one(TripStatus.self), timestamp: clientTime())
    report.location = try maybePlace()
    report.expectedStatus = chance() ? try one(TripStatus.self) : nil
    if report.status == .accepted { report.driverID = try maybeID() }
    guard report.status == .requested else { return report }
    report.pickup = try maybePlace()
    report.dropoff = try maybePlace()
    report.driverID = try maybeID()
    report.riderID = try maybeID()
    report.route = chance() ? try Route(points: [place(), place(), place()]) : nil
    report.offer = chance() ? try offerCriteria() : nil
    return report
  }

  // MARK: The hub

  mutating func names(of publication: Publication) throws -> ImpliedNames {
    guard chance(), case .driverLocation(let location) = publication.body else {
      return ImpliedNames(driverID: try maybeID(), tripID: try maybeID(), lagMilliseconds: whole(-1 << 40...1 << 40))
    }
    return ImpliedNames(
      driverID: location.driverID, tripID: location.tripID,
      lagMilliseconds: location.lagMilliseconds(publishedAt: publication.timestamp))
  }

  private mutating func location() throws -> DriverLocation {
    var location = DriverLocation(
      driverID: try id(), tripID: try maybeID(), coordinate: try place(), heading: maybe(35_999, 100),
      speed: maybe(9000, 100), accuracy: steps(20_000, 100), confidence: try one(Confidence.self), timestamp: time(),
      age: steps(chance() ? 5000 : 1 << 41, 1000), after: UInt64(handle()))
    if chance() { location.timeSource = .hub }
    return location
  }

  private mutating func eta(_ trip: Identifier) throws -> ETAUpdate {
    ETAUpdate(
      tripID: trip, target: try one(TripTarget.self), eta: steps(10_000, 1), distance: steps(1_000_000, 1),
      arrivalTime: time(), basis: try one(ETABasis.self), after: UInt64(handle()))
  }

  mutating func fromHub() throws -> ServerEnvelope {
    let number = UInt64(handle())
    let timestamp = time()
    guard whole(0...2) < 2 else {
      guard let id = MessageID("r\(number)") else { throw Unexpected() }
      return ServerEnvelope(messageID: id, timestamp: timestamp, message: .reply(try reply()))
    }
    guard let id = MessageID("p\(number)") else { throw Unexpected() }
    var channel = try channel()
    let body: Publication.Body
    switch whole(0...7) {
    case 7: body = .offer(try offer())
    case 0:
      var location = try location()
      location.status = chance() ? try one(DriverStatus.self) : nil
      body = .driverLocation(location)
    case 1: body = .etaUpdate(try eta(try self.id()))
    case 2: body = .tripUpdate(try tripUpdate(on: channel))
    case 3: body = .notification(try notification())
    case 4:
      if chance() { channel = .raw(try self.id()) }
      body = .rawFix(try rawFix())
    case 5:
      let update = try counts()
      channel = .countsBlock(update.block)
      body = .countsUpdate(update)
    case _:
      let cell = GeohashCell(try place(), precision: Int(whole(3...8)))
      if chance() { channel = .area(cell) }
      body = .areaUpdate(try area(cell))
    }
    return ServerEnvelope(
      messageID: id, timestamp: timestamp,
      message: .publication(Publication(channel: channel, number: number, timestamp: timestamp, body: body)))
  }

  private mutating func tripUpdate(on channel: Channel) throws -> TripUpdate {
    let summary = TripSummary(
      distance: steps(1_000_000, 10), approach: steps(1_000_000, 10), track: steps(1_000_000, 10),
      duration: steps(10_000_000, 1000), waiting: steps(10_000_000, 1000), fixes: UInt64(handle()), gaps: 3,
      gapDuration: steps(1000, 1000))
    var update = TripUpdate(
      tripID: try self.id(), status: try one(TripStatus.self),
      previousStatus: chance() ? try one(TripStatus.self) : nil, driverID: try maybeID(), timestamp: time(),
      location: try maybePlace(), pickup: try maybePlace(), dropoff: try maybePlace(),
      route: chance() ? "_p~iF~ps|U_ulLnnqC" : nil, summary: chance() ? summary : nil, sequence: UInt64(handle()))
    if channel == .trips { update.riderID = try maybeID() }
    return update
  }

  private mutating func notification() throws -> HubMessages.Notification {
    let leg = Notification.Leg(target: try one(TripTarget.self), distance: steps(9000, 1), eta: steps(900, 1))
    var fence = FenceNotice(fenceID: try self.id(), timestamp: time(), location: try maybePlace())
    fence.otherID = try maybeID()
    fence.distance = maybe(100_000, 100)
    fence.duration = maybe(10_000_000, 1000)
    fence.speed = maybe(9000, 100)
    fence.speedLimit = maybe(9000, 100)
    fence.reason = chance() ? try one(FenceNotice.Reason.self) : nil
    // About a driver on its way, about a fence, or neither: in JSON both have a distance.
    let about = whole(0...3)
    return HubMessages.Notification(
      kind: try one(Notification.Kind.self), title: "Tür \"3\"",
      body: String(repeating: "x", count: Int(whole(0...300))),
      driverID: try maybeID(), leg: about == 1 ? leg : nil, fence: about == 2 ? fence : nil,
      content: about == 3 ? #""gate":4,"é":[1,{"x":null}]"# : nil,
      sequence: UInt64(handle()))
  }

  private mutating func counts() throws -> CountsUpdate {
    let block = GeohashCell(try place(), precision: Int(whole(1...6)))
    let cells = try (0..<whole(0...12)).map { _ in
      let bits = block.bits << 10 | UInt64(whole(0...1023))
      guard let cell = GeohashCell(bits: bits, precision: block.precision + 2) else { throw Unexpected() }
      var counts = CountsUpdate.Cell(cell)
      counts.available = Int(whole(0...5000))
      counts.onTrip = Int(whole(0...9))
      counts.unavailable = Int(whole(0...9))
      counts.background = Int(whole(0...9))
      counts.offline = Int(whole(0...200))
      return counts
    }
    return CountsUpdate(block: block, tick: UInt64(handle()), isFull: chance(), cells: cells)
  }

  private mutating func rawFix() throws -> RawFix {
    var fix = RawFix(
      driverID: try id(), coordinate: try place(), timestamp: time(), verdict: try one(RawFix.Verdict.self))
    fix.accuracy = maybe(20_000, 100)
    fix.source = chance() ? try one(FixSource.self) : nil
    fix.heading = maybe(35_999, 100)
    fix.speed = maybe(9000, 100)
    fix.reason = chance() ? try one(ErrorCode.self) : nil
    fix.offset = maybe(1_000_000, 100)
    return fix
  }

  private mutating func area(_ cell: GeohashCell) throws -> AreaUpdate {
    let drivers = try (0..<whole(0...12)).map { _ in
      AreaUpdate.Driver(
        driverID: try id(), coordinate: try place(), heading: maybe(35_999, 100), speed: maybe(9000, 100),
        status: try one(DriverStatus.self), timestamp: time())
    }
    var update = AreaUpdate(
      cell: cell, tick: UInt64(handle()), isFull: chance(), drivers: drivers,
      left: try (0..<whole(0...4)).map { _ in try id() }, more: chance() ? Int(whole(0...5000)) : nil)
    guard chance() else { return update }
    for _ in drivers {
      var details = AreaUpdate.Details(
        tripID: try maybeID(), accuracy: steps(20_000, 100), confidence: try one(Confidence.self),
        vehicleType: chance() ? try text() : nil)
      details.isOnline = chance()
      update.details.append(details)
    }
    return update
  }

  private mutating func reply() throws -> Reply {
    switch whole(0...4) {
    case 0:
      guard let epoch = InlineText("k3v9q2") else { throw Unexpected() }
      let trip = try tripState()
      let snapshot = Subscribed.Snapshot(
        trip: chance() ? trip : nil, position: chance() ? try location() : nil, eta: chance() ? try eta(try id()) : nil)
      var answer = Subscribed(
        replyTo: try messageID(), channel: try channel(), sequence: UInt64(handle()), epoch: epoch,
        recovered: chance(), snapshot: chance() ? snapshot : nil)
      if chance() { answer.viewID = try text() }
      if chance() { answer.cells = [GeohashCell(try place(), precision: 6), GeohashCell(try place(), precision: 12)] }
      return .subscribed(answer)
    case 1:
      return .unsubscribed(
        Unsubscribed(
          replyTo: chance() ? try messageID() : nil, channel: try channel(), reason: try one(Unsubscribed.Reason.self)))
    case 2:
      let rejected = try (0..<whole(0...5)).map { Ack.Batch.Rejection(index: Int($0), code: try one(ErrorCode.self)) }
      let batch = Ack.Batch(accepted: Int(whole(0...500)), duplicates: Int(whole(0...500)), rejected: rejected)
      return .ack(
        Ack(replyTo: try messageID(), batch: chance() ? batch : nil, trip: chance() ? try tripState() : nil))
    case 3:
      return .error(
        ErrorReply(
          code: try one(ErrorCode.self), message: "née", replyTo: chance() ? try messageID() : nil,
          retryAfter: maybe(100, 8), status: chance() ? try one(TripStatus.self) : nil))
    case _:
      let drivers = try (0..<whole(0...6)).map { _ in try driver() }
      return .result(
        ResultReply(
          replyTo: try messageID(),
          result: chance() ? .drivers(DriverList(drivers: drivers, more: Int(whole(0...9)))) : .driver(try driver())))
    }
  }

  private mutating func tripState() throws -> TripState {
    TripState(tripID: try id(), status: try one(TripStatus.self), driverID: try maybeID(), timestamp: time())
  }

  private mutating func driver() throws -> DriverReport {
    var report = DriverReport(driverID: try id(), status: try one(DriverStatus.self))
    if chance() { report.vehicleType = try text() }
    if chance() { report.tags = [try text(), try text()] }
    if chance() {
      report.position = DriverReport.Place(
        coordinate: try place(), heading: maybe(35_999, 100), speed: maybe(9000, 100), accuracy: maybe(9000, 100),
        age: steps(100_000, 1000), timestamp: chance() ? time() : nil)
    }
    report.predicted = try maybePlace()
    report.distance = maybe(1_000_000, 10)
    report.isOnline = chance() ? chance() : nil
    return report
  }
}
