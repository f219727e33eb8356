// Files of webhooks and streams that can't be opened.
import HubTestSupport
import HubTransport
import HubTransportSupport
import Testing

@testable import HubWebhooks

@Suite struct UnopenedTests {
  private let filter = EventFilter(channels: [.all])!

  private func webhook(_ name: String) throws -> WebhookEndpoint {
    WebhookEndpoint(
      name: name, url: WebhookURL("http://127.0.0.1:9/")!, filter: filter, rule: WebhookRule()!,
      signer: try WebhookSigner(secrets: [WebhookSecret(bytes: Array(1...32))!]),
      addresses: AddressRule(allowed: [AddressBlock("127.0.0.0/8")!]))
  }

  @Test("A webhook whose progress can't be opened is off, all others are served, and it is tried again each minute")
  func unopened() throws {
    let stream = StreamEndpoint(name: "bus", url: StreamURL("nats://127.0.0.1:4222")!, filter: filter)
    let deliveries = Deliveries(webhooks: [try webhook("orders"), try webhook("other")], streams: [stream])
    let scene = try LoopScene(deliveries)
    defer { scene.remove() }
    try scene.block("orders.progress")
    try scene.block("bus.stream.progress")
    try scene.start(deliveries)
    #expect(scene.control.figures?.map { "\($0.name) \($0.isEnabled)" } == ["other true", "orders false"])
    #expect(scene.control.streamFigures?.map(\.isEnabled) == [false])
    try scene.publish()
    #expect(scene.takeEvents() == ["1"])
    try scene.unblock("orders.progress")
    try scene.unblock("bus.stream.progress")
    scene.advance(59)
    #expect(scene.takeEvents() == [])
    scene.advance(1)
    #expect(scene.takeEvents() == ["1"])
    #expect(scene.control.streamFigures?.map(\.isEnabled) == [true])
  }

  @Test("A request that can't be read is left alone, and its webhook is served")
  func unreadableRequest() throws {
    let deliveries = Deliveries(webhooks: [try webhook("orders")])
    let scene = try LoopScene(deliveries)
    defer { scene.remove() }
    try scene.block("orders.request")
    scene.control.replace(deliveries)
    scene.turn()
    try scene.publish()
    #expect(scene.takeEvents() == ["1"])
  }
}
