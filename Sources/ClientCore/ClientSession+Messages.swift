// The hub's messages: frames into messages, and their effect on the queue, the subscriptions and the heartbeat before
// the application sees them.
import HubBytes
public import HubMessages
import HubWebSocket

extension ClientSession {
  /// Takes bytes, which are unmasked and read in place, so they may be changed. `deliver` is called with every message
  /// for the application, `connected` first; `raw` may take a message before it is parsed (true), for load generators
  /// that read only some bytes.
  public func received(
    _ bytes: UnsafeMutableRawBufferPointer, now: Moment, reader: MessageReader,
    raw: (UnsafeRawBufferPointer) -> Bool = { _ in false }, deliver: (borrowing ServerEnvelope) -> Void
  ) {
    guard let connection = phase.connection else { return }
    (connection.lastHeard, connection.answersBy) = (now.uptime, .max)
    var offset = 0
    let socketLimits = limits.socket
    do throws(ClientSocketError) {
      while let event = try unsafe connection.socket.next(in: bytes, at: &offset, limits: socketLimits) {
        switch event {
        case .opened(let subprotocol): upgraded(subprotocol)
        case .message(let kind, let payload):
          counters.messagesIn += 1
          if phase.isOpen, unsafe raw(payload) { continue }
          unsafe read(payload, kind, connection, now, reader, deliver)
        case .close(let code): return receivedClose(code, now)
        }
      }
    } catch {
      switch error {
      case .notHTTP(let error): giveUp(.notHTTP(error))
      case .handshake(let error, let head, let body): refused(error, head, body: body)
      case .frame(let error): failed(error, now)
      }
    }
  }

  /// An unreadable message is counted and ignored: the hub sends none.
  private func read(
    _ payload: UnsafeRawBufferPointer, _ kind: MessageKind, _ connection: ClientConnection, _ now: Moment,
    _ reader: MessageReader, _ deliver: (borrowing ServerEnvelope) -> Void
  ) {
    do throws(MessageError) {
      switch form {
      case .json(let time):
        let envelope = try unsafe reader.readServer(payload, time: time, isValidUTF8: kind == .text)
        if note(envelope, bytes: payload.count, connection, now) { deliver(envelope) }
      case .binary:
        // Nil for `names`, which changes only the reader's state.
        guard let envelope = try unsafe connection.binary?.reader.read(payload) else { break }
        if note(envelope, bytes: payload.count, connection, now) { deliver(envelope) }
      }
    } catch {
      counters.unreadable += 1
    }
  }

  /// Handles a message of so many bytes; false where it is not for the application.
  private func note(
    _ envelope: borrowing ServerEnvelope, bytes: Int, _ connection: ClientConnection, _ now: Moment
  ) -> Bool {
    switch envelope.message {
    case .publication(let publication): return note(publication, bytes: bytes, connection, now)
    case .reply(let reply):
      chargeAnswer(reply, bytes: bytes, connection, now)
      return note(reply, connection, now)
    case .unknown:
      if let id = envelope.unknownReplyTo, let number = number(of: id) { _ = confirm(number) }
      guard let event = envelope.unknownEvent else { return true }
      return noteEvent(event.channel, event.sequence, bytes: bytes, connection, now)
    }
  }

  private func note(
    _ publication: borrowing Publication, bytes: Int, _ connection: ClientConnection, _ now: Moment
  ) -> Bool {
    switch publication.body {
    case .driverLocation(let location):
      subscriptions.state(publication.channel, after: location.after, now: now.uptime, limits: limits)
      return true
    case .areaUpdate, .rawFix, .countsUpdate, .stats: return true
    case .etaUpdate(let update):
      subscriptions.state(publication.channel, after: update.after, now: now.uptime, limits: limits)
      return true
    case .tripUpdate(let update):
      return noteEvent(publication.channel, update.sequence, bytes: bytes, connection, now)
    case .notification(let notification):
      return noteEvent(publication.channel, notification.sequence, bytes: bytes, connection, now)
    case .offer(let offer): return noteEvent(publication.channel, offer.sequence, bytes: bytes, connection, now)
    }
  }

  private func noteEvent(
    _ channel: Channel, _ sequence: UInt64, bytes: Int, _ connection: ClientConnection, _ now: Moment
  ) -> Bool {
    if let missed = connection.missed, missed.channel == channel, sequence <= missed.through {
      chargeMissed(bytes: bytes, connection, now)
    }
    switch subscriptions.event(channel, sequence: sequence, now: now.uptime, limits: limits) {
    case .deliver: return true
    case .drop:
      counters.eventsDropped += 1
      return false
    }
  }

  // MARK: What answers cost

  /// Charges a rider for a long answer, as the hub does. The hub charges no more than a full bucket; a client does not
  /// know the size of that, and charges in full.
  private func chargeAnswer(_ reply: borrowing Reply, bytes: Int, _ connection: ClientConnection, _ now: Moment) {
    guard connected?.role == .rider else { return }
    switch reply {
    case .result(let answer):
      guard case .trip = answer.result else { return }
      connection.budget.charge(Double(WorkUnits.ofAnswer(bytes: connection.bytesInHub(bytes))), now: now.uptime)
    case .subscribed(let answer):
      connection.missed = MissedEvents(channel: answer.channel, through: answer.sequence)
      chargeMissed(bytes: bytes, connection, now)
    case .connected, .unsubscribed, .ack, .pong, .sampling, .error: return
    }
  }

  /// Counts the answer to a subscription, or one of its missed events: together they are one answer.
  private func chargeMissed(bytes: Int, _ connection: ClientConnection, _ now: Moment) {
    guard var missed = connection.missed else { return }
    let before = WorkUnits.ofAnswer(bytes: missed.bytes)
    missed.bytes += connection.bytesInHub(bytes)
    connection.budget.charge(Double(WorkUnits.ofAnswer(bytes: missed.bytes) - before), now: now.uptime)
    connection.missed = missed
  }

  // MARK: Replies

  private func note(_ reply: borrowing Reply, _ connection: ClientConnection, _ now: Moment) -> Bool {
    switch reply {
    case .connected(let greeting): open(greeting, now)
    case .subscribed(let answer):
      let isNewest = subscriptions.answered(answer, to: numbering.number(of: answer.replyTo), now: now.uptime)
      // An answer to an earlier request of a moved view: updates of its cells come until the newer one is answered.
      return isNewest || answer.viewID != nil
    case .unsubscribed(let answer):
      // A channel that this client has left is not in the list any more: an entry of its name is a newer subscription.
      if !answer.isAsked { _ = subscriptions.remove(answer.channel) }
    case .ack(let ack):
      guard let number = self.number(of: ack.replyTo) else { break }
      if noteRefresh(number, isTaken: true, now) { return false }
      _ = confirm(number)
    case .pong(let pong): note(pong, connection, now)
    case .sampling(let advice):
      sampling = Connected.Sampling(interval: advice.interval, minDistance: advice.minDistance)
    case .result(let answer): if let number = numbering.number(of: answer.replyTo) { _ = queue.confirm(number) }
    case .error(let error):
      guard let id = error.replyTo, let number = number(of: id) else { break }
      if noteRefresh(number, isTaken: false, now) { return false }
      note(error, number, connection, now)
    }
    return true
  }

  /// The number of the message that an answer names; nil for a foreign one. In binary a live fix's id is its number.
  private func number(of id: MessageID) -> UInt64? {
    numbersByID[id] ?? numbering.number(of: id) ?? (form == .binary ? id.number : nil)
  }

  /// The message with this number is answered. Gives it; nil where there is none.
  private func confirm(_ number: UInt64) -> SendQueue.Payload? {
    let payload = queue.confirm(number)
    if case .message(let queued)? = payload, let id = queued.id { numbersByID[id] = nil }
    return payload
  }

  private func note(_ pong: Pong, _ connection: ClientConnection, _ now: Moment) {
    guard let number = numbering.number(of: pong.replyTo),
      let index = connection.pingsSent.firstIndex(where: { $0.number == number })
    else { return }
    let ping = connection.pingsSent[index]
    connection.pingsSent.removeFirst(index + 1)  // pongs come in order
    if let through = pong.storedThrough {
      storedThrough = max(through, storedThrough ?? through)
      queue.confirmFixes(through: through, sentThrough: ping.sentThrough)
    }
    // Fixes sent before a ping that was answered long ago are stored by now, or the hub could not store them, as on a
    // full disk: then they have to be sent again.
    if let before = connection.answeredPing {
      guard now.uptime - before.uptime >= nanoseconds(limits.storedSeconds), let connected else { return }
      queue.resendFixes(through: before.sentThrough, maximumBatch: maximumBatch(connected))
      queue.resendHeld(maximumBatch: maximumBatch(connected))
    }
    connection.answeredPing = (ping.sentThrough, now.uptime)
  }

  /// An error for a message of this client.
  private func note(_ error: ErrorReply, _ number: UInt64, _ connection: ClientConnection, _ now: Moment) {
    let retry = error.code.facts.retry
    let retryAt: Int64?
    // A refused subscription is repeated with a growing delay.
    let failures = subscriptions.failures(of: number) + 1
    switch retry {
    case .later:
      let seconds = min(max(error.retryAfter ?? limits.retryAfterSeconds, 0), limits.longestRetryAfter)
      retryAt = now.uptime + nanoseconds(failures > 1 ? max(seconds, limits.delay(before: failures - 1)) : seconds)
    case .once:
      // The fault is the hub's, so a subscription is repeated without end; a newer hub's code may be permanent.
      let isLast = error.hasNewerCode && failures >= limits.newerRefusals
      retryAt = isLast ? nil : now.uptime + nanoseconds(limits.delay(before: failures))
    case .never, .changed, .withNewToken: retryAt = nil
    }
    lastRefused = nil
    if subscriptions.refused(number, retryAt: retryAt) { return }
    switch retryAt.map({ queue.retry(number, once: retry == .once, at: $0) }) ?? .never {
    case .first: connection.queueNotBefore = max(connection.queueNotBefore, retryAt ?? .min)
    case .postponed: break
    case .never: if retry != .once || !queue.hold(number) { lastRefused = confirm(number) }
    }
  }
}

extension ClientConnection {
  /// The hub's count of bytes for the message that was read last.
  fileprivate func bytesInHub(_ bytes: Int) -> Int {
    let compressed = socket.compressedBytes
    return bytes + compressed + FrameWriter.maximumServerHeader * (compressed > 0 ? 2 : 1)
  }
}
