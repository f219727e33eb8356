// From an event to bytes on a connection: the request (Standard Webhooks), the address of its receiver, and an idle
// connection or a new one.
import HubBytes
import HubJournal
import HubMessages
import HubRuntime
import HubSystem
import HubTransport

extension WebhookLoop {
  /// Begins a try.
  func deliver(_ event: PendingEvent, _ webhook: Webhook, _ now: Moment) throws(JournalError) {
    var body = ByteBuffer()
    guard let publication = try webhook.event(on: event.channel), WebhookBody.write(publication, into: &body) else {
      log(
        .error, "webhook_lost",
        ["webhook": webhook.endpoint.name, "id": webhook.id(of: event), "hint": "retention deleted it, or damage"])
      return webhook.lost(event.channel)
    }
    begin(.event(on: event.channel), webhook.id(of: event), body.array(), webhook, now)
  }

  /// Sends a finished body.
  func begin(_ subject: Attempt.Subject, _ id: String, _ body: [UInt8], _ webhook: Webhook, _ now: Moment) {
    let endpoint = webhook.endpoint
    let request = endpoint.signer.post(
      body, "application/json", to: endpoint.url, id: id, timestamp: now.timestamp, userAgent: userAgent)
    let attempt = Attempt(subject, id: id, request: request, began: now.uptime)
    webhook.attempts.append(attempt)
    send(attempt, webhook, now)
  }

  /// Sends over an idle connection, or makes a new one.
  func send(_ attempt: Attempt, _ webhook: Webhook, _ now: Moment) {
    while let id = webhook.idle.popLast() {
      guard links[id] != nil else { continue }
      links[id]?.attempt = attempt
      links[id]?.response = ReplyReader()
      links[id]?.isUsed = true
      links[id]?.idleUntil = .max
      (attempt.connection, attempt.isOnUsedConnection) = (id, true)
      return write(attempt)
    }
    if let address = webhook.endpoint.url.address {
      attempt.untried = [address]
    } else if webhook.addressesUntil > now.uptime {
      attempt.untried = webhook.addressOrder.order(webhook.addresses)
    } else {
      return lookUp(webhook, now)
    }
    connect(attempt, webhook, now)
  }

  private func write(_ attempt: Attempt) {
    let start = loop.arena.count
    loop.arena.append(attempt.request)
    loop.send(start..<loop.arena.count, to: attempt.connection)
  }

  /// Connects to the first allowed address.
  func connect(_ attempt: Attempt, _ webhook: Webhook, _ now: Moment) {
    attempt.isOnUsedConnection = false
    var reason = "no address"
    while !attempt.untried.isEmpty {
      let address = attempt.untried.removeFirst()
      guard webhook.endpoint.addresses.allows(address, isSecure: webhook.endpoint.url.isSecure) else {
        reason = "\(address.host) is inside, or http, and not in allow"
        continue
      }
      do throws(SystemError) {
        let id = try loop.connect(address, tls: webhook.peer)
        (attempt.connection, attempt.address, attempt.dialled) = (id, address, now.uptime)
        links[id] = Link(webhook: webhook, attempt: attempt)
        return write(attempt)
      } catch {
        webhook.addressOrder.note(failed: address)
        reason = "\(error)"
      }
    }
    attempt.connection = .none
    finish(attempt, webhook, .none, reason, now)
  }

  // MARK: Names

  /// Looks up the receiver's host, unless that is under way, or has to wait for other look-ups.
  private func lookUp(_ webhook: Webhook, _ now: Moment) {
    let lookup = Lookup(webhook.endpoint)
    let open = lookups.values.filter { $0.webhook == lookup.webhook }
    guard !open.contains(lookup), open.count < Self.openLookups else { return }
    lastLookup += 1
    if names.ask(.init(client: 0, attempt: lastLookup, host: lookup.host, port: lookup.port)) {
      lookups[lastLookup] = lookup
    } else {
      resolved(webhook, [], "too many names are being looked up", now)
    }
  }

  /// Takes the resolver's results.
  func takeAddresses(_ now: Moment) {
    for answer in names.takeAnswers() {
      if answer.question.client == StreamSet.resolverClient {
        streams.take(answer, now)
        continue
      }
      guard let lookup = lookups.removeValue(forKey: answer.question.attempt),
        let webhook = webhooks.first(where: { $0.endpoint.name == lookup.webhook })
      else { continue }
      guard lookup == Lookup(webhook.endpoint) else {
        if webhook.attempts.contains(where: { $0.connection == .none }) { lookUp(webhook, now) }
        continue
      }
      switch answer.result {
      case .failure(let error): resolved(webhook, [], error.text, now)
      case .success(let addresses): resolved(webhook, addresses, "", now)
      }
    }
  }

  private func resolved(_ webhook: Webhook, _ addresses: [SocketAddress], _ reason: String, _ now: Moment) {
    webhook.addresses = addresses
    webhook.addressesUntil = addresses.isEmpty ? .min : now.uptime + Self.addressTime
    for attempt in webhook.attempts where attempt.connection == .none {
      if addresses.isEmpty {
        finish(attempt, webhook, .none, "cannot look up \(webhook.endpoint.url.host): \(reason)", now)
      } else {
        attempt.untried = webhook.addressOrder.order(addresses)
        connect(attempt, webhook, now)
      }
    }
  }
}
