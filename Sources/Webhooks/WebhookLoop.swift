// The thread of the webhooks: an event loop with the connections to their receivers. It reads the journal behind what
// is stored, so the hub and its loops know nothing of it and never wait for it.
//
// The files: +Sending (addresses, connections, requests), +Answers (what came of them).
import HubBytes
import HubJournal
import HubMessages
package import HubRuntime
import HubSystem
public import HubTransport

public final class WebhookLoop: EventLoopDelegate {
  let loop: EventLoop
  let source: WebhookSource
  let control: WebhookControl
  let lifecycle: Lifecycle
  let log: Log
  let userAgent: String
  /// Uniform, 0 ≤ unit < 1.
  let chance: () -> Double
  let names: NameResolver
  var webhooks: [Webhook] = []
  /// What came on connections, by connection.
  var links: [ConnectionID: Link] = [:]
  var lookups: UInt64 = 0
  private var durable: UInt64?
  private var wanted: Deliveries?
  private var nextSync = Int64.min
  private var folder: ProgressFolder?
  let streams: StreamSet
  /// The settings of the start are not in force yet.
  private var isFirst = true

  /// A connection, whose it is, and what it waits for.
  struct Link {
    let webhook: Webhook
    var attempt: Attempt?
    var response = ResponseReader()
    /// Another request went over it before.
    var isUsed = false
    var isConnected = false
    /// When it ends for having nothing to do (uptime, ns).
    var idleUntil = Int64.max
  }

  /// `userAgent`: the value of that field. `chance`: uniform, 0 ≤ unit < 1, for the times of retries.
  package init(
    _ loop: EventLoop, _ deliveries: Deliveries, _ source: WebhookSource, _ positions: PositionSource?,
    control: WebhookControl, lifecycle: Lifecycle, log: Log, userAgent: String, chance: @escaping () -> Double
  ) {
    self.loop = loop
    self.source = source
    self.control = control
    self.lifecycle = lifecycle
    self.log = log
    self.userAgent = userAgent
    self.chance = chance
    names = NameResolver(
      capacity: WebhookEndpoint.maximumCount + StreamEndpoint.maximumCount, waking: loop.waker)
    streams = StreamSet(
      loop, source, log, userAgent: userAgent, names: names,
      positions: positions.map { PositionFeed($0) }, chance: chance)
    wanted = deliveries
    loop.delegate = self
    loop.setLoopTimer(at: loop.now.uptimeNanoseconds)
  }

  public func run() { loop.run() }

  var now: Moment {
    Moment(uptime: loop.now.uptimeNanoseconds, timestamp: Timestamp(milliseconds: loop.now.unixMilliseconds))
  }

  // MARK: A turn

  public func turnEnding() {
    let now = now
    if let deliveries = control.takeDeliveries() { wanted = deliveries }
    lookAtJournal()
    takeAddresses(now)
    expire(now)
    for webhook in webhooks { pump(webhook, now) }
    for webhook in webhooks { store(webhook) { (webhook) throws(SystemError) in try webhook.store() } }
    streams.takeTurn(now, through: durable)
    if now.uptime >= nextSync {
      for webhook in webhooks { store(webhook) { (webhook) throws(SystemError) in try webhook.synchronize() } }
      streams.synchronize()
      control.show(webhooks.map { $0.currentFigures(now) }, streams.figures(now))
      nextSync = now.uptime + ProgressFile.syncInterval
    }
    if lifecycle.phase(at: now.uptime) == .draining { return stop() }
    var next = min(nextSync, nextDeadline, streams.nextTime)
    for webhook in webhooks { next = min(next, webhook.nextStep) }
    if lifecycle.isShuttingDown { next = min(next, lifecycle.drainsAt) }
    loop.setLoopTimer(at: next)
  }

  /// What is under way is sent again by the next start.
  private func stop() {
    for webhook in webhooks { store(webhook) { (webhook) throws(SystemError) in try webhook.synchronize() } }
    streams.synchronize()
    loop.stop()
  }

  func store(_ webhook: Webhook, _ body: (Webhook) throws(SystemError) -> Void) {
    do throws(SystemError) { try body(webhook) } catch {
      if webhook.figures.notStored == 0 {
        log(
          .error, "webhook_not_stored",
          ["webhook": webhook.endpoint.name, "error": "\(error)", "hint": "a crash now repeats what was delivered"])
      }
      webhook.figures.notStored += 1
    }
  }

  /// Notices that the journal has grown, and puts new settings into force once the journal's end is known.
  private func lookAtJournal() {
    guard let newest = source.commit.durableGroup else { return }
    if newest != durable {
      durable = newest
      for webhook in webhooks {
        webhook.queue.journalGrew()
        webhook.nextStep = .min
      }
    }
    if let deliveries = wanted {
      wanted = nil
      configure(deliveries, newest)
    }
  }

  /// Decides and begins what is to be done for a webhook.
  private func pump(_ webhook: Webhook, _ now: Moment) {
    webhook.nextStep = .max
    for _ in 0..<Self.stepsPerTurn {
      do throws(JournalError) {
        switch webhook.queue.step(now) {
        case .idle: return
        case .wait(let time):
          webhook.nextStep = time
          return
        case .scan: _ = try scan(webhook, now)
        case .look(let channel, let range): try webhook.look(for: channel, in: range, now)
        case .deliver(let event): try deliver(event, webhook, now)
        }
      } catch {
        return stop(webhook, error)
      }
    }
    webhook.nextStep = now.uptime
  }

  private func scan(_ webhook: Webhook, _ now: Moment) throws(JournalError) -> Bool {
    let before = webhook.figures.lost
    defer {
      let lost = webhook.figures.lost - before
      if lost > 0 {
        log(
          .error, "webhook_lost",
          [
            "webhook": webhook.endpoint.name, "groups": "\(lost)",
            "hint": "retention deleted them before they were delivered",
          ])
      }
    }
    return try webhook.scan(through: durable ?? 0, now)
  }

  /// The journal can't be read: nothing is delivered before a restart, and nothing lost.
  private func stop(_ webhook: Webhook, _ error: JournalError) {
    log(.error, "webhook_stopped", ["webhook": webhook.endpoint.name, "error": "\(error)"])
    end(webhook)
    webhooks.removeAll { $0 === webhook }
  }

  // MARK: Settings

  /// Serves these from now on, each from where it is. What is under way is sent again.
  private func configure(_ deliveries: Deliveries, _ newest: UInt64) {
    var figures: [String: WebhookFigures] = [:]
    for webhook in webhooks {
      end(webhook)
      store(webhook) { (webhook) throws(SystemError) in try webhook.synchronize() }
      figures[webhook.endpoint.name] = webhook.figures
    }
    webhooks.removeAll()
    do throws(JournalError) {
      if folder == nil { folder = try ProgressFolder(source, log) }
      guard let folder else { return }
      for endpoint in deliveries.webhooks.prefix(WebhookEndpoint.maximumCount) {
        webhooks.append(try make(endpoint, folder, newest, figures[endpoint.name]))
      }
      try streams.configure(deliveries.streams, folder, newest, isFirst: isFirst)
      isFirst = false
      nextSync = .min
    } catch {
      log(.error, "webhooks_stopped", ["error": "\(error)"])
    }
  }

  private func make(
    _ endpoint: WebhookEndpoint, _ folder: ProgressFolder, _ newest: UInt64, _ figures: WebhookFigures?
  ) throws(JournalError) -> Webhook {
    let (file, progress) = try folder.open(endpoint.name, newest, isFirst: isFirst)
    let (directory, limits) = (source.journal.directory, source.journal.limits)
    let first = progress.cursor.group
    let reader = EventReader(
      endpoint.filter, ahead: try JournalTail(directory: directory, limits: limits, next: first),
      behind: try JournalTail(directory: directory, limits: limits, next: first), cursor: progress.cursor)
    log(
      .info, "webhook",
      ["webhook": endpoint.name, "url": "\(endpoint.url)", "enabled": "\(progress.isEnabled)"])
    return Webhook(endpoint, file, progress, reader, folder.deadLetters(endpoint.name), figures: figures)
  }
}
