// The ledger over a real engine: redis-server or valkey-server, where one is installed.
import Foundation
import HubBackplane
import HubBackplaneSupport
import HubSystem
import HubTransport
import HubTransportSupport
import Testing

/// An event loop with links to an engine, turned by the test.
final class LinkLoop: EventLoopDelegate {
  let loop: EventLoop
  let links: RedisLinks

  /// `clock` and `network` are of a test that moves them by hand.
  init(
    _ limits: BackplaneLimits = BackplaneLimits(), tls: TLSClient? = nil, clock: (() -> ClockReading)? = nil,
    network: SimulatedNetwork? = nil
  ) throws {
    loop = try EventLoop(limits: limits.loop, clock: clock, network: network)
    links = RedisLinks(loop, limits: limits, tls: tls, seed: 1)
    loop.delegate = self
  }

  func connected(_ id: ConnectionID) { links.connected(id) }
  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) { links.received(id, bytes) }
  func closed(_ id: ConnectionID, _ cause: CloseCause) { links.closed(id, cause) }
  func overflowed(_ id: ConnectionID) { links.overflowed(id) }
  func turnEnding() { links.flush() }

  /// Turns until `isDone`, for at most three minutes: sentinels try a failover again after 6 s, and one that stood
  /// still makes none for 30 s.
  func run(at line: SourceLocation = #_sourceLocation, until isDone: () throws -> Bool) throws {
    let end = ClockReading.uptime() + 180_000_000_000
    while try !isDone() {
      try #require(ClockReading.uptime() < end, "nothing came in time", sourceLocation: line)
      _ = links.tick()
      loop.waker.wake()
      loop.runTurn(timeoutMilliseconds: 5)
    }
  }
}

extension LinkLoop {
  /// Puts a command again and again, until its reply is as it should be.
  func run(until link: LinkID, _ words: [String], _ isDone: (RESPValue) -> Bool) throws {
    var isAsked = false
    try run {
      for case .reply(_, let value) in links.takeEvents(of: link) {
        isAsked = false
        if isDone(value) { return true }
      }
      if !isAsked, links.isReady(link) {
        isAsked = links.submit(.words(words.map { Array($0.utf8) }), ticket: 0, to: link)
      }
      return false
    }
  }
}

extension LinkLoop {
  /// Gives an engine a command, which may be carried out more than once, until it answers so: the engine may stand
  /// still for longer than an answer is waited for.
  func tell(
    _ engine: RedisProcess, _ command: String, until answer: String = "+OK\r\n",
    at line: SourceLocation = #_sourceLocation
  ) throws {
    try run(at: line) { engine.reply(to: command) == answer }
  }
}

extension BackplaneLimits {
  /// For real engines: no connection ends because the engine, or the test itself, stands still for some seconds, as it
  /// may on a machine that does much else.
  static var patient: BackplaneLimits {
    var limits = BackplaneLimits()
    limits.replyTime = 20_000_000_000
    return limits
  }
}

/// The ledger of a real engine.
final class RealLedger: Answering {
  let engine: RedisProcess
  let loop: LinkLoop
  let ledger: RedisLedger
  private var ticket: UInt64 = 0
  var events: [LedgerEvent] = []

  init(
    _ engine: RedisProcess, _ role: RedisRole = RedisRole(), at address: LedgerAddress? = nil,
    sentinelRole: RedisRole = RedisRole(), tls: TLSClient? = nil, limits: BackplaneLimits = .patient
  ) throws {
    self.engine = engine
    loop = try LinkLoop(limits, tls: tls)
    ledger = RedisLedger(
      loop.links, at: try address ?? .node(node(engine.port)), role: role, sentinelRole: sentinelRole)
  }

  func runUntilUp() throws {
    try loop.run {
      ledger.takeEvents(into: &events)
      return ledger.isUp
    }
  }

  /// Whether it has come to be up at this node.
  func wasUp(at port: UInt16, scheme: String = "redis") -> Bool {
    events.contains { if case .up(let node, _) = $0 { node == "\(scheme)://127.0.0.1:\(port)" } else { false } }
  }

  func forget() throws { try loop.tell(engine, "FLUSHALL") }

  func answer(_ question: LedgerQuestion) throws -> LedgerAnswer {
    ticket += 1
    #expect(ledger.ask(question, ticket: ticket))
    var answer: LedgerAnswer?
    try loop.run {
      ledger.takeEvents(into: &events)
      for case .answer(ticket, let found) in events { answer = found }
      events.removeAll()
      return answer != nil
    }
    return try #require(answer)
  }
}

extension RedisProcess {
  /// A line of a sentinel's configuration by which it takes no master for dead that stands still for a while.
  static func patience(_ name: String) -> String { "sentinel down-after-milliseconds \(name) 60000" }
  /// The words by which it takes the master for dead after 0.3 s from now on: the test is about to kill it.
  static func impatience(_ name: String) -> [String] { ["SENTINEL", "SET", name, "down-after-milliseconds", "300"] }

  fileprivate func has(_ key: String) -> Bool { reply(to: "EXISTS \(key)") == ":1\r\n" }

  /// Of a sentinel: it has heard of so many others that watch the master, and of its replica.
  fileprivate func knowsOthers(_ name: String, _ count: Int) -> Bool {
    let text = reply(to: "SENTINEL MASTER \(name)")
    func field(_ name: String) -> Substring? {
      let lines = text.split(separator: "\r\n")
      return lines.firstIndex(of: name[...]).flatMap { $0 + 2 < lines.count ? lines[$0 + 2] : nil }
    }
    return field("num-other-sentinels") == "\(count)" && field("num-slaves") == "1"
  }
}

func node(_ port: UInt16) throws -> EngineAddress { try #require(EngineAddress("redis://127.0.0.1:\(port)")) }

/// A port that is free now, and that the system gives to nobody else: it takes those from 32,768 on
/// (`net.ipv4.ip_local_port_range`), for the hundreds of connections that other tests make meanwhile.
func freePort() throws -> UInt16 {
  let loop = try EventLoop()
  while true {
    let port = UInt16.random(in: 20_000..<32_000)
    do throws(SystemError) {
      _ = try loop.listen(.loopback(port: port))
      return port
    } catch {
      continue  // somebody has it
    }
  }
}

@Suite(.enabled(if: RedisProcess.executable != nil, "no redis-server or valkey-server: install one (redis-server)"))
struct RedisTests {
  @Test("The ledger of a real engine keeps what a ledger promises, and warns that it forgets at a restart")
  func ledger() throws {
    let ledger = try RealLedger(RedisProcess(port: freePort()))
    try ledger.runUntilUp()
    guard case .up(_, let warnings) = ledger.events.last else { throw Unexpected(answer: .unknown) }
    #expect(
      warnings == [
        "appendonly no: a restart of the engine forgets; the hubs write back what they know",
        "no replica: where its disk is lost, the hubs write back what they know",
      ])
    try ledger.checkAll()
  }

  @Test("An engine that may evict keys is refused with the setting that is wrong")
  func eviction() throws {
    let engine = try RedisProcess(port: freePort(), ["--maxmemory-policy", "allkeys-lru"])
    let ledger = try RealLedger(engine)
    var reason = ""
    try ledger.loop.run {
      ledger.ledger.takeEvents(into: &ledger.events)
      for case .down(_, let text) in ledger.events where text.contains("maxmemory-policy") { reason = text }
      return !reason.isEmpty
    }
    #expect(reason == "maxmemory-policy allkeys-lru: it must be noeviction, or the engine drops owners and members")
    #expect(!ledger.ledger.isUp)
    // The operator fixes it: the hub finds that by itself.
    try ledger.loop.tell(engine, "CONFIG SET maxmemory-policy noeviction")
    try ledger.runUntilUp()
  }

  @Test("What makes a restart, a crash or a dead disk forget is warned of, and what does not is not")
  func durability() throws {
    let engine = try RedisProcess(port: freePort(), ["--appendonly", "yes"])
    let replica = try RedisProcess(port: freePort(), ["--replicaof", "127.0.0.1", "\(engine.port)"])
    func warnings() throws -> [String] {
      let ledger = try RealLedger(engine)
      try ledger.runUntilUp()
      guard case .up(_, let warnings) = ledger.events.last else { throw Unexpected(answer: .unknown) }
      return warnings
    }
    try LinkLoop().run { engine.reply(to: "ROLE").contains("\(replica.port)") }
    #expect(
      try warnings() == [
        "appendfsync everysec: a crash of its machine forgets what is newest; the hubs write back what they know"
      ])
    try LinkLoop().tell(engine, "CONFIG SET appendfsync always")
    #expect(try warnings() == [])
  }

  @Test("An ACL user with the keys and channels of the cluster only is enough; another password is refused")
  func accessControl() throws {
    let engine = try RedisProcess(
      port: freePort(),
      [
        "--user", "hub", "on", ">secret", "~lh:*", "&lh:*", "+@read", "+@write", "+@scripting", "+@pubsub", "+ping",
        "+time", "+info", "+role", "+config|get", "--user", "default", "off",
      ])
    let ledger = try RealLedger(engine, RedisRole(user: "hub", password: "secret"))
    try ledger.runUntilUp()
    #expect(
      try ledger.answer(.claim(key: "t:1", by: "a", known: 0, seizes: false))
        == .claimed(generation: 0, before: nil, waiting: []))
    let other = try RealLedger(engine, RedisRole(user: "hub", password: "wrong"))
    try other.loop.run {
      other.ledger.takeEvents(into: &other.events)
      return other.events.contains { if case .down(_, let text) = $0 { text.contains("WRONGPASS") } else { false } }
    }
  }

  @Test("How much memory the node uses, and may use, is asked for as long as it is up")
  func memory() throws {
    let engine = try RedisProcess(port: freePort(), ["--maxmemory", "100mb"])
    var limits = BackplaneLimits.patient
    limits.memoryTime = 1_000_000
    let ledger = try RealLedger(engine, limits: limits)
    func runUntil(limit: UInt64) throws {
      try ledger.loop.run {
        ledger.ledger.takeEvents(into: &ledger.events)
        defer { ledger.events.removeAll() }
        return ledger.events.contains {
          if case .memory(let memory) = $0 { memory.used > 100_000 && memory.limit == limit } else { false }
        }
      }
    }
    try runUntil(limit: 100 << 20)
    try ledger.loop.tell(engine, "CONFIG SET maxmemory 0")
    try runUntil(limit: 0)
  }

  @Test("What somebody else has written among the members is left out, and the others are found")
  func foreignMembers() throws {
    let engine = try RedisProcess(port: freePort())
    let ledger = try RealLedger(engine)
    try ledger.runUntilUp()
    let member = MemberRecord(name: "b", incarnation: 6, address: "127.0.0.1:1", version: "x")
    #expect(try ledger.answer(.renew(member, leaseMilliseconds: 60_000)) == .renewed(wasKnown: false))
    try ledger.loop.tell(engine, "SADD lh:members a c", until: ":0\r\n")  // both are there
    for command in ["SET lh:m:a 7", "SET lh:m:c x-y-z"] { try ledger.loop.tell(engine, command) }
    #expect(try ledger.answer(.members) == .members([member]))
  }

  @Test("Scripts that the engine forgets are loaded again, and an engine that is killed is found again, empty")
  func restart() throws {
    let engine = try RedisProcess(port: freePort())
    let ledger = try RealLedger(engine)
    try ledger.runUntilUp()
    #expect(try ledger.answer(.claim(key: "t:1", by: "a", known: 0, seizes: false)) != .unknown)
    engine.kill()
    try ledger.loop.run {
      ledger.ledger.takeEvents(into: &ledger.events)
      return !ledger.ledger.isUp
    }
    #expect(!ledger.ledger.ask(.members, ticket: 99))
    try engine.start()
    try ledger.runUntilUp()
    ledger.events.removeAll()
    #expect(try ledger.answer(.locate(key: "t:1", asker: "b")) == .owner(nil))
  }

  @Test("Where the master dies, the ledger is at the node that the sentinels choose; a replica alone is refused")
  func sentinels() throws {
    let master = try RedisProcess(port: freePort())
    let replica = try RedisProcess(port: freePort(), ["--replicaof", "127.0.0.1", "\(master.port)"])
    let alone = try RealLedger(replica)
    try alone.loop.run {
      alone.ledger.takeEvents(into: &alone.events)
      return alone.events.contains { if case .down(_, let text) = $0 { text.contains("is a replica") } else { false } }
    }
    #expect(!alone.ledger.isUp)

    let sentinels = try (0..<3).map { _ in
      try RedisProcess(sentinel: freePort(), of: master.port, name: "fleet", [RedisProcess.patience("fleet")])
    }
    let hosts = sentinels.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
    let address = try #require(LedgerAddress("sentinel://\(hosts)/fleet"))
    let ledger = try RealLedger(master, at: address)
    try ledger.runUntilUp()
    #expect(ledger.wasUp(at: master.port))
    #expect(
      try ledger.answer(.claim(key: "t:1", by: "a", known: 0, seizes: false))
        == .claimed(generation: 0, before: nil, waiting: []))
    // The replica has it, and the sentinels know each other and the replica.
    try ledger.loop.run { replica.has("lh:o:t:1") && sentinels.allSatisfy { $0.knowsOthers("fleet", 2) } }
    let words = RedisProcess.impatience("fleet").joined(separator: " ")
    for sentinel in sentinels { try ledger.loop.tell(sentinel, words) }
    master.kill()
    try ledger.loop.run {
      ledger.ledger.takeEvents(into: &ledger.events)
      return ledger.wasUp(at: replica.port)
    }
    ledger.events.removeAll()
    #expect(
      try ledger.answer(.claim(key: "t:1", by: "b", known: 0, seizes: false)) == .held(by: "a", generation: 0))
    // A sentinel that dies decides nothing; where all are gone the ledger works as long as its node does.
    for sentinel in sentinels { sentinel.kill() }
    try ledger.loop.run { sentinels.allSatisfy { !$0.isRunning } }
    #expect(try ledger.answer(.members) == .members([]))
  }

  @Test("Sentinels that know no such master, or cannot be reached, are named with the reason")
  func unknownMaster() throws {
    let engine = try RedisProcess(port: freePort())
    let sentinel = try RedisProcess(sentinel: freePort(), of: engine.port, name: "fleet")
    for (host, word) in [(sentinel.port, "no such master"), (try freePort(), "no sentinel can be asked")] {
      let address = try #require(LedgerAddress("sentinel://127.0.0.1:\(host)/other"))
      let ledger = try RealLedger(engine, at: address)
      try ledger.loop.run {
        ledger.ledger.takeEvents(into: &ledger.events)
        return ledger.events.contains { if case .down(_, let text) = $0 { text.contains(word) } else { false } }
      }
      #expect(!ledger.ledger.isUp)
    }
  }

  @Test("A question to an engine that hangs has an unknown answer after the reply time, and the next is answered")
  func stall() throws {
    let engine = try RedisProcess(port: freePort())
    let ledger = try RealLedger(engine, limits: BackplaneLimits())
    try ledger.runUntilUp()
    engine.stall()
    #expect(try ledger.answer(.members) == .unknown)
    engine.resume()
    // It, or the test itself, may stand still for longer than the reply time once more.
    var next = LedgerAnswer.unknown
    for _ in 0..<60 where next == .unknown {
      try ledger.runUntilUp()
      ledger.events.removeAll()
      next = try ledger.answer(.members)
    }
    #expect(next == .members([]))
  }
}
