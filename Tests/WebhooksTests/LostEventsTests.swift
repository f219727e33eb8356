// Events that the journal does not have any more when their webhook comes to them.
import HubMessages
import HubTransport
import Testing

@testable import HubWebhooks

@Suite struct LostEventsTests {
  private func webhook() throws -> WebhookEndpoint {
    WebhookEndpoint(
      name: "orders", url: WebhookURL("http://127.0.0.1:9/")!, filter: EventFilter(channels: [.all])!,
      rule: WebhookRule()!, signer: try WebhookSigner(secrets: [WebhookSecret(bytes: Array(1...32))!]),
      addresses: AddressRule(allowed: [AddressBlock("127.0.0.0/8")!]))
  }

  @Test("Events of a channel that waited for its first one count as lost when retention deletes them")
  func behindTheCursor() throws {
    let deliveries = Deliveries(webhooks: [try webhook()])
    let scene = try LoopScene(deliveries)
    defer { scene.remove() }
    for _ in 0..<2 { try scene.publish("T1") }
    #expect(scene.takeEvents(answering: "500 No") == ["1"])
    scene.advance(2)
    try scene.deleteHistory()
    try scene.start(deliveries)
    #expect(scene.webhook?.lost == 2 && scene.webhook?.lanes == 0)
    try scene.publish("T1")
    #expect(scene.takeEvents() == ["3"] && scene.webhook?.lost == 2)
  }
  @Test("One group that is damaged is lost, and those behind it in its segment are delivered")
  func damaged() throws {
    let stream = StreamEndpoint(
      name: "bus", url: StreamURL("nats://127.0.0.1:4222")!, filter: EventFilter(channels: [.all])!)
    let deliveries = Deliveries(webhooks: [try webhook()], streams: [stream])
    let scene = try LoopScene(deliveries)
    defer { scene.remove() }
    for _ in 0..<3 { try scene.publish("T1") }
    #expect(scene.takeEvents() == ["1", "2", "3"])
    let first = try #require(scene.ids["1"])
    try scene.spoil(2)
    for name in ["orders", "bus"] {
      #expect(try StoredDelivery.leave("replay \(first)", for: name, journal: scene.directory))
    }
    try scene.start(deliveries)
    #expect(scene.takeEvents() == ["1", "3"] && scene.webhook?.lost == 1)
    #expect(scene.stream?.lost == 1)
    try scene.publish("T1")
    #expect(scene.takeEvents() == ["4"] && scene.webhook?.lost == 1)
  }
}
