// A thousand drivers, one fix a second each, two riders on each trip: nothing is lost, doubled or out of order.
import Foundation
import HubBytes
import HubGateway
import HubMessages
import HubSystem
import HubTransport
import HubWebSocket
import Testing

extension EndToEnd {
  @Suite struct Load {}
}

extension EndToEnd.Load {
  @Test(
    "1,000 drivers at 1 Hz with two riders each, for 5 s: each fix reaches both, in order, once", arguments: loopCounts
  )
  func thousandDrivers(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.limits.sessionRate = 10
      $0.heartbeatInterval = 600  // nobody answers pings
    }
    let crowd = try Crowd(port: hub.port, drivers: 1000, ridersEach: 2)
    try crowd.join()
    let rounds = 5
    crowd.begin(rounds: rounds)
    try crowd.turn(waitingFor: "all positions") { crowd.positions >= 1000 * 2 * rounds }
    #expect(crowd.faults.isEmpty, "\(crowd.faults.prefix(5))")
    #expect(crowd.positions == 1000 * 2 * rounds)
    #expect(crowd.received.allSatisfy { $0 == rounds })
    // Anything unsent would have arrived by now: nothing is left in the hub.
    try hub.metrics {
      $0.fixes("accepted") == Double(1000 * rounds) && $0["fixes_received_total"] == Double(1000 * rounds)
        && $0["positions_out_total"] == Double(1000 * 2 * rounds) && $0["outbox_bytes"] == 0
        && $0["dropped_total{reason=\"conflated_slow\"}"] == 0 && $0["rate_pauses_total"] == 0
    }
    let latency = hub.server.statistics.latency
    print(
      "load with \(loops) loop(s): delivery p50 \(latency.value(atQuantile: 0.5)) µs, "
        + "p99 \(latency.value(atQuantile: 0.99)) µs, max \(latency.maximum) µs")
  }
}

/// Drivers and riders on one event loop, which runs on the thread of the test.
private final class Crowd: EventLoopDelegate {
  private enum Part {
    case driver(Int)
    /// The rider's index among all riders; its trip is that of the driver `index / ridersEach`.
    case rider(Int)
  }

  private enum Phase { case upgrading, open, ready }

  private final class Member {
    let part: Part
    var phase = Phase.upgrading
    var head: [UInt8] = []
    var reader = FrameReader(role: .client)

    init(_ part: Part) { self.part = part }
  }

  private let loop: EventLoop
  private let port: UInt16
  private let driverCount: Int
  private let ridersEach: Int
  private var members: [ConnectionID: Member] = [:]
  private var drivers: [ConnectionID] = []
  private var ready = 0
  private var rounds = 0
  private var sent = 0
  private var start: Int64 = 0
  /// Positions that each rider has, and in all.
  private(set) var received: [Int]
  private(set) var positions = 0
  /// What should not have happened.
  private(set) var faults: [String] = []

  init(port: UInt16, drivers: Int, ridersEach: Int) throws {
    loop = try EventLoop()
    self.port = port
    driverCount = drivers
    self.ridersEach = ridersEach
    received = Array(repeating: 0, count: drivers * ridersEach)
    loop.delegate = self
  }

  /// All connect, and riders subscribe, before the trips begin.
  func join() throws {
    for index in 0..<driverCount * ridersEach { try connect(.rider(index)) }
    try turn(waitingFor: "riders") { ready == driverCount * ridersEach }
    for index in 0..<driverCount { drivers.append(try connect(.driver(index))) }
    try turn(waitingFor: "drivers") { ready == driverCount * (ridersEach + 1) }
  }

  @discardableResult
  private func connect(_ part: Part) throws -> ConnectionID {
    let id = try loop.connect(SocketAddress.loopback(port: port))
    members[id] = Member(part)
    let query =
      switch part {
      case .driver(let index): "role=driver&id=d\(index)"
      case .rider(let index): "role=rider&id=r\(index)"
      }
    send(Array(UpgradeRequest("/v1/ws?\(query)").text.utf8), to: id)
    loop.runTurn(timeoutMilliseconds: 0)
    return id
  }

  /// Lets drivers send from now on, spread evenly over each second.
  func begin(rounds: Int) {
    self.rounds = rounds
    start = ClockReading.read().uptimeNanoseconds
    loop.setLoopTimer(at: start)
  }

  /// Turns the loop until `condition` holds; a minute without success is a failure.
  func turn(waitingFor what: String, until condition: () -> Bool) throws {
    let deadline = Deadline(seconds: 60)
    while !condition() {
      loop.runTurn(timeoutMilliseconds: 100)
      if let fault = faults.first { throw PeerError.unexpected(fault) }
      if deadline.isOver { throw PeerError.timedOut(waitingFor: "\(what): \(ready) ready, \(positions) positions") }
    }
  }

  // MARK: Sending

  private func send(_ bytes: [UInt8], to id: ConnectionID) {
    let begin = loop.arena.count
    loop.arena.append(bytes)
    loop.send(begin..<loop.arena.count, to: id)
  }

  private func send(text: String, to id: ConnectionID) { send(Peer.frame(Array(text.utf8)), to: id) }

  func loopTimerFired() {
    let passed = Double(loop.now.uptimeNanoseconds - start) / 1e9
    let due = min(Int(passed * Double(driverCount)), driverCount * rounds)
    while sent < due {
      sendFix(of: sent % driverCount, step: sent / driverCount)
      sent += 1
    }
    if sent < driverCount * rounds { loop.setLoopTimer(at: loop.now.uptimeNanoseconds + 5_000_000) }
  }

  private func sendFix(of driver: Int, step: Int) {
    let latitude = 37.0 + Double(step) * 10 / 111_195
    let longitude = -122 + Double(driver) / 10_000
    let time = Peer.firstFix + step * 1000
    send(
      text: """
        {"type":"location_update","payload":{"tripId":"t\(driver)","latitude":\(latitude),"longitude":\(longitude),\
        "accuracy":5,"speed":10,"heading":0,"timestamp":\(time)},"timestamp":\(loop.now.unixMilliseconds),\
        "messageId":"d\(driver)-\(step)"}
        """, to: drivers[driver])
  }

  // MARK: Receiving

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard let member = members[id] else { return }
    do {
      if case .upgrading = member.phase {
        member.head += bytes
        guard let end = member.head.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound else { return }
        guard member.head.starts(with: "HTTP/1.1 101".utf8) else {
          faults.append(String(decoding: member.head, as: UTF8.self))
          return
        }
        member.phase = .open
        var rest = Array(member.head[end...])
        try rest.withUnsafeMutableBytes { try read($0, id, member) }
      } else {
        try read(bytes, id, member)
      }
    } catch {
      faults.append("\(error)")
    }
  }

  private func read(_ bytes: UnsafeMutableRawBufferPointer, _ id: ConnectionID, _ member: Member) throws {
    var offset = 0
    while let event = try member.reader.next(in: bytes, at: &offset, limits: FrameLimits()) {
      switch event {
      case .message(_, let payload, isCompressed: _): take(try HubMessage([UInt8](payload)), id, member)
      case .ping, .pong: break
      case .close(let code, reason: _): faults.append("\(member.part) was closed with \(code?.rawValue ?? 0)")
      }
    }
  }

  private func take(_ message: HubMessage, _ id: ConnectionID, _ member: Member) {
    switch (member.part, message.type) {
    case (.driver, "connected"), (.rider, "subscribed"):
      member.phase = .ready
      ready += 1
    case (.rider(let index), "connected"):
      let trip = index / ridersEach
      send(
        text: #"{"type":"subscribe","payload":{"channel":"trip:t\#(trip)"},"timestamp":1,"messageId":"s"}"#, to: id)
    case (.rider, "trip_update"): break
    case (.rider(let index), "driver_location"):
      let expected = Peer.firstFix + received[index] * 1000
      let trip = message.string("tripId")
      if message.integer("timestamp") != expected || trip != "t\(index / ridersEach)" {
        faults.append("rider \(index) waited for \(expected), got \(message.text)")
      }
      received[index] += 1
      positions += 1
    case (.driver, _), (.rider, _): faults.append("\(member.part) got \(message.text)")
    }
  }

  func closed(_ id: ConnectionID, _ cause: CloseCause) {
    if let member = members[id] { faults.append("\(member.part) ended: \(cause)") }
  }

  func connected(_ id: ConnectionID) {}
  func overflowed(_ id: ConnectionID) { faults.append("a client has too much unsent") }
}
