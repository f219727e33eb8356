// Connections to an engine over a network without a kernel: one that reads nothing for a while, and members without
// number.
import HubBackplane
import HubBytes
import HubSystem
import HubTransport
import HubTransportSupport
import Testing

/// Links to engines that a test plays.
private struct Scene {
  let network = SimulatedNetwork()
  let loop: LinkLoop

  init(_ limits: BackplaneLimits = BackplaneLimits()) throws {
    let reading = ClockReading(uptimeNanoseconds: 1_000_000_000, unixMilliseconds: 1_763_680_000_000)
    loop = try LinkLoop(limits, clock: { reading }, network: network)
  }

  func turn() {
    _ = loop.links.tick()
    loop.loop.runTurn(timeoutMilliseconds: 0)
  }

  /// What came to the far end of a connection.
  func received(by far: SimulatedSocket) -> [UInt8] {
    far.arrive()
    return far.receiveAll()
  }

  /// Connects all links, and answers their greetings.
  func greet() {
    for _ in 0..<3 { turn() }
    for far in network.dialled {
      let words = String(decoding: received(by: far), as: UTF8.self).split(separator: "\r\n")
      let reply = words.contains("SUBSCRIBE") ? "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n" : "+OK\r\n"
      Array(reply.utf8).withUnsafeBytes { _ = far.send($0) }
      far.peer?.arrive()
    }
    turn()
  }
}

@Suite struct RedisLinksTests {
  /// Large commands under the usual limit, and small ones, of each of which an outbox counts more than its bytes.
  @Test(
    "What an engine does not take is sent up to the limit; then commands are refused, and it gets all before them",
    arguments: [(BackplaneLimits().unsentBytes, 32 * 1024), (64 * 1024, 60)])
  func unsentBytes(limit: Int, size: Int) throws {
    var limits = BackplaneLimits()
    limits.unsentBytes = limit
    let scene = try Scene(limits)
    scene.network.window = 20_000
    let links = scene.loop.links
    let link = links.add(RedisRole(), to: try node(6379))
    scene.greet()
    try #require(links.isReady(link))
    let command = RedisCommand.words([[UInt8](repeating: 65, count: size)])
    let length = "*1\r\n$\(size)\r\n\r\n".utf8.count + size
    var count = 0
    while links.submit(command, ticket: UInt64(count), to: link) {
      count += 1
      scene.turn()
    }
    #expect(links.isReady(link) && scene.loop.loop.counters.overflowed == 0 && !links.hasRoom(for: size, on: link))
    #expect((limit - size - 64...limit).contains(links.waiting.bytes))
    var received = 0
    for _ in 0..<2000 where received < count * length {
      received += scene.received(by: scene.network.dialled[0]).count
      scene.turn()
    }
    #expect(received == count * length && links.waiting.bytes == 0 && links.hasRoom(for: size, on: link))
    #expect(links.submit(command, ticket: UInt64(count), to: link))
  }

  @Test("Where more members are sent to than are known at once, what was known of them is forgotten, and found again")
  func maximumTargets() throws {
    let scene = try Scene()
    let nodes = try [node(1), node(2)]
    let bus = RedisBus(scene.loop.links, nodes: nodes, member: "a", role: RedisRole())
    scene.greet()
    var events: [BusEvent] = []
    bus.takeEvents(into: &events)
    try #require(events == nodes.map { BusEvent.up(node: "\($0)") })
    /// The node by which a frame for `m0` goes. A publisher and a listener for each lane are connected to each.
    func way() -> [Int] {
      #expect(bus.send([7], to: "m0", lane: .control))
      scene.turn()
      return [0, 1].filter { !scene.received(by: scene.network.dialled[3 * $0]).isEmpty }
    }
    let best = Rendezvous.order(nodes.map { "\($0)" }, for: "m0")
    #expect(way() == [best[0]])
    bus.note(unheard: 1 << UInt64(best[0]), by: "m0")
    for number in 1..<BackplaneLimits.maximumTargets { bus.note(unheard: 0, by: "m\(number)") }
    #expect(way() == [best[1]])
    bus.note(unheard: 0, by: "one-more")
    #expect(way() == [best[0]])
  }
}
