// Sessions of the load: from TCP to `connected` and `subscribed`, and their ends.
import Glibc
import HubBytes
import HubCommandLine
import HubGeo
import HubMessages
import HubSystem
package import HubTransport
import HubWebSocket

extension Generator {
  /// Opens all sessions that are there from the beginning, and returns when all have subscribed, or with what went
  /// wrong. False where it was not to go on: `goesOn` is asked in each turn.
  @discardableResult
  package func connectAll(
    within seconds: Double = 60, while goesOn: () -> Bool = { true }
  ) throws(LoadTestError) -> Bool {
    let wanted = waiting.count
    let end = ClockReading.read().uptimeNanoseconds + Int64(seconds * 1e9)
    while ready < wanted {
      if isRefused { throw .failed(refusal) }
      if let error = counts.firstError { throw .failed("while connecting: \(error)") }
      guard ClockReading.read().uptimeNanoseconds < end else {
        throw .failed("after \(Int(seconds)) s only \(ready) of \(wanted) sessions stand")
      }
      guard goesOn() else { return false }
      turn()
    }
    return true
  }

  /// How many may be under way at once.
  var maximumConnecting: Int { max(1, scenario.inFlight / share.count) }

  /// Begins what may be under way at once, some in each turn.
  func connectWaiting() {
    var steps = Generator.stepsPerTurn
    while connecting < maximumConnecting, steps > 0, let peer = waiting.popLast() {
      steps -= 1
      do throws(SystemError) { try connect(peer) } catch { counts.fail("cannot connect: \(error)") }
    }
  }

  private func connect(_ peer: PeerPointer) throws(SystemError) {
    peer.pointee.reset(allowsCompression: offersCompression(peer), isBinary: scenario.isBinary)
    if peer.pointee.dueAt == nil { peer.pointee.dueAt = ClockReading.read().uptimeNanoseconds }
    let id = try loop.connect(hub(of: peer), from: localAddress(peer), tls: tls?.peer)
    connecting += 1
    peer.pointee.id = id
    while table.count <= Int(id.slot) { table.append(nil) }
    table[Int(id.slot)] = peer
  }

  private func hub(of peer: PeerPointer) -> SocketAddress {
    guard scenario.ridersPort > 0, peer.pointee.kind == .rider else { return address }
    return address.with(port: UInt16(scenario.ridersPort))
  }

  /// Loopback has many addresses, each with its own ports; elsewhere the kernel chooses.
  func localAddress(_ peer: PeerPointer) -> SocketAddress? {
    guard address.isLoopback, !address.isIPv6 else { return nil }
    return SocketAddress(host: "127.0.0.\(1 + peer.pointee.place / scenario.sessionsPerAddress % 90)", port: 0)
  }

  private func offersCompression(_ peer: PeerPointer) -> Bool { scenario.compression && peer.pointee.kind == .rider }

  func peer(_ id: ConnectionID) -> PeerPointer? {
    guard Int(id.slot) < table.count, let peer = table[Int(id.slot)], peer.pointee.id == id else { return nil }
    return peer
  }

  package func connected(_ id: ConnectionID) {
    guard let peer = peer(id) else { return }
    let kind = peer.pointee.kind
    if kind == .fleet { return registerFleet(peer) }
    let name = "\(kind.name)-\(scenario.tag)\(peer.pointee.number)\(kind == .rider ? "-\(peer.pointee.index)" : "")"
    let handshake = ClientHandshake(
      nonce: (UInt64(id.slot), 0x5EED), subprotocols: scenario.isBinary ? ["\(Subprotocol.binary.name)"] : [],
      compression: offersCompression(peer) ? DeflateParameters() : nil)
    let start = loop.arena.count
    handshake.writeRequest(
      host: hub(of: peer).description, target: "/v1/ws?role=\(kind.role)&id=\(name)", into: &loop.arena)
    loop.send(start..<loop.arena.count, to: id)
  }

  /// What comes before the WebSocket stands; gives where frames begin in `bytes`, nil while they do not.
  func readHead(_ peer: PeerPointer, _ bytes: UnsafeMutableRawBufferPointer) -> Int? {
    let before = peer.pointee.head.count
    peer.pointee.head.append(contentsOf: bytes)
    guard let end = Generator.headEnd(peer.pointee.head) else { return nil }
    guard peer.pointee.head.starts(with: "HTTP/1.1 101".utf8) else {
      let line = String(decoding: peer.pointee.head.prefix { $0 != 13 }, as: UTF8.self)
      counts.fail("the hub answered \(line)")
      return nil
    }
    peer.pointee.isUpgraded = true
    peer.pointee.head = []
    return end - before
  }

  private static func headEnd(_ head: [UInt8]) -> Int? {
    guard head.count >= 4 else { return nil }
    for index in 3..<head.count where head[index] == 10 && head[index - 1] == 13 && head[index - 2] == 10 {
      return index + 1
    }
    return nil
  }

  /// The hub has sent `connected`.
  func welcome(_ peer: PeerPointer) {
    switch peer.pointee.kind {
    case .driver: becameReady(peer)
    case .idle: followQuietChannels(peer)
    case .fleet: break  // has no session
    case .rider:
      if scenario.bookings {
        becameReady(peer)
      } else {
        subscribe(peer, toTrip: "T\(scenario.tag)\(peer.pointee.number)")
      }
    case .churner: subscribe(peer, toTrip: "T\(scenario.tag)\(peer.pointee.number % max(1, scenario.drivers))")
    case .storm: subscribe(peer, toTrip: "S\(scenario.tag)\(peer.pointee.number)")
    case .watcher:
      send(peer) { buffer in
        buffer.append("{\"type\":\"subscribe\",\"payload\":{\"channel\":\"area:")
        buffer.append(utf8: watched.cell.description)
        buffer.append("\"")
      }
    case .slow:
      send(peer) { $0.append("{\"type\":\"subscribe\",\"payload\":{\"channel\":\"fleet\"") }
    }
  }

  /// With what it saw last, where it saw anything: then the hub sends what it missed.
  func subscribe(_ peer: PeerPointer, toTrip trip: String) {
    let (sequence, epoch) = (peer.pointee.sequence, peer.pointee.epoch)
    send(peer) { buffer in
      buffer.append("{\"type\":\"subscribe\",\"payload\":{\"channel\":\"trip:")
      buffer.append(utf8: trip)
      buffer.append("\"")
      if let sequence, !epoch.isEmpty {
        buffer.append(",\"since\":")
        buffer.append(integer: Int64(sequence))
        buffer.append(",\"epoch\":\"")
        buffer.append(epoch)
        buffer.append("\"")
      }
    }
  }

  /// Sends a subscription that `body` has begun: the rest of its envelope is the same for all.
  private func send(_ peer: PeerPointer, _ body: (inout ByteBuffer) -> Void) {
    sendText(peer) { buffer in
      body(&buffer)
      buffer.append("},\"timestamp\":1,\"messageId\":\"s\"}")
    }
  }

  func becameReady(_ peer: PeerPointer) {
    guard !peer.pointee.isReady else { return }
    peer.pointee.isReady = true
    connecting -= 1
    ready += 1
    lastCame = loop.now.uptimeNanoseconds
    guard let due = peer.pointee.dueAt else { return }
    peer.pointee.dueAt = nil
    let taken = ClockReading.read().uptimeNanoseconds - due
    guard let schedule else { return counts.connects.record(nanoseconds: taken) }
    counts.joined += 1
    if schedule.window.contains(due) { counts.joins.record(nanoseconds: taken) }
  }

  package func closed(_ id: ConnectionID, _ cause: CloseCause) {
    guard let peer = peer(id) else { return }
    peer.pointee.id = .none
    table[Int(id.slot)] = nil
    if peer.pointee.isReady { ready -= 1 } else { connecting -= 1 }
    if peer.pointee.isLeaving { return reconnect(peer) }
    if cause == .connectFailed(errno: ECONNREFUSED) {
      isRefused = true
      return counts.fail(refusal)
    }
    counts.fail("the hub ended \(peer.pointee.kind.name)-\(peer.pointee.number): \(cause)")
  }

  private var refusal: String { "nothing listens on \(address) (\(SystemError.text(ECONNREFUSED)))" }

  /// Ends all sessions at once, when the run is over.
  package func closeAll() {
    isSending = false
    for peer in peers where peer.pointee.id != .none {
      let id = peer.pointee.id
      // No longer known when `closed` comes.
      peer.pointee.id = .none
      loop.abort(id, reset: true)
    }
    loop.runTurn(timeoutMilliseconds: 0)
  }
}
