// What happens to a driver's fixes where the hub fails at them (`internal`), or the phone has lost its clock.
import Foundation
import HubGeo
import HubMessages
import HubSystem
import Testing

@testable import HubClientCore
@testable import LocationHubClient

@Suite struct RefusedAgainTests {
  private func fix(_ second: Int, at client: EngineClient) -> Fix {
    Fix(
      coordinate: Coordinate(latitude: 48 + Double(second) / 1e4, longitude: 11)!,
      timestamp: Timestamp(milliseconds: client.now.timestamp.milliseconds + Int64(second) * 1000), accuracy: 5)
  }

  private typealias Written = [(type: String, id: String, payload: [String: Any])]

  /// Answers pings; gives what has fixes.
  private func fixes(_ client: EngineClient) throws -> Written {
    let written = try client.takeWritten()
    for ping in written where ping.type == "ping" { client.say("pong", #"{"replyTo":"\#(ping.id)","serverTime":0}"#) }
    return written.filter { ["location_update", "location_batch"].contains($0.type) }
  }

  @Test(
    "fixes that the hub fails at twice stay, go out again after a while, and nothing waits for them",
    arguments: [1, 40])
  func again(count: Int) throws {
    let disk = QueueDisk()
    let client = try EngineClient(.json, .driver, QueueFiles(disk))
    let driver = try #require(client.engine.driver)
    client.sampling.report(DeviceState(isCharging: true))
    for second in 0..<count { driver.keep(fix(second, at: client), trip: nil, client.now) }
    client.start()
    for _ in 0..<2 {
      let sent = try fixes(client)
      try #require(sent.count == 1)
      client.refuse(sent[0].id, "internal")
      client.pass(seconds: 3)
    }
    #expect(try fixes(client).isEmpty)
    #expect(driver.queue.fixes == count && driver.backlog.current.refused == 0 && !disk.files.isEmpty)
    // What comes now goes at once.
    driver.keep(fix(count, at: client), trip: nil, client.now)
    client.turn()
    let live = try fixes(client)
    #expect(live.count == 1 && live[0].type == "location_update")
    // A pong that confirms later fixes does not confirm these.
    var again: Written = []
    for _ in 0..<30 where again.isEmpty {
      client.pass(seconds: 5)
      let last = fix(count, at: client).timestamp.milliseconds
      for ping in try client.takeWritten() {
        if ping.type == "ping" {
          client.say("pong", #"{"replyTo":"\#(ping.id)","serverTime":0,"storedThrough":\#(last)}"#)
        } else if ping.type.hasPrefix("location") {
          again.append(ping)
        }
      }
      again += try client.takeWritten().filter { $0.type.hasPrefix("location") }
    }
    try #require(again.count == 1)
    #expect((again[0].payload["locations"] as? [Any])?.count == count && driver.queue.fixes == count + 1)
    client.say("ack", #"{"replyTo":"\#(again[0].id)","accepted":\#(count),"duplicates":0,"rejected":[]}"#)
    client.turn()
    #expect(driver.queue.isEmpty && driver.backlog.current.refused == 0 && disk.files.isEmpty)
  }

  @Test("where a thousand later ones wait for what the hub fails at, it goes, and counts as refused")
  func givenUp() throws {
    let client = try EngineClient(.json, .driver)
    let driver = try #require(client.engine.driver)
    client.sampling.report(DeviceState(isCharging: true))
    for second in 0..<10 { driver.keep(fix(second, at: client), trip: nil, client.now) }
    client.start()
    for _ in 0..<2 {
      client.refuse(try #require(try fixes(client).first).id, "internal")
      client.pass(seconds: 3)
    }
    var second = 10
    while driver.backlog.current.refused == 0, second < 3000 {
      driver.keep(fix(second, at: client), trip: nil, client.now)
      second += 1
      client.turn()
      if second % 100 == 0 { client.pass(seconds: 20) }
      for sent in try fixes(client) where sent.type == "location_batch" {
        let isBad = (sent.payload["locations"] as? [Any])?.count == 10
        if isBad {
          client.refuse(sent.id, "internal")
        } else {
          client.say("ack", #"{"replyTo":"\#(sent.id)","accepted":1,"duplicates":0,"rejected":[]}"#)
        }
      }
    }
    #expect(driver.backlog.current.refused == 10 && second > 900 && second < 3000, "\(second)")
  }

  @Test(
    "fixes and a move that the hub refuses for now stay, however often, while a thousand others wait",
    arguments: [false, true])
  func refusedForNow(isMove: Bool) throws {
    let disk = QueueDisk()
    let client = try EngineClient(.json, .driver, QueueFiles(disk))
    let driver = try #require(client.engine.driver)
    if isMove {
      let report = TripStatusReport(tripID: "T1", status: .completed, timestamp: client.now.timestamp)
      #expect(driver.keep(report, as: MessageID("m-1")!, client.now))
    }
    for second in 0..<DriverPart.maximumInFlight + 10 { driver.keep(fix(second, at: client), trip: nil, client.now) }
    client.start()
    var oldest: String?
    for sending in 1...4 {
      // One flush does not write all of it.
      for _ in 0..<10 { client.turn() }
      let sent = try client.takeWritten().filter { $0.type != "ping" }
      let first = try #require(sent.first, "sending \(sending)")
      #expect((first.type == "trip_status") == isMove && first.id == oldest ?? first.id)
      oldest = first.id
      for message in sent {
        client.say("error", #"{"code":"storage_full","message":"no","replyTo":"\#(message.id)","retryAfter":1}"#)
      }
      client.pass(seconds: 10)
    }
    let backlog = driver.backlog.current
    #expect(backlog.fixes == DriverPart.maximumInFlight + 10 && backlog.moves == (isMove ? 1 : 0))
    #expect(backlog.refused == 0 && backlog.refusedMoves == 0 && backlog.dropped == 0)
  }

  @Test("a move of an earlier process that is refused is counted: nobody waits for the answer")
  func move() throws {
    let disk = QueueDisk()
    let first = try EngineClient(.json, .driver, QueueFiles(disk))
    let report = TripStatusReport(tripID: "T1", status: .completed, timestamp: first.now.timestamp)
    #expect(try #require(first.engine.driver).keep(report, as: MessageID("m-1")!, first.now))
    let next = try EngineClient(.json, .driver, QueueFiles(disk))
    next.start()
    next.refuse(try #require(try next.takeWritten().first { $0.type == "trip_status" }).id, "invalid_transition")
    let backlog = try #require(next.engine.driver).backlog.current
    #expect(backlog.refusedMoves == 1 && backlog.moves == 0 && backlog.refused == 0)
  }

  @Test("a phone whose clock says 1970 loses no fix that has its right time", arguments: [Subprotocol.json, .binary])
  func lostClock(codec: Subprotocol) async throws {
    let client = try EngineClient(.json, .driver)
    let driver = try #require(client.engine.driver)
    let right = fix(0, at: client)
    client.now.timestamp = Timestamp(milliseconds: 1_000_000)
    client.sampling.report(DeviceState(isCharging: true))
    client.start()
    driver.keep(right, trip: nil, client.now)
    client.turn()
    #expect(client.timestamps.allSatisfy { $0 >= 946_684_800_000 } && !client.timestamps.isEmpty)
    #expect(try fixes(client).first?.payload["timestamp"] as? Int64 == right.timestamp.milliseconds)

    // And a hub takes what comes so.
    let hub = try TestHub()
    var options = HubOptions()
    options.codec = codec
    options.clock = { ClockReading(uptimeNanoseconds: continuousUptime(), unixMilliseconds: 1_000_000) }
    let phone = try DriverHub(
      "ws://127.0.0.1:\(hub.port)", tokens: .development(.driver, "d1"), store: .memory, options: options)
    phone.start()
    phone.report(DeviceState(isCharging: true))
    phone.send(Fix(coordinate: right.coordinate, timestamp: .now, accuracy: 5), trip: "T1")
    try await hub.metrics(have: "locationhub_fixes_total{outcome=\"accepted\"} 1")
    #expect(try await phone.move("T1", to: .driverEnRoute).status == .driverEnRoute)
    #expect(phone.backlog.current.refused == 0)
    await phone.stop()
  }
}
