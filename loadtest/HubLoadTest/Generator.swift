// The load: thousands of WebSocket connections on one event loop, each fix sent at the moment it is due.
//
// Open loop: a fix is due at a time fixed beforehand, and its latency counts from then, so that a stall of the hub (or
// of this program) is not hidden (G. Tene, "How NOT to Measure Latency"). A fix's timestamp says which one it is:
// base + n × step, so that a rider needs no table to know when it was due.
import Bytes
import Gateway
import Transport
import WebSocket

final class Generator: EventLoopDelegate {
  private enum Kind { case driver, rider, idle }

  private struct Peer: ~Copyable {
    var kind = Kind.idle
    var driver = 0
    var id = ConnectionID.none
    var isOpen = false
    var isReady = false
    var head: [UInt8] = []
    var frames = FrameReader(role: .client)
    /// The newest fix seen.
    var lastNumber = -1
  }

  /// Milliseconds between the timestamps of a driver's fixes, whatever the real rate: the hub sees one fix a second.
  private static let step = 1000
  private static let base = 1_700_000_000_000

  let loop: EventLoop
  let scenario: Scenario
  private let address: SocketAddress
  private let tls: TLSClient?
  private var peers: [Int: Int] = [:]
  private var table: [UnsafeMutablePointer<Peer>] = []
  private(set) var ready = 0
  private(set) var measurement = Measurement()
  private(set) var latency = LatencyHistogram()
  private var started: Int64?
  private var nextNumber: [Int]
  private var dueOrder: [Int] = []
  private var cursor = 0
  private var round = 0
  var measuring = false
  var isSending = false
  private let limits = FrameLimits()
  private var inflater = Inflater(takesContextOver: false)

  init(_ scenario: Scenario, address: SocketAddress, tls: TLSClient?) throws(SystemError) {
    var limits = EventLoopLimits()
    limits.maximumConnections = 1 << 20
    loop = try EventLoop(limits: limits)
    self.scenario = scenario
    self.address = address
    self.tls = tls
    nextNumber = Array(repeating: 0, count: scenario.drivers)
    loop.delegate = self
  }

  var connectionCount: Int { scenario.drivers * (1 + scenario.ridersPerTrip) + scenario.idle }

  // MARK: Connecting

  /// Opens all connections, a few hundred at a time, and returns when all have subscribed.
  func connectAll() throws(SystemError) {
    var wanted: [(Kind, Int)] = []
    for driver in 0..<scenario.drivers {
      wanted.append((.driver, driver))
      for _ in 0..<scenario.ridersPerTrip { wanted.append((.rider, driver)) }
    }
    for index in 0..<scenario.idle { wanted.append((.idle, index)) }
    var next = 0
    while ready < wanted.count {
      while next < wanted.count, next - ready < 256 {
        try connect(wanted[next].0, wanted[next].1, number: next)
        next += 1
      }
      loop.runTurn(timeoutMilliseconds: 100)
    }
  }

  private func connect(_ kind: Kind, _ driver: Int, number: Int) throws(SystemError) {
    let peer = UnsafeMutablePointer<Peer>.allocate(capacity: 1)
    peer.initialize(to: Peer())
    peer.pointee.kind = kind
    peer.pointee.driver = driver
    peer.pointee.frames = FrameReader(role: .client, allowsCompression: offersCompression(kind))
    let local = SocketAddress(host: "127.0.0.\(1 + number / scenario.sessionsPerAddress)", port: 0)
    peer.pointee.id = try loop.connect(address, from: local, tls: tls.map { TLSPeer($0, name: "localhost") })
    let slot = Int(peer.pointee.id.slot)
    while table.count <= slot { table.append(peer) }
    table[slot] = peer
  }

  private func offersCompression(_ kind: Kind) -> Bool { scenario.compression && kind == .rider }

  func connected(_ id: ConnectionID) {
    let peer = table[Int(id.slot)]
    let role = peer.pointee.kind == .driver ? "driver" : "rider"
    let name = "\(role)-\(peer.pointee.driver)\(peer.pointee.kind == .rider ? "-\(id.slot)" : "")"
    let handshake = ClientHandshake(
      nonce: (UInt64(id.slot), 0x5EED), compression: offersCompression(peer.pointee.kind) ? DeflateParameters() : nil)
    let start = loop.arena.count
    handshake.writeRequest(
      host: address.description, target: "/v1/ws?role=\(role)&id=\(name)", into: &loop.arena)
    loop.send(start..<loop.arena.count, to: id)
  }

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    let peer = table[Int(id.slot)]
    guard peer.pointee.id == id else { return }
    var offset = 0
    if !peer.pointee.isOpen {
      peer.pointee.head.append(contentsOf: bytes)
      guard let end = Generator.headEnd(peer.pointee.head) else { return }
      guard peer.pointee.head.starts(with: "HTTP/1.1 101".utf8) else {
        measurement.errors += 1
        return
      }
      offset = end - (peer.pointee.head.count - bytes.count)
      peer.pointee.isOpen = true
      peer.pointee.head = []
      if peer.pointee.kind == .rider { subscribe(peer) }
    }
    do throws(FrameError) {
      while let event = try peer.pointee.frames.next(in: bytes, at: &offset, limits: limits) {
        switch event {
        case .message(_, let payload, isCompressed: false): received(peer, payload)
        case .message(let kind, let payload, isCompressed: true):
          received(peer, try inflater.inflate(payload, kind, limits: InflateLimits()))
        case .ping(let payload): answer(peer, payload)
        case .pong: break
        case .close: measurement.errors += 1
        }
      }
    } catch {
      measurement.errors += 1
    }
  }

  private static func headEnd(_ head: [UInt8]) -> Int? {
    guard head.count >= 4 else { return nil }
    for index in 3..<head.count where head[index] == 10 && head[index - 1] == 13 && head[index - 2] == 10 {
      return index + 1
    }
    return nil
  }

  private func subscribe(_ peer: UnsafeMutablePointer<Peer>) {
    send(peer) { (buffer: inout ByteBuffer) in
      buffer.append("{\"type\":\"subscribe\",\"payload\":{\"channel\":\"trip:T")
      buffer.append(integer: Int64(peer.pointee.driver))
      buffer.append("\"},\"timestamp\":1,\"messageId\":\"s\"}")
    }
  }

  // MARK: Receiving

  private func received(_ peer: UnsafeMutablePointer<Peer>, _ payload: UnsafeRawBufferPointer) {
    let type = payload[9..<min(payload.count, 24)]  // behind {"type":"
    switch peer.pointee.kind {
    case .rider:
      if type.starts(with: "driver_location".utf8) { return position(peer, payload) }
      if type.starts(with: "subscribed".utf8) { becameReady(peer) }
    case .driver, .idle:
      if type.starts(with: "connected".utf8) { becameReady(peer) }
    }
    if type.starts(with: "error".utf8) {
      measurement.errors += 1
      if measurement.errors < 5 {
        StandardStream.error.write("error from the hub: \(String(decoding: payload, as: UTF8.self))\n")
      }
    }
  }

  private func becameReady(_ peer: UnsafeMutablePointer<Peer>) {
    guard !peer.pointee.isReady else { return }
    peer.pointee.isReady = true
    ready += 1
  }

  private func position(_ peer: UnsafeMutablePointer<Peer>, _ payload: UnsafeRawBufferPointer) {
    guard let timestamp = Generator.fixTimestamp(payload) else {
      measurement.errors += 1
      return
    }
    let number = (timestamp - Generator.base) / Generator.step
    if number <= peer.pointee.lastNumber { measurement.outOfOrder += 1 }
    peer.pointee.lastNumber = number
    measurement.delivered += 1
    guard measuring else { return }
    latency.record(nanoseconds: ClockReading.read().uptimeNanoseconds - due(peer.pointee.driver, number))
  }

  /// The first `"timestamp":` of a driver_location is the fix's: the payload comes before the envelope's.
  private static func fixTimestamp(_ payload: UnsafeRawBufferPointer) -> Int? {
    // {"type":"driver_location", … ,"timestamp":1700000000000,"age"
    var index = payload.count - 110
    while index > 0, index + 24 < payload.count {
      if payload[index] == 0x2C, payload[index + 1] == 0x22, payload[index + 2] == 0x74, payload[index + 11] == 0x22 {
        var value = 0
        var place = index + 13
        while place < payload.count, payload[place] >= 48, payload[place] <= 57 {
          value = value * 10 + Int(payload[place] - 48)
          place += 1
        }
        return value
      }
      index += 1
    }
    return nil
  }

  // MARK: Sending

  private var interval: Int64 { Int64(1e9 / scenario.rate) }

  /// When fix `number` of a driver is due: drivers are spread evenly over the interval.
  private func due(_ driver: Int, _ number: Int) -> Int64 {
    (started ?? 0) + Int64(number) * interval + interval * Int64(driver) / Int64(max(1, scenario.drivers))
  }

  private var driverPeers: [UnsafeMutablePointer<Peer>] = []

  func startSending() {
    driverPeers = Array(repeating: table[0], count: scenario.drivers)
    for peer in table where peer.pointee.kind == .driver { driverPeers[peer.pointee.driver] = peer }
    started = ClockReading.read().uptimeNanoseconds + 10_000_000
    isSending = true
    loop.setLoopTimer(at: started)
  }

  func turnEnding() {
    guard isSending else { return }
    let now = ClockReading.read().uptimeNanoseconds
    while isSending, due(cursor, round) <= now {
      sendFix(cursor, round)
      cursor += 1
      if cursor == scenario.drivers {
        cursor = 0
        round += 1
      }
    }
    loop.setLoopTimer(at: max(due(cursor, round), now + 200_000))
  }

  private func sendFix(_ driver: Int, _ number: Int) {
    let peer = driverPeers[driver]
    measurement.sent += 1
    measurement.expected += scenario.ridersPerTrip
    send(peer) { (buffer: inout ByteBuffer) in
      buffer.append("{\"type\":\"location_update\",\"payload\":{\"tripId\":\"T")
      buffer.append(integer: Int64(driver))
      buffer.append("\",\"latitude\":")
      buffer.append(fixed: 48.1 + Double(driver) * 1e-4 + Double(number % 2000) * 9e-5, decimals: 7)
      buffer.append(",\"longitude\":11.5,\"accuracy\":5.2,\"heading\":0.5,\"speed\":10.01,\"timestamp\":")
      buffer.append(integer: Int64(Generator.base + number * Generator.step))
      buffer.append("},\"timestamp\":")
      buffer.append(integer: loop.now.unixMilliseconds)
      buffer.append(",\"messageId\":\"d")
      buffer.append(integer: Int64(driver))
      buffer.append("-")
      buffer.append(integer: Int64(number))
      buffer.append("\"}")
    }
  }

  private func send(_ peer: UnsafeMutablePointer<Peer>, _ body: (inout ByteBuffer) -> Void) {
    let payload = FrameWriter.begin(as: .client, in: &loop.arena)
    body(&loop.arena)
    let start = FrameWriter.finish(
      .text, payloadAt: payload, mask: MaskKey(0x1234_5678), in: &loop.arena)
    loop.send(start..<loop.arena.count, to: peer.pointee.id)
  }

  private func answer(_ peer: UnsafeMutablePointer<Peer>, _ ping: UnsafeRawBufferPointer) {
    let start = loop.arena.count
    FrameWriter.write(.pong, ping, mask: MaskKey(0x1234_5678), into: &loop.arena)
    loop.send(start..<loop.arena.count, to: peer.pointee.id)
  }

  /// Measures latency from here on, anew.
  func beginMeasuring() {
    latency = LatencyHistogram()
    measuring = true
  }

  // MARK: The rest of the delegate

  func accepted(_ id: ConnectionID, from peer: SocketAddress) {}
  func drained(_ id: ConnectionID) {}
  func overflowed(_ id: ConnectionID) { measurement.errors += 1 }
  func closed(_ id: ConnectionID, _ cause: CloseCause) {
    measurement.errors += 1
    if measurement.errors < 5 { StandardStream.error.write("connection closed: \(cause)\n") }
  }
  func timerFired(_ id: ConnectionID) {}
  func woken() {}
  func loopTimerFired() {}
  func turnEnded() {}
}
