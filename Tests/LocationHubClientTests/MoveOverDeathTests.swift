// A move of a trip when the app is killed between its being sent and the hub's answer: it comes again under the same id
// and happens once.
import Foundation
import Glibc
import HubBytes
import HubCore
import HubGateway
import HubGeo
import HubMessages
import HubRuntime
import Testing

@testable import HubClientCore
@testable import LocationHubClient

@Suite(.timeLimit(.minutes(5))) struct MoveOverDeathTests {
  private static func report(_ status: TripStatus, _ now: Moment) -> TripStatusReport {
    TripStatusReport(tripID: "T1", status: status, timestamp: now.timestamp)
  }

  /// The ids of the moves that the hub got.
  private static func moves(_ stage: EngineStage) -> [MessageID] {
    stage.messages.compactMap { if case .tripStatus = $0.message { $0.messageID } else { nil } }
  }

  @Test("killed before the answer, wherever it was, the next process sends the move by its id, and none after the ack")
  func again() throws {
    for isSent in [false, true] {
      let disk = QueueDisk()
      var stage = try EngineStage(files: QueueFiles(disk))
      if isSent {
        try stage.turn { $0.start($1) }
        try stage.open()
      }
      try stage.turn { $0.move(Self.report(.accepted, $1), $1) { _ in Issue.record("nobody has answered") } }
      let first = Self.moves(stage)
      #expect(first.count == (isSent ? 1 : 0))
      // The power goes, which is worse than a kill: what is not synced is gone.
      disk.cutPower()
      stage = try EngineStage(files: QueueFiles(disk))
      try stage.turn { $0.start($1) }
      try stage.open()
      let second = Self.moves(stage)
      #expect(second.count == 1 && (!isSent || second == first))
      // A break does not change the id.
      try stage.end()
      try stage.pass()
      try stage.open()
      #expect(Self.moves(stage) == [second[0], second[0]])
      try stage.say(.ack(Ack(replyTo: second[0])))
      #expect(stage.engine.driver?.queue.isEmpty == true)
      try stage.turn { $0.stop($1) }
      stage = try EngineStage(files: QueueFiles(disk))
      try stage.turn { $0.start($1) }
      try stage.open()
      #expect(Self.moves(stage).isEmpty)
    }
  }

  /// An app's client on a socket that nobody reads any more once it is open: what the hub answers does not come.
  private final class DoomedClient {
    let session: ClientSession
    let engine: HubEngine
    private let socket: Int32
    private let port: UInt16

    private var now: Moment { Moment(uptime: Int64(DispatchTime.now().uptimeNanoseconds), timestamp: .now) }

    init(_ port: UInt16, _ files: any FixFiles) throws {
      self.port = port
      let tokens = TokenSource.development(.driver, "d1")
      session = ClientSession(try HubOptions().configuration("ws://127.0.0.1:\(port)", tokens))
      let driver = DriverPart(
        try FixQueue(files), backlog: LatestSource(Backlog()), sampling: SamplingController(.standard))
      engine = HubEngine(
        session, tokens: TokenBroker(tokens), connection: LatestSource(.idle), driver: driver, post: { _ in })
      socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      engine.start(now)
      while session.state != .open {
        try turn()
        if session.state == .handshaking || session.state == .greeting { read() }
      }
      try turn()
    }

    deinit { close(socket) }

    /// Begins the trip by a fix that names it, and moves it.
    func move(_ status: TripStatus) throws {
      let fix = Fix(coordinate: Coordinate(latitude: 48, longitude: 11)!, timestamp: now.timestamp, accuracy: 5)
      engine.driver?.keep(fix, trip: "T1", now)
      engine.move(MoveOverDeathTests.report(status, now), now) { _ in }
      try turn()
    }

    private func turn() throws {
      engine.reconcile(now)
      var buffer = ByteBuffer()
      if session.flush(now, into: &buffer) == .connect {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let outcome = withUnsafePointer(to: &address) {
          $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
          }
        }
        try #require(outcome == 0)
        session.transportConnected(now)
        _ = session.flush(now, into: &buffer)
      }
      let sent = buffer.withBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      try #require(sent == buffer.count)
    }

    private func read() {
      var bytes = [UInt8](repeating: 0, count: 4096)
      let count = recv(socket, &bytes, bytes.count, 0)
      guard count > 0 else { return }
      bytes[..<count].withUnsafeMutableBytes { bytes in
        session.received(UnsafeMutableRawBufferPointer(rebasing: bytes[...]), now: now, reader: MessageReader()) {
          if case .reply(.connected(let greeting)) = $0.message { engine.opened(greeting, now) }
        }
      }
    }
  }

  @Test("killed when the hub has the move and its ack is on the way, the next process's move happens no second time")
  func once() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "moves-\(UUID().uuidString)").path
    let hub = try TestHub()
    let moves = "locationhub_trip_moves_total 1"
    do {
      let doomed = try DoomedClient(hub.port, try FolderFiles(path))
      try doomed.move(.driverEnRoute)
      try await hub.metrics(have: moves)
      #expect(doomed.engine.driver?.queue.moves.count == 1)
    }
    let rider = try RiderHub("ws://127.0.0.1:\(hub.port)", tokens: .development(.rider, "r1"))
    rider.start()
    var events = rider.trip("T1").makeAsyncIterator()
    guard case .snapshot(let snapshot)? = await events.next() else { return #expect(Bool(false)) }
    #expect(snapshot.trip?.status == .driverEnRoute)
    let driver = try DriverHub(
      "ws://127.0.0.1:\(hub.port)", tokens: .development(.driver, "d1"), store: .folder(path))
    #expect(driver.backlog.current.moves == 1)
    driver.start()
    for await backlog in driver.backlog where backlog.moves == 0 { break }
    try await hub.metrics(have: moves, "locationhub_trip_moves_refused_total 0")
    // The next move is the next event: the one that came twice made none.
    try await driver.move("T1", to: .arrivedPickup)
    while let event = await events.next() {
      guard case .update(let update) = event else { continue }
      #expect(update.status == .arrivedPickup && update.previousStatus == .driverEnRoute)
      break
    }
    await driver.stop(erasing: true)
    await rider.stop()
  }
}
