// What a control room's map is sent beyond areas: all trips, and fixes as they were measured.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubOpsTests {
  @Test("Who follows all trips gets each move with places and rider, numbered; others' events are as before")
  func trips() {
    let bench = HubBench()
    bench.turn(bench.move(.rider, "R", "T0", .requested))
    #expect(bench.hub.channels.find(.trips) == nil, "nothing is kept before somebody asks")
    let answer = bench.turn(bench.subscribe(.trips)).subscribed.first?.answer
    bench.turn(bench.subscribe(bench.trip("T1"), slot: 81))
    let turn = bench.turn(
      bench.move(.rider, "R", "T1", .requested, driver: "D"), bench.change(.ops, "o", "T1", pickup: at(52, 13)),
      bench.move(.driver, "D", "T1", .accepted), bench.change(.ops, "o", "T1", dropoff: at(53, 14)))
    let all = turn.deliveries.filter { $0.publication.channel == .trips }.compactMap(\.publication.move)
    let own = turn.deliveries.filter { $0.publication.channel == bench.trip("T1") }.compactMap(\.publication.move)
    #expect(all.map(\.sequence) == (1...4).map { answer!.sequence + $0 } && own.count == 4)
    #expect(all.map(\.status) == own.map(\.status) && all.map(\.previousStatus) == own.map(\.previousStatus))
    #expect(all.map(\.pickup) == [nil, at(52, 13), at(52, 13), at(52, 13)])
    #expect(all.map(\.dropoff) == [nil, nil, nil, at(53, 14)])
    #expect(all.allSatisfy { $0.riderID == id("R") && $0.driverID == id("D") })
    #expect(own.allSatisfy { $0.riderID == nil } && own.map(\.pickup) == [nil, at(52, 13), nil, nil])
  }

  @Test("Events of all trips are counted while nobody listens, and the newest of them recovered, up to the limit")
  func resuming() {
    var limits = HubLimits.roomy
    limits.eventsPerChannel = 8
    let bench = HubBench(limits: limits)
    let answer = bench.turn(bench.subscribe(.trips)).subscribed.first!.answer
    let channel = ChannelHandle(index: UInt32(bench.hub.channels.trips!))
    bench.turn(.released(outlet: 0, channel))
    for number in 1...8 { bench.turn(bench.move(.ops, "o", "T\(number)", .requested)) }
    let back = bench.turn(bench.subscribe(.trips, since: answer.sequence)).subscribed.first
    #expect(back?.answer.recovered == true && back?.missed.compactMap(\.move).count == 8)
    bench.turn(.released(outlet: 0, channel), bench.move(.ops, "o", "T9", .requested))
    let late = bench.turn(bench.subscribe(.trips, since: answer.sequence)).subscribed.first
    #expect(late?.answer.recovered == false && late?.answer.sequence == answer.sequence + 9)
  }

  @Test("Fixes as they were measured: each one's verdict, and how far from it was published")
  func rawFixes() throws {
    let bench = HubBench()
    bench.turn(bench.subscribe(.raw(id("D"))))
    let driver = bench.connect("D")
    let other = bench.connect("E", slot: 1)
    func seconds(_ count: Int64) -> Int64 { 1_763_685_000_000 + count * 1000 }
    func raw(_ inputs: HubInput...) -> [RawFix] {
      bench.turn(inputs).deliveries.compactMap {
        if case .rawFix(let fix) = $0.publication.body, $0.publication.channel == .raw(id("D")) { fix } else { nil }
      }
    }
    let place = at(52.520_000_04, 13.405)
    let first = raw(bench.fix(driver, at: place, accuracy: 4.123, speed: 1.239, milliseconds: seconds(0)))
    #expect(first.map(\.verdict) == [.accepted] && first[0].coordinate == at(52.52, 13.405))
    #expect(first[0].accuracy == 4.12 && first[0].speed == 1.24 && first[0].timestamp == time(seconds(0)))
    let shown = try #require(bench.hub.drivers[0].position?.coordinate)
    #expect(abs(try #require(first[0].offset) - place.distance(to: shown)) <= 0.006)
    #expect(raw(bench.fix(driver, milliseconds: seconds(0))).map(\.verdict) == [.duplicate])
    #expect(raw(bench.fix(driver, milliseconds: seconds(-30))).map(\.verdict) == [.history])
    #expect(raw(bench.fix(driver, milliseconds: seconds(90_000))).map(\.verdict) == [.held])
    let refused = raw(bench.fix(driver, accuracy: 900, milliseconds: seconds(2)))
    #expect(refused.map(\.verdict) == [.refused] && refused[0].reason == .implausibleLocation)
    #expect(refused[0].offset == nil)
    #expect(raw(bench.fix(other, milliseconds: seconds(3))).isEmpty, "of another driver")
    let late = raw(bench.batch(driver, [bench.measured(seconds(-20)), bench.measured(seconds(4))]))
    #expect(late.map(\.verdict) == [.history, .accepted], "those of a batch, too")
    var verdicts: Set<RawFix.Verdict> = []
    for step in 5..<8 {  // so far away that the track continues without it
      verdicts.formUnion(
        raw(bench.fix(driver, at: at(52.53, 13.405), milliseconds: seconds(Int64(step)))).map(\.verdict))
    }
    #expect(verdicts.contains(.absorbed), "\(verdicts)")
  }

  @Test("Nothing is made of a driver's fixes while nobody listens; of those that are not read the newest 64 are kept")
  func rawFixesUnheard() {
    let bench = HubBench()
    let driver = bench.connect("D")
    #expect(bench.hub.drivers[0].rawChannel == -1)
    let handle = bench.turn(bench.subscribe(.raw(id("D")))).subscribed[0].handle
    #expect(bench.hub.drivers[0].rawChannel == Int32(handle.index))
    // Whatever else is published.
    let fleet = bench.turn(bench.subscribe(.fleet)).subscribed[0].handle
    var keys: [UInt64] = []
    for _ in 0..<200 {
      bench.advance(seconds: 1)
      let raw = bench.turn(bench.fix(driver, milliseconds: bench.clock)).deliveries.filter { $0.channel == handle }
      #expect(raw.count == 1 && raw[0].conflationKey != 0)
      keys += raw.map(\.conflationKey)
    }
    let unread = Int(HubLimits.unreadRawFixes)
    #expect(Set(keys).count == unread && Set(keys.suffix(unread)).count == unread)
    for handle in [handle, fleet] { bench.turn(.released(outlet: 0, handle)) }
    #expect(bench.hub.drivers[0].rawChannel == -1)
    bench.advance(seconds: 1)
    #expect(bench.turn(bench.fix(driver, milliseconds: bench.clock)).deliveries.isEmpty)
  }

  // MARK: Counts

  /// What comes of a subscription to counts, kept by cell as a client keeps it.
  private struct Counter {
    var cells: [GeohashCell: CountsUpdate.Cell] = [:]
    var updates: [CountsUpdate] = []

    mutating func take(_ turn: Turn) {
      for output in turn.all {
        switch output {
        case .areaSnapshot(_, _, let parts): for part in parts { take(part) }
        case .areaUpdate(_, let publication): take(publication)
        default: break
        }
      }
    }

    private mutating func take(_ publication: Publication) {
      guard case .countsUpdate(let update) = publication.body else { return }
      updates.append(update)
      if update.isFull { cells = cells.filter { $0.key.ancestor(precision: update.block.precision) != update.block } }
      for cell in update.cells { cells[cell.cell] = cell }
    }
  }

  private func watch(_ bench: HubBench, _ channel: Channel, slot: UInt32 = 500) -> (Counter, [ChannelHandle]) {
    var counter = Counter()
    let asked = bench.turn(bench.subscribe(channel, slot: slot))
    let session = SessionRef(outlet: 0, slot: slot, generation: 1)
    for output in asked.all {
      guard case .watching(_, _, let handles) = output else { continue }
      var turn = bench.turn(.areaSnapshots(session, handles))
      counter.take(turn)
      while bench.hub.hasMoreDue {
        turn = bench.turn([])
        counter.take(turn)
      }
      return (counter, handles)
    }
    Issue.record("no view: \(asked.refusedSubscriptions)")
    return (counter, [])
  }

  private func tick(_ bench: HubBench, _ counter: inout Counter, _ inputs: [HubInput] = []) {
    bench.advance(seconds: 1)
    counter.take(bench.turn(inputs))
    while bench.hub.hasMoreDue { counter.take(bench.turn([])) }
  }

  @Test("Drivers are counted by status in each cell; a tick has the cells that changed, and an empty one once")
  func counts() {
    let bench = HubBench()
    let drivers = (0..<3).map { bench.connect("D\($0)", slot: UInt32($0)) }
    let (here, there) = (at(52.52, 13.405), at(52.53, 13.43))
    for driver in drivers { bench.turn(bench.fix(driver, at: here, accuracy: 3)) }
    let box = BoundingBox(south: 52.5, west: 13.38, north: 52.55, east: 13.46)!
    var (counter, handles) = watch(bench, .counts(box))
    let cell = counter.cells.keys.first!
    #expect(cell.contains(here) && counter.cells.count == 1 && counter.cells[cell]?.available == 3)
    #expect(counter.updates.allSatisfy(\.isFull) && counter.updates.count == handles.count)
    let before = counter.updates.count
    tick(bench, &counter)
    #expect(counter.updates.count == before, "nothing changed")
    tick(
      bench, &counter,
      [
        .driverStatus(drivers[0], message("s"), DriverStatusReport(status: .unavailable, vehicleType: nil)),
        bench.fix(drivers[1], trip: "T", at: here, accuracy: 3, milliseconds: bench.clock + 1000),
      ])
    var expected = CountsUpdate.Cell(cell)
    (expected.available, expected.onTrip, expected.unavailable) = (1, 1, 1)
    #expect(counter.cells == [cell: expected] && counter.updates.last?.isFull == false)
    // All drive away: the cell is empty, which is sent once.
    for _ in 0..<40 {
      bench.advance(seconds: 60)
      tick(bench, &counter, drivers.map { bench.fix($0, at: there, accuracy: 3, milliseconds: bench.clock + 1000) })
    }
    #expect(counter.cells[cell] == CountsUpdate.Cell(cell), "zeros")
    #expect(counter.cells.values.reduce(0) { $0 + $1.available + $1.onTrip + $1.unavailable } == 3)
    let received = counter.updates.filter { $0.cells.contains { $0.cell == cell } }.count
    #expect(received <= 5)
  }

  @Test("Counts agree with a count of all drivers, whoever watches, and are made once for all who do")
  func countsOracle() {
    let bench = HubBench()
    var random = SplitMix64(seed: 11)
    let drivers = (0..<40).map { bench.connect("D\($0)", slot: UInt32($0)) }
    func somewhere() -> Coordinate { at(52.4 + random.fraction() * 0.2, 13.2 + random.fraction() * 0.4) }
    for driver in drivers { bench.turn(bench.fix(driver, at: somewhere(), accuracy: 3)) }
    let box = BoundingBox(south: 52.3, west: 13.1, north: 52.7, east: 13.7)!
    var (counter, _) = watch(bench, .counts(box))
    let precision = counter.cells.keys.first!.precision
    let (second, _) = watch(bench, .counts(box), slot: 501)
    #expect(second.cells == counter.cells)
    for step in 0..<30 {
      let published = bench.hub.channels.deliveries
      var inputs: [HubInput] = []
      for (index, driver) in drivers.enumerated() where random.next() % 2 == 0 {
        bench.advance(seconds: 0)
        inputs.append(bench.fix(driver, at: somewhere(), accuracy: 3, milliseconds: bench.clock + 1000))
        if random.next() % 8 == 0 {
          let status: DriverStatus = [.available, .unavailable, .background][Int(random.next() % 3)]
          inputs.append(
            .driverStatus(driver, message("s\(index)"), DriverStatusReport(status: status, vehicleType: nil)))
        }
      }
      tick(bench, &counter, inputs)
      tick(bench, &counter)
      var truth: [GeohashCell: Int] = [:]
      for index in 0..<bench.hub.drivers.endIndex {
        guard let place = bench.hub.drivers[index].position?.coordinate else { continue }
        truth[GeohashCell(place, precision: precision), default: 0] += 1
      }
      let seen = counter.cells.mapValues { $0.available + $0.onTrip + $0.unavailable + $0.background + $0.offline }
      #expect(seen.filter { $0.value > 0 } == truth, "step \(step)")
      #expect(bench.hub.channels.deliveries - published <= 8, "one for each block, for two who watch")
    }
  }

  @Test("A driver that goes offline is counted as that, and not at all an hour after its last fix")
  func countsOffline() {
    let bench = HubBench()
    bench.turn(bench.fix(bench.connect("D")))
    let box = BoundingBox(south: 52.5, west: 13.38, north: 52.55, east: 13.46)!
    var (counter, _) = watch(bench, .counts(box))
    let cell = counter.cells.keys.first!
    for _ in 0..<90 { tick(bench, &counter) }
    #expect(counter.cells[cell]?.offline == 1 && counter.cells[cell]?.available == 0)
    let (late, _) = watch(bench, .counts(box), slot: 501)
    #expect(late.cells[cell]?.offline == 1)
    for _ in 0..<3600 { tick(bench, &counter) }
    #expect(counter.cells[cell] == CountsUpdate.Cell(cell))
  }

  @Test("A view of counts has at most 64 blocks; without a size the hub chooses one that fits the box")
  func countsLimits() {
    func blocks(_ box: BoundingBox, _ precision: Int? = nil) -> [GeohashCell]? {
      AreaCovering.blocks(of: .counts(box), precision: precision)
    }
    let city = BoundingBox(south: 52.3, west: 13, north: 52.7, east: 13.8)!
    #expect(blocks(city)?.first?.precision == 3 && blocks(city, 8) == nil && blocks(city, 3)?.count == 1)
    #expect(blocks(.world)?.count == 32 && blocks(.world, 4) == nil)
    #expect(AreaCovering.blocks(of: .countsBlock(GeohashCell("u33")!), precision: nil) == [GeohashCell("u33")!])
    let bench = HubBench()
    #expect(
      bench.turn(
        .subscribe(
          SubscribeInput(
            session: SessionRef(outlet: 0, slot: 1, generation: 1), actor: Actor(role: .ops, id: id("o")),
            messageID: message("m"), request: Subscribe(channel: .counts(city), precision: 8), grant: .granted))
      ).refusedSubscriptions.map(\.code) == [.badMessage])
  }
}
