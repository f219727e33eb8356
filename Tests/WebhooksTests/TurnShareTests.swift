// A webhook's share of a turn, so that one with much to read delays no other.
import HubMessages
import HubTransport
import Testing

@testable import HubWebhooks

@Suite struct TurnShareTests {
  @Test("A webhook takes up to 256 steps in a turn, and another turn follows at once")
  func steps() throws {
    let deliveries = Deliveries(webhooks: [
      WebhookEndpoint(
        name: "orders", url: WebhookURL("http://127.0.0.1:9/")!, filter: EventFilter(channels: [.all])!,
        rule: WebhookRule()!, signer: try WebhookSigner(secrets: [WebhookSecret(bytes: Array(1...32))!]),
        addresses: AddressRule(allowed: [AddressBlock("127.0.0.0/8")!]))
    ])
    let scene = try LoopScene(deliveries)
    defer { scene.remove() }
    try scene.publish()
    #expect(scene.takeEvents(answering: "500 No") == ["1"])
    // Each step reads an event, which waits for that one.
    try scene.publish(count: 2000)
    #expect(scene.rememberedEvents == LoopScene.turns * WebhookLoop.stepsPerTurn && scene.sleep == 0)
    scene.turn()
    #expect(scene.rememberedEvents == 2000 && scene.sleep != 0 && WebhookLoop.stepsPerTurn == 256)
  }
}
