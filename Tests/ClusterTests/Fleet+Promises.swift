// What must hold when all is well again, whatever went wrong before: within 3 s every driver is at one hub; then every
// move is acked and is there once; riders have seen all events of their trips once and in order, and no other; and maps
// and answers are the same at every hub.
import HubBackplaneSupport
import HubCore
import HubGeo
import HubMessages

@testable import HubCluster

extension Fleet {
  /// What does not hold.
  func faults() -> [String] {
    endFaults()
    run(seconds: 3)
    var faults = homes()
    for _ in 0..<20
    where trips.indices.contains(where: { !isUnreachable($0) && trips[$0].moves.last?.isAcked == false }) {
      run(seconds: 1)
    }
    run(seconds: 8)  // what a share's owner has not answered is asked again after 4 s
    for rider in riders { rider.positions.removeAll() }
    run(seconds: 3)
    faults += driverFaults() + shareFaults()
    let home = world.engine.owner(of: "d:d\(Fleet.poster)")
    if home == nil || home == gone { faults.append("who posts is at \(home ?? "nowhere")") }
    drives = false
    run(seconds: 4)
    for trip in trips.indices where !isUnreachable(trip) { faults += self.faults(of: trip) }
    let tripCount = world.members.reduce(0) { $0 + $1.hub.hub.shownCounters().entries(.trips) }
    if gone == nil, tripCount != trips.count {
      faults.append("\(tripCount) trips at all hubs, of \(trips.count): \(world.members.flatMap(\.conflicts))")
    }
    faults += mapFaults() + answerFaults()
    count(.framesLost, world.engine.framesLost)
    count(.framesSpoiled, world.engine.framesSpoiled)
    for member in world.members { count(.framesMissed, Int(member.node.node.counters.framesMissed)) }
    return faults
  }

  /// Drivers that have sessions at two hubs or none, or at another hub than the ledger says.
  private func homes() -> [String] {
    phones.indices.filter { $0 != Fleet.poster }.compactMap { driver in
      let hubs = Set(open.filter { $0.driver == driver }.map(\.hub))
      let owner = world.engine.owner(of: "d:d\(driver)")
      count(.homes)
      return hubs.count == 1 && hubs.first == owner
        ? nil : "d\(driver) is at \(hubs.sorted()), the ledger says \(owner ?? "nowhere")"
    }
  }

  // MARK: Trips and riders

  /// It is at a hub that never comes back, or was on its way there.
  func isUnreachable(_ trip: Int) -> Bool {
    guard let gone else { return false }
    let owner = world.engine.owner(of: "t:\(trips[trip].id)") ?? world.engine.owner(of: "i:\(trips[trip].id)")
    return owner == nil || owner == gone
  }

  /// Riders who follow a driver and do not see where it is.
  private func driverFaults() -> [String] {
    riders.compactMap { rider in
      guard case .driver(let name) = rider.channel, let driver = phones.indices.first(where: { id("d\($0)") == name })
      else { return nil }
      count(.driverRiders)
      guard let last = rider.positions.last else { return "a rider of \(rider.channel) sees nothing" }
      let meters = last.coordinate.distance(to: phones[driver].place)
      return meters < 50 ? nil : "a rider of \(rider.channel) sees it \(Int(meters)) m away"
    }
  }

  private func faults(of trip: Int) -> [String] {
    let (channel, moves) = (Channel.trip(trips[trip].id), trips[trip].moves)
    var faults = moves.filter { !$0.isAcked }.map { "\(channel) \($0.status) was never acked" }
    guard let owner = world.engine.owner(of: "t:\(trips[trip].id)"), let log = events(of: channel, at: owner) else {
      return faults + ["\(channel) is nowhere"]
    }
    let found = log.compactMap { if case .tripUpdate(let update) = $0.body { update.status } else { nil } }
    if found != moves.filter(\.isAcked).map(\.status) {
      faults.append("\(channel) has \(found), acked were \(moves.filter(\.isAcked).map(\.status))")
    }
    for (index, rider) in riders.enumerated() where rider.channel == channel {
      faults += self.faults(of: rider, log).map { "rider \(index) of \(channel): \($0)" }
    }
    return faults
  }

  /// All events on a channel, from the first on.
  private func events(of channel: Channel, at owner: String) -> [Publication]? {
    let asker = world.follow(channel, at: owner, slot: world.nextSlot())
    run(seconds: 0.1)
    guard let answer = asker.answers.last else { return nil }
    let reader = world.follow(channel, at: owner, slot: world.nextSlot())
    reader.point = ResumePoint(since: 0, epoch: answer.epoch)
    run(seconds: 0.1)
    for follower in [asker, reader] { world[owner].leave(follower) }
    guard reader.answers.last?.recovered == true else { return nil }
    return reader.log
  }

  private func faults(of rider: Follower, _ log: [Publication]) -> [String] {
    var faults = rider.faults
    if rider.gaps > 0 { faults.append("\(rider.gaps) gaps") }
    if rider.doubles > 0 { faults.append("\(rider.doubles) doubles") }
    if rider.unrecovered > 0 {
      faults.append("not recovered: \(rider.answers.map { ($0.epoch, $0.sequence, $0.recovered) })")
    }
    if rider.point?.since != UInt64(log.count) {
      faults.append("stands at \(rider.point?.since ?? 0) of \(log.count)")
    }
    for event in rider.log {
      let sequence = Int(event.sequence ?? 0)
      if sequence == 0 || sequence > log.count || log[sequence - 1].body != event.body {
        faults.append("was shown what is not there: \(event.body)")
      }
    }
    count(.events, rider.log.count)
    count(.recovered, rider.answers.count(where: \.recovered))
    return faults
  }

  // MARK: Maps and answers

  private func mapFaults() -> [String] {
    let all = Set(phones.indices.map { id("d\($0)") })
    return maps.sorted { $0.key < $1.key }.flatMap { name, map in
      let shown = Set(map.drivers.keys)
      var faults = shown == all ? [] : ["the map at \(name) shows \(shown.map(\.description).sorted())"]
      for (driver, phone) in phones.enumerated() {
        guard let found = map.drivers[id("d\(driver)")]?.driver.coordinate else { continue }
        let meters = found.distance(to: phone.place)
        if meters > 20 { faults.append("the map at \(name) shows d\(driver) \(Int(meters)) m away") }
      }
      return faults
    }
  }

  private func answerFaults() -> [String] {
    let slot = world.nextSlot()
    let living = Fleet.names.filter { $0 != gone }
    for name in living {
      world.ask(.drivers(DriverSearch(area: .box(Fleet.box), limit: 100)), at: name, slot: slot)
    }
    run(seconds: 0.5)
    let all = phones.indices.map { "d\($0)" }
    return living.compactMap { name in
      guard case .drivers(let list)?? = world.result(at: name, slot: slot) else { return "no answer at \(name)" }
      let found = list.drivers.map(\.driverID.description).sorted()
      return found == all ? nil : "\(name) finds \(found)"
    }
  }
}

extension Member {
  /// Trips that it has, and that the ledger says another hub has.
  fileprivate var conflicts: [String] {
    notices.compactMap {
      if case .ownerConflict(let trip, let owner) = $0 { "\(trip) at \(name) and \(owner)" } else { nil }
    }
  }
}
