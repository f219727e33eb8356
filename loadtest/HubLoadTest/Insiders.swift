// The sessions of one rider's token, as many as an identity may have, each of which sends within its rate what costs
// the hub most: on a loop and a thread of their own.
import Glibc
import HubBytes
import HubDeflate
import HubLoadTestKit
import HubMessages
import HubSystem
import HubTransport
import HubWebSocket

/// What one attack sends: messages in turn, made once.
struct InsideAttack {
  let name: String
  let carrier: Carrier
  /// Frames, and what each is charged.
  let frames: [[UInt8]]
  let units: [Double]

  /// All kinds, on each carrier that has them.
  static func all() -> [InsideAttack] {
    var groups: [(name: String, carrier: Carrier, messages: [DearMessage])] = []
    for message in DearMessage.known {
      if let index = groups.firstIndex(where: { $0.name == message.name && $0.carrier == message.carrier }) {
        groups[index].messages.append(message)
      } else {
        groups.append((message.name, message.carrier, [message]))
      }
    }
    let reader = MessageReader()
    var deflater = Deflater(windowBits: 15, level: 9, memoryLevel: 8, takesContextOver: false)
    return groups.map { group in
      InsideAttack(
        name: group.name, carrier: group.carrier, frames: group.messages.map { $0.frame(&deflater) },
        units: group.messages.map { Double($0.units(reader)) })
    }
  }
}

/// How it goes. Read by the thread that measures.
struct InsideProgress: Sendable {
  var isOver = false
  var sent = 0
  /// Sessions that stood, and of these those that the hub has ended; and connections or upgrades that it refused.
  var opened = 0
  var ended = 0
  var refused = 0

  /// Whether the hub took it all: what it does not take costs it little.
  var isTaken: Bool { sent > 0 && opened == Insiders.count && ended == 0 && refused == 0 }
}

final class Insiders: EventLoopDelegate {
  private struct Session {
    var id = ConnectionID.none
    var isOpen = false
    var step = 0
    /// What it may still be charged, and since when (uptime, ns).
    var left = Insiders.burst
    var since: Int64 = 0
  }

  /// The rate of a session, by default.
  private static let rate = 10.0
  private static let burst = 50.0
  /// Sessions of one rider, by default.
  static let count = 16

  private let loop: EventLoop
  private let target: SocketAddress
  private let attack: InsideAttack
  private let end: Int64
  private let shared: Locked<InsideProgress>
  private var sessions = [Session](repeating: Session(), count: Insiders.count)
  private var progress = InsideProgress()

  init(target: SocketAddress, attack: InsideAttack, seconds: Double, shared: Locked<InsideProgress>) throws(SystemError)
  {
    loop = try EventLoop()
    self.target = target
    self.attack = attack
    self.shared = shared
    end = ClockReading.read().uptimeNanoseconds + Int64(seconds * 1e9)
    loop.delegate = self
  }

  func run() {
    Attackers.runsWhereNobodyElseDoes()
    loop.setLoopTimer(at: loop.now.uptimeNanoseconds)
    loop.run()
  }

  func turnEnding() {
    let now = loop.now.uptimeNanoseconds
    if now >= end {
      progress.isOver = true
      shared.withLock { $0 = progress }
      for session in sessions where session.id != .none { loop.abort(session.id) }
      return loop.stop()
    }
    for index in sessions.indices { act(index, now) }
    shared.withLock { $0 = progress }
    loop.setLoopTimer(at: now + 5_000_000)
  }

  private func act(_ index: Int, _ now: Int64) {
    guard sessions[index].id != .none else { return connect(index, now) }
    guard sessions[index].isOpen, !loop.isBlocked(sessions[index].id) else { return }
    let passed = Double(now - sessions[index].since) / 1e9
    sessions[index].since = now
    sessions[index].left = min(Self.burst, sessions[index].left + passed * Self.rate)
    while true {
      let kind = sessions[index].step % attack.frames.count
      guard sessions[index].left >= min(Self.burst, attack.units[kind]) else { return }
      let start = loop.arena.count
      loop.arena.append(attack.frames[kind])
      loop.send(start..<loop.arena.count, to: sessions[index].id)
      sessions[index].left -= attack.units[kind]
      sessions[index].step += 1
      progress.sent += 1
    }
  }

  /// The burst of a session that comes again is its own, as the hub sees it.
  private func connect(_ index: Int, _ now: Int64) {
    sessions[index] = Session()
    sessions[index].since = now
    do throws(SystemError) {
      sessions[index].id = try loop.connect(target, from: SocketAddress(host: "127.0.0.99", port: 0))
    } catch {
      progress.refused += 1
    }
  }

  private func index(_ id: ConnectionID) -> Int? { sessions.firstIndex { $0.id == id } }

  func connected(_ id: ConnectionID) {
    let isBinary = attack.carrier == .binary
    let handshake = ClientHandshake(
      nonce: (UInt64(id.slot), 0x1D1D), subprotocols: isBinary ? ["locationhub.v1.binary"] : [],
      compression: attack.carrier == .deflated ? .withoutContexts : nil)
    let start = loop.arena.count
    handshake.writeRequest(host: target.description, target: "/v1/ws?role=rider&id=insider", into: &loop.arena)
    loop.send(start..<loop.arena.count, to: id)
  }

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard let index = index(id), !sessions[index].isOpen else { return }  // what it is answered is nothing to it
    guard bytes.count >= 12, String(decoding: bytes[9..<12], as: UTF8.self) == "101" else {
      progress.refused += 1
      return loop.abort(id)
    }
    sessions[index].isOpen = true
    progress.opened += 1
  }

  func closed(_ id: ConnectionID, _ cause: CloseCause) {
    guard let index = index(id) else { return }
    if sessions[index].isOpen { progress.ended += 1 }
    if case .connectFailed = cause { progress.refused += 1 }
    sessions[index].id = .none
    sessions[index].isOpen = false
  }

  func overflowed(_ id: ConnectionID) { loop.abort(id) }
}
