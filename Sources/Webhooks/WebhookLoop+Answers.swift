// The outcome of requests: an answer, a timeout, or a connection that ends.
import HubHTTP
import HubMessages
import HubRuntime
import HubSystem
public import HubTransport

extension WebhookLoop {
  /// A receiver's connection is open: a request that fails from now on is not tried at its next address.
  public func connected(_ id: ConnectionID) {
    links[id]?.isConnected = true
    streams.connected(id, now)
  }

  /// Reads a receiver's response, and settles its request where it is complete; what is no HTTP/1.1 is a failed
  /// delivery.
  public func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard var link = links[id] else { return unsafe streams.received(id, UnsafeRawBufferPointer(bytes), now) }
    // Unsolicited: over an idle connection nothing is owed, and its bytes could be taken for the next request's answer.
    guard link.attempt != nil || link.isUnfinished else { return drop(id) }
    do throws(HTTPError) {
      let progress = try unsafe link.response.read(UnsafeRawBufferPointer(bytes))
      links[id] = link
      guard case .answered(let reply, let isComplete, let keepsAlive) = progress else { return }
      if let attempt = link.attempt {
        links[id]?.attempt = nil
        finish(attempt, link.webhook, reply, "", now)
      }
      guard isComplete else { return wait(forRestOf: id, link) }
      if keepsAlive { rest(id, link.webhook) } else { drop(id) }
    } catch {
      drop(id)
      if let attempt = link.attempt { finish(attempt, link.webhook, .none, "no HTTP/1.1: \(error)", now) }
    }
  }

  /// The receiver does not read its request: the delivery has failed.
  public func overflowed(_ id: ConnectionID) {
    fail(id, "it does not take the request")
    streams.overflowed(id, now)
  }

  /// A connection has ended. A request that had no answer is sent again at once where the connection was an old one,
  /// tried at the receiver's next address where none was made, and has failed otherwise.
  public func closed(_ id: ConnectionID, _ cause: CloseCause) {
    guard let link = links.removeValue(forKey: id) else { return streams.closed(id, "\(cause)", now) }
    link.webhook.idle.removeAll { $0 == id }
    guard let attempt = link.attempt else { return }
    attempt.connection = .none
    let isUnheard = attempt.isOnUsedConnection && link.response.isUntouched
    if isUnheard { return send(attempt, link.webhook, now) }
    if !link.isConnected, !attempt.untried.isEmpty { return connectElsewhere(attempt, link.webhook, now) }
    finish(attempt, link.webhook, .none, "\(cause)", now)
  }

  private func connectElsewhere(_ attempt: Attempt, _ webhook: Webhook, _ now: Moment) {
    if let address = attempt.address { webhook.addressOrder.note(failed: address) }
    connect(attempt, webhook, now)
  }

  /// An answer's head has come, and the rest has not: it may take `answerTime`. As many connections may wait for that
  /// as there are tries at once; a further one is closed.
  private func wait(forRestOf id: ConnectionID, _ link: Link) {
    if link.isUnfinished { return }
    let unfinished = links.values.count { $0.isUnfinished && $0.webhook === link.webhook }
    guard unfinished < link.webhook.endpoint.rule.concurrency else { return drop(id) }
    links[id]?.isUnfinished = true
    links[id]?.idleUntil = now.uptime + Self.answerTime
  }

  /// The connection becomes idle.
  private func rest(_ id: ConnectionID, _ webhook: Webhook) {
    links[id]?.isUnfinished = false
    links[id]?.idleUntil = now.uptime + Self.idleTime
    webhook.idle.append(id)
    webhook.nextStep = .min
  }

  private func drop(_ id: ConnectionID) {
    links.removeValue(forKey: id)?.webhook.idle.removeAll { $0 == id }
    loop.abort(id)
  }

  private func fail(_ id: ConnectionID, _ reason: String) {
    guard let link = links[id] else { return }
    drop(id)
    if let attempt = link.attempt { finish(attempt, link.webhook, .none, reason, now) }
  }

  /// Ends a try: gives its outcome to the queue and the log, or to the operator who asked for a test.
  func finish(_ attempt: Attempt, _ webhook: Webhook, _ reply: WebhookReply, _ reason: String, _ now: Moment) {
    webhook.attempts.removeAll { $0 === attempt }
    if reply == .none, let address = attempt.address { webhook.addressOrder.note(failed: address) }
    let channel: Channel
    switch attempt.subject {
    case .event(let on): channel = on
    case .test(let answer): return answer(Self.answer(toTest: reply, reason, attempt, now))
    }
    let wasProbing = webhook.queue.isProbing
    let outcome = webhook.answered(attempt, on: channel, reply, now, unit: chance())
    webhook.nextStep = .min
    let result = if case .status(let status, _) = reply { "\(status)" } else { reason }
    switch outcome {
    case .delivered:
      if wasProbing { log(.info, "webhook_back", ["webhook": webhook.endpoint.name]) }
    case .retry:
      log(.debug, "webhook_failed", ["webhook": webhook.endpoint.name, "id": attempt.id, "result": result])
      if webhook.queue.isProbing, !wasProbing {
        log(
          .warning, "webhook_down",
          [
            "webhook": webhook.endpoint.name, "result": result,
            "hint": "one request at a time goes out until one succeeds",
          ])
      }
    case .dead:
      log(
        .error, "webhook_dead",
        ["webhook": webhook.endpoint.name, "id": attempt.id, "channel": "\(channel)", "result": result])
      store(webhook) { (webhook) throws(SystemError) in
        try webhook.deadLetters.append(
          id: attempt.id, channel: "\(channel)", reason: result, at: now.timestamp)
      }
    case .disabled:
      log(
        .error, "webhook_disabled",
        [
          "webhook": webhook.endpoint.name,
          "hint": "its receiver answered 410; locationhub webhooks enable has it served again",
        ])
    }
  }

  // MARK: Time

  /// Ends tries without an answer in time, and idle connections, and tries the next address where one does not connect.
  func expire(_ now: Moment) {
    for webhook in webhooks {
      for attempt in webhook.attempts where attempt.began + Self.answerTime <= now.uptime {
        drop(attempt.connection)
        finish(attempt, webhook, .none, "no answer in time", now)
      }
      for attempt in webhook.attempts where connectDeadline(attempt).map({ $0 <= now.uptime }) ?? false {
        drop(attempt.connection)
        connectElsewhere(attempt, webhook, now)
      }
    }
    for (id, link) in links where link.idleUntil <= now.uptime { drop(id) }
  }

  /// When a try's next address is tried; nil where it is connected, or has no other.
  private func connectDeadline(_ attempt: Attempt) -> Int64? {
    guard !attempt.untried.isEmpty, let link = links[attempt.connection], !link.isConnected else { return nil }
    return attempt.dialled + AddressOrder.connectTime
  }

  /// When `expire` is due next (uptime, ns).
  var nextDeadline: Int64 {
    var next = links.values.lazy.map(\.idleUntil).min() ?? .max
    for attempt in webhooks.lazy.flatMap(\.attempts) {
      next = min(next, attempt.began + Self.answerTime, connectDeadline(attempt) ?? .max)
    }
    return next
  }

  /// Ends all connections of a webhook.
  func end(_ webhook: Webhook) {
    for (id, link) in links where link.webhook === webhook { drop(id) }
    for case .test(let answer) in webhook.attempts.map(\.subject) {
      answer(.refused(.busy("the webhook was set anew meanwhile; ask again")))
    }
    webhook.attempts.removeAll()
  }
}
