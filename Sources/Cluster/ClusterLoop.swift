// The thread of the cluster's outlet: an event loop with the connections to the engine, the node, and its port to the
// hub.
//
// It is one more loop of the hub that several loops share (SharedHub), with hubs instead of sessions: the hub
// hands a publication once to this outlet, whatever the number of peers, and the node knows who of them follows it.
public import HubBackplane
import HubBytes
import HubCore
package import HubMessages
package import HubRuntime
public import HubTransport

/// The engine, and the credentials for it.
public struct EngineConfiguration: Sendable {
  public var bus: [EngineAddress]
  public var ledgers: [LedgerAddress]
  /// Where they were set (`FILE:LINE: name`), for messages to operators: nodes of the bus and ledgers by their address,
  /// the credentials for both, those for the sentinels, and the certificates that are trusted.
  public var origins: [String: String] = [:]
  public var ledgerOrigins: [String: String] = [:]
  public var credentialOrigin: String?
  public var sentinelCredentialOrigin: String?
  public var trustOrigin: String?
  public var user: String?
  public var password: String?
  /// For the sentinels, which have users and passwords of their own.
  public var sentinelUser: String?
  public var sentinelPassword: String?
  /// The trust of `rediss://` and `sentinels://`; nil for the system's.
  public var tls: TLSClient?

  public init(bus: [EngineAddress], ledgers: [LedgerAddress]) {
    self.bus = bus
    self.ledgers = ledgers
  }

  /// The ledger, or all of them as one, on these links.
  public func ledger(on links: RedisLinks) -> any Ledger {
    let all: [(name: String, ledger: any Ledger)] = ledgers.map {
      ($0.name, RedisLedger(links, at: $0, role: role, sentinelRole: sentinelRole))
    }
    return all.count == 1 ? all[0].ledger : LedgerSet(all)
  }

  /// The credentials for the bus and the ledger.
  public var role: RedisRole { RedisRole(user: user, password: password) }
  /// The credentials for the sentinels.
  public var sentinelRole: RedisRole { RedisRole(user: sentinelUser, password: sentinelPassword) }

  /// Where the setting is in a file (`FILE:LINE: name`) because of which a node cannot be used; nil if it came from no
  /// file, and for a node that sentinels have named, if it is not known.
  public func origin(of node: String, isLedger: Bool, reason: String) -> String? {
    let isCredential = ["WRONGPASS", "NOAUTH", "NOPERM"].contains { reason.contains($0) }
    let isSentinel = reason.hasPrefix(LedgerAddress.noSentinel)
    if isCredential, let origin = isSentinel ? sentinelCredentialOrigin : credentialOrigin { return origin }
    if reason.contains("certificate refused"), let trustOrigin { return trustOrigin }
    guard isLedger else { return origins[node] }
    return ledgerOrigins[node] ?? (ledgerOrigins.count == 1 ? ledgerOrigins.first?.value : nil)
  }
}

/// The configuration of a hub in a cluster.
public struct ClusterConfiguration: Sendable {
  public var identity: ClusterIdentity
  public var engine: EngineConfiguration

  public init(identity: ClusterIdentity, engine: EngineConfiguration) {
    self.identity = identity
    self.engine = engine
  }
}

/// The cluster's outlet at work. Only its own thread uses it.
public final class ClusterLoop: EventLoopDelegate {
  private let loop: EventLoop
  private let links: RedisLinks
  private let bus: RedisBus
  private let ledger: any Ledger
  private var node: ClusterNode
  private var hub: HubPort
  private var outputs = HubOutputs()
  private let log: Log
  private let lifecycle: Lifecycle
  private var busEvents: [BusEvent] = []
  private var ledgerEvents: [LedgerEvent] = []
  private var hasLeft = false
  private let show: @Sendable (ClusterCounters) -> Void
  /// When the counters are shown next (uptime, ns).
  private var showsAt = Int64.min
  private let engine: EngineConfiguration

  /// The loop of outlet `outlet`, whose port to the hub is `hub`. `seed`: for the waits between attempts.
  /// `openSessions` gives how many sessions an id has open at this hub, in each role; `show` gets the counters several
  /// times a second.
  package init(
    _ loop: EventLoop, _ hub: consuming HubPort, outlet: UInt32, _ configuration: ClusterConfiguration,
    lifecycle: Lifecycle, log: Log, seed: UInt64, openSessions: @escaping @Sendable (Identifier) -> [Role: Int],
    show: @escaping @Sendable (ClusterCounters) -> Void
  ) {
    let (identity, engine) = (configuration.identity, configuration.engine)
    self.loop = loop
    self.hub = hub
    self.log = log
    self.lifecycle = lifecycle
    self.show = show
    self.engine = engine
    links = RedisLinks(loop, limits: BackplaneLimits(), tls: engine.tls, seed: seed)
    bus = RedisBus(links, nodes: engine.bus, member: identity.name, role: engine.role)
    ledger = engine.ledger(on: links)
    node = ClusterNode(identity, outlet: outlet, now: Moment(loop.now), openSessions: openSessions)
    loop.delegate = self
    loop.setLoopTimer(at: Moment(loop.now).uptime)
  }

  /// Runs on the calling thread until the hub has been drained and this member has left the cluster.
  public func run() { loop.run() }

  // MARK: The loop's callbacks

  /// Passes on that a connection to the engine is open.
  public func connected(_ id: ConnectionID) { links.connected(id) }

  /// Passes on the engine's bytes; what they say is handled at the end of the turn.
  public func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) { unsafe links.received(id, bytes) }

  /// Passes on that the engine does not read what is sent: the connection ends.
  public func overflowed(_ id: ConnectionID) { links.overflowed(id) }

  /// Passes on that a connection to the engine has ended.
  public func closed(_ id: ConnectionID, _ cause: CloseCause) { links.closed(id, cause) }

  /// The turn's work in order: the engine's events, the exchange with the hub, the node's own steps, output, figures.
  public func turnEnding() {
    let nextTick = links.tick()
    let now = Moment(loop.now)
    node.begin(now: now)
    bus.takeEvents(into: &busEvents)
    ledger.takeEvents(into: &ledgerEvents)
    for event in busEvents { node.take(bus: event) }
    for event in ledgerEvents { node.take(ledger: event) }
    busEvents.removeAll(keepingCapacity: true)
    ledgerEvents.removeAll(keepingCapacity: true)
    exchange(now)
    node.turn()
    // This hub does not leave, and keeps its followers, until the last session has been closed and is gone.
    if lifecycle.phase(at: now.uptime) == .draining, !lifecycle.hasLoops { leave() }
    node.flush(bus, ledger)
    links.flush()
    if now.uptime >= showsAt { showCounters(now) }
    for notice in node.takeNotices() { notice.write(to: log, engine) }
    let next = min(nextTick, node.nextTurn, hub.nextTurn, showsAt)
    loop.setLoopTimer(at: node.inputs.isEmpty ? next : now.uptime)
    if node.gathersUntil > now.uptime { loop.gather(until: node.gathersUntil) }
  }

  private func showCounters(_ now: Moment) {
    showsAt = now.uptime + node.context.limits.countTime
    var counters = node.counters
    (counters.engineCommands, counters.engineBytes) = links.waiting
    show(counters)
  }

  /// Runs the hub's turn for other loops that wait for it.
  public func turnEnded() { hub.assistOthers() }

  /// Exchanges inputs and outputs with the hub until no input is left, four times at most.
  private func exchange(_ now: Moment) {
    for _ in 0..<4 {
      let isTaken = hub.exchange(&node.inputs, into: &outputs, now: now)
      node.take(outputs: outputs)
      outputs.removeAll()
      if !isTaken || node.inputs.isEmpty { return }
    }
  }

  private func leave() {
    if hasLeft { return loop.stop() }
    hasLeft = true
    node.leave()
  }
}

extension ClusterNotice {
  /// The line that an operator reads.
  fileprivate func write(to log: Log, _ engine: EngineConfiguration) {
    switch self {
    case .busUp(let node): log(.info, "cluster_bus_up", ["node": node])
    case .busDown(let node, let reason):
      log(
        .warning, "cluster_bus_down",
        ["node": node, "reason": reason, "setting": engine.origin(of: node, isLedger: false, reason: reason) ?? ""])
    case .ledgerUp(let node, let warnings):
      log(.info, "cluster_ledger_up", ["node": node])
      for warning in warnings { log(.warning, "cluster_ledger_setting", ["node": node, "setting": warning]) }
    case .ledgerDown(let node, let reason):
      log(
        .warning, "cluster_ledger_down",
        ["node": node, "reason": reason, "setting": engine.origin(of: node, isLedger: true, reason: reason) ?? ""])
    case .joined(let incarnation): log(.info, "cluster_joined", ["incarnation": "\(incarnation)"])
    case .superseded(let other): log(.error, "cluster_name_taken", ["by": "\(other)"])
    case .peerJoined(let name, let incarnation):
      log(.info, "cluster_peer_joined", ["peer": name, "incarnation": "\(incarnation)"])
    case .peerLeft(let name): log(.warning, "cluster_peer_left", ["peer": name])
    case .peerSilent(let name): log(.warning, "cluster_peer_silent", ["peer": name])
    case .peerHeard(let name): log(.info, "cluster_peer_heard", ["peer": name])
    case .gap(let name, let missed): log(.warning, "cluster_gap", ["peer": name, "frames": "\(missed)"])
    case .frameRefused(let reason, let sender, let lane):
      log(
        .warning, "cluster_frame_refused", ["reason": "\(reason)", "from": sender ?? "", "lane": "\(lane)"])
    case .ledgerRefused(let reason): log(.error, "cluster_ledger_refused", ["reason": reason])
    case .ownerConflict(let channel, let owner):
      log(.error, "cluster_owner_conflict", ["channel": channel, "owner": owner])
    case .tokenKeyDiffers(let name): log(.error, "cluster_token_key_differs", ["peer": name])
    case .ledgersDiffer(let name): log(.error, "cluster_ledgers_differ", ["peer": name])
    case .tooManyPeers(let name): log(.error, "cluster_peer_refused", ["peer": name])
    }
  }
}
