// Questions and settings of ops over HTTP (protocol/webhooks.md): each is answered in a turn of this thread, after its
// change is stored. Webhooks of the operator's file can be inspected, replayed and tested likewise, but only the file
// changes them.
import HubBytes
import HubCore
import HubJournal
import HubMessages
import HubRuntime
import HubSystem
import HubTokens

extension WebhookLoop {
  /// Answers questions, once the journal's end is known.
  func answerQuestions(_ now: Moment) {
    guard durable != nil, !hasNewDeliveries else { return }
    for asked in control.takeQuestions() {
      do throws(WebhookFault) {
        if let answer = try answer(asked, now) { asked.answer(answer) }
      } catch {
        asked.answer(.refused(error))
      }
      nextSync = .min  // includes the change in the figures
    }
  }

  /// The answer to a question; nil for a test, which is answered when its receiver has answered.
  private func answer(_ asked: WebhookControl.Asked, _ now: Moment) throws(WebhookFault) -> WebhookAnswer? {
    switch asked.question {
    case .list: return .list(reports(now))
    case .show(let name): return .webhook(try report(name, now), secret: nil)
    case .put(let definition): return try put(definition, now)
    case .delete(let name):
      _ = try definition(name)
      try delete(name)
      return .deleted
    case .dead(let name, let limit): return .dead(try deadLetters(name, limit: limit))
    case .enable(let name):
      try reopen(try served(name), .enable)
      return .webhook(try report(name, now), secret: nil)
    case .replay(let name, let replay):
      try self.replay(replay, of: try served(name))
      return .webhook(try report(name, now), secret: nil)
    case .test(let name):
      try test(try served(name), asked.answer, now)
      return nil
    case .rotateSecret(let name): return try rotateSecret(of: name, now)
    }
  }

  // MARK: What there is

  private func reports(_ now: Moment) -> [WebhookReport] {
    let served = webhooks.map { report(of: $0.endpoint, $0, now) }
    let others = Set(definitions.keys).union(neverOpened).subtracting(webhooks.map(\.endpoint.name))
    return (served + others.compactMap(reportOfUnserved)).sorted { $0.name < $1.name }
  }

  private func report(_ name: String, _ now: Moment) throws(WebhookFault) -> WebhookReport {
    if let webhook = webhooks.first(where: { $0.endpoint.name == name }) {
      return report(of: webhook.endpoint, webhook, now)
    }
    if let report = reportOfUnserved(name) { return report }
    throw .unknown("this hub has no such webhook")
  }

  private func report(of endpoint: WebhookEndpoint, _ webhook: Webhook, _ now: Moment) -> WebhookReport {
    let figures = webhook.currentFigures(now)
    return WebhookReport(
      name: endpoint.name, isOfHTTP: definitions[endpoint.name] != nil, url: "\(endpoint.url)",
      channels: endpoint.filter.channels.map(\.description), types: endpoint.filter.types.sorted(),
      concurrency: endpoint.rule.concurrency, giveUpAfterSeconds: endpoint.rule.giveUpAfterSeconds,
      state: !figures.isEnabled ? .off : figures.isProbing ? .probing : .on, position: webhook.queue.cursor,
      figures: figures)
  }

  /// The report on a webhook that is not served: its URL is not allowed, or its files can't be opened.
  private func reportOfUnserved(_ name: String) -> WebhookReport? {
    let isOff = unopened.contains(name)
    let url: WebhookURL
    let (filter, rule): (EventFilter, WebhookRule)
    if let definition = definitions[name] {
      (url, filter, rule) = (definition.url, definition.filter, definition.rule)
    } else if let endpoint = settings.webhooks.first(where: { $0.name == name }) {
      (url, filter, rule) = (endpoint.url, endpoint.filter, endpoint.rule)
    } else {
      return nil
    }
    return WebhookReport(
      name: name, isOfHTTP: definitions[name] != nil, url: "\(url)", channels: filter.channels.map(\.description),
      types: filter.types.sorted(), concurrency: rule.concurrency, giveUpAfterSeconds: rule.giveUpAfterSeconds,
      state: isOff ? .off : .notAllowed, position: nil,
      figures: isOff ? WebhookFigures(off: name) : WebhookFigures(name: name))
  }

  private func served(_ name: String) throws(WebhookFault) -> Webhook {
    guard let webhook = webhooks.first(where: { $0.endpoint.name == name }) else {
      guard !unopened.contains(name) else {
        throw .failed("its files can't be opened, as the log says; they are tried again each minute")
      }
      _ = try definition(name)
      throw .forbidden("webhook-allow does not have its URL any more")
    }
    return webhook
  }

  /// The definition of a webhook that was set over HTTP; throws for any other name.
  private func definition(_ name: String) throws(WebhookFault) -> WebhookDefinition {
    if let found = definitions[name] { return found }
    guard settings.webhooks.contains(where: { $0.name == name }) else { throw .unknown("this hub has no such webhook") }
    throw .forbidden("this webhook is set in the file of --webhooks, which alone changes it")
  }

  private func deadLetters(_ name: String, limit: Int) throws(WebhookFault) -> [DeadLetter] {
    _ = try report(name, now)
    guard let folder else { return [] }
    do throws(SystemError) {
      return try folder.deadLetterLines(name).suffix(limit).reversed().compactMap { DeadLetter($0) }
    } catch {
      throw .failed("cannot read the dead letters: \(error)")
    }
  }

  // MARK: Setting

  private func put(_ new: WebhookDefinition, _ now: Moment) throws(WebhookFault) -> WebhookAnswer {
    guard allowed.allows(new.url) else { throw .forbidden("webhook-allow does not have this URL") }
    guard new.url.isSecure || !allowed.addresses.isEmpty else {
      throw .forbidden("http is for addresses that webhook-allow has; use https")
    }
    guard !settings.streams.contains(where: { $0.name == new.name }) else {
      throw .forbidden("a stream of this name is set in the file of --webhooks")
    }
    var definition = new
    if let present = definitions[new.name] {
      definition.secrets = present.secrets
    } else {
      guard !settings.webhooks.contains(where: { $0.name == new.name }) else {
        throw .forbidden("a webhook of this name is set in the file of --webhooks")
      }
      guard settings.webhooks.count + definitions.count < WebhookEndpoint.maximumCount else {
        throw .full("webhook limit reached (\(WebhookEndpoint.maximumCount))")
      }
      definition.secrets = [.init(secret: .random())]
    }
    let isNew = definitions[new.name] == nil
    try store(definition)
    try serve(definition, .enable)
    let secret = isNew ? definition.secrets.first?.secret.text : nil
    return .webhook(try report(definition.name, now), secret: secret)
  }

  private func delete(_ name: String) throws(WebhookFault) {
    // If the disk fails, it stays and continues.
    do throws(SystemError) { try folder?.forget(name) } catch { throw .failed("cannot remove it: \(error)") }
    if let index = webhooks.firstIndex(where: { $0.endpoint.name == name }) { end(webhooks.remove(at: index)) }
    definitions[name] = nil
    unopened.remove(name)
    do throws(SystemError) { try folder?.remove(name) } catch {
      throw .failed("it is removed, but not all that was stored of it: \(error)")
    }
    log(.info, "webhook_deleted", ["webhook": name])
  }

  private func rotateSecret(of name: String, _ now: Moment) throws(WebhookFault) -> WebhookAnswer {
    var definition = try definition(name)
    definition.dropOldSecrets(now.timestamp)
    let (secret, until) = (WebhookSecret.random(), now.timestamp + WebhookDefinition.rotationMilliseconds)
    guard definition.rotate(to: secret, until: until) else {
      throw .full("\(definition.secrets.count) secrets sign already; the oldest does for 24 h after it was replaced")
    }
    try store(definition)
    try serve(definition, nil)
    return .secret(secret.text, previousUntil: until)
  }

  private func store(_ definition: WebhookDefinition) throws(WebhookFault) {
    guard let folder else { throw .failed("the folder of the webhooks is not there") }
    do throws(KeyError) { _ = try definition.endpoint(allowed) } catch {
      throw .failed("its secrets can't sign: \(error)")
    }
    do throws(SystemError) { try folder.store(definition) } catch {
      throw .failed("cannot store the webhook: \(error)")
    }
    definitions[definition.name] = definition
  }

  private func serve(_ definition: WebhookDefinition, _ request: DeliveryCommand?) throws(WebhookFault) {
    do throws(JournalError) { try open(definition, request) } catch {
      throw .failed("the webhook is stored, but can't be served now: \(error)")
    }
  }

  // MARK: Delivering again

  private func reopen(
    _ webhook: Webhook, _ request: DeliveryCommand, since: Timestamp? = nil
  ) throws(WebhookFault) {
    guard !webhook.isOutdated else { throw .failed("its new settings could not be applied: send SIGHUP") }
    do throws(JournalError) { try open(webhook.endpoint, request, since: since) } catch {
      throw .failed("cannot continue from there: \(error)")
    }
    log(.info, "webhook_request", ["webhook": webhook.endpoint.name, "request": "\(request)"])
  }

  private func replay(_ replay: WebhookReplay, of webhook: Webhook) throws(WebhookFault) {
    switch replay {
    case .from(let id):
      _ = try events([id], of: webhook)
      try reopen(webhook, .replay(from: id))
    case .since(let time):
      let group = try firstGroup(notAfter: time.milliseconds)
      try reopen(webhook, .replayFrom(JournalPosition(group: group, record: 0)), since: time)
    case .events(let ids):
      try reopen(webhook, .replayEvents(try events(ids, of: webhook)))
    }
  }

  /// The first group of the journal's newest segment begun by `time` (ms since 1970), or of the oldest.
  private func firstGroup(notAfter time: Int64) throws(WebhookFault) -> UInt64 {
    do throws(JournalError) { return try folder?.tail(from: 0).firstGroup(notAfter: time) ?? 0 } catch {
      throw .failed("cannot read the journal: \(error)")
    }
  }

  /// Throws for an event of another hub, whose position means nothing in this journal.
  private func check(_ id: EventID, of webhook: Webhook) throws(WebhookFault) {
    guard id.epoch == webhook.epoch else {
      throw .unknown("\(id) is no event of this hub's journal: here ids begin with evt_\(webhook.epoch)_")
    }
  }

  /// The events with these ids, in the journal's order. Costs a walk over each segment that has one.
  private func events(_ ids: [EventID], of webhook: Webhook) throws(WebhookFault) -> [PendingEvent] {
    guard let folder else { throw .failed("the folder of the webhooks is not there") }
    for id in ids { try check(id, of: webhook) }
    let wanted = Set(ids.map(\.position))
    var found: [PendingEvent] = []
    do throws(JournalError) {
      let tail = try folder.tail(from: 0)
      for number in Set(wanted.map(\.group)).sorted() {
        tail.seek(to: number)
        _ = try unsafe tail.read(through: min(number, durable ?? 0)) { group, payload in
          unsafe StoredEvents.forEach(in: payload) { event, offset in
            let position = JournalPosition(group: group.number, record: UInt32(offset))
            if wanted.contains(position), webhook.endpoint.filter.matches(event) {
              found.append(PendingEvent(position: position, channel: event.channel))
            }
            return true
          }
        }
      }
    } catch {
      throw .failed("cannot read the journal: \(error)")
    }
    if let id = ids.first(where: { id in !found.contains { $0.position == id.position } }) {
      throw .unknown("the journal has no event of this webhook with the id \(id)")
    }
    return found
  }

  // MARK: Testing

  private func test(
    _ webhook: Webhook, _ answer: @escaping @Sendable (WebhookAnswer) -> Void, _ now: Moment
  ) throws(WebhookFault) {
    guard !webhook.attempts.contains(where: \.isTest) else { throw .busy("a test of this webhook is under way") }
    var body = ByteBuffer()
    body.append("{\"type\":\"test\",\"timestamp\":", now.timestamp, as: .rfc3339)
    body.append(",\"data\":{}}")
    let id = "test_\(now.timestamp.milliseconds)_\(String(UInt64(chance() * 0x1p52), radix: 36))"
    begin(.test(answer), id, body.array(), webhook, now)
  }

  static func answer(
    toTest reply: WebhookReply, _ reason: String, _ attempt: Attempt, _ now: Moment
  ) -> WebhookAnswer {
    let milliseconds = Double(max(0, now.uptime - attempt.began)) / 1e6
    return switch reply {
    case .status(let status, _): .tested(status: status, reason: reason, milliseconds: milliseconds)
    case .none: .tested(status: nil, reason: reason, milliseconds: milliseconds)
    }
  }
}

extension WebhookSecret {
  /// A new one of 32 bytes, from the system's source of randomness.
  static func random() -> WebhookSecret {
    guard let secret = WebhookSecret(bytes: (0..<32).map { _ in UInt8.random(in: .min ... .max) }) else {
      preconditionFailure("32 bytes are enough")
    }
    return secret
  }
}
