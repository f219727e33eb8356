// A drive that goes through a hub comes out as the tracker alone makes it, row for row; and a hub that goes away costs
// nothing that it had acknowledged.
import HubClientLoop
import HubCore
import HubGateway
import HubGeo
import HubMessages
import HubSimulation
import HubSystem
import HubTransport
import Testing

@Suite struct ReplayTests {
  /// What the tracker makes of fixes, by the clock of the recording: the rows of `filter`.
  private func filtered(_ fixes: [Fix]) -> [String] {
    var tracker = Tracker()
    var rows: [String] = []
    var uptime: Int64 = 0
    func add(_ position: Position) {
      rows.append(
        TraceFile.row(
          timestamp: position.timestamp, coordinate: position.coordinate, speed: position.speed,
          heading: position.heading))
    }
    for fix in fixes {
      uptime = max(uptime, (fix.timestamp.milliseconds - fixes[0].timestamp.milliseconds) * 1_000_000)
      switch tracker.update(fix, receivedAt: uptime) {
      case .accepted(let position), .clockBelieved(let position, _): add(position)
      case .acceptedTwo(let held, let position):
        add(held)
        add(position)
      case .acceptedHeld(let held, refused: _): add(held)
      case .history, .duplicate, .held, .clockDoubted, .refused: break
      }
    }
    return rows
  }

  /// Sends fixes as one driver, watches them as ops, and compares.
  private func replay(_ fixes: [Fix], loops: Int = 1) throws {
    let server = try Bench.startHub(loops: loops)
    let bench = try ClientBench()
    defer { bench.end(server) }
    let watcher = bench.clients.add(try Bench.configuration(port: server.address.port, role: "ops", id: "watch"))
    bench.clients.subscribe(watcher, to: .trip(Identifier("T1")!))
    #expect(bench.run { bench.subscribed == 1 })
    let driver = bench.clients.add(try Bench.configuration(port: server.address.port, role: "driver", id: "D1"))
    #expect(bench.run { bench.openings[driver.index] == 1 })
    let session = bench.clients.session(driver)
    var next = 0
    // No further ahead of the watcher than its socket takes: a slow one would rightly get only the newest positions.
    let isSent = bench.run {
      while next < fixes.count, session.backlog < 64, next - bench.positions[watcher.index, default: []].count < 100 {
        bench.clients.send(fixes[next], trip: Identifier("T1"), from: driver)
        next += 1
      }
      return next == fixes.count && session.backlog == 0
    }
    #expect(isSent)
    let isStored = bench.run {
      if session.unconfirmed > 0 { bench.clients.ping(driver) }
      return session.unconfirmed == 0
    }
    #expect(isStored, "\(session.unconfirmed) fixes are not confirmed")
    let expected = filtered(fixes)
    #expect(bench.run { bench.positions[watcher.index, default: []].count >= expected.count })
    #expect(bench.rows(watcher) == expected)
    #expect(bench.positions[watcher.index, default: []].allSatisfy { $0.tripID == Identifier("T1") })
    #expect(session.counters.fixesOut == UInt64(fixes.count))
  }

  @Test(
    "A simulated drive comes out of the hub as the tracker alone makes it, with one loop and with two",
    arguments: [1, 2])
  func simulatedDrive(loops: Int) throws {
    let city = City(seed: 7, center: Coordinate(latitude: 52.52, longitude: 13.405)!, radiusMeters: 3000)
    var driver = SimulatedDriver(index: 0, city: city, seed: 7, start: Timestamp(milliseconds: 1_763_680_000_000))
    var fixes: [Fix] = []
    for second in 1...900 { if let fix = driver.step(to: Double(second)).fix { fixes.append(fix) } }
    // A fix that comes twice, and one that comes late, as phones send them.
    fixes.insert(fixes[100], at: 102)
    fixes.swapAt(200, 201)
    try replay(fixes, loops: loops)
  }

  @Test("Recorded drives come out of the hub as the tracker alone makes them")
  func recordedDrives() throws {
    let traces = try Bench.traces()
    guard !traces.isEmpty else {
      print("skipped: there are no recorded drives at ../shared/data/traces")
      return
    }
    for trace in traces { try replay(try TraceFile.fixes(try readFile(trace))) }
  }

  @Test("A hub that goes and comes back gets everything, in order, and nothing that was acked is lost")
  func restart() throws {
    // Its port is free again when the server is let go.
    var server: Server? = try Bench.startHub(rate: 1000)
    let port = try #require(server).address.port
    let bench = try ClientBench()
    var configuration = try Bench.configuration(port: port, role: "driver", id: "D1")
    // The protocol's times would make a slow test; the rules are the same.
    configuration.limits.spreadSeconds = 0.2
    configuration.limits.firstDelay = 0.05
    let driver = bench.clients.add(configuration)
    configuration.url = try Bench.configuration(port: port, role: "ops", id: "watch").url
    let watcher = bench.clients.add(configuration)
    bench.clients.subscribe(watcher, to: .driver(Identifier("D1")!))
    #expect(bench.run { bench.openings.count == 2 && bench.subscribed == 1 })

    let session = bench.clients.session(driver)
    var sent: Int64 = 0
    func drive(_ count: Int) {
      for _ in 0..<count {
        sent += 1
        // Northwards at 11 m/s.
        let coordinate = Coordinate(latitude: 50 + Double(sent) * 1e-4, longitude: 8)!
        bench.clients.send(
          Fix(coordinate: coordinate, timestamp: Timestamp(milliseconds: 1_763_680_000_000 + sent * 1000), accuracy: 5),
          from: driver)
      }
    }
    drive(20)
    #expect(bench.run { bench.positions[watcher.index, default: []].count == 20 })
    bench.clients.ping(driver)
    #expect(bench.run { session.unconfirmed == 0 })
    drive(7)  // some are on their way when the hub goes
    server?.drain()
    #expect(bench.run { bench.closures.count >= 2 })
    let seenOfFirstHub = bench.positions[watcher.index, default: []].count
    server?.wait()
    server = nil
    drive(30)
    let trip = bench.clients.send(
      TripStatusReport(
        tripID: Identifier("T9")!, status: .requested, timestamp: Timestamp(milliseconds: 1_763_680_060_000)),
      from: driver)
    drive(3)
    #expect(session.unconfirmed >= 34)

    let second = try Bench.startHub(port: port, rate: 1000)
    defer { bench.end(second) }
    #expect(bench.run { bench.openings[driver.index] == 2 && bench.openings[watcher.index] == 2 })
    let isStored = bench.run {
      if session.unconfirmed > 0, session.backlog == 0 { bench.clients.ping(driver) }
      return session.unconfirmed == 0
    }
    #expect(isStored)
    #expect(bench.acks.contains(try #require(trip)))
    // What the first hub had not confirmed is what the second one got.
    #expect(session.counters.fixesResent >= 33 && session.counters.fixesDropped == 0)
    #expect(bench.run { second.statistics.hub.fixesReceived >= 33 })
    #expect(second.statistics.hub.fixesDuplicate == 0)
    // What the first hub published and could not confirm any more, the second one publishes again: it knows nothing of
    // it.
    let times = bench.positions[watcher.index, default: []].map(\.timestamp)
    for life in [times.prefix(seenOfFirstHub), times.dropFirst(seenOfFirstHub)] {
      #expect(zip(life, life.dropFirst()).allSatisfy { $0 < $1 })
    }
  }

  /// A port where a hub was, and is no more.
  private func freePort() throws -> UInt16 {
    let server = try Bench.startHub()
    server.drain()
    server.wait()
    return server.address.port
  }

  @Test("A client waits for a hub that is not there yet")
  func lateHub() throws {
    let port = try freePort()
    let bench = try ClientBench()
    var impatient = try Bench.configuration(port: port, role: "driver", id: "D1")
    impatient.limits.firstDelay = 0.02
    let driver = bench.clients.add(impatient)
    #expect(bench.run { bench.closures.count == 2 })
    guard case .connectFailed = bench.closures[0].cause else {
      Issue.record("\(bench.closures[0])")
      return
    }
    let again = try Bench.startHub(port: port)
    #expect(bench.run { bench.openings[driver.index] == 1 })
    bench.clients.close(driver)
    #expect(bench.run { bench.clients.connections == 0 })
    #expect(bench.closures.last == Disconnection(cause: .closedByUs, next: .ended(.closedByUs), wasOpen: true))
    again.drain()
    again.wait()
  }
}
