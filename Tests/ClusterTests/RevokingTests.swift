// Tokens that are revoked at one hub are revoked at all, also at those that come later.
import HubBackplane
import HubBackplaneSupport
import HubBytes
import HubCore
import HubMessages
import Testing

@testable import HubCluster

@Suite struct RevokingTests {
  private let subject = RevokedName.subject(id("r1"))
  private func token(_ number: Int) -> RevokedName { .tokenID(InlineText("t\(number)")!) }

  @Test("What is revoked at one hub is revoked at all within a second, and the loops of each hear of it")
  func spreads() {
    let world = ClusterWorld()
    let until = world.now.timestamp + 3_600_000
    world.revoke(subject, until: nil, at: "a")
    world.revoke(token(1), until: until, at: "b")
    world.run(seconds: 0.5)
    for name in ["a", "b", "c"] {
      #expect(world.revocations(at: name) == [subject: nil, token(1): until])
      #expect(Set(world[name].revoked) == [subject, token(1)] && world[name].revoked.count == 2, "each once")
    }
  }

  @Test("A hub that starts anew, and one that was cut off, get what they have missed")
  func later() {
    let world = ClusterWorld()
    world.revoke(subject, until: nil, at: "a")
    world.run(seconds: 0.5)
    world.restart("b")
    world.run(seconds: 3)
    #expect(world.revocations(at: "b") == [subject: nil])
    world.engine.cuts = ["a>c"]
    world.revoke(token(1), until: nil, at: "a")
    world.run(seconds: 0.5)
    #expect(world.revocations(at: "b").count == 2 && world.revocations(at: "c").count == 1)
    world.engine.cuts = []
    world.run(seconds: 1)
    #expect(world.revocations(at: "c").count == 2)
    world.engine.cuts = ["a>c", "c>a", "b>c", "c>b"]
    world.run(seconds: 10)
    for number in 2..<2500 { world.revoke(token(number), until: nil, at: "a") }
    world.run(seconds: 1)
    world.engine.cuts = []
    world.run(seconds: 5)
    for name in ["a", "b", "c"] { #expect(world.revocations(at: name).count == 2500) }
  }

  @Test("A hub that refuses to show its revocations is asked again after a while, not in each turn")
  func refusedPage() {
    let world = ClusterWorld(["a", "b"])
    let node = world["a"].node
    node.node.revoking.announce(to: 0)
    var (now, asked) = (world.now, 0)
    for _ in 0..<150 {
      now.uptime += 10_000_000
      node.node.begin(now: now)
      node.node.revoking.askForPage()
      guard node.node.revoking.isAsked else { continue }
      asked += 1
      node.node.revoking.send(page: CredentialAnswer.refused(.overloaded))
    }
    #expect(asked == 2)
  }

  @Test("Where the bus does not take what waits for a hub, further revocations wait, and nothing is dropped for them")
  func backPressure() {
    var limits = ClusterLimits()
    limits.waitingControlBytes = 4000
    let world = ClusterWorld(["a", "b"], limits: limits)
    let node = world["a"].node
    let peer = node.node.context.peers[0]
    node.node.revoking.announce(to: 0)
    peer.append(.alive) { $0.append([UInt8](repeating: 0, count: 1001)) }
    node.node.revoking.askForPage()
    #expect(!node.node.revoking.isAsked && node.node.revoking.receivers == [0])
    peer.dropAll()
    node.node.revoking.askForPage()
    #expect(node.node.revoking.isAsked)
  }

  @Test("What a hub has revoked last reaches all, though some had not heard of it when it died")
  func originDies() {
    let world = ClusterWorld()
    world.engine.cuts = ["a>c"]
    world.revoke(subject, until: nil, at: "a")
    world.run(seconds: 0.3)
    #expect(world.revocations(at: "b").count == 1 && world.revocations(at: "c").isEmpty)
    world.kill("a")
    world.engine.cuts = []
    world.run(seconds: 10)
    #expect(world.revocations(at: "c") == [subject: nil] && world["c"].revoked == [subject])
    // Once, for each hub that has left.
    let before = world.engine.bytesSent
    world.run(seconds: 5)
    let quiet = world.engine.bytesSent - before
    world.run(seconds: 5)
    #expect(abs(world.engine.bytesSent - before - 2 * quiet) < 200)
  }

  @Test("Each is kept until the later of its ends, in whatever order hubs hear of them; then it is gone everywhere")
  func ends() {
    let world = ClusterWorld()
    let (soon, late) = (world.now.timestamp + 10_000, world.now.timestamp + 20_000)
    world.engine.cuts = ["a>b", "b>a"]
    world.revoke(subject, until: late, at: "a")
    world.revoke(subject, until: soon, at: "b")
    world.run(seconds: 0.5)
    world.engine.cuts = []
    world.run(seconds: 2)
    world.revoke(subject, until: soon, at: "c")
    world.run(seconds: 1)
    for name in ["a", "b", "c"] { #expect(world.revocations(at: name) == [subject: late]) }
    world.run(seconds: 80)
    for name in ["a", "b", "c"] { #expect(world.revocations(at: name) == [:]) }
  }

  @Test("A hub takes twice as many of others as of its own back ends")
  func limits() {
    var limits = HubLimits()
    limits.revocations = 2
    let world = ClusterWorld(hubLimits: limits)
    world.engine.cuts = ["a>b", "a>c", "b>a", "b>c", "c>a", "c>b"]
    for (index, name) in ["a", "b", "c"].enumerated() {
      for number in 0..<3 { world.revoke(token(10 * index + number), until: nil, at: name) }
    }
    world.run(seconds: 0.5)
    for name in ["a", "b", "c"] { #expect(world.revocations(at: name).count == 2) }
    world.engine.cuts = []
    world.run(seconds: 5)
    for name in ["a", "b", "c"] { #expect(world.revocations(at: name).count == 4) }
  }
}

extension ClusterWorld {
  fileprivate func revoke(_ name: RevokedName, until: Timestamp?, at member: String) {
    let source = AuditSource(.revoke, by: nil, from: InlineText())
    self[member].inputs.append(
      .credentials(session(9), .extend([Revocation(name, until: until)], isOfPeers: false), source))
  }

  fileprivate func revocations(at member: String) -> [RevokedName: Timestamp?] {
    Dictionary(uniqueKeysWithValues: self[member].hub.hub.allRevocations().map { ($0.name, $0.until) })
  }
}
