// The Swift client as an app has it, with a real hub: DriverHub, RiderHub, their feeds and the queue on a real disk.
import Foundation
import FoundationNetworking
import HubCore
import HubGateway
import HubMessages
import HubRuntime
import HubTokens
import HubTransport
import LocationHubClient
import Testing

@Suite(.serialized, .timeLimit(.minutes(5))) struct RealHubTests {
  private func options() -> HubOptions {
    var options = HubOptions()
    options.limits.firstDelay = 0.05
    options.limits.spreadSeconds = 0.05
    return options
  }

  private func driver(
    _ port: UInt16, _ id: DriverID = "d1", store: FixStore = .memory, power: PowerPolicy = .standard
  ) throws -> DriverHub {
    try DriverHub(
      "ws://127.0.0.1:\(port)", tokens: .development(.driver, id), store: store, power: power, options: options())
  }

  /// A phone that sends each fix by itself, and does not wait for others to go with it.
  private static let charging = DeviceState(isCharging: true)

  private func rider(_ port: UInt16, _ id: DriverID = "r1") throws -> RiderHub {
    try RiderHub("ws://127.0.0.1:\(port)/v1/ws", tokens: .development(.rider, id), options: options())
  }

  /// One every 2 s, as often as a phone at a charger or on a trip measures.
  private func fix(_ number: Int, at base: Timestamp = .now) -> Fix {
    Fix(
      coordinate: Coordinate(latitude: 48 + Double(number) * 1e-4, longitude: 11)!,
      timestamp: Timestamp(milliseconds: base.milliseconds - 120_000 + Int64(number) * 2000), accuracy: 5)
  }

  /// The first state that fits.
  private func wait<Value>(_ states: Latest<Value>, for fits: (Value) -> Bool) async -> Value? {
    for await state in states where fits(state) { return state }
    return nil
  }

  private func folder() -> String {
    FileManager.default.temporaryDirectory.appending(path: "queue-\(UUID().uuidString)").path
  }

  @Test("a rider sees a trip from its first fix to its end, and the driver gets the hub's decisions")
  func trip() async throws {
    let hub = try TestHub { $0.timings.tripGrace = 0.05 }
    let (driver, rider) = (try driver(hub.port), try rider(hub.port))
    #expect(driver.connection.current == .idle)
    driver.start()
    rider.start()
    let feed = rider.trip("T1")
    var iterator = feed.makeAsyncIterator()
    #expect(await iterator.next() == .snapshot(TripSnapshot()))
    #expect(driver.send(fix(0), trip: "T1") == .queued)
    var seen: [TripStatus] = []
    var positions = 0
    loop: while let event = await iterator.next() {
      switch event {
      case .position(let position):
        positions += 1
        #expect(position.driverID == "d1" && position.tripID == "T1")
        guard positions == 1 else { continue }
        for step in [TripStatus.driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination, .completed] {
          let trip = try await driver.move("T1", to: step)
          #expect(trip.status == step && trip.driverID == "d1")
        }
      case .update(let update): seen.append(update.status)
      case .ended(let reason):
        #expect(reason == .tripEnded)
        break loop
      case .snapshot, .eta, .notice: break
      case .gap: Issue.record("nothing was missed")
      }
    }
    #expect(await iterator.next() == nil)
    #expect(
      seen == [.accepted, .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination, .completed])
    #expect(positions >= 1)
    await #expect(throws: HubError.self) { try await driver.move("T1", to: .accepted) }
    do throws(HubError) { try await driver.move("T9", to: .accepted) } catch {
      #expect(error.code == .hub(.unknownTrip) && error.retry == .never)
    }
    await driver.stop()
    await rider.stop()
    #expect(driver.connection.current == .stopped(HubError(.stopped, "the client was stopped")))
  }

  @Test("two loops read one trip, each gets all; when the last has left, the hub is not asked any more")
  func readers() async throws {
    let hub = try TestHub()
    let (driver, rider) = (try driver(hub.port), try rider(hub.port))
    driver.start()
    rider.start()
    let feed = rider.trip("T1")
    var first = Optional(feed.makeAsyncIterator())
    #expect(await first?.next() == .snapshot(TripSnapshot()))
    var second = Optional(feed.makeAsyncIterator())
    #expect(await second?.next() == .snapshot(TripSnapshot()))
    driver.send(fix(0), trip: "T1")
    for _ in 0..<2 {
      let (one, other) = (await first?.next(), await second?.next())
      #expect(one == other && one != nil)
    }
    try await hub.metrics(have: "locationhub_subscriptions 1")
    first = nil
    #expect(try await rider.getTrip("T1").status == .accepted)
    try await hub.metrics(have: "locationhub_subscriptions 1")
    second = nil
    try await hub.metrics(have: "locationhub_subscriptions 0")
    let task = Task { for await _ in rider.trip("T1") {} }
    task.cancel()
    await task.value
  }

  @Test("an area shows its drivers, and another one after it was moved; nearby gives the nearest first")
  func areas() async throws {
    let hub = try TestHub()
    let (driver, rider) = (try driver(hub.port), try rider(hub.port))
    driver.start()
    rider.start()
    driver.report(Self.charging)
    driver.send(fix(0))
    _ = await wait(driver.backlog) { $0.fixes == 0 || driver.connection.current.isLive }
    let area = rider.area(around: Coordinate(latitude: 48, longitude: 11)!, radius: 500)
    for await map in area where map.drivers.count == 1 { break }
    let found = try await rider.nearby(Coordinate(latitude: 48, longitude: 11)!, radius: 500)
    #expect(found.count == 1 && found[0].driverID != "d1", "riders see pseudonyms")
    var maps = area.makeAsyncIterator()
    while let map = await maps.next(), map.drivers.count != 1 {}
    area.move(to: Coordinate(latitude: 50, longitude: 11)!, radius: 500)
    while let map = await maps.next(), !map.drivers.isEmpty {}
    let tooFar = rider.area(around: Coordinate(latitude: 48, longitude: 11)!, radius: 50_000)
    for await _ in tooFar { Issue.record("riders see 5 km") }
    guard case .hub? = tooFar.failure?.code else { return #expect(Bool(false), "\(tooFar.failure as Any)") }
    await #expect(throws: HubError.self) { try await rider.nearby(found[0].position!.coordinate, radius: -1) }
  }

  @Test("a trip is offered to a driver, who declines, and to the next, who accepts; each hears how it ends")
  func offers() async throws {
    let hub = try TestHub()
    let drivers = try ["d1", "d2"].map { try driver(hub.port, Identifier($0)!) }
    for (number, driver) in drivers.enumerated() {
      driver.start()
      driver.report(Self.charging)
      try await driver.setStatus(.available)
      var here = fix(60)
      here.coordinate = Coordinate(latitude: 48 + 0.001 * Double(number), longitude: 11)!
      driver.send(here)
    }
    try await hub.metrics(have: "locationhub_fixes_total{outcome=\"accepted\"} 2")
    var (first, second) = (drivers[0].offers.makeAsyncIterator(), drivers[1].offers.makeAsyncIterator())
    try await hub.metrics(have: "locationhub_subscriptions 2")
    var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1:\(hub.port)/v1/trips?role=ops&id=o1")))
    request.httpMethod = "POST"
    request.httpBody = Data(#"{"tripId":"T1","pickup":{"latitude":48,"longitude":11},"offer":{"duration":120}}"#.utf8)
    _ = try await URLSession.shared.data(for: request)
    // On a busy machine the connection may break and come again, which is a gap.
    var made = await first.next()
    while case .gap? = made { made = await first.next() }
    guard case .offered("T1", let terms)? = made else {
      Issue.record("\(String(describing: made))")
      return
    }
    #expect(terms.distance < 20 && terms.dropoff == nil)
    try await drivers[0].decline("T1")
    #expect(await first.next() == OfferEvent.withdrawn("T1", .declined))
    var another = await second.next()
    while case .gap? = another { another = await second.next() }
    guard case .offered("T1", _)? = another else {
      Issue.record("\(String(describing: another))")
      return
    }
    #expect(try await drivers[1].accept("T1").driverID == "d2")
    await #expect(throws: HubError.self, "it is taken") { try await drivers[0].accept("T1") }
    await #expect(throws: HubError.self, "it was never offered") { try await drivers[0].decline("T2") }
    await drivers[1].stop()
    #expect(await second.next() == OfferEvent.ended(HubError(.stopped, "the client was stopped")))
    #expect(await second.next() == nil)
  }

  @Test("what was sent without a hub, and in an earlier process of the app, is there when it comes, once and in order")
  func offline() async throws {
    let path = folder()
    let base = Timestamp.now
    // Nobody listens there.
    let driver = try driver(9, store: .folder(path))
    driver.start()
    for second in 0..<30 { #expect(driver.send(fix(second, at: base), trip: "T1") == .queued) }
    _ = await wait(driver.backlog) { $0.fixes == 30 }
    let waiting = await wait(driver.connection) { if case .waiting = $0 { true } else { false } }
    guard case .waiting(_, let error) = waiting else { return }
    #expect(error.code == .unreachable)
    #expect(throws: HubError.self, "one queue belongs to one client at a time") {
      try self.driver(9, store: .folder(path))
    }
    await driver.stop()
    let hub = try TestHub()
    let next = try self.driver(hub.port, store: .folder(path))
    #expect(next.backlog.current.fixes == 30)
    next.start()
    let move = try await next.move("T1", to: .driverEnRoute)
    #expect(move.status == .driverEnRoute)
    _ = await wait(next.backlog) { $0.fixes == 0 && $0.moves == 0 }
    try await hub.metrics(
      have: "locationhub_fixes_received_total 30", "locationhub_fixes_total{outcome=\"duplicate\"} 0")
    await next.stop(erasing: true)
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("what was handed over is kept when stop returns, started or not; erased, nobody sends it any more")
  func stopping() async throws {
    let path = folder()
    for start in [false, true] {
      let driver = try self.driver(9, store: .folder(path))
      let before = driver.backlog.current.fixes
      if start { driver.start() }
      for second in 0..<20 { driver.send(fix(second + before), trip: "T1") }
      await driver.stop()
      #expect(driver.backlog.current.fixes == before + 20)
      #expect(driver.connection.current == .stopped(HubError(.stopped, "the client was stopped")))
    }
    let driver = try self.driver(9, store: .folder(path))
    #expect(driver.backlog.current.fixes == 40)
    let files = FileManager.default
    try files.createDirectory(atPath: path + "/another", withIntermediateDirectories: false)
    await driver.stop(erasing: true)
    #expect(driver.backlog.current.fixes == 0 && driver.backlog.current.diskFailure != nil, "a folder is in the way")
    #expect(try files.contentsOfDirectory(atPath: path).sorted() == ["another", "lock"], "and keeps nothing else")
    try files.removeItem(atPath: path + "/another")
    await driver.stop(erasing: true)
    #expect(!files.fileExists(atPath: path))
  }

  @Test("of a damaged queue the file is named, and what is whole of it is sent")
  func damaged() async throws {
    let path = folder()
    let base = Timestamp.now
    do {
      let first = try driver(9, store: .folder(path))
      for second in 0..<20 { first.send(fix(second, at: base), trip: "T1") }
      await first.stop()
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasSuffix(".queue") }
    let name = try #require(names.first)
    let file = URL(filePath: "\(path)/\(name)")
    var bytes = try Data(contentsOf: file)
    bytes[bytes.count / 2] ^= 0xFF
    try bytes.write(to: file)
    let hub = try TestHub()
    let second = try driver(hub.port, store: .folder(path))
    #expect(try #require(second.backlog.current.damage).contains(name))
    #expect(second.backlog.current.fixes == 19)
    second.start()
    _ = await wait(second.backlog) { $0.fixes == 0 }
    try await hub.metrics(have: "locationhub_fixes_received_total 19")
    #expect(second.backlog.current.refused == 0 && second.backlog.current.dropped == 0)
    await second.stop(erasing: true)
  }

  @Test("the queue's files are the owner's alone")
  func permissions() async throws {
    let path = folder()
    let driver = try driver(9, store: .folder(path))
    driver.send(fix(0))
    _ = await wait(driver.backlog) { $0.fixes == 1 }
    let files = FileManager.default
    #expect(try files.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o700)
    let names = try files.contentsOfDirectory(atPath: path)
    #expect(names.count == 2)
    for name in names {
      #expect(try files.attributesOfItem(atPath: "\(path)/\(name)")[.posixPermissions] as? Int == 0o600)
    }
    await driver.stop(erasing: true)
  }

  @Test(
    "a token is asked for once at a time; one that fails is asked for again; without one the client stops and says so")
  func tokens() async throws {
    let keys = try KeySet(parsing: Array("0123456789abcdef0123456789abcdef\n".utf8))
    let hub = try TestHub {
      $0.allowsDevelopmentCredentials = false
      $0.tokens = TokenAccess(verifier: TokenVerifier(keys: keys))
    }
    let asked = Asked()
    let tokens = TokenSource { need in
      let number = asked.note(need)
      if number == 1 { throw HubError(.unreachable, "no network", retry: .later(after: nil)) }
      if number == 2 { return "no token" }
      let end = Timestamp(milliseconds: Timestamp.now.milliseconds + 3_600_000)
      let claims = Claims(subject: "r1", role: .rider, expires: end, grants: nil)
      return String(decoding: try keys.keys[0].token(TokenRequest(claims: claims)), as: UTF8.self)
    }
    let rider = try RiderHub("ws://127.0.0.1:\(hub.port)", tokens: tokens, options: options())
    rider.start()
    _ = await wait(rider.connection) { $0.isLive }
    #expect(asked.needs == [.first, .first, .refused])
    await rider.stop()
    let nobody = TokenSource { _ in throw HubError(.token, "signed out") }
    let other = try RiderHub("ws://127.0.0.1:\(hub.port)", tokens: nobody, options: options())
    other.start()
    let state = await wait(other.connection) { if case .stopped = $0 { true } else { false } }
    #expect(state == .stopped(HubError(.token, "signed out")))
  }

  /// What a token source was asked.
  private final class Asked: @unchecked Sendable {
    private let lock = NSLock()
    private var list: [TokenNeed] = []
    var needs: [TokenNeed] { lock.withLock { list } }
    func note(_ need: TokenNeed) -> Int {
      lock.withLock {
        list.append(need)
        return list.count
      }
    }
  }

  @Test("mistakes are reported at once, and a question that is cancelled ends")
  func mistakes() async throws {
    for url in ["hub.example", "http://hub.example", "ws://hub..example"] {
      do throws(HubError) {
        _ = try RiderHub(url, tokens: .fixed("x"))
        Issue.record("\(url) is no hub's")
      } catch { #expect(error.code == .badURL && !error.explanation.isEmpty) }
    }
    let driver = try driver(9)
    do throws(HubError) { try await driver.setStatus(.onTrip) } catch { #expect(error.code == .badValue) }
    let rider = try rider(9)
    let question = Task { try await rider.getTrip("T1") }
    question.cancel()
    await #expect(throws: HubError(.cancelled, "the task was cancelled")) { try await question.value }
  }

  @Test("a hub's host may be a name: all of its addresses are tried")
  func names() async throws {
    // A hub listens on one of the two that this name has on most machines.
    let hub = try TestHub()
    let rider = try RiderHub(
      "ws://ip6-localhost.localdomain.invalid:\(hub.port)", tokens: .development(.rider, "r1"), options: options())
    rider.start()
    let waiting = await wait(rider.connection) { if case .waiting = $0 { true } else { false } }
    guard case .waiting(_, let error) = waiting else { return }
    #expect(error.code == .unreachable && error.explanation.contains("no address"))
    await rider.stop()
  }
}
