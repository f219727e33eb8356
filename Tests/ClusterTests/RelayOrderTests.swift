// What is in one frame reaches the hub in the frame's order, though its positions are handed over together.
import HubBackplane
import HubBytes
import HubCore
import HubGeo
import HubMessages
import Testing

@testable import HubCluster

@Suite struct RelayOrderTests {
  @Test("An event, the position held for it, and what is behind them in the frame reach the hub in that order")
  func oneFrame() {
    let world = ClusterWorld(["a", "b"])
    let rider = world.followTrip()
    let (trip, time) = (rider.channel, world.now.timestamp)
    let (owner, node) = (world["a"].node.node.context.peers[0], world["b"].node)
    let (binding, newest) = (owner.interest[trip]!.number, rider.point!.since)
    func position(_ number: Int, after: UInt64) -> PublishedPosition {
      PublishedPosition(number, after: after, on: trip, at: time)
    }
    func event(_ sequence: UInt64) -> Publication {
      let notice = Notification(kind: .message, title: "n", body: "n", driverID: nil, sequence: sequence)
      return Publication(channel: trip, number: sequence, timestamp: time, body: .notification(notice))
    }
    var records = ByteBuffer()
    records.append(.publication) { $0.append(position(1, after: newest + 1), binding) }
    records.append(.publication) { $0.append(event(newest + 1), binding, ImpliedNames()) }
    records.append(.publication) { $0.append(event(newest + 2), binding, ImpliedNames()) }
    records.append(.publication) { $0.append(position(2, after: newest + 2), binding) }
    records.append(.publication) { $0.append(position(3, after: newest + 2), binding) }
    records.append(.claimed) { bytes in
      bytes.append(trip, at: time)
      bytes.append(utf8Run: "d1")
    }
    records.append(.publication) { $0.append(position(4, after: newest + 2), binding) }
    let head = FrameHead(
      lane: .control, from: "a", fromIncarnation: world["a"].node.node.context.incarnation, to: "b",
      toIncarnation: node.node.context.incarnation, number: owner.numbers[0] + 1, clock: 0)
    _ = node.node.context.peers[0].note(owner.numbers[0], .control)
    #expect(node.node.inputs.count == 0)
    node.node.take(bus: .frame(.control, Frame.make(head, records.array(), testKeys)))
    #expect(
      (0..<node.node.inputs.rareCount).map { node.node.inputs[rare: $0].words } == [
        "event \(newest + 1)", "positions [1]", "event \(newest + 2)", "positions [2, 3]", "claimed", "positions [4]",
      ])
    world.step()
    #expect(rider.seen["epoch1"]?.suffix(2) == [newest + 1, newest + 2] && rider.faults == [] && rider.gaps == 0)
  }
}

extension PublishedPosition {
  /// One whose speed is its number.
  init(_ number: Int, after: UInt64, on channel: Channel, at time: Timestamp) {
    let location = DriverLocation(
      driverID: id("d1"), tripID: id("t1"), coordinate: Coordinate(latitude: 48.1, longitude: 11.5)!, heading: nil,
      speed: Double(number), accuracy: 5, confidence: .high, timestamp: time, age: 0, after: after)
    self.init(channel: channel, number: 0, timestamp: time, location: location)
  }
}

extension HubInput {
  /// What it relays.
  fileprivate var words: String {
    guard case .cluster(let input) = self else { return "\(self)" }
    switch input {
    case .relayed(let publication): return "event \(publication.sequence ?? 0)"
    case .relayedPositions(let positions): return "positions \(positions.map { Int($0.location.speed ?? 0) })"
    case .claimed: return "claimed"
    case _: return "\(input)"
    }
  }
}
