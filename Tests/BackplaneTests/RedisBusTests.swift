// The bus over two nodes of a real engine, of which one is dead, or not reached by all.
import HubBackplane
import HubBackplaneSupport
import HubSystem
import Testing

/// A bus, and what came of it.
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
    loop = try LinkLoop()
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

  @Test("The reason why a node cannot be used is reported from the start, and again only where it is another reason")
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
