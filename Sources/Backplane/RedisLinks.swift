// Connections to the engine on an event loop: the state machines (RedisConnection.swift) with their sockets.
//
// The loop's owner passes its callbacks on (`connected`, `received`, `closed`), calls `tick` once a turn and `flush` at
// its end. Everything happens on the loop's thread.
import HubBytes
import HubSystem
public import HubTransport

/// Identifies a connection of `RedisLinks`, from 0, in the order in which they were added.
public struct LinkID: Hashable, Sendable {
  public let index: Int

  public init(index: Int) { self.index = index }
}

/// The connections of one event loop to an engine. Only the loop's thread uses it.
public final class RedisLinks {
  private struct Link: ~Copyable {
    var machine: RedisConnection
    /// Nil until it is known.
    var node: EngineAddress?
    var connection = ConnectionID.none
  }

  private let loop: EventLoop
  let limits: BackplaneLimits
  private let tls: TLSClient?
  private var links: [LinkBox] = []
  private var owners: [ConnectionID: Int] = [:]
  private var seed: UInt64

  /// A box, because an array cannot hold noncopyable elements.
  private final class LinkBox {
    var link: Link
    init(_ link: consuming Link) { self.link = link }
  }

  /// `tls`: the trust of `rediss://`; nil for the system's. `seed`: for the waits between attempts.
  public init(_ loop: EventLoop, limits: BackplaneLimits, tls: TLSClient? = nil, seed: UInt64) {
    self.loop = loop
    self.limits = limits
    self.tls = tls
    self.seed = seed
  }

  var now: Int64 { loop.now.uptimeNanoseconds }

  /// Adds a connection to a node, or to one that is not known yet; it is made in the next `tick`, and again when it
  /// ends.
  public func add(_ role: RedisRole, to node: EngineAddress?) -> LinkID {
    links.append(
      LinkBox(Link(machine: RedisConnection(role, limits: limits, seed: Mix64.next(&seed)), node: node)))
    return LinkID(index: links.count - 1)
  }

  /// Whether its greeting is answered, so that commands can be sent.
  public func isReady(_ id: LinkID) -> Bool { links[id.index].link.machine.phase == .ready }

  /// The node that it connects to; nil until Sentinel has named one.
  public func node(_ id: LinkID) -> EngineAddress? { links[id.index].link.node }

  /// Moves the connection to another node, at once.
  func move(_ id: LinkID, to node: EngineAddress) {
    end(id.index, .closed("\(node) is to be used"))
    links[id.index].link.node = node
    links[id.index].link.machine.hurry()
  }

  /// The engine is unsuitable: the connection ends, and is made again after the longest wait.
  func refuse(_ id: LinkID, _ reason: String) { end(id.index, .refused(reason)) }

  /// Totals of commands without a reply, and of bytes in the sockets' buffers.
  public var waiting: (commands: Int, bytes: Int) {
    links.reduce((0, 0)) { sum, box in
      let (commands, bytes) = box.link.machine.waiting
      return (sum.0 + commands, sum.1 + bytes + loop.pendingBytes(box.link.connection))
    }
  }

  /// Sends a command on a connection; false, and nothing is sent, at a limit of it or where it is not there.
  public func submit(_ command: RedisCommand, ticket: UInt64, needsReply: Bool = true, to id: LinkID) -> Bool {
    let box = links[id.index]
    return box.link.machine.submit(
      command, ticket: ticket, needsReply: needsReply, unsent: loop.pendingBytes(box.link.connection),
      now: loop.now.uptimeNanoseconds)
  }

  /// Whether a connection takes a further command of so many bytes.
  public func hasRoom(for bytes: Int, on id: LinkID) -> Bool {
    let box = links[id.index]
    return box.link.machine.hasRoom(for: bytes, unsent: loop.pendingBytes(box.link.connection))
  }

  /// A connection's events since the last call.
  public func takeEvents(of id: LinkID) -> [RedisEvent] {
    links[id.index].link.machine.events.isEmpty ? [] : links[id.index].link.machine.takeEvents()
  }

  // MARK: The loop's callbacks

  /// Passes on that a connection is open; does nothing for a connection that is not among the links.
  public func connected(_ id: ConnectionID) {
    guard let index = owners[id] else { return }
    links[index].link.machine.opened(now: loop.now.uptimeNanoseconds)
  }

  /// Passes on a connection's input, which is not kept; ends the connection if it is no valid RESP. Does nothing for a
  /// connection that is not among the links.
  public func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard let index = owners[id] else { return }
    let isAlive = unsafe links[index].link.machine.received(
      UnsafeRawBufferPointer(bytes), now: loop.now.uptimeNanoseconds)
    if !isAlive { drop(index) }
  }

  /// Ends a connection whose peer does not read what is sent; does nothing for one that is not among the links.
  public func overflowed(_ id: ConnectionID) {
    if let index = owners[id] { end(index, .closed("it does not take what is sent")) }
  }

  /// Passes on that a connection has ended, to be made again after a wait; does nothing for one that is not a link's.
  public func closed(_ id: ConnectionID, _ cause: CloseCause) {
    guard let index = owners.removeValue(forKey: id) else { return }
    links[index].link.connection = .none
    links[index].link.machine.lost(.closed(cause.words), now: loop.now.uptimeNanoseconds)
  }

  /// Begins connections that are due and ends those that timed out. Gives when to call it next (uptime, ns).
  public func tick() -> Int64 {
    let now = loop.now.uptimeNanoseconds
    var next = Int64.max
    for index in links.indices where links[index].link.node != nil {
      if !links[index].link.machine.tick(now: now) { drop(index) }
      if links[index].link.machine.wantsToConnect(now: now) { connect(index, now: now) }
      next = min(next, links[index].link.machine.nextTick)
    }
    return next
  }

  /// Sends the machines' output.
  public func flush() {
    for box in links where box.link.machine.hasOutput {
      let start = loop.arena.count
      box.link.machine.takeOutput(into: &loop.arena)
      loop.send(start..<loop.arena.count, to: box.link.connection)
    }
  }

  private func connect(_ index: Int, now: Int64) {
    guard let node = links[index].link.node else { return }
    links[index].link.machine.connecting(now: now)
    do throws(SystemError) {
      let peer = node.isSecure ? TLSPeer(tls ?? .system, name: node.host) : nil
      let id = try loop.connect(node.address, tls: peer)
      links[index].link.connection = id
      owners[id] = index
    } catch {
      links[index].link.machine.lost(.closed("\(error)"), now: now)
    }
  }

  private func end(_ index: Int, _ fault: RedisFault) {
    links[index].link.machine.lost(fault, now: loop.now.uptimeNanoseconds)
    drop(index)
  }

  /// The machine has given its connection up.
  private func drop(_ index: Int) {
    let id = links[index].link.connection
    guard owners.removeValue(forKey: id) != nil else { return }
    links[index].link.connection = .none
    loop.abort(id)
  }
}

extension CloseCause {
  /// What happened, for operators.
  fileprivate var words: String {
    switch self {
    case .peerClosed: "it has closed the connection"
    case .peerReset: "it has reset the connection"
    case .failed(let errno): "the connection failed: \(SystemError.text(errno))"
    case .connectFailed(let errno): "cannot connect: \(SystemError.text(errno))"
    case .closedByUs: "the hub has closed the connection"
    case .tlsFailed(let failure): "\(failure)"
    }
  }
}
