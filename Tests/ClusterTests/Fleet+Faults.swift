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
    let (cut, death) = (oneIn(4) ? pick(60) : nil, oneIn(5) ? pick(60) : nil)
    for round in 0..<60 {
      if oneIn(8) { changeFaults() }
      if oneIn(4) { fail() }
      if round == cut { cutForLong() }
      if round == death { loseHub() }
      for _ in 0..<2 { act() }
      run(seconds: 0.3)
    }
  }

  /// A link is cut for longer than hubs repeat anything, while people continue.
  private func cutForLong() {
    let names = Fleet.names.shuffled(using: &random)
    let cuts: Set = ["\(names[0])>\(names[1])", "\(names[1])>\(names[0])"]
    note("cut for 40 s: \(cuts.sorted())")
    count(.longCuts)
    world.engine.isolated = []
    for _ in 0..<80 {
      world.engine.cuts.formUnion(cuts)
      for _ in 0..<2 { act() }
      run(seconds: 0.5)
    }
    world.engine.cuts = []
  }

  /// A hub dies, and never begins anew.
  private func loseHub() {
    let name = Fleet.names[pick(3)]
    if dead[name] == nil { kill(name) }
    guard dead[name] != nil else { return }
    (dead[name], gone) = (.max, name)
    count(.gone)
    note("it is gone for good")
  }

  /// Somebody does something.
  private func act() {
    switch pick(18) {
    case 16, 17: share()
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

  /// A hub without the engine works alone, and begins what it is asked to begin (protocol/cluster.md, "The same
  /// request at several hubs"): so nobody asks for a trip meanwhile, and no hub has a request on the way.
  private func isolate(_ name: String) {
    let isRequested =
      trips.contains { $0.moves.last?.status == .requested && $0.moves.last?.isAcked == false }
      || world.members.contains { $0.hasRequests }
    world.engine.isolated = oneIn(2) || isRequested ? [] : oneIn(3) ? Set(Fleet.names) : [name]
    if world.engine.isolated.count == 3, dead.isEmpty, oneIn(2) {
      world.engine.forget()
      count(.forgotten)
      note("the engine forgets")
    }
    count(.isolations, world.engine.isolated.count)
    note("without the engine: \(world.engine.isolated.sorted())")
  }

  private func kill(_ name: String) {
    guard dead.count < (gone == nil ? 2 : 1), dead[name] == nil else { return }
    note("\(name) dies")
    count(.kills)
    count(.framesMissed, Int(world[name].node.node.counters.framesMissed))
    world[name].journal?.die(&random, now: world.clock(of: name))
    dead[name] = world.now.uptime + Int64(pick(90)) * 100_000_000
    for share in shares.indices {
      shares[share].holders.removeAll { holder in world[name].followers.contains { $0 === holder } }
    }
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
  func endFaults() {
    (world.engine.faults, world.engine.cuts, world.engine.isolated, world.stalled) = (EngineFaults(), [], [], [])
    for member in world.members { member.journal?.isStalled = false }
    for name in dead.keys.sorted() where name != gone { begin(name) }
    for driver in phones.indices where session(of: driver) == nil { connect(driver) }
    note("all is well")
  }
}

extension Member {
  /// Whether something is asked of it that may begin a trip, and that it has not handled.
  fileprivate var hasRequests: Bool {
    node.node.forwarding.pending.count > 0
      || inputs.contains { input in
        if case .tripStatus(let move) = input { move.report.status == .requested } else { false }
      }
  }
}
