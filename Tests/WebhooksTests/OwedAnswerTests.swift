// Answers that a stream's server owes: one that is late ends the connection, whatever else comes over it.
import HubMessages
import HubTokens
import HubTransport
import HubTransportSupport
import Testing

@testable import HubWebhooks

@Suite struct OwedAnswerTests {
  private func scene(_ url: String) throws -> LoopScene {
    var endpoint = StreamEndpoint(name: "bus", url: StreamURL(url)!, filter: EventFilter(channels: [.all])!)
    endpoint.signer = try WebhookSigner(secrets: [WebhookSecret(bytes: Array(1...32))!])
    endpoint.addresses = AddressRule(allowed: [AddressBlock("127.0.0.0/8")!])
    return try LoopScene(Deliveries(streams: [endpoint]))
  }

  @Test("NATS: an event without an answer goes over the next connection after 15 s, though others are answered")
  func lostAnswer() throws {
    let scene = try scene("nats://127.0.0.1:4222")
    defer { scene.remove() }
    scene.greet(0)
    try scene.publish("T0")
    #expect(scene.heard(0).contains("HPUB locationhub.trip.T0."))
    for second in 1...14 {
      scene.advance(1)
      try scene.publish("T\(second)")
      #expect(scene.heard(0).contains("HPUB locationhub.trip.T\(second)."))
      scene.acknowledge(0, #"{"stream":"S","seq":1}"#)
      scene.say("PING\r\n", 0)
    }
    #expect(scene.stream?.stored == 14 && scene.stream?.underWay == 1)
    _ = scene.heard(0)
    scene.advance(0.999)
    #expect(!scene.hasEnded(0))
    scene.advance(0.001)
    #expect(scene.hasEnded(0) && scene.stream?.failures == 1)
    scene.advance(0.1)
    scene.greet(1)
    let again = scene.heard(1)
    #expect(again.contains("HPUB locationhub.trip.T0.") && !again.contains("HPUB locationhub.trip.T1"))
  }

  @Test("A greeting that takes longer than 15 s ends the connection, however often the server says something")
  func endlessGreeting() throws {
    let scene = try scene("nats://127.0.0.1:4222")
    defer { scene.remove() }
    scene.say(#"INFO {"headers":true}"# + "\r\n", 0)
    for _ in 0..<14 {
      scene.advance(1)
      scene.say("PING\r\n", 0)
    }
    #expect(scene.heard(0).hasSuffix("PONG\r\n"))
    scene.advance(0.999)
    #expect(!scene.hasEnded(0) && scene.stream?.failures == 0)
    scene.advance(0.001)
    #expect(scene.hasEnded(0) && scene.stream?.failures == 1)
  }

  @Test("Batches: the rest of an answer has 15 s; then the connection ends, which is no fault, and the next one leaves")
  func endlessAnswer() throws {
    let scene = try scene("http://127.0.0.1:8080/in")
    defer { scene.remove() }
    try scene.publish()
    scene.advance(0.2)
    #expect(scene.heard(0).hasPrefix("POST "))
    scene.advance(10)
    scene.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", 0)
    #expect(scene.stream?.stored == 1)
    try scene.publish()
    for _ in 0..<14 {
      scene.advance(1)
      scene.say("1\r\nx\r\n", 0)
    }
    scene.advance(0.999)
    #expect(!scene.hasEnded(0) && scene.network.dialled.count == 1)
    scene.advance(0.001)
    #expect(scene.hasEnded(0) && scene.stream?.failures == 0 && scene.stream?.refused == 0)
    #expect(scene.network.dialled.count == 2 && scene.heard(1).contains(#""title":"2""#))
  }
}
