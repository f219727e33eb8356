// A channel's handle is given to another channel when nobody follows the first one any more: nothing that a loop has
// kept under it may reach the followers of the second.
import HubCore
import HubMessages
import HubSystem
import HubTransport
import Testing

@testable import HubCore
@testable import HubGateway

@Suite struct ReusedHandleTests {
  private func send(_ type: String, _ payload: String, _ peer: HandDrivenPeer, _ clock: HandClock) {
    peer.send(
      HandDrivenPeer.frame(
        #"{"type":"\#(type)","payload":{\#(payload)},"timestamp":\#(clock.reading.unixMilliseconds),"messageId":"m"}"#))
    peer.ownTurn()
  }

  @Test("who begins to watch an area has none of the positions that ops who went were to have")
  func heldPositions() throws {
    let clock = HandClock()
    let hub = try HandDrivenHub(clock: clock) {
      $0.allowsDevelopmentCredentials = true
      $0.flushIntervalMilliseconds = 900
    }
    let driver = try HandDrivenPeer(hub, role: "driver", id: "secret")
    let ops = try HandDrivenPeer(hub, role: "ops", id: "o")
    let rider = try HandDrivenPeer(hub, role: "rider", id: "r")
    func turn() {
      for _ in 0..<10 {
        hub.loop.runTurn(timeoutMilliseconds: 0)
        for peer in [driver, ops, rider] { peer.ownTurn() }
      }
    }
    send("subscribe", #""channel":"fleet""#, ops, clock)
    turn()
    let time = clock.reading.unixMilliseconds
    send("location_update", #""latitude":52.5,"longitude":13.4,"accuracy":5,"timestamp":\#(time)"#, driver, clock)
    turn()
    send("unsubscribe", #""channel":"fleet""#, ops, clock)
    turn()
    send("subscribe", #""channel":"nearby:52.5,13.4,500""#, rider, clock)
    turn()
    for _ in 0..<3 {
      clock.advance(milliseconds: 500)
      turn()
    }
    #expect(rider.messages.contains { $0.contains(#""area_update""#) }, "\(rider.messages)")
    #expect(!rider.messages.contains { $0.contains(#""driver_location""#) || $0.contains("secret") })
  }

  @Test("of cells whose snapshots wait for the end of a tick, those that are gone are not sent")
  func waitingSnapshots() throws {
    var areas = AreaDeliveries()
    func publication(_ number: UInt64) -> Publication {
      Publication(
        channel: .fleet, number: number, timestamp: Timestamp(milliseconds: 0),
        body: .notification(Notification(kind: .message, title: "", body: "", driverID: nil, sequence: 1)))
    }
    let (session, handle) = (SessionRef(outlet: 0, slot: 1, generation: 1), ChannelHandle(index: 7))
    areas.add(ChannelHandle(index: 8), publication(1))
    areas.beginPublishing(due: 0)
    let isFirstPutOff = areas.putOff((session, handle, [publication(2)]))
    areas.forget(handle)
    let isNextPutOff = areas.putOff((session, handle, [publication(3)]))
    #expect(isFirstPutOff && isNextPutOff)
    let taken = areas.takePublishing()
    var tick = try #require(taken)
    let left = tick.nextSnapshot()
    #expect(left?.parts.map(\.number) == [3] && tick.snapshots.isEmpty)
  }
}
