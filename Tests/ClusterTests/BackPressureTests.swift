// What leaves first for other hubs where the bus has room for a part of it for as long as one looks.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubMessages
import Testing

@testable import HubCluster

/// A bus with room for so many frames.
private final class TightBus: Bus {
  let isUp = true
  var room = 0
  /// It says so before a frame is made.
  var isFull = false
  private(set) var sent: [String: Int] = [:]

  func send(_ frame: [UInt8], to member: String, lane: Lane) -> Bool {
    guard room > 0 else { return false }
    room -= 1
    sent[member, default: 0] += 1
    return true
  }

  func hasRoom(for bytes: Int, to member: String) -> Bool { !isFull }

  func takeEvents(into events: inout [BusEvent]) {}
}

@Suite struct BackPressureTests {
  private let time = Timestamp(milliseconds: 1_763_680_000_000)
  private let trip = Channel.trip(id("t1"))

  /// The kinds of records in a frame, each once: `p` for positions, `e` for ETAs, `a` for areas.
  private func kinds(_ records: [UInt8]) throws -> String {
    var (reader, found) = (ClusterFrameReader(records[...]), "")
    while !reader.isAtEnd {
      let record = try reader.record()
      // Behind the length, which is one byte here.
      let isPosition = record.body.dropFirst().first.map { $0 >= 0x80 } ?? false
      let kind = record.kind == .area ? "a" : isPosition ? "p" : "e"
      if !found.hasSuffix(kind) { found += kind }
    }
    return found
  }

  private func eta(_ seconds: Int) -> Publication {
    let update = ETAUpdate(
      tripID: id("t1"), target: .pickup, eta: Double(seconds), distance: 100, arrivalTime: time, basis: .direct,
      after: 0)
    return Publication(channel: trip, number: 0, timestamp: time, body: .etaUpdate(update))
  }

  @Test("Of positions, ETAs and areas each begins every third frame, though more come than the bus takes")
  func kindsOfStates() throws {
    var limits = ClusterLimits()
    limits.frameBytes = 500
    let peer = Peer(name: "b", limits, now: 0)
    let area = [ClusterRecordKind.area.rawValue, 60] + [UInt8](repeating: 7, count: 60)
    var frames: [[UInt8]] = []
    for round in 0..<12 {
      for driver in 0..<40 as Range<UInt64> {
        peer.append(PublishedPosition(round, after: 0, on: trip, at: time), key: driver, 1)
        peer.append(eta(round), key: 1 << 32 | driver, 1)
        peer.append(area: area)
      }
      let count = peer.flush(now: 0, withStates: true) { _, _, records in
        guard frames.count == round else { return false }
        frames.append(records)
        return true
      }
      #expect(count == 1)
    }
    #expect(try frames.map(kinds) == (0..<4).flatMap { _ in ["p", "e", "a"] })
    // With room for all they share frames, and nothing is left.
    frames = []
    for driver in 0..<3 as Range<UInt64> { peer.append(eta(99), key: 1 << 32 | driver, 1) }
    _ = peer.flush(now: 0, withStates: true) { _, _, records in
      frames.append(records)
      return true
    }
    #expect(try frames.map(kinds).contains { $0.count > 1 } && !peer.hasOutput && peer.areaBytes == 0)
  }

  @Test("Events for which the bus has no room wait, and so do states behind them that would fit")
  func controlFirst() {
    let peer = Peer(name: "b", ClusterLimits(), now: 0)
    peer.append(.publication) { $0.append([UInt8](repeating: 1, count: 1000)) }
    peer.append(eta(5), key: 1, 1)
    var (lanes, room) = ([Lane](), 500)
    func flush() -> Int {
      peer.flush(now: 0, withStates: true) { lane, _, records in
        guard records.count <= room else { return false }
        lanes.append(lane)
        return true
      }
    }
    #expect(flush() == 0 && peer.hasStates)
    room = 2000
    #expect(flush() == 2 && lanes == [.control, .state] && !peer.hasOutput)
  }

  @Test("For a hub whose node of the bus has no room no frame is made; what waits leaves when it has")
  func fullBus() {
    let world = ClusterWorld()
    let (node, bus) = (world["a"].node, TightBus())
    (bus.isFull, bus.room) = (true, 10)
    for peer in node.node.context.peers { peer.append(.released) { $0.append(trip, at: time) } }
    node.node.flush(bus, world["a"].ledger)
    #expect(bus.sent.isEmpty && node.node.context.peers.allSatisfy { $0.controlBytes > 0 })
    bus.isFull = false
    node.node.flush(bus, world["a"].ledger)
    #expect(bus.sent == ["b": 1, "c": 1])
  }

  @Test("Where the bus has room for one of two hubs at a time, they take turns")
  func peers() {
    let world = ClusterWorld()
    let (node, bus) = (world["a"].node, TightBus())
    for round in 0..<20 {
      // Now and then it has room for none: whose turn it is stays.
      bus.room = round % 2
      for peer in node.node.context.peers { peer.append(.released) { $0.append(trip, at: time) } }
      node.node.flush(bus, world["a"].ledger)
    }
    #expect(bus.sent == ["b": 5, "c": 5])
  }
}
