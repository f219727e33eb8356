// Positions of all drivers for streams: an outlet of the hub that subscribes to `fleet`. Its mailbox is polled ten
// times a second; positions without room are dropped and counted, and the hub does not wait.
import HubBytes
import HubCore
import HubMessages
package import HubRuntime
package import HubSystem

/// The hub, for the streams' thread.
package struct PositionSource: Sendable {
  let hub: SharedHub
  let outlet: Outlet
  let number: Int

  /// `number`: of the outlet, which `outlet(waking:)` made.
  package init(_ hub: SharedHub, _ outlet: Outlet, number: Int) {
    self.hub = hub
    self.outlet = outlet
    self.number = number
  }

  package static func outlet(waking waker: Waker) -> Outlet {
    Outlet(lossyCapacity: waitingPositions, waker: waker)
  }
}

final class PositionFeed {
  private var hub: HubPort
  private let outlet: Outlet
  private var inputs = HubInputs()
  private var outputs = HubOutputs()

  init(_ source: PositionSource) {
    hub = HubPort(source.hub, loop: source.number)
    outlet = source.outlet
    guard let id = Identifier("streams"), let messageID = MessageID("streams") else {
      preconditionFailure("both are right")
    }
    let session = SessionRef(outlet: UInt32(source.number), slot: 0, generation: 1)
    inputs.append(
      .subscribe(
        SubscribeInput(
          session: session, actor: Actor(role: .ops, id: id), messageID: messageID, request: Subscribe(channel: .fleet),
          grant: .granted)))
  }

  /// Positions dropped for want of room in the mailbox.
  var leftOut: UInt64 { outlet.leftOut }

  /// Gives the positions since the last call.
  func take(_ now: Moment, _ body: (PublishedPosition) -> Void) {
    if inputs.isEmpty {
      hub.collect(into: &outputs)
    } else {
      _ = hub.exchange(&inputs, into: &outputs, now: now)  // subscribes; what does not fit stays for the next time
      hub.assistOthers()
    }
    for index in 0..<outputs.count - outputs.rareCount {
      body(unsafe outputs.pointer(ofCommon: index).pointee.position)
    }
    outputs.removeAll()
  }
}
