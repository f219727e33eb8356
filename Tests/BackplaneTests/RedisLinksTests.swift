// Connections to an engine that reads nothing for a while, over a network without a kernel.
import HubBackplane
import HubBytes
import HubSystem
import HubTransport
import HubTransportSupport
import Testing

@Suite struct RedisLinksTests {
  /// Large commands under the usual limit, and small ones, of each of which an outbox counts more than its bytes.
  @Test(
    "What an engine does not take is sent up to the limit; then commands are refused, and it gets all before them",
    arguments: [(BackplaneLimits().unsentBytes, 32 * 1024), (64 * 1024, 60)])
  func unsentBytes(limit: Int, size: Int) throws {
    var limits = BackplaneLimits()
    limits.unsentBytes = limit
    let network = SimulatedNetwork()
    network.window = 20_000
    let reading = ClockReading(uptimeNanoseconds: 1_000_000_000, unixMilliseconds: 1_763_680_000_000)
    let loop = try LinkLoop(limits, clock: { reading }, network: network)
    let link = loop.links.add(RedisRole(), to: try node(6379))
    func turn() {
      _ = loop.links.tick()
      loop.loop.runTurn(timeoutMilliseconds: 0)
    }
    for _ in 0..<3 { turn() }
    let engine = try #require(network.dialled.first)
    engine.arrive()
    #expect(!engine.receiveAll().isEmpty)
    Array("+PONG\r\n".utf8).withUnsafeBytes { _ = engine.send($0) }
    engine.peer?.arrive()
    turn()
    try #require(loop.links.isReady(link))
    let command = RedisCommand.words([[UInt8](repeating: 65, count: size)])
    let length = "*1\r\n$\(size)\r\n\r\n".utf8.count + size
    var count = 0
    while loop.links.submit(command, ticket: UInt64(count), to: link) {
      count += 1
      turn()
    }
    #expect(loop.links.isReady(link) && loop.loop.counters.overflowed == 0)
    #expect((limit - size - 64...limit).contains(loop.links.waiting.bytes))
    var received = 0
    for _ in 0..<2000 where received < count * length {
      engine.arrive()
      received += engine.receiveAll().count
      turn()
    }
    #expect(received == count * length && loop.links.waiting.bytes == 0)
    #expect(loop.links.submit(command, ticket: UInt64(count), to: link))
  }
}
