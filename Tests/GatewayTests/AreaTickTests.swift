// A tick is sent to the watchers of areas over several turns, so that other positions need not wait for all of them.
import HubBytes
import HubSystem
import HubTransport
import Testing

@testable import HubGateway

/// Control rooms that watch one cell, and a driver in it.
private final class Stage {
  static let watchers = 5
  let clock = HandClock()
  let hub: HandDrivenHub
  let driver: HandDrivenPeer
  private(set) var watchers: [HandDrivenPeer] = []
  private var messages = 0

  /// Each turn sends to one session: what it is sent is a turn's share by itself.
  init() throws {
    hub = try HandDrivenHub(clock: clock) {
      $0.allowsDevelopmentCredentials = true
      $0.limits.areaBytesPerTurn = 1
    }
    driver = try HandDrivenPeer(hub, role: "driver", id: "d1")
    move(to: 52.5)
    for number in 0..<Stage.watchers {
      watchers.append(try HandDrivenPeer(hub, role: "ops", id: "o\(number)"))
      watch(watchers[number])
    }
    tick()
    settle()
    for watcher in watchers { try #require(Stage.updates(watcher).count == 1, "the whole cell") }
  }

  func watch(_ peer: HandDrivenPeer) { send("subscribe", #""channel":"area:u33d8""#, peer) }

  func send(_ type: String, _ payload: String, _ peer: HandDrivenPeer) {
    messages += 1
    let time = clock.reading.unixMilliseconds
    peer.send(
      HandDrivenPeer.frame(
        #"{"type":"\#(type)","payload":{\#(payload)},"timestamp":\#(time),"messageId":"m\#(messages)"}"#))
    peer.ownTurn()
  }

  func sendFix(at latitude: Double) {
    let time = clock.reading.unixMilliseconds
    send("location_update", #""latitude":\#(latitude),"longitude":13.4,"accuracy":5,"timestamp":\#(time)"#, driver)
  }

  func move(to latitude: Double) {
    sendFix(at: latitude)
    driver.turn()
  }

  /// A second goes by; nobody has had a turn yet.
  func tick() { clock.advance(milliseconds: 1000) }

  /// The driver moves, a second goes by, and the hub has its first turn of the tick.
  func begin() {
    move(to: 52.501)
    tick()
    _ = turn()
  }

  /// One turn of the hub; gives what each watcher has had so far.
  func turn() -> [Int] {
    hub.loop.runTurn(timeoutMilliseconds: 0)
    for watcher in watchers { watcher.ownTurn() }
    return watchers.map { Stage.updates($0).count }
  }

  func settle() { for _ in 0..<40 { _ = turn() } }

  static func updates(_ peer: HandDrivenPeer) -> [String] { peer.messages.filter { $0.contains(#""area_update""#) } }

  /// The number of the tick that an update is of.
  static func tick(_ update: String) throws -> Int {
    let match = try #require(update.firstMatch(of: /"tick":(\d+)/))
    return try #require(Int(match.1))
  }
}

@Suite struct AreaTickTests {
  @Test("a turn sends a tick to some sessions, and positions pass between the turns")
  func shares() throws {
    let stage = try Stage()
    let rider = try HandDrivenPeer(stage.hub, role: "ops", id: "follower")
    stage.send("subscribe", #""channel":"driver:d1""#, rider)
    rider.turn()
    stage.move(to: 52.501)
    stage.tick()
    var received: [Int] = []
    while received.last != 2 {
      received.append(stage.turn().count { $0 == 2 })
      try #require(received.count < 20)
    }
    #expect(received.elementsEqual(received.sorted()) && received.contains(1), "one after the other: \(received)")
    let before = rider.messages.count
    stage.sendFix(at: 52.502)
    let next = stage.turn().count { $0 == 2 }
    rider.ownTurn()
    #expect(next == 3, "one more was sent to")
    #expect(rider.messages.count > before, "the position did not wait for the others")
    stage.settle()
    #expect(stage.turn() == [2, 2, 2, 2, 2])
  }

  @Test("who begins to watch meanwhile gets the whole cell behind the tick, and none of its changes")
  func newcomer() throws {
    let stage = try Stage()
    let newcomer = try HandDrivenPeer(stage.hub, role: "ops", id: "newcomer")
    stage.move(to: 52.501)
    stage.tick()
    while stage.turn().count(where: { $0 == 2 }) == 0 {}
    stage.watch(newcomer)
    var received = 0
    while received < Stage.watchers {
      #expect(Stage.updates(newcomer).isEmpty)
      received = stage.turn().count { $0 == 2 }
      newcomer.ownTurn()
    }
    if Stage.updates(newcomer).isEmpty { _ = stage.turn() }  // it waits no longer than for the last one
    newcomer.ownTurn()
    #expect(received == Stage.watchers)
    stage.settle()
    newcomer.ownTurn()
    let updates = Stage.updates(newcomer)
    #expect(updates.count == 1 && updates[0].contains(#""full":true"#), "\(updates)")
    #expect(updates[0].contains(#""latitude":52.5009"#), "where the filter has it after the move")
  }

  @Test("a turn sends some of the cells that wait for the end of a tick, too")
  func snapshots() throws {
    let stage = try Stage()
    let newcomers = try (0..<4).map { try HandDrivenPeer(stage.hub, role: "ops", id: "newcomer-\($0)") }
    stage.begin()
    for newcomer in newcomers { stage.watch(newcomer) }
    var received = [0]
    while received.last != newcomers.count {
      _ = stage.turn()
      for newcomer in newcomers { newcomer.ownTurn() }
      received.append(newcomers.count { !Stage.updates($0).isEmpty })
      try #require(received.count < 40)
    }
    #expect(zip(received, received.dropFirst()).allSatisfy { $0 <= $1 && $1 <= $0 + 1 }, "\(received)")
    stage.settle()
    for newcomer in newcomers { newcomer.ownTurn() }
    #expect(newcomers.allSatisfy { Stage.updates($0).count == 1 })
  }

  @Test("who missed changes asks once for the whole cell, however often it has read everything")
  func asksOnce() throws {
    let stage = try Stage()
    let sessions = stage.hub.sessions.sessions
    let slot = try #require(stage.hub.openSlots.first { sessions.pointee.fanOut.areas.hasViews($0) })
    let id = sessions.pointee.sessions[slot].connection
    func missesChanges() {
      var nodes: [UInt32] = []
      let subscriptions = sessions.pointee.sessions[slot].open.subscriptions
      sessions.pointee.fanOut.subscriptions.forEach(of: subscriptions) { nodes.append($1.node) }
      for node in nodes { sessions.pointee.fanOut.subscriptions.set(.changes, of: node) }
    }
    for round in 1...2 {
      let before = stage.watchers.reduce(0) { $0 + Stage.updates($1).count }
      missesChanges()
      sessions.pointee.drained(id)
      sessions.pointee.drained(id)
      #expect(sessions.pointee.inputs.count == 1, "round \(round)")
      #expect(stage.turn().reduce(0, +) == before + 1, "it gets the cell")
    }
  }

  @Test("a tick that ends before the one before was sent to all goes out behind it, to everybody")
  func late() throws {
    let stage = try Stage()
    stage.begin()
    stage.move(to: 52.502)
    stage.tick()
    stage.settle()
    for watcher in stage.watchers {
      let ticks = try Stage.updates(watcher).map(Stage.tick)
      #expect(ticks.count == 3 && ticks == ticks.sorted(), "\(ticks)")
      #expect(Set(ticks).count == 3)
    }
  }

  @Test("a session that goes before its turn leaves the others theirs")
  func gone() throws {
    let stage = try Stage()
    stage.begin()
    stage.watchers[0].abort()
    stage.watchers[3].abort()
    stage.settle()
    let counts = stage.turn()
    #expect([1, 2, 4].allSatisfy { counts[$0] == 2 })
  }
}
