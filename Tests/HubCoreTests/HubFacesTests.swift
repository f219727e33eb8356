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
}
