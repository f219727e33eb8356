// Trips that ops give to a driver, and words for who is too late.
import HubMessages
import Testing

@testable import HubCore

@Suite struct HubAssignmentTests {
  @Test("ops give a trip without a driver to one, who drives it as if it had accepted; they cannot change its driver")
  func assigned() {
    let bench = HubBench()
    bench.turn(bench.subscribe(.driver(id("d1"))))
    bench.turn(bench.move(.rider, "r", "t", .requested))
    #expect(bench.turn(bench.move(.ops, "o", "t", .accepted)).codes == [.invalidTransition], "to whom?")
    #expect(bench.turn(bench.move(.driver, "d2", "t", .accepted, driver: "d1")).codes == [.forbidden])
    let turn = bench.turn(bench.move(.ops, "o", "t", .accepted, driver: "d1"))
    #expect(turn.acks.count == 1 && turn.moves.first?.driverID == id("d1"))
    #expect(bench.hub.trips[0].driverID == id("d1") && bench.report(of: "d1")?.status == .onTrip)
    #expect(bench.report(of: "d1")?.tripID == id("t"), "an app that was restarted finds its trip")
    #expect(bench.turn(bench.move(.driver, "d2", "t", .accepted)).codes == [.forbidden])
    #expect(bench.turn(bench.move(.driver, "d1", "t", .driverEnRoute, granted: false)).acks.count == 1)
    // Where the trip had a driver from the start.
    bench.turn(bench.move(.ops, "o", "t2", .requested, driver: "d3"))
    #expect(bench.turn(bench.move(.ops, "o", "t2", .accepted, driver: "d4")).codes == [.invalidTransition])
    #expect(bench.turn(bench.move(.ops, "o", "t2", .accepted, driver: "d3")).acks.count == 1)
  }

  @Test("a rider learns that its trip is over, or that it is too late to cancel")
  func lateCancel() {
    let bench = HubBench()
    bench.turn(bench.move(.rider, "r", "t", .requested))
    for status in [TripStatus.accepted, .driverEnRoute, .arrivedPickup, .tripStarted] {
      #expect(bench.turn(bench.move(.driver, "d", "t", status)).acks.count == 1)
    }
    let late = bench.turn(bench.move(.rider, "r", "t", .cancelled))
    #expect(late.codes == [.forbidden])
    #expect(late.errors.first?.message.hasSuffix(": a rider cancels before trip_started") == true)
    bench.turn(bench.move(.ops, "o", "t", .cancelled))
    let again = bench.turn(bench.move(.rider, "r", "t", .cancelled))
    #expect(again.codes == [.invalidTransition] && again.errors.first?.status == .cancelled)
    #expect(bench.turn(bench.move(.rider, "r2", "t", .cancelled)).codes == [.forbidden])
  }
}
