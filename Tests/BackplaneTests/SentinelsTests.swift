// Sentinels that a test plays, over a network without a kernel: which node the ledger is looked for at.
import HubBackplane
import HubBytes
import HubSystem
import HubTransport
import HubTransportSupport
import Testing

/// A ledger with three sentinels, on ports 1 to 3.
private final class SentinelScene {
  private let network = SimulatedNetwork()
  private var loop: LinkLoop!
  private var ledger: RedisLedger!
  private var uptime: Int64 = 1_000_000_000

  init() throws {
    loop = try LinkLoop(
      clock: { [unowned self] in ClockReading(uptimeNanoseconds: uptime, unixMilliseconds: 1_763_680_000_000) },
      network: network)
    let address = try #require(LedgerAddress("sentinel://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3/fleet"))
    ledger = RedisLedger(loop.links, at: address, role: RedisRole())
    turn()
    for far in network.dialled { say("+PONG", far) }
  }

  private func turn() {
    for _ in 0..<4 {
      var events: [LedgerEvent] = []
      ledger.takeEvents(into: &events)
      _ = loop.links.tick()
      for far in network.dialled {
        far.arrive()
        _ = far.receiveAll()
        far.peer?.arrive()
      }
      loop.loop.runTurn(timeoutMilliseconds: 0)
    }
  }

  private func say(_ text: String, _ far: SimulatedSocket) {
    Array("\(text)\r\n".utf8).withUnsafeBytes { _ = far.send($0) }
    turn()
  }

  /// They are asked again after a second.
  func ask() {
    uptime += 1_000_000_000
    turn()
  }

  /// A sentinel, from 0 on, names the node on a port; nil for none.
  func answer(_ sentinel: Int, _ port: Int?) {
    let name = port.map { "*2\r\n$9\r\n127.0.0.1\r\n$\("\($0)".utf8.count)\r\n\($0)" } ?? "*-1"
    say(name, network.dialled[sentinel])
  }

  /// The ports of the nodes that it went to, in order.
  var nodes: [UInt16] {
    network.addresses.dropFirst(3).map(\.port).reduce(into: []) { if $0.last != $1 { $0.append($1) } }
  }
}

@Suite struct SentinelsTests {
  @Test("The ledger is at the node that more than half of the sentinels name; a stale one moves it nowhere")
  func majority() throws {
    let scene = try SentinelScene()
    scene.answer(0, 7001)
    #expect(scene.nodes == [], "it may be the stale one")
    scene.answer(1, 7001)
    #expect(scene.nodes == [7001])
    scene.answer(2, nil)
    // Now but one of them knows a master.
    scene.ask()
    scene.answer(1, nil)
    scene.answer(0, 7002)
    scene.answer(2, nil)
    #expect(scene.nodes == [7001])
    scene.ask()
    scene.answer(1, 7002)
    #expect(scene.nodes == [7001, 7002])
  }

  @Test("A hub that starts while one sentinel alone knows a master goes where that says, once all were asked")
  func start() throws {
    let scene = try SentinelScene()
    scene.answer(0, nil)
    scene.answer(1, 7001)
    #expect(scene.nodes == [])
    scene.answer(2, nil)
    #expect(scene.nodes == [7001])
  }
}
