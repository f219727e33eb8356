// What every bus must do: one suite, run against the engine in memory and against a real one.
import HubBackplane
import HubBackplaneSupport
import Testing

/// A bus of which some members are here, and whose time a test moves.
protocol Carrying: AnyObject {
  associatedtype Member: Bus
  /// A member that is there, and can be sent to.
  func join(_ name: String) throws -> Member
  /// Nobody reaches the engine any more.
  func end()
  /// Lets happen what is to happen next, for at most 20 s until it is done.
  func run(until isDone: () throws -> Bool) throws
}

extension Carrying {
  func checkAll() throws {
    let (a, b, c) = (try join("a"), try join("b"), try join("c"))
    try checkOrder(from: a, to: b, "b", others: [c])
    try checkOrder(from: b, to: a, "a", others: [c])
    end()
    try run {
      _ = frames(at: a)
      return !a.isUp
    }
    #expect(!a.send([1], to: "b", lane: .control), "who does not reach the engine gets false")
  }

  private func frames(at bus: Member) -> [Lane: [[UInt8]]] {
    var (events, found): ([BusEvent], [Lane: [[UInt8]]]) = ([], [:])
    bus.takeEvents(into: &events)
    for case .frame(let lane, let bytes) in events { found[lane, default: []].append(bytes) }
    return found
  }

  /// Frames of all sizes arrive complete, once, in the order of their lane, at their receiver alone.
  private func checkOrder(from sender: Member, to receiver: Member, _ name: String, others: [Member]) throws {
    let frames = (0..<200).map { number in
      [UInt8(number)] + [UInt8](repeating: 13, count: [0, 1, 100, 20_000][number % 4])
    }
    for frame in frames { for lane in Lane.allCases { #expect(sender.send(frame, to: name, lane: lane)) } }
    var got: [Lane: [[UInt8]]] = [:]
    try run {
      got.merge(self.frames(at: receiver)) { $0 + $1 }
      return Lane.allCases.allSatisfy { got[$0]?.count ?? 0 >= 200 }
    }
    #expect(Lane.allCases.allSatisfy { got[$0] == frames })
    #expect(others.allSatisfy { self.frames(at: $0).isEmpty } && self.frames(at: sender).isEmpty)
    #expect(sender.send([1], to: "nobody", lane: .state), "that it was sent does not mean that it arrives")
  }
}

/// The bus of the engine in memory.
private final class InMemory: Carrying {
  let engine = MemoryEngine(seed: 1)

  func join(_ name: String) -> MemoryBus { MemoryBus(engine, member: name) }

  func end() { engine.isolated = ["a", "b", "c"] }

  func run(until isDone: () throws -> Bool) throws {
    for _ in 0..<100 {
      engine.advance(by: 10_000_000)
      if try isDone() { return }
    }
    Issue.record("nothing came in time")
  }
}

/// The bus over real engines, of which each member uses all.
private final class Real: Carrying {
  let engines: [RedisProcess]
  let loop: LinkLoop

  init(_ count: Int) throws {
    engines = try (0..<count).map { _ in try RedisProcess(port: freePort()) }
    loop = try LinkLoop(.patient)
  }

  func join(_ name: String) throws -> RedisBus {
    let bus = RedisBus(loop.links, nodes: try engines.map { try node($0.port) }, member: name, role: RedisRole())
    var up = 0
    try loop.run {
      var events: [BusEvent] = []
      bus.takeEvents(into: &events)
      for case .up in events { up += 1 }
      return up == engines.count
    }
    return bus
  }

  func end() { for engine in engines { engine.kill() } }

  func run(until isDone: () throws -> Bool) throws { try loop.run(until: isDone) }
}

@Suite struct BusTests {
  @Test("The bus in memory keeps what a bus promises")
  func memory() throws { try InMemory().checkAll() }

  @Test(
    "The bus over real engines keeps what a bus promises, with one node and with two",
    .enabled(if: RedisProcess.executable != nil, "no redis-server or valkey-server: install one (redis-server)"),
    arguments: [1, 2])
  func real(_ nodes: Int) throws { try Real(nodes).checkAll() }
}
