// What happens to the hubs of a simulated fleet, to the bus and to the ledger, and what people do meanwhile.
import HubBackplaneSupport
import HubCore
import HubMessages
import HubTestSupport

@testable import HubCluster

extension Fleet {
  /// A history: it is calm at first, then things go wrong, then all is well again.
  func run() {
    for _ in 0..<2 { requestTrip() }
    run(seconds: 1)
    for _ in 0..<60 {
      if oneIn(8) { changeFaults() }
      if oneIn(4) { fail() }
      for _ in 0..<2 { act() }
      run(seconds: 0.3)
    }
  }

  /// Somebody does something.
  private func act() {
    switch pick(16) {
    case 0: if let driver = phones.indices.randomElement(using: &random) { connect(driver) }
    case 1, 2: if world.engine.isolated.isEmpty { requestTrip() }
    case 3: follow()
    case 4, 5: if let rider = riders.indices.randomElement(using: &random) { reconnect(rider) }
    case _: if let trip = trips.indices.randomElement(using: &random) { moveTrip(trip) }
    }
  }

  private func changeFaults() {
    let engine = world.engine
    (engine.faults.lost, engine.faults.doubled) = oneIn(3) ? (0, 0) : (0.05, 0.02)
    engine.faults.spoiled = oneIn(2) ? 0.02 : 0
    engine.faults.delayed = oneIn(2) ? 0.2 : 0
    engine.faults.unknown = oneIn(2) ? 0.1 : 0
    note("faults \(engine.faults)")
  }

  /// One of the hubs, of the links between them or of the ways to the engine fails, or is well again.
  private func fail() {
    let name = Fleet.names[pick(3)]
    switch pick(6) {
    case 0: kill(name)
    case 1:
      world.stalled = oneIn(2) ? [] : [name]
      if !world.stalled.isEmpty { count(.stalls) }
      note("stalled: \(world.stalled.sorted())")
    case 2, 3:
      world.engine.cuts = oneIn(2) ? [] : ["\(name)>\(Fleet.names[pick(3)])", "\(Fleet.names[pick(3)])>\(name)"]
      note("cut: \(world.engine.cuts.sorted())")
    case 4: isolate(name)
    case _:
      for member in world.members { member.journal?.isStalled = oneIn(3) }
      note("disks stall")
    }
  }

  /// A hub without the engine goes on alone, and begins what it is asked to begin (protocol/cluster.md, "The same
  /// request at several hubs"): so nobody asks for a trip meanwhile.
  private func isolate(_ name: String) {
    let isRequested = trips.contains { $0.moves.last?.status == .requested && $0.moves.last?.isAcked == false }
    world.engine.isolated = oneIn(2) || isRequested ? [] : oneIn(3) ? Set(Fleet.names) : [name]
    count(.isolations, world.engine.isolated.count)
    note("without the engine: \(world.engine.isolated.sorted())")
  }

  private func kill(_ name: String) {
    guard dead.count < 2, dead[name] == nil else { return }
    note("\(name) dies")
    count(.kills)
    count(.framesMissed, Int(world[name].node.node.counters.framesMissed))
    world[name].journal?.die(&random, now: world.clock(of: name))
    dead[name] = world.now.uptime + Int64(pick(90)) * 100_000_000
    let orphans = riders.indices.filter { rider in world[name].followers.contains { $0 === riders[rider] } }
    world.kill(name)
    world.stalled.remove(name)
    open = open.filter { $0.hub != name }
    orphans.forEach(reconnect)
    maps[name] = nil
  }

  /// A hub that was dead begins anew, with its journal.
  func begin(_ name: String) {
    dead[name] = nil
    world.join(name)
    watch(at: name)
    note("\(name) begins anew")
  }

  /// Nothing fails any more.
  func mend() {
    (world.engine.faults, world.engine.cuts, world.engine.isolated, world.stalled) = (EngineFaults(), [], [], [])
    for member in world.members { member.journal?.isStalled = false }
    for name in dead.keys.sorted() { begin(name) }
    for driver in phones.indices where session(of: driver) == nil { connect(driver) }
    note("all is well")
  }
}
