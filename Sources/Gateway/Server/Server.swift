// A running hub: its port and its threads, until it ends.
import HubBytes
import HubCore
import HubJournal
import HubMessages
public import HubRuntime
import HubSystem
import HubTokens
public import HubTransport
import HubWebhooks

/// A hub that serves until it is drained.
public final class Server: Sendable {
  /// The address that it listens on, with the actual port.
  public let address: SocketAddress
  private let isSecure: Bool
  /// The operators' address, with the actual port; nil where there is no admin port.
  public let adminAddress: SocketAddress?
  let shared: SharedState
  let threads: Threads
  /// Nil where a service manager holds the port.
  private let lock: PortLock?
  /// Nil where nothing is stored; they end after all others.
  private let journalThreads: JournalThreads?

  /// The loops' threads.
  struct Threads: Sendable {
    var wakers: [Waker] = []
    var joinables: [Joinable] = []
    /// For streams with positions.
    var positions: PositionSource?
  }

  private init(
    address: SocketAddress, adminAddress: SocketAddress?, isSecure: Bool, shared: SharedState, threads: Threads,
    journalThreads: JournalThreads?, lock: consuming PortLock?
  ) {
    self.address = address
    self.adminAddress = adminAddress
    self.isSecure = isSecure
    self.shared = shared
    self.threads = threads
    self.lock = lock
    self.journalThreads = journalThreads
  }

  /// Starts listening and returns; the work is done on other threads.
  public static func start(_ configuration: ServerConfiguration) throws(ServerError) -> Server {
    configuration.limits.validate()
    let wanted = try configuration.listeningAddress()
    var lock: PortLock?
    if configuration.inherited == nil {
      do throws(PortLockError) { lock = try PortLock(wanted) } catch { throw .portTaken("\(error)") }
    }
    let address = lock?.address ?? wanted
    let openFiles = raiseOpenFileLimit(
      configuration, Log(level: configuration.logLevel, format: configuration.logFormat))
    let limits = configuration.limits.eventLoop(loops: configuration.loops, openFiles: openFiles)
    let shared = SharedState(
      configuration: configuration,
      sessionLimit: configuration.limits.sessions(loops: configuration.loops, openFiles: openFiles))
    let incarnation = Incarnation()
    var hub = incarnation.makeHub(configuration, now: ClockReading.read())
    let writer: WriterBox?
    do throws(JournalError) {
      writer = try recover(configuration, shared, into: &hub, incarnation)
    } catch {
      throw .journal("\(error)\(hint(error))")
    }
    do throws(ErrorReply) {
      for fence in configuration.fences { try hub.begin(with: fence) }
    } catch {
      throw .journal("cannot put a fence: \(error.message)")
    }
    if configuration.cluster != nil { hub.joinCluster(outlet: UInt32(configuration.loops)) }
    shared.access.current?.stored.begin(with: hub.allRevocations())
    let box = HubBox(hub)
    do throws(SystemError) {
      let maintenance = makeMaintenance(configuration, shared, incarnation)
      let server = try start(
        on: address, configuration, limits, shared, box, writer, maintenance, "\(incarnation.epoch)", lock)
      shared.log(
        .info, "listening",
        [
          "address": "\(server.address)", "tls": "\(configuration.tls != nil)", "loops": "\(configuration.loops)",
          "dev_auth": "\(configuration.allowsDevelopmentCredentials)",
          "io_uring": "\(limits.sendsTogether && EventLoop.canSendTogether)",
          "connections_per_loop": "\(limits.maximumConnections)", "sessions": "\(shared.admissions.sessionLimit)",
        ])
      return server
    } catch {
      let admin = configuration.adminPort.map { ", admin port \(configuration.adminHost):\($0)" } ?? ""
      throw .system("cannot start on \(address)\(admin): \(error)")
    }
  }

  /// Each connection is a descriptor: logs where the system allows fewer than the limits need.
  private static func raiseOpenFileLimit(_ configuration: ServerConfiguration, _ log: Log) -> Int {
    do throws(SystemError) {
      let limit = try ProcessFacts.raiseOpenFileLimit()
      makeRoomForOpenFiles(min(limit, Limits.descriptorsAtStart), log)
      let wanted = (configuration.limits.connectionsPerLoop ?? 0) * configuration.loops
      if limit < wanted {
        log(
          .warning, "open_file_limit",
          ["limit": "\(limit)", "wanted": "\(wanted)", "hint": "raise it with ulimit -n or LimitNOFILE="])
      }
      return limit
    } catch {
      log(.warning, "open_file_limit", ["error": "\(error)"])
      return 1024  // the default of Linux
    }
  }

  /// Grows the kernel's table of open files now, so that no connection waits for that later; a failure is only logged.
  private static func makeRoomForOpenFiles(_ count: Int, _ log: Log) {
    do throws(SystemError) {
      try ProcessFacts.makeRoomForOpenFiles(count)
    } catch {
      log(.warning, "open_file_room", ["files": "\(count)", "error": "\(error)"])
    }
  }

  private static func start(
    on address: SocketAddress, _ configuration: ServerConfiguration, _ loopLimits: EventLoopLimits,
    _ shared: SharedState,
    _ hub: sending HubBox, _ writer: WriterBox?, _ maintenance: JournalMaintenance?, _ epoch: String,
    _ lock: consuming PortLock?
  ) throws(SystemError) -> Server {
    var threads = Threads()
    var adminAddress: SocketAddress?
    var journalThreads: JournalThreads?
    do throws(SystemError) {
      try shared.tiles?.start()
      if configuration.outlets == 1 {
        adminAddress = try startOnlyLoop(on: address, configuration, loopLimits, shared, hub, &threads)
      } else {
        adminAddress = try startLoops(on: address, configuration, loopLimits, shared, hub, &threads)
      }
      if let stored = configuration.journal, let writer, let maintenance, let journal = shared.journal,
        let history = shared.history
      {
        let (hub, readers) = (
          threads.wakers[0], try startWebhooks(configuration, shared, writer, epoch: epoch, &threads)
        )
        journalThreads = try JournalThreads(
          journal, writer, maintenance: maintenance, history: history, stored, shared.log
        ) {
          hub.wake()
          if shared.webhooks?.isActive == true { readers?.wake() }
        }
      }
    } catch {
      shared.lifecycle.requestStop(at: 0)  // ends what has started
      shared.journal?.commit.close()
      shared.tiles?.close()
      for waker in threads.wakers { waker.wake() }
      throw error
    }
    configuration.inherited?.close()
    configuration.inheritedAdmin?.close()
    return Server(
      address: address, adminAddress: adminAddress, isSecure: configuration.tls != nil, shared: shared,
      threads: threads, journalThreads: journalThreads, lock: lock)
  }

  private static func makeLoop(
    on address: SocketAddress, _ configuration: ServerConfiguration, _ limits: EventLoopLimits
  ) throws(SystemError) -> sending EventLoop {
    let loop = try EventLoop(limits: limits)
    if let inherited = configuration.inherited {
      try loop.listen(on: inherited, tls: configuration.tls)
    } else {
      _ = try loop.listen(
        address, reusePort: true, backlog: configuration.limits.acceptBacklog, tls: configuration.tls)
    }
    return loop
  }

  /// The first loop has the admin port, too. No pace of accepts and no limit by address applies there, and some
  /// connections are reserved for it, so that operators always get in.
  private static func listenForOperators(
    _ loop: EventLoop, _ configuration: ServerConfiguration
  ) throws(SystemError) -> SocketAddress? {
    if let inherited = configuration.inheritedAdmin {
      try loop.listen(on: inherited, isPaced: false)
      return inherited.address
    }
    guard let port = configuration.adminPort,
      let address = SocketAddress(host: configuration.adminHost, port: port)
    else { return nil }
    return try loop.listen(address, isPaced: false)
  }

  /// Starts the only loop, with the hub on its thread.
  private static func startOnlyLoop(
    on address: SocketAddress, _ configuration: ServerConfiguration, _ loopLimits: EventLoopLimits,
    _ shared: SharedState, _ hub: sending HubBox, _ threads: inout Threads
  ) throws(SystemError) -> SocketAddress? {
    let loop = try makeLoop(on: address, configuration, loopLimits)
    let adminAddress = try listenForOperators(loop, configuration)
    threads.wakers.append(loop.waker)
    let thread = try startThread(name: "loop-0") {
      let history = shared.history.map { Consultation.history($0, waking: loop.waker) }
      let port = HubPort(hub: hub.take(), journal: shared.journal, history: history)
      run(
        SessionLoop(
          index: 0, loop: loop, hub: port, shared: shared, configuration: configuration,
          adminListener: adminAddress == nil ? nil : 1), on: loop)
    }
    threads.joinables.append(Joinable(thread))
    return adminAddress
  }

  /// Starts several loops, which share a hub.
  private static func startLoops(
    on address: SocketAddress, _ configuration: ServerConfiguration, _ loopLimits: EventLoopLimits,
    _ shared: SharedState, _ hub: sending HubBox, _ threads: inout Threads
  ) throws(SystemError) -> SocketAddress? {
    var adminAddress: SocketAddress?
    var loops: [LoopBox] = []
    var outlets: [Outlet] = []
    for index in 0..<configuration.loops {
      let loop = try makeLoop(on: address, configuration, loopLimits)
      if index == 0 { adminAddress = try listenForOperators(loop, configuration) }
      threads.wakers.append(loop.waker)
      outlets.append(Outlet(to: loop, capacity: configuration.limits.mailboxMessages))
      loops.append(LoopBox(loop, adminListener: index == 0 && adminAddress != nil ? 1 : nil))
    }
    let cluster = try makeClusterLoop(configuration, &outlets, &threads)
    let feed = configuration.hasPositionStreams ? PositionSource.outlet(waking: outlets[0].waker) : nil
    if let feed { outlets.append(feed) }
    let history = shared.history.map { Consultation.history($0, waking: outlets[0].waker) }
    let sharedHub = SharedHub(
      hub.take(), outlets: outlets, inboxCapacity: configuration.limits.mailboxMessages, journal: shared.journal,
      history: history, lifecycle: shared.lifecycle, metrics: shared.metrics.hub, now: now())
    threads.positions = feed.map { PositionSource(sharedHub, $0, number: outlets.count - 1) }
    for (index, box) in loops.enumerated() {
      shared.lifecycle.loopBegins()
      let thread = try startThread(name: "loop-\(index)") { [waker = threads.wakers.last] in
        run(
          SessionLoop(
            index: index, loop: box.loop, hub: HubPort(sharedHub, loop: index), shared: shared,
            configuration: configuration, adminListener: box.adminListener), on: box.loop)
        shared.ticks.ended(index)
        sharedHub.finish(index, now: now())
        shared.lifecycle.loopEnds()
        waker?.wake()  // the cluster's, if there is one: it stays until sessions have ended
      }
      threads.joinables.append(Joinable(thread))
    }
    if let cluster { threads.joinables.append(try startCluster(cluster, sharedHub, configuration, shared)) }
    return adminAddress
  }

  static func now() -> Moment { Moment(ClockReading.read()) }

  private static func run(_ sessions: consuming SessionLoop, on loop: EventLoop) {
    let delegate = SessionLoopDelegate(sessions)
    loop.delegate = delegate
    withExtendedLifetime(delegate) { loop.run() }
  }

  // MARK: While it runs

  /// Its HTTP and its WebSocket URL, for people.
  public var urls: String {
    let suffix = isSecure ? "s" : ""
    return "http\(suffix)://\(address) (WebSocket: ws\(suffix)://\(address)/v1/ws)"
  }

  /// The sums of all loops, as they reported them last.
  public var statistics: ServerStatistics { ServerStatistics(shared.metrics) }

  /// Replaces the keys and the list of revoked tokens. Sessions stay, except for those whose token is on the list: they
  /// end with 4401. A removed key admits nobody any more; sessions that it admitted stay until their token expires or
  /// is revoked.
  ///
  /// - Precondition: the server was started with tokens.
  public func replaceTokens(_ access: TokenAccess) {
    precondition(shared.access.current != nil, "a server without tokens takes none later")
    var access = access
    if let present = shared.access.current { access.stored = present.stored }
    shared.access.replace(access)
    for waker in threads.wakers { waker.wake() }
    shared.log(
      .info, "tokens_reloaded", ["keys": "\(access.verifier.keys.keys.count)", "revoked": "\(access.revoked.count)"])
  }

  /// Applies a change of settings while the server runs: of those alone that it reads again, which are the live ones of
  /// `ServeOptions`. Sessions stay, even above a new limit.
  public func apply(_ change: (inout ServerConfiguration) -> Void) {
    var configuration = shared.settings.current
    change(&configuration)
    // Its pages keep their origin, since `publicURL` stays.
    if let url = configuration.publicURL { _ = configuration.origins.allow(url) }
    shared.settings.replace(configuration)
    shared.log.setLevel(configuration.logLevel)
    shared.lifecycle.setDrain(delaySeconds: configuration.drainDelay, spreadSeconds: configuration.drainSpread)
    shared.journal?.retention.withLock { $0 = configuration.journal?.retention }
    for waker in threads.wakers { waker.wake() }
  }

  /// Notes the outcome of a reload for the metrics.
  public func noteReload(_ what: Reloadable, isSuccessful: Bool) {
    shared.reloads.note(what, isSuccessful: isSuccessful, at: ClockReading.read().unixMilliseconds)
  }

  /// For the operator.
  public var log: Log { shared.log }

  /// Begins to stop: readiness fails; after the drain delay no connection is accepted and sessions are closed.
  public func drain() {
    shared.log(.info, "draining")
    shared.lifecycle.requestStop(at: ClockReading.read().uptimeNanoseconds)
    for waker in threads.wakers { waker.wake() }
  }

  /// Returns when all threads have ended, after `drain`.
  public func wait() {
    for thread in threads.joinables { thread.join() }
    journalThreads?.finish()
    shared.tiles?.close()
    shared.log(.info, "stopped")
  }
}

extension Outlet {
  /// A loop's outlet, with room for `capacity` elements. Once for each loop, before it runs.
  convenience init(to loop: EventLoop, capacity: Int) {
    let assistant = loop.allowAssists()
    self.init(capacity: capacity, waker: loop.waker) { assistant.assist() }
  }
}

/// A loop on its way to its thread.
///
/// `@unchecked Sendable`: the thread that made it does not touch it once the other has begun, which the compiler cannot
/// see because it is in an array meanwhile.
final class LoopBox: @unchecked Sendable {
  let loop: EventLoop
  let adminListener: Int?

  init(_ loop: EventLoop, adminListener: Int?) {
    self.loop = loop
    self.adminListener = adminListener
  }
}
