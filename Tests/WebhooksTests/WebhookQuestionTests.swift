// Webhooks that are set, looked at and delivered again over HTTP, without HTTP: the thread answers questions.
import HubBytes
import HubJournal
import HubMessages
import HubSystem
import HubTransport
import Testing

@testable import HubWebhooks

@Suite struct WebhookQuestionTests {
  private func definition(
    _ name: String = "orders", url: String = "http://127.0.0.1:9/", channels: [String] = ["*"],
    more: [String: JSONValue] = [:]
  ) throws -> WebhookDefinition {
    let members: [String: JSONValue] = ["url": .string(url), "channels": .array(channels.map { .string($0) })]
    return try WebhookDefinition(name: name, members: members.merging(more) { $1 })
  }

  private func report(_ answer: WebhookAnswer?) throws -> WebhookReport {
    guard case .webhook(let report, _) = answer else { throw Unexpected(answer: answer) }
    return report
  }

  private func fault(_ answer: WebhookAnswer?) throws -> WebhookFault {
    guard case .refused(let fault) = answer else { throw Unexpected(answer: answer) }
    return fault
  }

  private struct Unexpected: Error { let answer: WebhookAnswer? }

  @Test(
    "A webhook that is set delivers what is recorded from then on, also after a restart; its secret is shown once"
  )
  func put() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    #expect(!scene.control.isActive, "nobody wakes a thread that has nothing to deliver")
    try scene.publish()
    guard case .webhook(let report, let secret?) = scene.ask(.put(try definition())) else {
      Issue.record("no secret")
      return
    }
    #expect(report.state == .on && report.isOfHTTP && report.channels == ["*"] && WebhookSecret(secret) != nil)
    #expect(scene.control.isActive)
    try scene.publish()
    #expect(scene.takeEvents() == ["2"])
    try scene.start(Deliveries())
    try scene.publish()
    #expect(scene.takeEvents() == ["3"])
    guard case .webhook(let again, nil) = scene.ask(.put(try definition(channels: ["trip:T2"]))) else {
      Issue.record("it is another one, and its secret was shown before")
      return
    }
    #expect(again.channels == ["trip:T2"])
    try scene.publish("T1")
    try scene.publish("T2")
    #expect(scene.takeEvents() == ["5"])
  }

  @Test("One that is deleted is gone with all that is stored of it; a new one of its name begins anew")
  func delete() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    _ = scene.ask(.put(try definition()))
    try scene.publish()
    #expect(scene.takeEvents() == ["1"])
    guard case .deleted = scene.ask(.delete("orders")) else {
      Issue.record("not deleted")
      return
    }
    #expect(scene.files(of: "orders") == [] && !scene.control.isActive && scene.control.figures == nil)
    #expect(try fault(scene.ask(.show("orders"))) == .unknown("this hub has no such webhook"))
    try scene.publish()
    _ = scene.ask(.put(try definition()))
    try scene.publish()
    #expect(scene.takeEvents() == ["3"])
  }

  @Test("One whose definition the disk does not let go is not deleted, and continues")
  func refusingDisk() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    _ = scene.ask(.put(try definition()))
    try scene.holdDefinition(of: "orders")
    guard case .failed(let reason) = try fault(scene.ask(.delete("orders"))) else {
      Issue.record("the disk did not refuse")
      return
    }
    #expect(reason.hasPrefix("cannot remove it: "))
    try scene.publish()
    #expect(scene.takeEvents() == ["1"])
    #expect(try report(scene.ask(.show("orders"))).state == .on)
  }

  @Test("One whose definition is gone from the disk already is deleted as well")
  func definitionGone() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    _ = scene.ask(.put(try definition()))
    try DiskFiles(beside: scene.directory + "/webhooks").remove("orders.webhook")
    guard case .deleted = scene.ask(.delete("orders")) else {
      Issue.record("not deleted")
      return
    }
    #expect(scene.files(of: "orders") == [])
  }

  @Test("Only what the operator allows may be set, and one that is allowed no more delivers nothing")
  func allowed() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/in/"])
    defer { scene.remove() }
    for url in [
      "http://127.0.0.1:9/", "http://127.0.0.1:8/in/", "https://127.0.0.1:9/in/", "http://127.0.0.1:9/in/../x",
    ] {
      #expect(
        try fault(scene.ask(.put(try definition(url: url)))) == .forbidden("webhook-allow does not have this URL"))
    }
    #expect(try report(scene.ask(.put(try definition(url: "http://127.0.0.1:9/in/a")))).state == .on)
    scene.allow(["https://hooks.example/"])
    try scene.start(Deliveries())
    #expect(try report(scene.ask(.show("orders"))).state == .notAllowed)
    #expect(try fault(scene.ask(.test("orders"))) == .forbidden("webhook-allow does not have its URL any more"))
    try scene.publish()
    #expect(scene.takeEvents() == [])
  }

  /// The webhook `orders` of the file.
  private func endpoint() throws -> WebhookEndpoint {
    WebhookEndpoint(
      name: "orders", url: WebhookURL("http://127.0.0.1:9/")!, filter: EventFilter(channels: [.all])!,
      rule: WebhookRule()!, signer: try WebhookSigner(secrets: [WebhookSecret(bytes: Array(1...32))!]),
      addresses: AddressRule(allowed: [AddressBlock("127.0.0.0/8")!]))
  }

  @Test("One that a webhook of the file replaces is served again when the file has none of its name")
  func replacedByFile() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    _ = scene.ask(.put(try definition(channels: ["trip:T2"])))
    try scene.publish("T2")
    #expect(scene.takeEvents() == ["1"])
    scene.control.replace(Deliveries(webhooks: [try endpoint()]))
    scene.turn()
    #expect(try !report(scene.ask(.show("orders"))).isOfHTTP)
    scene.control.replace(Deliveries())
    scene.turn()
    let again = try report(scene.ask(.show("orders")))
    #expect(again.isOfHTTP && again.state == .on && again.channels == ["trip:T2"] && again.figures.delivered == 1)
    try scene.publish("T2")
    #expect(scene.takeEvents() == ["2"])
  }

  @Test("A webhook of the file is shown and replayed, and only the file changes it")
  func ofFile() throws {
    let scene = try LoopScene(Deliveries(webhooks: [try endpoint()]), allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    try scene.publish()
    #expect(scene.takeEvents() == ["1"])
    guard case .list(let reports) = scene.ask(.list) else {
      Issue.record("no list")
      return
    }
    #expect(reports.map(\.name) == ["orders"] && reports.allSatisfy { !$0.isOfHTTP && $0.figures.delivered == 1 })
    for question in [WebhookQuestion.delete("orders"), .rotateSecret("orders"), .put(try definition())] {
      guard case .forbidden = try fault(scene.ask(question)) else {
        Issue.record("\(question) was taken")
        continue
      }
    }
    _ = scene.ask(.replay("orders", .from(EventID("evt_e1_1_0")!)))
    #expect(scene.takeEvents() == ["1"])
    scene.control.replace(Deliveries())
    scene.turn()
    #expect(!scene.control.isActive)
  }

  @Test("A replay sends what was published since a time, or some events with what is behind them on their channels")
  func replay() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    _ = scene.ask(.put(try definition(more: ["concurrency": .number(1)])))
    for trip in ["T1", "T2", "T1"] { try scene.publish(trip) }
    scene.advance(10)
    let since = scene.now
    for trip in ["T2", "T1"] { try scene.publish(trip) }
    #expect(Set(scene.takeEvents()) == ["1", "2", "3", "4", "5"])
    _ = scene.ask(.replay("orders", .since(since)))
    #expect(Set(scene.takeEvents()) == ["4", "5"])
    let id = try #require(scene.ids["3"])
    let event = try #require(EventID(id))
    _ = scene.ask(.replay("orders", .events([event])))
    #expect(scene.takeEvents() == ["3", "5"], "those of T1, in order")
    let none = EventID(
      epoch: event.epoch, position: JournalPosition(group: event.position.group, record: event.position.record + 1))
    let other = EventID(epoch: "e2", position: event.position)
    let later = EventID(epoch: event.epoch, position: JournalPosition(group: 99, record: 0))
    for replay in [
      .events([event, none]), .events([other]), .from(other), .from(none), .from(later),
    ] as [WebhookReplay] {
      guard case .unknown = try fault(scene.ask(.replay("orders", replay))) else {
        Issue.record("there is no such event: \(replay)")
        return
      }
    }
    #expect(scene.takeEvents() == [])
    try scene.publish("T1")
    #expect(scene.takeEvents() == ["6"])
  }

  @Test("Of questions that wait together a turn answers no more than one replay")
  func replaysInTurn() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    for _ in 0..<2 {
      for question in [.list, .replay("orders", .since(scene.now))] as [WebhookQuestion] {
        #expect(scene.control.ask(question) { _ in })
      }
    }
    #expect(scene.control.ask(.list) { _ in })
    #expect((0..<4).map { _ in scene.control.takeQuestions().count } == [2, 2, 1, 0])
  }

  @Test("What retention deleted is not replayed: over HTTP that is said, and nothing that was delivered counts as lost")
  func replayOfDeleted() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    _ = scene.ask(.put(try definition()))
    try scene.publish()
    #expect(scene.takeEvents() == ["1"])
    let deleted = try #require(scene.ids["1"].flatMap { EventID($0) })
    try scene.deleteHistory()
    try scene.publish()
    #expect(scene.takeEvents() == ["2"])
    if case .refused(.unknown)? = scene.ask(.replay("orders", .from(deleted))) {} else { Issue.record("it was taken") }
    #expect(scene.takeEvents() == [] && scene.webhook?.lost == 0)
    #expect(try StoredDelivery.leave("replay \(deleted)", for: "orders", journal: scene.directory))
    try scene.start(Deliveries())
    #expect(scene.takeEvents() == ["2"] && scene.webhook?.lost == 0)
  }

  @Test("A replay since a time also sends what was published before and is not delivered, and nothing else of then")
  func replayWithUndelivered() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    _ = scene.ask(.put(try definition()))
    try scene.publish("T2")
    #expect(scene.takeEvents() == ["1"])
    try scene.publish("T1")
    #expect(scene.takeEvents(answering: "500 No") == ["2"])
    try scene.publish("T1")
    try scene.publish("T2")
    #expect(scene.takeEvents() == ["4"], "T1 waits for its next try")
    scene.advance(2)
    _ = scene.ask(.replay("orders", .since(scene.now)))
    #expect(scene.takeEvents() == ["2", "3"])
    scene.advance(60)
    try scene.publish("T1")
    #expect(scene.takeEvents() == ["5"])
  }

  @Test("After a 410 nothing is sent until it is enabled; dead letters are listed, the newest first")
  func enableAndDead() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    _ = scene.ask(.put(try definition(more: ["giveUpAfter": .number(1)])))
    for trip in ["T1", "T2"] {
      try scene.publish(trip)
      #expect(scene.takeEvents(answering: "500 No") == [trip == "T1" ? "1" : "2"])
      scene.advance(6)
      #expect(scene.takeEvents(answering: "500 No") == [trip == "T1" ? "1" : "2"])
    }
    guard case .dead(let letters) = scene.ask(.dead("orders", limit: 1)) else {
      Issue.record("no letters")
      return
    }
    #expect(letters.map(\.channel) == ["trip:T2"] && letters.map(\.reason) == ["500"] && letters[0].time == scene.now)
    try scene.publish("T3")
    #expect(scene.takeEvents(answering: "410 Gone") == ["3"])
    #expect(try report(scene.ask(.show("orders"))).state == .off)
    #expect(try report(scene.ask(.enable("orders"))).state == .on)
    #expect(scene.takeEvents() == ["3"])
  }

  @Test("A webhook that can't read the journal is off, not gone, and delivers what waits when it is enabled again")
  func unreadableJournal() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    _ = scene.ask(.put(try definition()))
    try scene.publish()
    #expect(scene.takeEvents() == ["1"])
    try scene.hideSegments()
    try scene.publish()
    #expect(scene.takeEvents() == [])
    #expect(try report(scene.ask(.show("orders"))).state == .off)
    _ = scene.ask(.enable("orders"))
    #expect(scene.takeEvents() == [])
    #expect(try report(scene.ask(.show("orders"))).state == .off, "it still can't be read")
    #expect(scene.control.figures?.map(\.isEnabled) == [false] && scene.control.isActive)
    try scene.showSegments()
    #expect(try report(scene.ask(.enable("orders"))).state == .on)
    #expect(scene.takeEvents() == ["2"])
    #expect(try report(scene.ask(.show("orders"))).figures.delivered == 2)
  }

  @Test("A test is sent at once, whatever waits; its answer changes nothing else")
  func test() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    _ = scene.ask(.put(try definition()))
    let said = LoopScene.Said()
    #expect(scene.control.ask(.test("orders")) { answer in said.answer.withLock { $0 = answer } })
    scene.turn()
    guard case .busy = try fault(scene.ask(.test("orders"))) else {
      Issue.record("two at once")
      return
    }
    #expect(scene.takeEvents(answering: "410 Gone") == ["test"])
    guard case .tested(410?, _, _) = said.answer.withLock({ $0 }) else {
      Issue.record("\(String(describing: said.answer.withLock { $0 }))")
      return
    }
    #expect(try report(scene.ask(.show("orders"))).state == .on)
    #expect(scene.control.ask(.test("orders")) { answer in said.answer.withLock { $0 = answer } })
    scene.turn()
    scene.advance(15)
    guard case .tested(nil, "no answer in time", 15_000) = said.answer.withLock({ $0 }) else {
      Issue.record("\(String(describing: said.answer.withLock { $0 }))")
      return
    }
    #expect(scene.webhook?.failed == 0)
  }

  @Test("A hub has 16 webhooks, and 64 questions may wait")
  func limits() throws {
    let scene = try LoopScene(allowed: ["http://127.0.0.1:9/"])
    defer { scene.remove() }
    for number in 0..<16 { #expect(try report(scene.ask(.put(try definition("w\(number)")))).state == .on) }
    guard case .full = try fault(scene.ask(.put(try definition("one-more")))) else {
      Issue.record("17 webhooks")
      return
    }
    let another = try report(scene.ask(.put(try definition("w3", channels: ["trip:T2"]))))
    #expect(another.state == .on && another.channels == ["trip:T2"], "another one of its name")
    for _ in 0..<64 { #expect(scene.control.ask(.list) { _ in }) }
    #expect(!scene.control.ask(.list) { _ in })
    scene.turn()
    #expect(scene.control.ask(.list) { _ in })
  }

  @Test(
    "What is no webhook is refused",
    arguments: [
      #"{"channels":["*"]}"#, #"{"url":"ftp://a/","channels":["*"]}"#, #"{"url":"https://a/","channels":[]}"#,
      #"{"url":"https://a/","channels":"*"}"#, #"{"url":"https://a/","channels":["fleet"]}"#,
      #"{"url":"https://a/","channels":["*"],"types":["trip.moved"]}"#,
      #"{"url":"https://a/","channels":["*"],"concurrency":17}"#,
      #"{"url":"https://a/","channels":["*"],"concurrency":1.5}"#,
      #"{"url":"https://a/","channels":["*"],"giveUpAfter":0}"#,
    ])
  func refused(text: String) throws {
    let members = try #require(JSONValue(parsing: Array(text.utf8))?.members)
    #expect(throws: WebhookFault.self) { try WebhookDefinition(name: "orders", members: members) }
  }

  @Test("A prefix is one of the URL's parts, not of its text")
  func prefixes() throws {
    var rule = URLRule()
    let (none, faults) = (rule.isEmpty, ["ftp://a/", "10.0.0.1/8"].filter { rule.allow($0) })
    #expect(none && faults.isEmpty)
    let taken = ["https://hooks.example/in", "10.0.0.0/8"].filter { rule.allow($0) }
    #expect(taken.count == 2 && rule.addresses.count == 1)
    for text in [
      "https://hooks.example/in", "https://hooks.example/in/a", "https://hooks.example/in?x=1",
      "https://hooks.example/in/a;v=1/..b?x=..;/",
    ] {
      #expect(rule.allows(WebhookURL(text)!))
    }
    for text in [
      "https://hooks.example/", "https://hooks.example/inside", "https://hooks.example.evil.test/in",
      "https://hooks.example:444/in", "http://hooks.example/in", "https://hooks.example/in/../x",
      "https://hooks.example/in/%2E%2e/x", "https://hooks.example/in/.%2fx",
      "https://hooks.example/in/..;/x", "https://hooks.example/in/..;v=1/x", "https://hooks.example/in/.;/x",
      "https://hooks.example/in/..%3Bv/x", "https://hooks.example/in/..%5cx",
    ] { #expect(!rule.allows(WebhookURL(text)!), "\(text)") }
    let isTaken = rule.allow("https://")
    #expect(isTaken && rule.allows(WebhookURL("https://any.example/")!))
    #expect(!rule.allows(WebhookURL("http://any.example/")!))
  }
}
