// A webhook and a stream of one name. A file has a name once, but names come and go, and webhooks come over HTTP, too.
import HubBytes
import HubMessages
import HubTransport
import HubTransportSupport
import Testing

@testable import HubWebhooks

@Suite struct SharedNameTests {
  private let filter = EventFilter(channels: [.all])!
  private let addresses = AddressRule(allowed: [AddressBlock("127.0.0.0/8")!])

  private func webhooks() throws -> Deliveries {
    let secret = WebhookSecret(bytes: Array(1...32))!
    return Deliveries(webhooks: [
      WebhookEndpoint(
        name: "bus", url: WebhookURL("http://127.0.0.1:9/")!, filter: filter, rule: WebhookRule()!,
        signer: try WebhookSigner(secrets: [secret]), addresses: addresses)
    ])
  }

  private var streams: Deliveries {
    Deliveries(streams: [StreamEndpoint(name: "bus", url: StreamURL("nats://127.0.0.1:4222")!, filter: filter)])
  }

  private func put() throws -> WebhookQuestion {
    .put(
      try WebhookDefinition(
        name: "bus", members: ["url": .string("http://127.0.0.1:9/"), "channels": .array([.string("*")])]))
  }

  private func isRefused(_ answer: WebhookAnswer?, as expected: WebhookFault) -> Bool {
    if case .refused(expected) = answer { true } else { false }
  }

  /// The stream continues over its newest connection: with the event that was refused, without the one that was stored.
  private func expectContinued(_ scene: LoopScene) {
    let number = scene.network.dialled.count - 1
    scene.greet(number)
    let text = scene.heard(number)
    #expect(text.contains(#""title":"1""#) && !text.contains(#""title":"2""#))
  }

  @Test("A stream's name is refused for a webhook over HTTP, and nothing of the stream can be removed by it")
  func overHTTP() throws {
    let scene = try LoopScene(streams, allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    try scene.refuseFirst()
    #expect(
      isRefused(scene.ask(try put()), as: .forbidden("a stream of this name is set in the file of --webhooks")))
    #expect(isRefused(scene.ask(.delete("bus")), as: .unknown("this hub has no such webhook")))
    #expect(scene.webhook == nil)
    try scene.start(streams)
    expectContinued(scene)
  }

  @Test("A webhook that was set over HTTP is not served while the file has a stream of its name, and again afterwards")
  func replacedByStream() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    _ = scene.ask(try put())
    try scene.publish("T1")
    #expect(scene.takeEvents() == ["1"])
    scene.control.replace(streams)
    scene.turn()
    #expect(scene.webhook == nil && scene.stream?.isEnabled == true)
    try scene.start(streams)
    #expect(scene.webhook == nil && scene.stream?.isEnabled == true)
    #expect(
      isRefused(scene.ask(try put()), as: .forbidden("a stream of this name is set in the file of --webhooks")))
    scene.control.replace(Deliveries())
    scene.turn()
    #expect(scene.stream == nil)
    try scene.publish("T1")
    #expect(scene.takeEvents() == ["2"])
  }

  @Test("A webhook in place of a stream begins anew, and what is stored of the stream stays, whatever becomes of it")
  func replacedByWebhook() throws {
    let scene = try LoopScene(streams, allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    try scene.refuseFirst()
    scene.control.replace(try webhooks())
    scene.turn()
    #expect(scene.stream == nil && scene.takeEvents() == [])
    try scene.publish("T1")
    #expect(scene.takeEvents() == ["3"])
    try scene.start(try webhooks())
    try scene.publish("T2")
    #expect(scene.takeEvents() == ["4"])
    scene.control.replace(Deliveries())
    scene.turn()
    guard case .webhook = scene.ask(try put()), case .deleted = scene.ask(.delete("bus")) else {
      Issue.record("it was not set and deleted")
      return
    }
    try scene.start(streams)
    expectContinued(scene)
  }

  @Test("A stream in place of a webhook begins anew, too, and the webhook has what it missed when it is back")
  func webhookReplacedByStream() throws {
    let scene = try LoopScene(try webhooks())
    defer { scene.remove() }
    for trip in ["T1", "T1"] { try scene.publish(trip) }
    #expect(scene.takeEvents(answering: "500 No") == ["1"])
    scene.control.replace(streams)
    scene.turn()
    let number = scene.network.dialled.count - 1
    scene.greet(number)
    #expect(!scene.heard(number).contains("HPUB "))
    try scene.publish("T1")
    #expect(scene.heard(number).contains(#""title":"3""#))
    scene.acknowledge(number, #"{"stream":"S","seq":1}"#)
    scene.control.replace(try webhooks())
    scene.turn()
    #expect(Set(scene.takeEvents()) == ["1", "2", "3"])
  }
}
