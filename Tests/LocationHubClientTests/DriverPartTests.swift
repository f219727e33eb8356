// What happens to a driver's fixes and moves where the hub refuses them, the phone stands, or the client stops.
import HubGeo
import HubMessages
import Testing

@testable import HubClientCore
@testable import LocationHubClient

@Suite struct DriverPartTests {
  private func fix(_ second: Int, at client: EngineClient) -> Fix {
    Fix(
      coordinate: Coordinate(latitude: 48 + Double(second) / 1e4, longitude: 11)!,
      timestamp: Timestamp(milliseconds: client.now.timestamp.milliseconds + Int64(second - 100) * 1000), accuracy: 5)
  }

  @Test(
    "fixes of a trip that is another driver's go out again without it; what the hub refuses then is counted",
    arguments: ["forbidden", "unknown_trip"])
  func refusedBatch(code: String) throws {
    let disk = QueueDisk()
    let client = try EngineClient(.json, .driver, QueueFiles(disk))
    let driver = try #require(client.engine.driver)
    for second in 0..<40 { driver.keep(fix(second, at: client), trip: "T1", client.now) }
    client.start()
    var written = try client.takeWritten().filter { $0.type == "location_batch" }
    #expect(written.count == 1 && written[0].payload["tripId"] as? String == "T1")
    client.refuse(written[0].id, code)
    #expect(driver.queue.fixes == 40 && driver.backlog.current.refused == 0 && driver.queue.isSynced)
    written = try client.takeWritten().filter { $0.type == "location_batch" }
    try #require(written.count == 1)
    #expect(written[0].payload["tripId"] == nil && (written[0].payload["locations"] as? [Any])?.count == 40)
    // Refused once more, for another reason.
    client.refuse(written[0].id, "bad_message")
    #expect(driver.queue.isEmpty && driver.backlog.current.refused == 40 && driver.backlog.current.dropped == 0)
    #expect(disk.files.isEmpty)
  }

  @Test(
    "a live fix that is refused counts one, with whatever code; one of another's trip goes again",
    arguments: [
      Subprotocol.json, .binary,
    ])
  func refusedFix(codec: Subprotocol) throws {
    let client = try EngineClient(.json, .driver)
    let driver = try #require(client.engine.driver)
    client.sampling.report(DeviceState(isCharging: true))
    client.start()
    for (number, code) in ["implausible_location", "bad_message", "forbidden"].enumerated() {
      driver.keep(fix(number, at: client), trip: nil, client.now)
      client.turn()
      let written = try client.takeWritten().filter { $0.type == "location_update" }
      try #require(written.count == 1)
      client.refuse(written[0].id, code)
      #expect(driver.queue.isEmpty && driver.backlog.current.refused == UInt64(number + 1))
    }
    driver.keep(fix(9, at: client), trip: "T1", client.now)
    client.turn()
    client.refuse(try #require(try client.takeWritten().first { $0.type == "location_update" }).id, "forbidden")
    #expect(try #require(try client.takeWritten().first { $0.type == "location_update" }).payload["tripId"] == nil)
    #expect(driver.backlog.current.refused == 3)
  }

  @Test("a phone that stands, and wakes only when it moves, says again where it is before the hub takes it for gone")
  func parked() throws {
    let client = try EngineClient(.json, .driver)
    let driver = try #require(client.engine.driver)
    client.sampling.report(DeviceState(batteryLevel: 0.9, motion: .still))
    client.start()
    // So often that the connection does not count as dead.
    func pass(_ seconds: Int64) throws -> [(at: Int64, payload: [String: Any])] {
      var updates: [(at: Int64, payload: [String: Any])] = []
      for step in 1...seconds / 10 {
        client.pass(seconds: 10)
        client.say("sampling", #"{"interval":120,"minDistance":10,"reason":"standing"}"#)
        for message in try client.takeWritten() where message.type == "location_update" {
          updates.append((step * 10, message.payload))
        }
      }
      return updates
    }
    #expect(try pass(10).isEmpty)
    #expect(client.sampling.wish.current.distance == 100 && client.sampling.wish.current.interval == 120)
    let last = fix(100, at: client)
    let start = client.now.timestamp.milliseconds
    driver.keep(last, trip: nil, client.now)
    let updates = try pass(730)
    #expect(updates.map(\.at) == [30, 240, 480, 720])
    for (number, update) in updates.enumerated() {
      let time = start + Int64(number) * 240_000
      #expect(update.payload["timestamp"] as? Int64 == time && update.payload["latitude"] as? Double == 48.01)
    }
    // One that moves speaks for itself.
    client.sampling.report(DeviceState(motion: .moving))
    #expect(try pass(600).isEmpty)
    #expect(client.openings == 1)
  }

  @Test("who takes no trips is not sent again as standing there, and nobody is under a trip that is over")
  func parkedFor() throws {
    let client = try EngineClient(.json, .driver)
    let driver = try #require(client.engine.driver)
    client.sampling.report(DeviceState(batteryLevel: 0.9, motion: .still))
    client.start()
    driver.keep(fix(100, at: client), trip: "T1", client.now)
    let end = TripStatusReport(tripID: "T1", status: .completed, timestamp: client.now.timestamp)
    #expect(driver.keep(end, as: MessageID("m-1")!, client.now))
    client.turn()
    func updates(after seconds: Int64) throws -> [String?] {
      client.say("sampling", #"{"interval":10,"minDistance":10,"reason":"standing"}"#)
      client.pass(seconds: seconds)
      return try client.takeWritten().filter { $0.type == "location_update" }.map { $0.payload["tripId"] as? String }
    }
    #expect(try updates(after: 29) == ["T1"])
    #expect(try updates(after: 2) == [nil])
    client.engine.report(DriverStatusReport(status: .unavailable)) { _ in }
    #expect(try updates(after: 40).isEmpty)
    #expect(try updates(after: 40).isEmpty)
    client.engine.report(DriverStatusReport(status: .available)) { _ in }
    #expect(try updates(after: 1) == [nil])
    #expect(client.openings == 1)
  }

  @Test("what the disk does not let be read is tried again every 10 s, and nothing overtakes it")
  func unread() throws {
    let disk = QueueDisk()
    let client = try EngineClient(.json, .driver, QueueFiles(disk))
    let driver = try #require(client.engine.driver)
    for second in 0..<30 { driver.keep(fix(second, at: client), trip: nil, client.now) }
    disk.failsReads = true
    client.start()
    #expect(try client.takeWritten().isEmpty && driver.queue.fixes == 30)
    #expect(try #require(driver.backlog.current.diskFailure).contains("pread"))
    driver.keep(fix(50, at: client), trip: nil, client.now)
    client.pass(seconds: 9)
    disk.failsReads = false
    client.turn()
    #expect(try client.takeWritten().isEmpty)
    client.pass(seconds: 1)
    let written = try client.takeWritten().filter { $0.type == "location_batch" }
    #expect(written.count == 1 && (written.first?.payload["locations"] as? [Any])?.count == 31)
    #expect(driver.backlog.current.diskFailure == nil)
  }

  @Test(
    "with a clock before the year 2000 fixes count as refused, and a move goes out, with the hub's time if it is known",
    arguments: [0, 915_148_800_000] as [Int64])
  func wrongClock(milliseconds: Int64) throws {
    let disk = QueueDisk()
    let client = try EngineClient(.json, .driver, QueueFiles(disk))
    client.now.timestamp = Timestamp(milliseconds: milliseconds)
    client.isOffline = true
    client.start()
    let driver = try #require(client.engine.driver)
    driver.keep(fix(100, at: client), trip: nil, client.now)
    client.engine.move(report(client), client.now) { _ in }
    client.turn()
    #expect(driver.backlog.current.refused == 1 && driver.queue.fixes == 0 && driver.queue.moves.count == 1)
    let next = try EngineClient(.json, .driver, QueueFiles(disk))
    next.now.timestamp = client.now.timestamp
    next.hubTime = Timestamp(milliseconds: 1_763_680_000_000)
    #expect(next.engine.driver?.queue.damage == nil)
    next.start()
    next.engine.move(report(next), next.now) { _ in }
    next.turn()
    let times = try next.takeWritten().filter { $0.type == "trip_status" }.map { $0.payload["timestamp"] as? Int64 }
    #expect(times == [946_684_800_000, 1_763_680_000_000])
  }

  private func report(_ client: EngineClient) -> TripStatusReport {
    TripStatusReport(tripID: "T1", status: .driverEnRoute, timestamp: client.now.timestamp)
  }

  @Test("a move that the hub has acknowledged has happened, whatever comes of the question for the trip")
  func acknowledged() throws {
    let client = try EngineClient(.json, .driver)
    client.start()
    var trips: [Trip] = []
    let report = report(client)
    client.engine.move(report, client.now) { outcome in
      guard case .success = outcome else { return #expect(Bool(false)) }
      client.engine.askMoved(report, for: ObjectIdentifier(client)) { trips.append($0) }
    }
    client.turn()
    let move = try #require(try client.takeWritten().first { $0.type == "trip_status" })
    client.say("ack", #"{"replyTo":"\#(move.id)"}"#)
    #expect(trips.isEmpty)
    client.stop()
    #expect(trips.count == 1 && trips.first?.status == .driverEnRoute && trips.first?.driverID == "D1")
    #expect(try #require(client.engine.driver).queue.isEmpty)
  }

  @Test("a refused move and a question fail, too, where the hub names a newer state, and nothing waits behind them")
  func newerStates() throws {
    let client = try EngineClient(.json, .driver)
    let driver = try #require(client.engine.driver)
    client.start()
    client.say("sampling", #"{"interval":77,"minDistance":10,"reason":"moonlight"}"#)
    #expect(client.sampling.wish.current.interval == 77)
    var failures: [HubError] = []
    client.engine.move(report(client), client.now) { if case .failure(let error) = $0 { failures.append(error) } }
    client.engine.ask(.trip("T1")) { if case .failure(let error) = $0 { failures.append(error) } }
    for second in 0..<30 { driver.keep(fix(second, at: client), trip: nil, client.now) }
    client.turn()
    let written = try client.takeWritten()
    func id(_ type: String) throws -> String { try #require(written.first { $0.type == type }).id }
    let refusal = #""code":"invalid_transition","message":"no","details":{"status":"parked"}"#
    client.say("error", #"{\#(refusal),"replyTo":"\#(try id("trip_status"))"}"#)
    let times = #""timestamp":1763680000000,"created":1763680000000,"updated":1763680000000"#
    client.say("result", #"{"replyTo":"\#(try id("query"))","tripId":"T1","status":"parked",\#(times)}"#)
    #expect(failures.map(\.code) == [.hub(.invalidTransition), .refused])
    #expect(driver.queue.moves.isEmpty)
    client.say("ack", #"{"replyTo":"\#(try id("location_batch"))","accepted":30,"duplicates":0,"rejected":[]}"#)
    #expect(driver.queue.isEmpty)
  }

  @Test("a refused move whose caller was told is not counted as one of an earlier run, whatever the hub says next")
  func refusedMove() throws {
    let client = try EngineClient(.json, .driver)
    client.start()
    var failures: [HubError] = []
    client.engine.move(report(client), client.now) { if case .failure(let error) = $0 { failures.append(error) } }
    client.turn()
    client.refuse(try #require(try client.takeWritten().first { $0.type == "trip_status" }).id, "forbidden")
    #expect(failures.map(\.code) == [.hub(.forbidden)])
    client.say("error", #"{"code":"rate_limited","message":"too much"}"#)
    #expect(try #require(client.engine.driver).backlog.current.refusedMoves == 0)
  }

  @Test("a move that stop() has overtaken says that it is kept, and goes out after the next start")
  func stopped() throws {
    let client = try EngineClient(.json, .driver)
    client.isOffline = true
    client.start()
    var outcomes: [Result<Void, HubError>] = []
    client.engine.move(report(client), client.now) { outcomes.append($0) }
    client.stop()
    guard case .failure(let error)? = outcomes.first else { return #expect(Bool(false)) }
    #expect(error.code == .stopped && error.retry == .never && error.explanation.contains("when it starts again"))
    client.isOffline = false
    client.start()
    #expect(try client.takeWritten().count { $0.type == "trip_status" } == 1)
    try #require(client.engine.driver).erase()
    client.engine.move(report(client), client.now) { outcomes.append($0) }
    guard case .failure(.stopped)? = outcomes.last else { return #expect(Bool(false)) }
  }

  @Test(
    "a move that the queue drops as another driver's, or cannot read any more, fails as lost", arguments: [false, true])
  func lostMoves(isGone: Bool) throws {
    let disk = QueueDisk()
    let client = try EngineClient(.json, .driver, QueueFiles(disk))
    client.start()
    client.cut()
    var outcomes: [Result<Void, HubError>] = []
    client.engine.move(report(client), client.now) { outcomes.append($0) }
    client.turn()
    #expect(outcomes.isEmpty && !disk.files.isEmpty)
    if isGone { disk.files = [:] } else { client.id = "D2" }
    client.pass()
    #expect(client.session.state == .open)
    guard outcomes.count == 1, case .failure(.lost) = outcomes[0] else { return #expect(Bool(false), "\(outcomes)") }
    client.stop()
    #expect(outcomes.count == 1)
    #expect(try client.takeWritten().allSatisfy { $0.type != "trip_status" })
  }

  @Test("what one driver left is not sent as another's, and moves neither; it is counted and named")
  func anotherDriver() throws {
    let disk = QueueDisk()
    let first = try EngineClient(.json, .driver, QueueFiles(disk))
    first.start()
    first.cut()
    first.isOffline = true
    let part = try #require(first.engine.driver)
    for second in 0..<30 { part.keep(fix(second, at: first), trip: "T1", first.now) }
    #expect(part.keep(report(first), as: MessageID("m-1")!, first.now))
    let second = try EngineClient(.json, .driver, QueueFiles(disk))
    second.id = "D2"
    let other = try #require(second.engine.driver)
    #expect(other.queue.fixes == 30 && other.queue.moves.count == 1)
    // Kept before a hub has identified the driver.
    for number in 50..<55 { other.keep(fix(number, at: second), trip: nil, second.now) }
    second.start()
    let written = try second.takeWritten()
    #expect(written.count { $0.type == "trip_status" } == 0)
    let batches = written.filter { $0.type == "location_batch" }
    #expect(batches.count == 1 && (batches.first?.payload["locations"] as? [Any])?.count == 5)
    let backlog = other.backlog.current
    #expect(backlog.fixes == 5 && backlog.moves == 0 && backlog.dropped == 30)
    #expect(try #require(backlog.damage).contains("30 fixes and 1 moves of D1"))
    // The same driver's own go out in the app's next process.
    let third = try EngineClient(.json, .driver, QueueFiles(disk))
    third.id = "D2"
    third.start()
    let again = try third.takeWritten().filter { $0.type == "location_batch" }
    #expect(again.count == 1 && (again.first?.payload["locations"] as? [Any])?.count == 5)
    #expect(third.engine.driver?.backlog.current.damage == nil)
  }

  @Test(
    "what the disk did not take of one driver is not another's after stop and start, and is its own again",
    arguments: [false, true], ["D1", "D2"] as [DriverID])
  func anotherDriverAfterStop(hasRoom: Bool, next: DriverID) throws {
    let disk = QueueDisk()
    let client = try EngineClient(.json, .driver, QueueFiles(disk))
    let driver = try #require(client.engine.driver)
    client.start()
    client.cut()
    client.isOffline = true
    disk.room = 0
    for second in 0..<5 { driver.keep(fix(second, at: client), trip: nil, client.now) }
    #expect(driver.keep(report(client), as: MessageID("m-1")!, client.now))
    client.stop()
    if hasRoom { disk.room = nil }
    // Twice, for what nobody was greeted for stays what it was.
    client.start()
    client.stop()
    client.isOffline = false
    client.id = next
    _ = try client.takeWritten()
    for second in 50..<53 { driver.keep(fix(second, at: client), trip: nil, client.now) }
    client.start()
    let isSame = next == "D1"
    let written = try client.takeWritten()
    #expect(written.count { $0.type == "trip_status" } == (isSame ? 1 : 0))
    let fixes = written.map { ($0.payload["locations"] as? [Any])?.count ?? ($0.type == "location_update" ? 1 : 0) }
    #expect(fixes.reduce(0, +) == (isSame ? 8 : 3))
    let backlog = driver.backlog.current
    #expect(backlog.fixes == (isSame ? 8 : 3) && backlog.moves == (isSame ? 1 : 0))
    #expect(backlog.dropped == (isSame ? 0 : 5))
    #expect(backlog.damage?.contains("5 fixes and 1 moves of D1 are not D2's") ?? isSame)
  }

  @Test("where the hub identifies the client as no driver, nothing is sent, and all stays for the next start")
  func anotherRole() throws {
    let disk = QueueDisk()
    let client = try EngineClient(.json, .driver, QueueFiles(disk))
    let driver = try #require(client.engine.driver)
    for second in 0..<5 { driver.keep(fix(second, at: client), trip: nil, client.now) }
    #expect(driver.keep(report(client), as: MessageID("m-1")!, client.now))
    for role in [HubMessages.Role.rider, .ops] {
      client.greetedRole = role
      client.start()
      client.pass()
      #expect(try client.takeWritten().isEmpty)
      guard case .stopped(let error) = client.engine.connection.current else { return #expect(Bool(false)) }
      #expect(error.code == .token && error.retry == .withNewToken && error.explanation.contains("\(role.name)"))
      #expect(driver.backlog.current.fixes == 5 && driver.backlog.current.refused == 0)
    }
    client.greetedRole = nil
    client.start()
    let written = try client.takeWritten()
    #expect(written.count { $0.type == "trip_status" } == 1 && written.count { $0.type == "location_batch" } == 1)
  }

  @Test("questions whose tasks are cancelled are withdrawn: they take no room and delay nobody")
  func cancelled() throws {
    let client = try EngineClient(.json, .rider)
    client.isOffline = true
    client.start()
    let askers = (0..<HubEngine.maximumRequests).map { _ in Answer<QueryResult>() }
    for asker in askers { client.engine.ask(.trip("T1"), for: ObjectIdentifier(asker)) { asker.give($0) } }
    var isFull = false
    client.engine.ask(.trip("T2")) { if case .failure(let error) = $0 { isFull = error.code == .full } }
    #expect(isFull)
    for asker in askers { client.engine.withdraw(ObjectIdentifier(asker)) }
    client.engine.ask(.trip("T2")) { _ in }
    client.isOffline = false
    client.cut()
    client.pass()
    let written = try client.takeWritten().filter { $0.type == "query" }
    #expect(written.count == 1 && written.first?.payload["tripId"] as? String == "T2")
    #expect(client.session.unconfirmed == 1)
  }
}
