// A client of which everything is asked at once that it takes.
import HubBytes
import HubGeo
import HubMessages
import Synchronization
import Testing

@testable import HubClientCore
@testable import LocationHubClient

@Suite(.timeLimit(.minutes(5))) struct FullClientTests {
  private static func fix(_ second: Int) -> Fix {
    Fix(
      coordinate: Coordinate(latitude: 48 + Double(second) / 1e5, longitude: 11)!,
      timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64(second) * 1000), accuracy: 5)
  }

  /// As long as a driver's status can be.
  private static let longest = DriverStatusReport(
    status: .available, vehicleType: InlineText(String(repeating: "v", count: 64)),
    tags: (0..<8).map { InlineText("\($0)" + String(repeating: "t", count: 63))! })

  @Test(
    "as many questions, moves and fixes as a driver's client keeps all fit, and none of them gives way",
    arguments: [
      true, false,
    ])
  func driver(isOpenFirst: Bool) throws {
    let stage = try EngineStage(files: QueueFiles(QueueDisk()))
    try stage.turn { $0.start($1) }
    if isOpenFirst { try stage.open() }
    let (moves, fixes) = (FixQueue.maximumMoves, DriverPart.maximumInFlight + DriverPart.maximumBatch)
    let failures = Mutex(0)
    let count: @Sendable (Result<Void, HubError>) -> Void = { outcome in
      if case .failure = outcome { failures.withLock { $0 += 1 } }
    }
    try stage.turn { engine, now in
      for number in 0..<moves {
        engine.move(
          TripStatusReport(tripID: Identifier("T\(number)")!, status: .accepted, timestamp: now.timestamp), now, count)
      }
      // Each fix of another trip, so that each goes by itself, which is what costs most.
      for second in 0..<fixes { engine.driver?.keep(Self.fix(second), trip: Identifier("T\(second % 2)"), now) }
      for _ in moves..<HubEngine.maximumRequests { engine.report(Self.longest, count) }
      #expect(failures.withLock { $0 } == 0)
      engine.report(Self.longest, count)
      #expect(failures.withLock { $0 } == 1, "one more is refused")
    }
    if !isOpenFirst { try stage.open() }
    while stage.session.backlog > 0 { try stage.pass(1) }
    // A status is sent when the one before is answered.
    for _ in moves..<HubEngine.maximumRequests {
      let status = stage.messages.last { if case .driverStatus = $0.message { true } else { false } }
      try stage.say(.ack(Ack(replyTo: try #require(status).messageID)))
    }
    #expect(failures.withLock { $0 } == 1)
    #expect(stage.session.counters.fixesDropped == 0)
    #expect(stage.engine.driver?.queue.fixes == fixes, "nothing counts as arrived that the hub has not confirmed")
    #expect(stage.engine.driver?.queue.moves.count == moves)
    var (seconds, status, moved): (Set<Int64>, Int, Int) = ([], 0, 0)
    for envelope in stage.messages {
      switch envelope.message {
      case .locationUpdate(let update): seconds.insert(update.fix.timestamp.milliseconds)
      case .driverStatus: status += 1
      case .tripStatus: moved += 1
      case _: break
      }
    }
    #expect(seconds.count >= DriverPart.maximumInFlight && seconds.count <= fixes)
    #expect(status == HubEngine.maximumRequests - moves && moved == moves)
  }

  @Test("what a client keeps fits its session, whatever limits an app sets")
  func limits() throws {
    var options = HubOptions()
    (options.limits.queuedBytes, options.limits.queuedMessages) = (1000, 10)
    let limits = try options.configuration("ws://127.0.0.1:1", .fixed("x")).limits
    let question = QueuedMessage(.driverStatus(Self.longest)).bytes + SendQueue.fixBytes
    let nearby = DriverSearch(area: .nearby(Coordinate(latitude: 48, longitude: 11)!, radiusMeters: 5), limit: 5)
    let search = QueuedMessage(.query(.drivers(nearby))).bytes + SendQueue.fixBytes
    let report = TripStatusReport(tripID: "T1", status: .accepted, timestamp: .now)
    let move = QueuedMessage(.tripStatus(report)).bytes + SendQueue.fixBytes
    let fixes = DriverPart.maximumInFlight + DriverPart.maximumBatch
    let sum =
      HubEngine.maximumRequests * max(question, search) + FixQueue.maximumMoves * move + fixes * SendQueue.fixBytes
    #expect(sum <= limits.queuedBytes, "\(question), \(search), \(move), \(SendQueue.fixBytes)")
    #expect(HubEngine.maximumRequests + FixQueue.maximumMoves + fixes <= limits.queuedMessages)
  }
}
