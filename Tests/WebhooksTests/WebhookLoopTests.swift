// The thread of webhooks and streams over a network without a kernel and clocks that are moved by hand: silence of
// 15 s, the schedule of tries, and the waits between connections.
import Foundation
import HubBytes
import HubMessages
import HubRuntime
import HubSystem
import HubTransportSupport
import Synchronization
import Testing

@testable import HubCore
@testable import HubJournal
@testable import HubTransport
@testable import HubWebhooks

@Suite struct WebhookLoopTests {
  private static let secret = WebhookSecret(bytes: Array(1...32))!
  private static let filter = EventFilter(channels: [.all])!

  private func webhook(url: String = "http://127.0.0.1:9/") throws -> WebhookEndpoint {
    WebhookEndpoint(
      name: "orders", url: WebhookURL(url)!, filter: Self.filter, rule: WebhookRule()!,
      signer: try WebhookSigner(secrets: [Self.secret]),
      addresses: AddressRule(allowed: [AddressBlock("127.0.0.0/8")!]))
  }

  private func stream(_ url: String) throws -> StreamEndpoint {
    var endpoint = StreamEndpoint(name: "bus", url: StreamURL(url)!, filter: Self.filter)
    endpoint.signer = try WebhookSigner(secrets: [Self.secret])
    endpoint.addresses = AddressRule(allowed: [AddressBlock("127.0.0.0/8")!])
    return endpoint
  }

  @Test("A receiver that says nothing for 15 s has failed; the event comes again after 5 s and 30 s, with its id")
  func silentReceiver() throws {
    let scene = try LoopScene(Deliveries(webhooks: [try webhook()]))
    defer { scene.remove() }
    try scene.publish()
    var id = ""
    for (number, wait) in [5.0, 30, 120].enumerated() {
      #expect(scene.network.dialled.count == number + 1)
      let text = scene.heard(number)
      let found = try #require(text.split(separator: "\r\n").first { $0.hasPrefix("webhook-id: ") })
      #expect(number == 0 || found == id)
      id = String(found)
      scene.advance(14.999)
      #expect(!scene.hasEnded(number) && scene.webhook?.failed == UInt64(number))
      scene.advance(0.001)
      #expect(scene.hasEnded(number) && scene.webhook?.failed == UInt64(number + 1))
      scene.advance(wait - 0.001)
      #expect(scene.network.dialled.count == number + 1, "not before \(wait) s")
      scene.advance(0.001)
    }
    #expect(scene.network.dialled.count == 4)
    scene.say("HTTP/1.1 204 No Content\r\n\r\n", 3)
    #expect(scene.webhook?.delivered == 1 && scene.webhook?.failed == 3)
    _ = scene.heard(3)
    scene.advance(29.9)
    #expect(!scene.hasEnded(3))
    scene.advance(0.2)
    #expect(scene.hasEnded(3), "it had nothing to do for 30 s")
  }

  @Test("A stream's server that can't be reached is tried again after 50 ms, then twice as long, up to 5 s")
  func unreachable() throws {
    let scene = try LoopScene(Deliveries(streams: [try stream("nats://127.0.0.1:4222")]))
    defer { scene.remove() }
    var wait = 0.05
    for number in 0..<9 {
      #expect(scene.network.dialled.count == number + 1)
      scene.network.dialled[number].close(reset: true)
      scene.turn()
      #expect(scene.stream?.failures == UInt64(number + 1) && scene.stream?.isUp == false)
      // Chance makes it a quarter longer here.
      scene.advance(wait * 1.25 - 0.001)
      #expect(scene.network.dialled.count == number + 1)
      scene.advance(0.001)
      wait = min(2 * wait, 5)
    }
    #expect(scene.network.dialled.count == 10 && wait == 5)
  }

  @Test("NATS: events go out when it is greeted, what has no answer within 15 s goes over the next connection, once")
  func silentServer() throws {
    let scene = try LoopScene(Deliveries(streams: [try stream("nats://127.0.0.1:4222")]))
    defer { scene.remove() }
    try scene.publish()
    #expect(scene.heard(0) == "", "the server speaks first")
    scene.greet(0)
    let text = scene.heard(0)
    #expect(text.contains("HPUB locationhub.trip.T1.notification.fence_enter _INBOX."))
    let id = try #require(text.split(separator: "\r\n").first { $0.hasPrefix("Nats-Msg-Id: ") })
    scene.advance(14.999)
    #expect(!scene.hasEnded(0) && scene.stream?.underWay == 1)
    scene.advance(0.001)
    #expect(scene.hasEnded(0) && scene.stream?.failures == 1)
    scene.advance(0.1)
    scene.greet(1)
    #expect(scene.heard(1).contains(id))
    scene.acknowledge(1, #"{"stream":"S","seq":1,"duplicate":true}"#)
    #expect(scene.stream?.stored == 1 && scene.stream?.repeats == 1 && scene.stream?.underWay == 0)
    scene.advance(3600)
    #expect(!scene.hasEnded(1) && scene.network.dialled.count == 2, "silence is no fault where nothing is owed")
  }

  @Test("Redis: positions that are not answered within 15 s end the connection, as events do, and go on over the next")
  func silentRedis() throws {
    var endpoint = try stream("redis://127.0.0.1:6379")
    endpoint.hasPositions = true
    let now = Moment(uptime: 1_000_000_000_000, timestamp: Timestamp(milliseconds: 1_764_000_000_000))
    let hub = try DrivingHub(now: now, capacity: 100)
    let scene = try LoopScene(Deliveries(streams: [endpoint]), positions: hub.source)
    defer { scene.remove() }
    scene.say("$3\r\nabc\r\n$3\r\ndef\r\n", 0)
    scene.advance(0.1)
    for number in 0..<2 {
      hub.drive(2, seconds: Double(number))
      scene.advance(0.1)
      #expect(scene.heard(number).contains("locationhub:positions"))
      scene.advance(14.999)
      #expect(!scene.hasEnded(number) && scene.stream?.failures == UInt64(number))
      scene.advance(0.001)
      #expect(scene.hasEnded(number) && scene.stream?.failures == UInt64(number + 1))
      scene.advance(1)
      scene.say("$3\r\nabc\r\n$3\r\ndef\r\n", number + 1)
    }
  }

  @Test("NATS: what is refused is tried again after 5 s and 30 s, and at once when the settings are read again")
  func refused() throws {
    let deliveries = Deliveries(streams: [try stream("nats://127.0.0.1:4222")])
    let scene = try LoopScene(deliveries)
    defer { scene.remove() }
    scene.greet(0)
    try scene.publish()
    for (number, wait) in [5.0, 30].enumerated() {
      #expect(scene.heard(0).contains("Nats-Msg-Id: "))
      scene.acknowledge(0, #"{"error":{"code":503,"description":"insufficient resources"}}"#)
      #expect(scene.stream?.refused == UInt64(number + 1) && scene.stream?.isUp == false)
      scene.advance(wait - 0.001)
      #expect(scene.heard(0) == "")
      scene.advance(0.001)
    }
    #expect(scene.heard(0).contains("Nats-Msg-Id: "))
    scene.acknowledge(0, #"{"error":{"code":503,"description":"insufficient resources"}}"#)
    scene.control.replace(deliveries)
    scene.turn()
    #expect(scene.hasEnded(0) && scene.network.dialled.count == 2)
    scene.greet(1)
    #expect(scene.heard(1).contains("Nats-Msg-Id: "))
    scene.acknowledge(1, #"{"stream":"S","seq":1}"#)
    #expect(scene.stream?.stored == 1 && scene.stream?.isUp == true && scene.stream?.refused == 3)
  }

  @Test(
    "NATS: an event that is stored behind a refused one is not sent again when the settings are read, or at a start")
  func storedBehindRefused() throws {
    let deliveries = Deliveries(streams: [try stream("nats://127.0.0.1:4222")])
    let scene = try LoopScene(deliveries)
    defer { scene.remove() }
    try scene.refuseFirst()
    #expect(scene.stream?.isUp == false)
    scene.control.replace(deliveries)
    scene.turn()
    scene.greet(1)
    let again = scene.heard(1)
    #expect(again.contains("HPUB locationhub.trip.T1.") && !again.contains("HPUB locationhub.trip.T2."))
    try scene.start(deliveries)
    scene.greet(2)
    let started = scene.heard(2)
    #expect(started.contains("HPUB locationhub.trip.T1.") && !started.contains("HPUB locationhub.trip.T2."))
    scene.acknowledge(2, #"{"stream":"S","seq":2}"#)
    try scene.publish("T2")
    #expect(scene.heard(2).contains("HPUB locationhub.trip.T2."))
  }

  @Test("A stream's server that refuses a position before it is greeted, or that nobody sent, changes nothing")
  func unfoundedRefusal() throws {
    let scene = try LoopScene(Deliveries(streams: [try stream("nats://127.0.0.1:4222")]))
    defer { scene.remove() }
    scene.say("-ERR 'Permissions Violation for Publish to \"a.position\"'\r\n", 0)
    scene.greet(0)
    try scene.publish()
    #expect(scene.heard(0).contains("HPUB ") && scene.stream?.refused == 0)
  }

  @Test("The age of what waits is known after a restart, also of a webhook that is off")
  func ageOfWebhookThatIsOff() throws {
    let deliveries = Deliveries(webhooks: [try webhook()])
    let scene = try LoopScene(deliveries)
    defer { scene.remove() }
    try scene.publish()
    #expect(scene.takeEvents(answering: "410 Gone") == ["1"])
    scene.advance(60)
    #expect(scene.webhook?.oldestMilliseconds == 60_000)
    try scene.start(deliveries)
    #expect(scene.webhook?.isEnabled == false && scene.webhook?.oldestMilliseconds == 60_000)
    #expect(scene.takeEvents() == [])
    _ = scene.ask(.enable("orders"))
    #expect(scene.takeEvents() == ["1"])
  }

  @Test("The age of what waits is known after a restart, also of a stream that is off")
  func ageOfStreamThatIsOff() throws {
    let deliveries = Deliveries(streams: [try stream("http://127.0.0.1:8080/in")])
    let scene = try LoopScene(deliveries)
    defer { scene.remove() }
    try scene.publish()
    scene.advance(0.2)
    #expect(scene.heard(0).hasPrefix("POST /in "))
    scene.say("HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n", 0)
    scene.advance(59.8)
    try scene.start(deliveries)
    #expect(scene.stream?.isEnabled == false && scene.stream?.oldestMilliseconds == 60_000)
    #expect(scene.network.dialled.count == 1)
  }

  @Test("A webhook whose new settings could not be applied is not enabled with those before")
  func outdated() throws {
    let scene = try LoopScene(Deliveries(webhooks: [try webhook()]), allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    try scene.publish()
    #expect(scene.takeEvents() == ["1"])
    let unreadable = scene.directory + "/webhooks/other.webhook"
    try FileManager.default.createDirectory(atPath: unreadable, withIntermediateDirectories: false)
    scene.control.replace(Deliveries())
    scene.turn()
    #expect(scene.webhook?.isEnabled == false)
    guard case .refused(.failed)? = scene.ask(.enable("orders")) else {
      Issue.record("it was enabled")
      return
    }
    try scene.publish()
    #expect(scene.takeEvents() == [])
    try FileManager.default.removeItem(atPath: unreadable)
    scene.control.replace(Deliveries(webhooks: [try webhook()]))
    scene.turn()
    #expect(scene.takeEvents() == ["2"])
  }

  @Test("A stream that can't read the journal is off, not gone, and continues when the settings are read again")
  func unreadableJournal() throws {
    let deliveries = Deliveries(streams: [try stream("nats://127.0.0.1:4222")])
    let scene = try LoopScene(deliveries)
    defer { scene.remove() }
    scene.greet(0)
    try scene.publish()
    #expect(scene.heard(0).contains("HPUB "))
    scene.acknowledge(0, #"{"stream":"S","seq":1}"#)
    try scene.hideSegments()
    scene.control.replace(deliveries)
    scene.turn()
    scene.greet(1)
    try scene.publish()
    #expect(scene.hasEnded(1) && scene.stream?.isEnabled == false && scene.stream?.isUp == false)
    scene.advance(3600)
    #expect(scene.network.dialled.count == 2 && scene.control.streamFigures?.map(\.isEnabled) == [false])
    try scene.showSegments()
    scene.control.replace(deliveries)
    scene.turn()
    #expect(scene.stream?.isEnabled == true && scene.stream?.stored == 1)
    scene.greet(2)
    #expect(scene.heard(2).contains("HPUB "))
  }

  @Test("An address that swallows what is sent to it costs 3 s, once: the next try begins at the other")
  func swallowingAddress() throws {
    let scene = try LoopScene(Deliveries(webhooks: [try webhook(url: "http://two.example:9/")]))
    defer { scene.remove() }
    let addresses = ["127.0.0.1", "127.0.0.2"].map { SocketAddress(host: $0, port: 9)! }
    scene.resolve(addresses)
    scene.network.window = 0
    try scene.publish()
    scene.advance(2.999)
    #expect(scene.network.addresses == [addresses[0]])
    scene.network.window = 1 << 20
    scene.advance(0.001)
    #expect(scene.hasEnded(0) && scene.network.addresses == addresses)
    #expect(scene.heard(1).hasPrefix("POST ") && scene.webhook?.failed == 0)
    scene.say("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n", 1)
    #expect(scene.webhook?.delivered == 1)
    scene.resolve(addresses)
    try scene.publish()
    #expect(scene.network.addresses.last == addresses[1] && scene.heard(2).hasPrefix("POST "))
  }

  @Test("A stream continues with the next address of its server after 3 s, too, and gives the last one its 15 s")
  func swallowingServer() throws {
    let scene = try LoopScene()
    defer { scene.remove() }
    scene.network.window = 0
    scene.control.replace(Deliveries(streams: [try stream("nats://127.0.0.1:4222")]))
    scene.turn()
    let other = SocketAddress(host: "127.0.0.2", port: 4222)!
    scene.offerAddress(other)
    scene.advance(2.999)
    #expect(scene.network.dialled.count == 1)
    scene.advance(0.001)
    #expect(scene.hasEnded(0) && scene.network.addresses.last == other && scene.stream?.failures == 0)
    scene.advance(11.999)
    #expect(!scene.hasEnded(1))
    scene.network.window = 1 << 20
    scene.advance(0.001)
    #expect(scene.hasEnded(1) && scene.stream?.failures == 1)
  }

  @Test("A name's addresses are tried from the one behind that which failed last, around")
  func addressOrder() {
    let addresses = (1...3).map { SocketAddress(host: "127.0.0.\($0)", port: 9)! }
    var order = AddressOrder()
    #expect(order.order(addresses) == addresses)
    order.note(failed: addresses[1])
    #expect(order.order(addresses) == [addresses[2], addresses[0], addresses[1]])
    #expect(order.order([addresses[0]]) == [addresses[0]] && order.order([]) == [])
  }

  @Test("Batches: connected to when there is something, kept, and made anew where the receiver has closed meanwhile")
  func batches() throws {
    let scene = try LoopScene(Deliveries(streams: [try stream("http://127.0.0.1:8080/in")]))
    defer { scene.remove() }
    scene.advance(5)
    #expect(scene.network.dialled.isEmpty)
    try scene.publish()
    try scene.publish()
    scene.advance(0.2)
    let text = scene.heard(0)
    #expect(text.hasPrefix("POST /in HTTP/1.1\r\n") && text.components(separatedBy: "{\"id\":").count == 3)
    scene.say("HTTP/1.1 204 No Content\r\n\r\n", 0)
    #expect(scene.stream?.stored == 2 && scene.stream?.isUp == true)
    scene.network.dialled[0].close()
    scene.turn()
    #expect(scene.stream?.failures == 0, "that is no fault")
    try scene.publish()
    scene.advance(0.2)
    scene.network.dialled[1].close(reset: true)
    scene.turn()
    #expect(scene.stream?.refused == 1 && scene.stream?.isUp == false)
    scene.advance(4.999)
    #expect(scene.network.dialled.count == 2)
    scene.advance(0.001)
    #expect(scene.network.dialled.count == 3)
  }

  @Test("Of answers that never end as many connections are kept as there are tries at once, each for 15 s in all")
  func endlessAnswers() throws {
    let scene = try LoopScene(Deliveries(webhooks: [try webhook()]))
    defer { scene.remove() }
    let most = WebhookRule()!.concurrency
    for number in 0..<2 * most {
      try scene.publish("T\(number)")
      #expect(scene.heard(number).hasPrefix("POST "))
      scene.say("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nx", number)
    }
    #expect(scene.webhook?.delivered == UInt64(2 * most))
    #expect((0..<2 * most).map { scene.hasEnded($0) } == (0..<2 * most).map { $0 >= most })
    scene.advance(14.9)
    for number in 0..<most { scene.say("x", number) }
    #expect(!(0..<most).contains { scene.hasEnded($0) })
    scene.advance(0.2)
    #expect((0..<most).allSatisfy { scene.hasEnded($0) })
  }

  @Test("What comes over an idle connection ends it: the answers of the next requests are not mixed up")
  func strayBytes() throws {
    let scene = try LoopScene(Deliveries(webhooks: [try webhook()]))
    defer { scene.remove() }
    try scene.publish()
    #expect(scene.heard(0).hasPrefix("POST "))
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    scene.say(answer, 0)
    #expect(!scene.hasEnded(0) && scene.idleConnections == 1)
    for _ in 0..<3 { scene.say("\r\n", 0) }
    #expect(scene.hasEnded(0) && scene.idleConnections == 0)
    for trip in ["T1", "T2"] { try scene.publish(trip) }
    let requests = scene.network.dialled.indices.map { scene.heard($0) }
    let taken = try #require(requests.firstIndex { $0.contains(#""title":"2""#) })
    let refused = try #require(requests.firstIndex { $0.contains(#""title":"3""#) })
    try #require(taken != refused)
    scene.say(answer, taken)
    scene.say("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n", refused)
    #expect(scene.webhook?.delivered == 2 && scene.webhook?.failed == 1)
    scene.advance(5)
    #expect(scene.takeEvents() == ["3"] && scene.webhook?.delivered == 3)
  }
}
