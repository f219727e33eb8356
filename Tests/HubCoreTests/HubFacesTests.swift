// What a control room's map is told beyond areas: all trips, and fixes as they were measured.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct HubFacesTests {
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
    for step in 5..<8 {  // so far away that the track goes on without it
      verdicts.formUnion(
        raw(bench.fix(driver, at: at(52.53, 13.405), milliseconds: seconds(Int64(step)))).map(\.verdict))
    }
    #expect(verdicts.contains(.absorbed), "\(verdicts)")
  }

  @Test("Nothing is made of a driver's fixes while nobody listens, and of those that are not read some are let go")
  func rawFixesUnheard() {
    let bench = HubBench()
    let driver = bench.connect("D")
    #expect(bench.hub.drivers[0].rawChannel == -1)
    let handle = bench.turn(bench.subscribe(.raw(id("D")))).subscribed[0].handle
    #expect(bench.hub.drivers[0].rawChannel == Int32(handle.index))
    var keys: Set<UInt64> = []
    for _ in 0..<200 {
      bench.advance(seconds: 1)
      let turn = bench.turn(bench.fix(driver, milliseconds: bench.clock))
      #expect(turn.deliveries.count == 1 && turn.deliveries[0].conflationKey != 0)
      keys.formUnion(turn.deliveries.map(\.conflationKey))
    }
    #expect(keys.count == Int(HubLimits.unreadRawFixes))
    bench.turn(.released(outlet: 0, handle))
    #expect(bench.hub.drivers[0].rawChannel == -1)
    bench.advance(seconds: 1)
    #expect(bench.turn(bench.fix(driver, milliseconds: bench.clock)).deliveries.isEmpty)
  }
}
