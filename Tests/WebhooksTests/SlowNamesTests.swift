// Names of receivers that take long to look up.
import Dispatch
import HubTransport
import HubTransportSupport
import Testing

@testable import HubWebhooks

@Suite struct SlowNamesTests {
  private func deliveries(_ host: String) throws -> Deliveries {
    Deliveries(webhooks: [
      WebhookEndpoint(
        name: "orders", url: WebhookURL("http://\(host).example:9/")!, filter: EventFilter(channels: [.all])!,
        rule: WebhookRule()!, signer: try WebhookSigner(secrets: [WebhookSecret(bytes: Array(1...32))!]),
        addresses: AddressRule(allowed: [AddressBlock("127.0.0.0/8")!]))
    ])
  }

  /// Until the look-ups that `answered` lets go have come back, for at most a minute.
  private func wait(_ scene: LoopScene) {
    let end = ContinuousClock.now + .seconds(60)
    while scene.openLookups > 0, ContinuousClock.now < end { scene.turn() }
    #expect(scene.openLookups == 0)
    scene.turn()  // what was sent with the last answer arrives
  }

  @Test("A webhook that is opened anew waits for the look-up that is under way, and asks for no further one")
  func openedAnew() throws {
    let scene = try LoopScene(try deliveries("a"))
    defer { scene.remove() }
    let answered = DispatchSemaphore(value: 0)
    let address = SocketAddress(host: "127.0.0.1", port: 9)!
    scene.lookUp { _ in
      answered.wait()
      return [address]
    }
    try scene.publish()
    for _ in 0..<10 { _ = scene.ask(.enable("orders")) }
    #expect(scene.openLookups == 1)
    answered.signal()
    wait(scene)
    #expect(scene.takeEvents() == ["1"])
  }

  @Test("One that gets other hosts has two look-ups at most; the answer for another host is not taken for its own")
  func otherHosts() throws {
    let scene = try LoopScene(try deliveries("a"))
    defer { scene.remove() }
    let answered = DispatchSemaphore(value: 0)
    let (address, other) = (SocketAddress(host: "127.0.0.1", port: 9)!, SocketAddress(host: "127.0.0.2", port: 9)!)
    scene.lookUp {
      answered.wait()
      return [$0.host == "c.example" ? address : other]
    }
    try scene.publish()
    for host in ["b", "c", "a", "c"] {
      scene.control.replace(try deliveries(host))
      scene.turn()
      #expect(scene.openLookups == 2)
    }
    for _ in ["a", "b", "c"] { answered.signal() }
    wait(scene)
    #expect(scene.takeEvents() == ["1"] && scene.network.addresses == [address])
  }
}
