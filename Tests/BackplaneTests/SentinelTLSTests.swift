// Sentinels and nodes that speak TLS alone and have passwords, each its own.
import Foundation
import HubBackplane
import HubBackplaneSupport
import HubTestCertificates
import HubTransport
import Testing

@Suite(.enabled(if: RedisProcess.executable != nil, "no redis-server or valkey-server: install one (redis-server)"))
struct SentinelTLSTests {
  private let authority = TestAuthority()
  private let folder = NSTemporaryDirectory() + "sentinel-tls-\(UUID().uuidString)"

  /// What makes an engine or a sentinel speak TLS and nothing else, as names and values.
  private func secure(_ port: UInt16) throws -> [(String, String)] {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let (certificate, key) = authority.issue(usage: "serverAuth,clientAuth")
    // At once, since an engine that was just started may be reading the authority's.
    for (name, bytes) in [("ca", authority.pem), ("cert\(port)", certificate), ("key\(port)", key)] {
      try Data(bytes).write(to: URL(filePath: "\(folder)/\(name).pem"), options: .atomic)
    }
    return [
      ("port", "0"), ("tls-port", "\(port)"), ("tls-cert-file", "\(folder)/cert\(port).pem"),
      ("tls-key-file", "\(folder)/key\(port).pem"), ("tls-ca-cert-file", "\(folder)/ca.pem"),
      ("tls-auth-clients", "no"), ("tls-replication", "yes"),
    ]
  }

  private func engine(_ port: UInt16, replicaOf master: UInt16? = nil) throws -> RedisProcess {
    var options = try secure(port) + [("requirepass", "node-secret"), ("masterauth", "node-secret")]
    if let master { options.append(("replicaof", "127.0.0.1 \(master)")) }
    return try RedisProcess(port: port, options.flatMap { ["--" + $0] + $1.split(separator: " ").map(String.init) })
  }

  private func ledger(_ scheme: String, _ sentinel: RedisProcess, _ node: String, _ own: String?) throws -> RealLedger {
    let address = try #require(LedgerAddress("\(scheme)://127.0.0.1:\(sentinel.port)/fleet"))
    return try RealLedger(
      sentinel, RedisRole(password: node), at: address, sentinelRole: RedisRole(password: own),
      tls: TLSClient(trusting: authority.pem))
  }

  @Test(
    "The master is found, checked and, when it dies, followed; another password or no TLS is refused with the reason")
  func all() throws {
    defer { do { try FileManager.default.removeItem(atPath: folder) } catch { print("\(folder) stays: \(error)") } }
    let master = try engine(freePort())
    let replica = try engine(freePort(), replicaOf: master.port)
    let port = try freePort()
    let more =
      try secure(port).map { "\($0) \($1)" } + [
        "requirepass sentinel-secret", "sentinel sentinel-pass sentinel-secret", "sentinel auth-pass fleet node-secret",
        RedisProcess.patience("fleet"),
      ]
    let sentinel = try RedisProcess(sentinel: port, of: master.port, name: "fleet", quorum: 1, more)
    do { try follow(sentinel, master, replica) } catch {
      Issue.record("sentinel:\n\(sentinel.lastLog)\nreplica:\n\(replica.lastLog)\nmaster:\n\(master.lastLog)")
      throw error
    }
  }

  private func follow(_ sentinel: RedisProcess, _ master: RedisProcess, _ replica: RedisProcess) throws {
    let found = try ledger("sentinels", sentinel, "node-secret", "sentinel-secret")
    try found.runUntilUp()
    #expect(found.wasUp(at: master.port, scheme: "rediss"))
    #expect(
      try found.answer(.claim(key: "t:1", by: "a", known: 0, seizes: false))
        == .claimed(generation: 0, before: nil, waiting: []))

    for (scheme, node, own, reason) in [
      ("sentinels", "node-secret", "other", "WRONGPASS"), ("sentinels", "node-secret", nil, "NOAUTH"),
      ("sentinels", "other", "sentinel-secret", "WRONGPASS"),
      ("sentinel", "node-secret", "sentinel-secret", "no sentinel can be asked"),
    ] {
      let refused = try ledger(scheme, sentinel, node, own)
      try refused.loop.run {
        refused.ledger.takeEvents(into: &refused.events)
        return refused.events.contains { if case .down(_, let text) = $0 { text.contains(reason) } else { false } }
      }
      #expect(!refused.ledger.isUp, "\(reason)")
    }

    // The replica has it, and the sentinel knows the replica.
    let links = found.loop.links
    let copy = links.add(RedisRole(password: "node-secret"), to: EngineAddress("rediss://127.0.0.1:\(replica.port)"))
    let own = links.add(
      RedisRole(password: "sentinel-secret"), to: EngineAddress("rediss://127.0.0.1:\(sentinel.port)"))
    try found.loop.run(until: copy, ["EXISTS", "lh:o:t:1"]) { $0 == .number(1) }
    try found.loop.run(until: own, ["SENTINEL", "REPLICAS", "fleet"]) {
      if case .array(let replicas) = $0 { replicas.count == 1 } else { false }
    }
    try found.loop.run(until: own, RedisProcess.impatience("fleet")) { $0 == .status("OK") }
    master.kill()
    try found.loop.run {
      found.ledger.takeEvents(into: &found.events)
      return found.wasUp(at: replica.port, scheme: "rediss")
    }
    found.events.removeAll()
    #expect(try found.answer(.claim(key: "t:1", by: "b", known: 0, seizes: false)) == .held(by: "a", generation: 0))
  }
}
