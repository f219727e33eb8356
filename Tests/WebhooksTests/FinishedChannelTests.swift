// Of a channel whose events are all delivered nothing is kept: there are as many as there were trips.
import HubJournalSupport
import HubMessages
import HubRuntime
import HubSystem
import HubTransport
import Testing

@testable import HubJournal
@testable import HubWebhooks

@Suite struct FinishedChannelTests {
  private func endpoint() throws -> WebhookEndpoint {
    WebhookEndpoint(
      name: "orders", url: WebhookURL("http://127.0.0.1:9/")!, filter: EventFilter(channels: [.all])!,
      rule: WebhookRule()!, signer: try WebhookSigner(secrets: [WebhookSecret(bytes: Array(1...32))!]),
      addresses: AddressRule(allowed: [AddressBlock("127.0.0.0/8")!]))
  }

  @Test("Nothing is remembered of what was read on it, of one event or of several")
  func reader() throws {
    let scene = try LoopScene(Deliveries(webhooks: [try endpoint()]))
    defer { scene.remove() }
    for number in 0..<20 {
      for _ in 0..<(number % 3 + 1) { try scene.publish("T\(number)") }
      #expect(scene.rememberedChannels == 1)
      #expect(scene.takeEvents().count == number % 3 + 1)
      #expect(scene.rememberedChannels == 0 && scene.webhook?.lanes == 0)
    }
  }

  @Test("It is not behind once it is delivered, though the disk did not store that")
  func age() throws {
    let scene = try LoopScene()
    defer { scene.remove() }
    for trip in ["T1", "T2"] { try scene.publish(trip) }
    let (disk, extent) = (SimulatedDisk(), ProgressFile.Extent(recovered: 0, newest: 0))
    let opened = try #require(try ProgressFile.open(disk, "orders", epoch: "e", extent, nil))
    func tail() throws -> JournalTail { try JournalTail(directory: scene.directory, limits: JournalLimits(), next: 1) }
    let endpoint = try endpoint()
    let webhook = Webhook(
      endpoint, opened.file, opened.progress,
      EventReader(endpoint.filter, ahead: try tail(), behind: try tail(), cursor: opened.progress.cursor),
      DeadLetterFile(disk, "orders"), figures: nil)
    var now = Moment(uptime: 0, timestamp: scene.now)
    func deliver() throws {
      try #require(webhook.queue.step(now) == .scan(from: webhook.queue.cursor))
      try webhook.scan(through: 2, now)
      guard case .deliver(let event) = webhook.queue.step(now) else {
        Issue.record("nothing to deliver")
        return
      }
      let attempt = Attempt(.event(on: event.channel), id: "1", request: [], began: 0)
      #expect(webhook.answered(attempt, on: event.channel, .status(200), now, unit: 0) == .delivered)
    }
    try deliver()
    disk.room = 0
    #expect(throws: SystemError.self) { try webhook.store() }
    try deliver()
    try webhook.store()
    disk.room = .max
    try webhook.synchronize()
    now.timestamp.milliseconds += 60_000
    #expect(webhook.currentFigures(now).oldestMilliseconds == 0)
  }
}
