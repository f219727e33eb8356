// Secrets of webhooks that are set over HTTP: each signs for a day after it was replaced, and is gone then.
import HubBytes
import HubMessages
import Testing

@testable import HubWebhooks

@Suite struct SecretRotationTests {
  private func put() throws -> WebhookQuestion {
    .put(
      try WebhookDefinition(
        name: "orders", members: ["url": .string("http://127.0.0.1:9/"), "channels": .array([.string("*")])]))
  }

  private func isRotated(_ scene: LoopScene) throws -> Bool {
    _ = scene.ask(try put())
    if case .secret? = scene.ask(.rotateSecret("orders")) { return true } else { return false }
  }

  @Test("A rotation signs with both secrets for a day, over a restart too, and with the new one alone from then on")
  func rotation() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    guard case .webhook(_, let first?) = scene.ask(try put()),
      case .secret(let second, let until) = scene.ask(.rotateSecret("orders"))
    else {
      Issue.record("no secrets")
      return
    }
    #expect(first != second && until == scene.now + 86_400_000)
    try scene.start(Deliveries())
    try scene.publish()
    #expect(scene.takeEvents() == ["1"] && scene.signatures.last?.count == 2)
    scene.advance(86_401)
    scene.advance(1)
    try scene.publish()
    #expect(scene.takeEvents() == ["2"] && scene.signatures.last?.count == 1)
  }

  @Test("Each secret that was replaced signs for its own 24 h, and a fifth at once is refused")
  func repeatedRotation() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    guard case .webhook(_, let first?) = scene.ask(try put()) else {
      Issue.record("no secret")
      return
    }
    var secrets = [first]
    for _ in 0..<3 {
      guard case .secret(let next, let until) = scene.ask(.rotateSecret("orders")) else {
        Issue.record("no further secret")
        return
      }
      #expect(until == scene.now + 86_400_000)
      secrets.append(next)
      scene.advance(3600)
    }
    guard case .refused(.full) = scene.ask(.rotateSecret("orders")) else {
      Issue.record("a fifth secret")
      return
    }
    // The first ends 24 h after it was replaced, and the others an hour later each.
    for ended in 0..<4 {
      try scene.publish()
      #expect(scene.takeEvents() == ["\(ended + 1)"])
      let signed = try #require(scene.signed.last)
      for (index, secret) in secrets.enumerated() {
        let signer = try WebhookSigner(secrets: [try #require(WebhookSecret(secret))])
        let signature = try signer.signatures(id: signed.id, timestamp: signed.timestamp, body: Array(signed.body.utf8))
        #expect(scene.signatures.last?.contains(Substring(signature)) == (index >= ended))
      }
      scene.advance(ended == 0 ? 86_401 - 3 * 3600 : 3600)
      scene.advance(1)
    }
  }

  @Test("When a secret ends it is stored no more, and the thread continues and sleeps")
  func ends() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    try #require(try isRotated(scene))
    #expect(try scene.storedSecrets(of: "orders") == 2)
    scene.advance(86_401)
    #expect(try scene.storedSecrets(of: "orders") == 1 && scene.sleep == 1000)
    try scene.publish()
    #expect(scene.takeEvents() == ["1"] && scene.signatures.last?.count == 1)
  }

  @Test("A start with a secret that has ended meanwhile drops it, and so does one whose disk does not store that")
  func endsBeforeStart() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    try #require(try isRotated(scene))
    try scene.start(Deliveries(), after: 86_401)
    #expect(try scene.storedSecrets(of: "orders") == 1)
    try scene.publish()
    #expect(scene.takeEvents() == ["1"] && scene.signatures.last?.count == 1)
    try #require(try isRotated(scene))
    try scene.holdDefinition(of: "orders")
    scene.advance(86_401)
    try scene.publish()
    #expect(scene.takeEvents() == ["2"] && scene.signatures.last?.count == 1)
  }
}
