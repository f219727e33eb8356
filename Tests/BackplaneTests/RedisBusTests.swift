// The bus over two nodes of a real engine, of which one is dead, or not reached by all.
import HubBackplane
import HubBackplaneSupport
import HubSystem
import HubTransport
import Testing

/// A bus, and the frames that came by it.
private final class Ear {
  let bus: RedisBus
  /// How many frames of each byte.
  private(set) var frames: [UInt8: Int] = [:]
  /// Nodes that can be used now, and why others cannot.
  private(set) var up: Set<String> = []
  private(set) var reasons: [String] = []

  init(_ loop: LinkLoop, _ engines: [RedisProcess], _ member: String, _ role: RedisRole = RedisRole()) throws {
    bus = RedisBus(loop.links, nodes: try engines.map { try node($0.port) }, member: member, role: role)
  }

  func look() {
    var events: [BusEvent] = []
    bus.takeEvents(into: &events)
    for event in events {
      switch event {
      case .frame(_, let bytes): frames[bytes[0], default: 0] += 1
      case .up(let node): up.insert(node)
      case .down(let node, let reason):
        up.remove(node)
        reasons.append(reason)
      }
    }
  }

  func forget() { frames = [:] }
}

@Suite(.enabled(if: RedisProcess.executable != nil, "no redis-server or valkey-server: install one (redis-server)"))
struct RedisBusTests {
  private let engines: [RedisProcess]
  private let loop: LinkLoop

  init() throws {
    engines = try [RedisProcess(port: freePort()), RedisProcess(port: freePort())]
    loop = try LinkLoop(.patient)
  }

  private func run(_ ears: [Ear], until isDone: () throws -> Bool) throws {
    try loop.run {
      for ear in ears { ear.look() }
      return try isDone()
    }
  }

  @Test("Where a node is dead, frames come by the other one")
  func deadNode() throws {
    let (a, b) = (try Ear(loop, engines, "a"), try Ear(loop, engines, "b"))
    try run([a, b]) { a.up.count + b.up.count == 4 }
    // Whichever node b's frames take first, it dies: the other has them then.
    for dead in engines {
      dead.kill()
      try run([a, b]) { a.up.count + b.up.count == 2 }
      b.forget()
      for _ in 0..<200 { #expect(a.bus.send([1], to: "b", lane: .state)) }
      try run([a, b]) { b.frames[1] == 200 }
      try dead.start()
      try run([a, b]) { a.up.count + b.up.count == 4 }
    }
  }

  @Test("Where a member does not listen at its best node frames go by the other one, until it does")
  func deafNode() throws {
    let names = try engines.map { "\(try node($0.port))" }
    let member = try #require((0...).lazy.map { "m\($0)" }.first { Rendezvous.order(names, for: $0) == [1, 0] })
    let (a, far) = (try Ear(loop, engines, "a"), try Ear(loop, [engines[0]], member))
    try run([a, far]) { a.up.count == 2 && far.up.count == 1 }
    for lane in Lane.allCases {
      try run([a, far]) {
        #expect(a.bus.send([lane.rawValue], to: member, lane: lane))
        return far.frames[lane.rawValue] ?? 0 > 10
      }
    }
    // It is cut off there for longer: nothing more is lost in trying.
    let start = ClockReading.uptime()
    var sent = 0
    try run([a, far]) {
      if sent < 100 || ClockReading.uptime() < start + 2_500_000_000 {
        sent += 1
        #expect(a.bus.send([2], to: member, lane: .control))
        return false
      }
      return far.frames[2] == sent
    }
    let near = try Ear(loop, [engines[1]], member)
    try run([a, far, near]) { near.up.count == 1 }
    try run([a, far, near]) {
      #expect(a.bus.send([3], to: member, lane: .control))
      return near.frames[3] ?? 0 > 10
    }
  }

  @Test("Where a member says that it does not hear a node, which takes it for a listener, frames go by the other one")
  func unheardNode() throws {
    let names = try engines.map { "\(try node($0.port))" }
    let member = try #require((0...).lazy.map { "m\($0)" }.first { Rendezvous.order(names, for: $0) == [1, 0] })
    let a = try Ear(loop, engines, "a")
    let ears = try engines.map { try Ear(loop, [$0], member) }
    try run([a] + ears) { a.up.count == 2 && ears.allSatisfy { $0.up.count == 1 } }
    #expect(ears[0].bus.unheard == 0)
    func send(_ byte: UInt8, arrivesAt ear: Int) throws {
      for _ in 0..<20 { #expect(a.bus.send([byte], to: member, lane: .state)) }
      try run([a] + ears) { ears[ear].frames[byte] == 20 }
      #expect(ears[1 - ear].frames[byte] == nil)
    }
    try send(1, arrivesAt: 1)
    a.bus.note(unheard: 0b10, by: member)
    try send(2, arrivesAt: 0)
    // It does not say so any more.
    try run([a] + ears) {
      #expect(a.bus.send([3], to: member, lane: .state))
      return ears[1].frames[3] ?? 0 > 0
    }
    try send(4, arrivesAt: 1)
    a.bus.note(unheard: 0b11, by: member)
    try send(5, arrivesAt: 1)
    let half = try Ear(loop, engines, "half")
    engines[0].kill()
    try run([half, a] + ears) { half.up.count == 1 && half.bus.unheard == 0b01 }
  }

  @Test("Of many frames of states for a member one gets a reply in 0.1 s, of control each")
  func replies() throws {
    let (a, b) = (try Ear(loop, [engines[0]], "a"), try Ear(loop, [engines[0]], "b"))
    try run([a, b]) { a.up.count + b.up.count == 2 }
    // By the time of the loop's turn, by which the bus goes.
    let start = loop.loop.now.uptimeNanoseconds
    let before = loop.links.waiting.commands
    for number in 0..<50 { #expect(a.bus.send([UInt8(number)], to: "b", lane: .state)) }
    #expect(loop.links.waiting.commands == before + 1)
    for _ in 0..<5 { #expect(a.bus.send([100], to: "b", lane: .control)) }
    #expect(loop.links.waiting.commands == before + 6)
    try run([a, b]) { b.frames.count == 51 && b.frames[100] == 5 }
    try run([a, b]) { loop.links.waiting.commands == 0 }
    try run([a, b]) { loop.loop.now.uptimeNanoseconds > start + 100_000_000 }
    let rest = loop.links.waiting.commands
    for _ in 0..<50 { #expect(a.bus.send([101], to: "b", lane: .state)) }
    #expect(loop.links.waiting.commands == rest + 1)
    try run([a, b]) { b.frames[101] == 50 }
  }

  @Test("A node whose rights do not let a hub publish is of no use, with the reason; those in protocol/cluster.md do")
  func rights() throws {
    let given = [
      "~lh:*", "+@read", "+@write", "+@scripting", "+@pubsub", "+ping", "+time", "+info", "+role", "+config|get",
      "+client|reply",
    ]
    let engine = try RedisProcess(
      port: freePort(),
      ["--user", "hub", "on", ">secret", "&lh:*"] + given + ["--user", "own", "on", ">secret", "&lh:a:*"] + given)
    func ears(_ user: String) throws -> [Ear] {
      try ["a", "b"].map { try Ear(loop, [engine], $0, RedisRole(user: $0 == "a" ? user : "hub", password: "secret")) }
    }
    let both = try ears("hub")
    try run(both) { both.allSatisfy { $0.up.count == 1 } }
    for lane in Lane.allCases { #expect(both[0].bus.send([1], to: "b", lane: lane)) }
    try run(both) { both[1].frames[1] == 2 }
    let narrow = try ears("own")
    try run(narrow) { narrow.allSatisfy { $0.up.count == 1 } }
    #expect(narrow[0].bus.send([2], to: "b", lane: .control))
    try run(narrow) { narrow[0].up.isEmpty && narrow[0].reasons.contains { $0.contains("NOPERM") } }
    try loop.tell(engine, "ACL SETUSER own &lh:*")
    try run(narrow) { narrow[0].up.count == 1 }
    #expect(narrow[0].reasons.count == 1 && narrow[0].bus.send([3], to: "b", lane: .control))
    try run(narrow) { narrow[1].frames[3] == 1 }
    // To a member that is refused for good nothing is sent any more: the node is used again for the others.
    try loop.tell(engine, "ACL SETUSER own resetchannels &lh:a:* &lh:c:*")
    var limits = BackplaneLimits.patient
    limits.refusalTime = 100_000_000
    let brief = try LinkLoop(limits)
    let ear = try Ear(brief, [engine], "a", RedisRole(user: "own", password: "secret"))
    func runBriefly(until isDone: () -> Bool) throws {
      try brief.run {
        ear.look()
        return isDone()
      }
    }
    try runBriefly { ear.up.count == 1 }
    #expect(ear.bus.send([4], to: "b", lane: .control))
    try runBriefly { ear.up.isEmpty }
    try runBriefly { ear.up.count == 1 }
    #expect(ear.bus.send([4], to: "c", lane: .control))
  }

  @Test("Why a node cannot be used is told from the start, and again only where it is another reason")
  func reason() throws {
    let ear = try Ear(loop, [engines[0]], "a", RedisRole(user: "hub", password: "wrong"))
    try run([ear]) { ear.reasons.contains { $0.contains("WRONGPASS") } }
    func attempts() -> Int {
      let lines = engines[0].reply(to: "INFO stats").split(whereSeparator: \.isNewline)
      return lines.first { $0.hasPrefix("total_connections_received:") }.flatMap { Int($0.dropFirst(27)) } ?? 0
    }
    let before = attempts()
    // Each look is a connection, too.
    var looks = 0
    try run([ear]) {
      looks += 1
      return attempts() - before - looks > 6
    }
    #expect(zip(ear.reasons, ear.reasons.dropFirst()).allSatisfy { $0 != $1 } && !ear.bus.isUp)
  }
}
