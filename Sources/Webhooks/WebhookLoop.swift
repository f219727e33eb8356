// The webhooks' thread: an event loop with the connections to their receivers. It reads the stored part of the journal,
// so the hub and its loops know nothing of it and never wait for it.
//
// The files: +Sending (addresses, connections, requests), +Answers (outcomes), +Questions (of ops).
import HubBytes
import HubJournal
import HubMessages
package import HubRuntime
import HubSystem
import HubTokens
public import HubTransport

/// The work of all webhooks and streams. Only its own thread uses it.
public final class WebhookLoop: EventLoopDelegate {
  let loop: EventLoop
  let source: WebhookSource
  let control: WebhookControl
  let lifecycle: Lifecycle
  let log: Log
  let userAgent: String
  /// Uniform, 0 ≤ unit < 1.
  let chance: () -> Double
  var names: NameResolver
  var webhooks: [Webhook] = []
  /// The state of each connection.
  var links: [ConnectionID: Link] = [:]
  /// Open look-ups by their numbers, also for webhooks that were set anew or deleted meanwhile.
  var lookups: [UInt64: Lookup] = [:]
  var lastLookup: UInt64 = 0
  private(set) var durable: UInt64?
  private var wanted: Deliveries?
  /// The applied settings, and the names of webhooks that could not be opened, or stopped since.
  private(set) var settings = Deliveries()
  var unopened: Set<String> = []
  private var isFolderRead = true
  /// When what could not be opened is tried again (uptime, ns).
  private var retryAt = Int64.max
  var nextSync = Int64.min
  /// Nil while there is nothing to deliver, and nothing may be set over HTTP.
  private(set) var folder: ProgressFolder?
  /// The addresses allowed for webhooks that are set over HTTP, and these webhooks.
  let allowed: URLRule
  var definitions: [String: WebhookDefinition] = [:]
  let streams: StreamSet
  private let lastGroup = LastGroup()

  /// A connection with its webhook and what it waits for.
  struct Link {
    let webhook: Webhook
    var attempt: Attempt?
    var response = ReplyReader()
    /// It has carried a request before the present one.
    var isUsed = false
    var isConnected = false
    /// When it is closed as idle (uptime, ns), or because the rest of an answer has not come.
    var idleUntil = Int64.max
    /// The rest of an answer is awaited.
    var isUnfinished = false
  }

  /// A look-up of the host of a webhook's URL.
  struct Lookup: Equatable {
    let webhook: String
    let host: String
    let port: UInt16

    init(_ endpoint: WebhookEndpoint) { (webhook, host, port) = (endpoint.name, endpoint.url.host, endpoint.url.port) }
  }

  /// `userAgent`: the value of that field. `chance`: uniform, 0 ≤ unit < 1, for the times of retries.
  package init(
    _ loop: EventLoop, _ deliveries: Deliveries, _ source: WebhookSource, _ positions: PositionSource?,
    allowed: URLRule = URLRule(), control: WebhookControl, lifecycle: Lifecycle, log: Log, userAgent: String,
    chance: @escaping () -> Double
  ) {
    self.loop = loop
    self.source = source
    self.control = control
    self.allowed = allowed
    self.lifecycle = lifecycle
    self.log = log
    self.userAgent = userAgent
    self.chance = chance
    // A thread for each, and for those that were replaced meanwhile: a server of names that does not answer delays its
    // own endpoint alone.
    let names = Self.openLookups * (WebhookEndpoint.maximumCount + StreamEndpoint.maximumCount)
    self.names = NameResolver(capacity: names, threads: names, waking: loop.waker)
    streams = StreamSet(
      loop, source, log, userAgent: userAgent, names: self.names,
      positions: positions.map { PositionFeed($0) }, chance: chance)
    wanted = deliveries
    loop.delegate = self
    loop.setLoopTimer(at: loop.now.uptimeNanoseconds)
  }

  /// Runs on the calling thread until the server is drained.
  public func run() { loop.run() }

  var now: Moment { Moment(loop.now) }

  // MARK: A turn

  /// The turn's work in order: new settings, new records, ops' questions, deliveries that are due, progress to the
  /// disk.
  public func turnEnding() {
    let now = now
    if let deliveries = control.takeDeliveries() { wanted = deliveries }
    lookAtJournal(now)
    answerQuestions(now)
    takeAddresses(now)
    expire(now)
    for webhook in webhooks { pump(webhook, now) }
    for webhook in webhooks { store(webhook) { (webhook) throws(SystemError) in try webhook.store() } }
    streams.takeTurn(now, through: durable)
    if now.uptime >= nextSync {
      for webhook in webhooks { store(webhook) { (webhook) throws(SystemError) in try webhook.synchronize() } }
      streams.synchronize()
      endOldSecrets(now)
      control.show(
        webhooks.map { $0.currentFigures(now) } + neverOpened.map { WebhookFigures(off: $0) }, streams.figures(now))
      nextSync = isIdle && !hasNewDeliveries ? .max : now.uptime + ProgressFile.syncInterval
    }
    if lifecycle.phase(at: now.uptime) == .draining { return stop() }
    var next = min(nextSync, nextDeadline, streams.nextTime, retryAt)
    for webhook in webhooks { next = min(next, webhook.nextStep) }
    if lifecycle.isShuttingDown { next = min(next, lifecycle.drainsAt) }
    loop.setLoopTimer(at: next)
  }

  /// There is nothing to deliver.
  private var isIdle: Bool { webhooks.isEmpty && streams.isEmpty && retryAt == .max }

  /// New settings have not been applied yet.
  var hasNewDeliveries: Bool { wanted != nil }

  /// Stops; unanswered events are sent again by the next start.
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

  /// Notices that the journal has grown, and applies new settings once the journal's end is known.
  private func lookAtJournal(_ now: Moment) {
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
    } else if retryAt <= now.uptime {
      openAgain(newest)
    }
    if !streams.unopened.isEmpty { retryLater() }
    // The thread is woken by new records only while it is active: so it looks at the journal once more now.
    guard isIdle == control.isActive else { return }
    control.setActive(!isIdle)
    loop.waker.wake()
  }

  /// Carries out the actions of a webhook.
  private func pump(_ webhook: Webhook, _ now: Moment) {
    guard !webhook.isStopped else {
      webhook.nextStep = .max
      return
    }
    // If the turn ends before the steps do, another one follows at once.
    webhook.nextStep = now.uptime
    webhook.reader.beginTurn()
    let damaged = webhook.reader.damagedGroups
    defer { noteMissed(webhook, isDamage: webhook.reader.damagedGroups > damaged) }
    var mayLook = true
    for _ in 0..<Self.stepsPerTurn where !webhook.reader.isSpent {
      do throws(JournalError) {
        switch webhook.queue.step(now, mayLook: mayLook) {
        case .idle:
          if mayLook { webhook.nextStep = .max }
          return
        case .wait(let time):
          if mayLook { webhook.nextStep = time }
          return
        case .scan: try webhook.scan(through: durable ?? 0, now)
        case .look(let channel, let range): mayLook = try webhook.look(for: channel, in: range, now)
        case .deliver(let event): try deliver(event, webhook, now)
        }
      } catch {
        return stop(webhook, error)
      }
    }
  }

  private func noteMissed(_ webhook: Webhook, isDamage: Bool) {
    let missed = webhook.takeMissed()
    guard missed > 0 else { return }
    log(
      .error, "webhook_lost",
      ["webhook": webhook.endpoint.name, "groups": "\(missed)", "hint": StreamSet.lossHint(isDamage: isDamage)])
  }

  /// The journal can't be read: nothing is delivered before the webhook is opened again, and nothing lost.
  private func stop(_ webhook: Webhook, _ error: JournalError) {
    log(
      .error, "webhook_stopped",
      ["webhook": webhook.endpoint.name, "error": "\(error)", "hint": StreamSet.retryHint])
    halt(webhook)
    unopened.insert(webhook.endpoint.name)
    retryLater()
  }

  /// Stores a webhook's progress and delivers nothing more through it. It stays in the list, so that its figures say
  /// so, until another one replaces it.
  private func halt(_ webhook: Webhook) {
    end(webhook)
    webhook.isStopped = true
    store(webhook) { (webhook) throws(SystemError) in try webhook.synchronize() }
  }

  // MARK: Settings

  /// Replaces the webhooks and streams; each continues, and unanswered events are sent again. What can't be opened is
  /// off, and is tried again each minute.
  private func configure(_ deliveries: Deliveries, _ newest: UInt64) {
    let before = webhooks
    for webhook in before { halt(webhook) }
    webhooks.removeAll()
    settings = deliveries
    streams.replace(by: deliveries.streams)
    (nextSync, retryAt, isFolderRead) = (.min, .max, false)
    do throws(JournalError) {
      if folder == nil, !deliveries.isEmpty || !allowed.isEmpty { folder = try ProgressFolder(source, log) }
      // Read each time: a webhook whose name the operator's file had is served again when the file has it no more.
      definitions = allowed.isEmpty ? [:] : try folder?.definitions() ?? [:]
      isFolderRead = true
    } catch {
      for webhook in before { webhook.isOutdated = true }
      (webhooks, unopened) = (before, Set(deliveries.webhooks.map(\.name)))
      log(.error, "webhooks_stopped", ["error": "\(error)", "hint": StreamSet.retryHint])
      return retryLater()
    }
    for name in deliveries.webhooks.map(\.name) + deliveries.streams.map(\.name)
    where definitions.removeValue(forKey: name) != nil {
      log(
        .warning, "webhook_set_twice",
        ["webhook": name, "hint": "the file's webhook or stream counts, not the one that was set over HTTP"])
    }
    unopened = Set(deliveries.webhooks.prefix(WebhookEndpoint.maximumCount).map(\.name)).union(definitions.keys)
    openWebhooks(before)
    openStreams(newest)
  }

  private func openAgain(_ newest: UInt64) {
    guard isFolderRead else { return configure(settings, newest) }
    (nextSync, retryAt) = (.min, .max)
    openWebhooks([])
    openStreams(newest)
  }

  private func openStreams(_ newest: UInt64) {
    if let folder { streams.open(settings.streams, folder, newest) }
  }

  private func retryLater() { retryAt = min(retryAt, now.uptime + Self.retryTime) }

  /// Opens those that are not open. `before`: the webhooks before new settings.
  private func openWebhooks(_ before: [Webhook]) {
    for endpoint in settings.webhooks.prefix(WebhookEndpoint.maximumCount) where unopened.contains(endpoint.name) {
      attempt(endpoint.name, before) { () throws(JournalError) in
        try open(endpoint, nil, since: nil, before: before)
      }
    }
    for definition in definitions.values.sorted(by: { $0.name < $1.name }) where unopened.contains(definition.name) {
      attempt(definition.name, before) { () throws(JournalError) in try open(definition, nil, before: before) }
    }
  }

  /// Opens a webhook by `body`. If that fails, the one of this name before new settings stays, stopped.
  private func attempt(_ name: String, _ before: [Webhook], _ body: () throws(JournalError) -> Void) {
    do throws(JournalError) { try body() } catch {
      if let old = before.first(where: { $0.endpoint.name == name }) {
        old.isOutdated = true
        webhooks.append(old)
      }
      log(.error, "webhook_stopped", ["webhook": name, "error": "\(error)", "hint": StreamSet.retryHint])
    }
  }

  /// Webhooks that could not be opened since the start.
  var neverOpened: [String] { unopened.subtracting(webhooks.map(\.endpoint.name)).sorted() }

  /// Serves a webhook that was set over HTTP; one whose URL is not allowed is not served. `before`: the webhooks before
  /// new settings.
  func open(
    _ definition: WebhookDefinition, _ request: DeliveryCommand?, before: [Webhook] = []
  ) throws(JournalError) {
    let others = Set(webhooks.map(\.endpoint.name) + settings.webhooks.map(\.name)).subtracting([definition.name])
    guard allowed.allows(definition.url), others.count < WebhookEndpoint.maximumCount else {
      unopened.remove(definition.name)
      return log(
        .warning, "webhook_not_allowed",
        ["webhook": definition.name, "hint": "webhook-allow does not have its URL, or there are too many"])
    }
    let endpoint: WebhookEndpoint
    do throws(KeyError) { endpoint = try definition.endpoint(allowed) } catch {
      unopened.remove(definition.name)
      return log(.error, "webhook_unreadable", ["webhook": definition.name, "error": "\(error)"])
    }
    try open(endpoint, request, since: nil, before: before)
  }

  /// Serves a webhook, continuing the one of this name; unanswered events are sent again. `since`: delivered events
  /// that were published earlier are skipped, also by one that continues it meanwhile. If it throws, the one of this
  /// name stays, stopped; it is tried again in a minute.
  func open(
    _ endpoint: WebhookEndpoint, _ request: DeliveryCommand?, since: Timestamp?, before: [Webhook] = []
  ) throws(JournalError) {
    guard let folder, let durable else { return }
    let old = (webhooks + before).first { $0.endpoint.name == endpoint.name }
    if let old { halt(old) }
    unopened.insert(endpoint.name)
    defer { if unopened.contains(endpoint.name) { retryLater() } }
    let new = try make(endpoint, folder, durable, continuing: old, request, since: since)
    unopened.remove(endpoint.name)
    webhooks.removeAll { $0 === old }
    webhooks.append(new)
  }

  /// Removes replaced secrets whose time is over, from the signers and from disk.
  private func endOldSecrets(_ now: Moment) {
    for var definition in definitions.values {
      let count = definition.secrets.count
      definition.dropOldSecrets(now.timestamp)
      guard definition.secrets.count < count else { continue }
      definitions[definition.name] = definition
      do throws(SystemError) { try folder?.store(definition) } catch {
        log(
          .error, "webhook_not_stored",
          [
            "webhook": definition.name, "error": "\(error)",
            "hint": "its file has a secret that ended, which the next start drops",
          ])
      }
      do throws(JournalError) { try open(definition, nil) } catch {
        log(
          .error, "webhook_stopped",
          ["webhook": definition.name, "error": "\(error)", "hint": StreamSet.retryHint])
      }
    }
  }

  private func make(
    _ endpoint: WebhookEndpoint, _ folder: ProgressFolder, _ newest: UInt64, continuing old: Webhook?,
    _ request: DeliveryCommand?, since: Timestamp?
  ) throws(JournalError) -> Webhook {
    let (file, progress, done) = try folder.open(.webhook, endpoint.name, newest, request)
    let (directory, limits) = (source.journal.directory, source.journal.limits)
    let first = progress.cursor.group
    let reader = EventReader(
      endpoint.filter, ahead: try JournalTail(directory: directory, limits: limits, next: first),
      behind: try JournalTail(directory: directory, limits: limits, next: first), cursor: progress.cursor,
      lastGroup: lastGroup)
    log(
      .info, "webhook",
      ["webhook": endpoint.name, "url": "\(endpoint.url)", "enabled": "\(progress.isEnabled)"])
    return Webhook(
      endpoint, file, progress, reader, folder.deadLetters(.webhook, endpoint.name), figures: old?.figures,
      skipping: old?.skipped(since: since, done))
  }
}
