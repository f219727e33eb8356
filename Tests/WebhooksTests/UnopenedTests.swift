// Files of webhooks and streams that can't be opened.
import HubBytes
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

  @Test("Where the journal can't be read a webhook or stream is off, and is tried again each minute")
  func unreadableJournal() throws {
    let stream = StreamEndpoint(name: "bus", url: StreamURL("nats://127.0.0.1:4222")!, filter: filter)
    let deliveries = Deliveries(webhooks: [try webhook("orders")], streams: [stream])
    let scene = try LoopScene(deliveries)
    defer { scene.remove() }
    try scene.publish()
    #expect(scene.takeEvents() == ["1"])
    try scene.hideSegments()
    try scene.publish()
    try scene.start(deliveries)
    #expect(scene.webhook?.isEnabled == false && scene.stream?.isEnabled == false)
    scene.advance(60)
    #expect(scene.webhook?.isEnabled == false && scene.stream?.isEnabled == false && scene.takeEvents() == [])
    try scene.showSegments()
    scene.advance(60)
    #expect(scene.webhook?.isEnabled == true && scene.stream?.isEnabled == true && scene.takeEvents() == ["2"])
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

  @Test("A request that an operator has left waits for the next settings where one over HTTP is carried out")
  func leftRequest() throws {
    let deliveries = Deliveries(webhooks: [try webhook("orders")])
    let scene = try LoopScene(deliveries)
    defer { scene.remove() }
    try scene.publish()
    #expect(scene.takeEvents() == ["1"])
    let id = try #require(scene.ids["1"])
    #expect(try StoredDelivery.leave("replay \(id)", for: "orders", journal: scene.directory))
    #expect(state(scene.ask(.enable("orders"))) == .on)
    #expect(scene.takeEvents() == [] && scene.files(of: "orders").contains("orders.request"))
    scene.control.replace(deliveries)
    scene.turn()
    #expect(scene.takeEvents() == ["1"] && !scene.files(of: "orders").contains("orders.request"))
  }

  private func put(_ name: String) throws -> WebhookQuestion {
    .put(
      try WebhookDefinition(
        name: name, members: ["url": .string("http://127.0.0.1:9/"), "channels": .array([.string("*")])]))
  }

  private func state(_ answer: WebhookAnswer?) -> WebhookReport.State? {
    if case .webhook(let report, _)? = answer { report.state } else { nil }
  }

  @Test("One that was set over HTTP is off while it can't be opened, and when it is deleted nothing is left of it")
  func ofHTTP() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    #expect(state(scene.ask(try put("orders"))) == .on)
    try scene.block("orders.progress")
    try scene.start(Deliveries())
    #expect(state(scene.ask(.show("orders"))) == .off && scene.control.figures?.map(\.isEnabled) == [false])
    guard case .refused(.failed)? = scene.ask(.enable("orders")) else {
      Issue.record("it was enabled")
      return
    }
    try scene.unblock("orders.progress")
    guard case .deleted? = scene.ask(.delete("orders")) else {
      Issue.record("it is still there")
      return
    }
    scene.advance(120)
    #expect(scene.control.figures == nil && !scene.control.isActive && scene.files(of: "orders") == [])
  }

  @Test("The name of the file's webhook is not to be had over HTTP while that can't be opened, and it is shown as off")
  func ofFile() throws {
    let deliveries = Deliveries(webhooks: [try webhook("orders")])
    let scene = try LoopScene(deliveries, allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    try scene.block("orders.progress")
    try scene.start(deliveries)
    for question in [try put("orders"), .delete("orders"), .rotateSecret("orders")] {
      guard case .refused(.forbidden)? = scene.ask(question) else {
        Issue.record("taken: \(question)")
        return
      }
    }
    #expect(state(scene.ask(.show("orders"))) == .off)
    for number in 1..<WebhookEndpoint.maximumCount { #expect(state(scene.ask(try put("w\(number)"))) == .on) }
    guard case .refused(.full)? = scene.ask(try put("more")) else {
      Issue.record("one more than may be")
      return
    }
    try scene.unblock("orders.progress")
    scene.advance(60)
    #expect(state(scene.ask(.show("orders"))) == .on)
  }

  @Test("Of more webhooks than there may be the file's are served, and the first of HTTP's by name")
  func tooMany() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    for number in 10..<20 { #expect(state(scene.ask(try put("h\(number)"))) == .on) }
    let names = (10..<20).map { "f\($0)" }
    scene.control.replace(Deliveries(webhooks: try names.map { try webhook($0) }))
    scene.turn()
    guard case .list(let reports) = scene.ask(.list) else {
      Issue.record("no list")
      return
    }
    let on = reports.filter { $0.state == .on }.map(\.name)
    #expect(on == names + (10..<16).map { "h\($0)" } && WebhookEndpoint.maximumCount == on.count)
  }

  @Test("One that fails to open when it is enabled or set anew is tried again, too")
  func reopened() throws {
    let scene = try LoopScene(Deliveries(webhooks: [try webhook("orders")]))
    defer { scene.remove() }
    try scene.block("orders.progress.new")
    guard case .refused(.failed)? = scene.ask(.enable("orders")) else {
      Issue.record("it was opened")
      return
    }
    #expect(scene.webhook?.isEnabled == false)
    try scene.publish()
    try scene.unblock("orders.progress.new")
    #expect(scene.takeEvents() == [])
    scene.advance(60)
    #expect(scene.webhook?.isEnabled == true && scene.takeEvents() == ["1"])
  }

  @Test("Where the folder can't be read all are off, streams, too, until it can")
  func folder() throws {
    let stream = StreamEndpoint(name: "bus", url: StreamURL("nats://127.0.0.1:4222")!, filter: filter)
    let deliveries = Deliveries(webhooks: [try webhook("orders")], streams: [stream])
    let scene = try LoopScene(deliveries, allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    try scene.block("other.webhook")
    try scene.start(deliveries)
    #expect(scene.control.figures?.map(\.isEnabled) == [false])
    #expect(scene.control.streamFigures?.map(\.isEnabled) == [false])
    try scene.unblock("other.webhook")
    scene.advance(60)
    #expect(scene.control.figures?.map(\.isEnabled) == [true])
    #expect(scene.control.streamFigures?.map(\.isEnabled) == [true])
  }
}
