// Silence, and the end of the hub.
import Foundation
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct HeartbeatAndDrain {}
}

extension EndToEnd.HeartbeatAndDrain {
  @Test("after a silent interval comes a ping, and after two and a half 4408", arguments: loopCounts)
  func silent(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.heartbeatInterval = 0.5 }
    let start = uptime()
    let silent = try Peer(port: hub.port, query: "role=rider&id=silent")
    silent.answersPings = false
    _ = try silent.receive("connected")
    guard case .ping = try silent.next() else {
      Issue.record("a ping is due after one interval")
      return
    }
    #expect(uptime() - start > 0.4)
    guard case .close(let code) = try silent.next() else {
      Issue.record("a close frame is due after two and a half")
      return
    }
    #expect(code == 4408)
    #expect(uptime() - start > 1.2)
    try hub.metrics { $0.closes(4408) == 1 }
  }

  @Test("who answers pings stays, whatever else it does not say", arguments: loopCounts)
  func alive(loops: Int) throws {
    let hub = try TestHub(loops: loops) { $0.heartbeatInterval = 2.5 }
    let rider = try hub.rider("r1")
    var pings = 0
    while pings < 3 {
      guard case .ping = try rider.next() else {
        Issue.record("nothing but pings was due")
        return
      }
      pings += 1
    }
    #expect(try rider.settle().isEmpty)
    try hub.metrics { $0.closes(4408) == 0 }
  }

  @Test("draining closes every session with 1001, answers what was sent before, and ends", arguments: loopCounts)
  func drain(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.drainSeconds = 600
      $0.limits.closingSeconds = 600
    }
    let peers = try (0..<20).map { try hub.rider("r\($0)") }
    let driver = try hub.driver("d1")
    let idle = try hub.connect()
    try idle.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    _ = try idle.readResponse()
    let start = uptime()
    hub.server.drain()
    for peer in peers + [driver] {
      #expect(try peer.receiveClose().code == 1001)
      peer.connection.close()
    }
    try idle.waitForEnd()
    idle.close()
    hub.server.wait()
    #expect(uptime() - start < 300, "not the ten minutes that peers would have")
    #expect(throws: PeerError.self) { try RawConnection(port: hub.port) }
  }

  @Test("who does not answer the close frame does not hold up the end", arguments: loopCounts)
  func stubborn(loops: Int) throws {
    let hub = try TestHub(loops: loops) {
      $0.drainSeconds = 0.5
      $0.limits.closingSeconds = 600
    }
    let stubborn = try hub.rider("r1")
    let half = try hub.connect()
    try half.send("GET /healthz HT")
    let start = uptime()
    hub.server.drain()
    hub.server.wait()
    #expect(uptime() - start < 300, "not the ten minutes that a peer has to answer")
    #expect(try stubborn.receiveClose().code == 1001)
  }

  /// A process that drains for longer than any test takes.
  private func drainingLong(loops: Int) throws -> HubProcess {
    let hub = try HubProcess([
      "serve", "--port", "0", "--dev-auth", "--loops", "\(loops)", "--drain-delay", "300", "--sampling", "4",
    ])
    try hub.waitUntilItListens()
    return hub
  }

  /// The answer to a GET.
  private func get(_ hub: HubProcess, _ target: String) throws -> HTTPResponse {
    let connection = try RawConnection(port: hub.port)
    try connection.send("GET \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    return try connection.readResponse()
  }

  /// Sends the signal, and returns when the hub is not ready any more.
  private func drain(_ hub: HubProcess) throws -> HTTPResponse {
    hub.send(signal: SIGTERM)
    let deadline = Deadline()
    var ready = try get(hub, "/readyz")
    while ready.status == 200, !deadline.isOver { ready = try get(hub, "/readyz") }
    return ready
  }

  @Test(
    "from the signal on every HTTP answer says that its connection ends",
    .enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  func answersWhileDraining() throws {
    let hub = try drainingLong(loops: 1)
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    let kept = try RawConnection(port: hub.port)
    try kept.send(request)
    #expect(try kept.readResponse().fields["connection"] == "keep-alive")
    _ = try drain(hub)
    for target in ["/healthz", "/readyz", "/metrics", "/v1/drivers/nobody?role=ops&id=o1"] {
      let connection = try RawConnection(port: hub.port)
      try connection.send(request.replacing("/healthz", with: target))
      #expect(try connection.readResponse().fields["connection"] == "close", "\(target)")
      try connection.waitForEnd()
    }
    try kept.send(request)
    #expect(try kept.readResponse().fields["connection"] == "close")
    try kept.waitForEnd()
    withExtendedLifetime(hub) {}  // the optimiser would kill it with its last use
  }

  @Test(
    "during the drain delay readiness fails, and everything else continues",
    .enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"), arguments: loopCounts)
  func unready(loops: Int) throws {
    let hub = try drainingLong(loops: loops)
    let witness = try Witness(port: hub.port, number: 1)
    let ready = try drain(hub)
    #expect(ready.status == 503)
    #expect(ready.errorCode == "shutting_down")
    #expect(try get(hub, "/healthz").status == 200)
    // Whom the load balancer still sends is let in: it has not looked at readiness again yet.
    let newcomer = try Peer(port: hub.port, query: "role=rider&id=new")
    _ = try newcomer.receive("connected")
    try witness.check()
    #expect(try newcomer.settle().isEmpty)
    withExtendedLifetime(hub) {}
  }

  @Test("sessions are closed when the drain delay is over", arguments: loopCounts)
  func drainDelay(loops: Int) throws {
    let isPunctual = try isWithin(1.9) {
      let hub = try TestHub(loops: loops) { $0.drainDelay = 1.5 }
      let rider = try hub.rider("r1")
      let start = uptime()
      hub.server.drain()
      var newcomer: Peer?
      do { newcomer = try hub.rider("new") } catch is PeerError {}  // too late, where the machine stood still meanwhile
      #expect(try rider.receiveClose().code == 1001)
      let received = uptime() - start
      if let newcomer { #expect(try newcomer.receiveClose().code == 1001) }
      #expect(received > 1.4)
      return received
    }
    #expect(isPunctual, "at the end of the delay, not at the next full second")
  }
}
