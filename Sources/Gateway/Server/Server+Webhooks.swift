// The worker thread of webhooks and streams, beside the loops: it reads the journal, and nothing waits for it.
import HubCore
import HubJournal
import HubMessages
import HubPages
import HubRuntime
import HubSystem
import HubTransport
public import HubWebhooks

extension Server {
  /// Starts the thread, which sleeps while there is neither; does nothing and gives nil for a hub without a journal.
  static func startWebhooks(
    _ configuration: ServerConfiguration, _ shared: SharedState, _ writer: WriterBox?, epoch: String,
    _ threads: inout Threads
  ) throws(SystemError) -> Waker? {
    guard let control = shared.webhooks, let journal = configuration.journal, let queue = shared.journal, let writer
    else { return nil }
    let box = LoopBox(try EventLoop(limits: WebhookLoop.loopLimits), adminListener: nil)
    let source = WebhookSource(
      journal: journal, commit: queue.commit, epoch: epoch, recovered: writer.report.lastGroup,
      hasLost: writer.report.startsAnew)
    let (deliveries, positions) = (configuration.deliveries, threads.positions)
    let allowed = configuration.webhookReceivers
    control.begin(waking: box.loop.waker)
    let thread = try startThread(name: "webhooks") {
      let loop = WebhookLoop(
        box.loop, deliveries, source, positions, allowed: allowed, control: control, lifecycle: shared.lifecycle,
        log: shared.log,
        userAgent: "locationhub/\(Release.name)", chance: { Double.random(in: 0..<1) })
      withExtendedLifetime(loop) { loop.run() }
    }
    threads.wakers.append(box.loop.waker)
    threads.joinables.append(Joinable(thread))
    return box.loop.waker
  }

  /// Replaces webhooks and streams, and applies what operators left for them. Those whose name stays continue. False
  /// where the server was started without a journal, from which they would be delivered.
  public func replaceDeliveries(_ deliveries: Deliveries) -> Bool {
    guard let control = shared.webhooks else { return false }
    control.replace(deliveries)
    shared.log(
      .info, "webhooks_reloaded",
      ["webhooks": "\(deliveries.webhooks.count)", "streams": "\(deliveries.streams.count)"])
    return true
  }
}
