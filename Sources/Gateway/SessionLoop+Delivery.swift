// Delivers the hub's output: publications and subscriptions to the fan-out, answers to the asking session or request.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubTransport

extension SessionLoop {
  mutating func deliverOutputs() {
    var cursor = HubOutputs.Cursor()
    while let step = outputs.next(&cursor) {
      switch step {
      // Read in place: only the hub appends to the list, and it does not run before all are delivered.
      case .common(let index): unsafe fanOut.publish(outputs.pointer(ofCommon: index))
      case .rare(let index): deliver(outputs[rare: index])
      }
      fanOut.flushIfLarge()
    }
    outputs.removeAll()
    while let connection = fanOut.streams.nextEnded() {  // nothing is left to follow
      if sessions.isCurrent(connection) { close(Int(connection.slot), .normal) }
    }
  }

  private mutating func deliver(_ output: HubOutput) {
    switch output {
    case .delivery(let delivery): fanOut.publish(delivery)
    case .areaUpdate(let channel, let publication): fanOut.add(areaUpdate: publication, of: channel)
    case .areaTickEnded(let due): fanOut.endAreaTick(in: sessions, due: due)
    case .areaSnapshot(let session, let channel, let parts): fanOut.deliver((session, channel, parts), in: sessions)
    case .subscribed(let session, let channel, let answer, let missed, let isParty):
      guard let slot = answeredSlot(of: session, .subscribed(answer), counted: [channel]) else { return }
      subscribed(slot, to: channel, answer, missed, isParty: isParty)
    case .watching(let session, let answer, let cells):
      guard let slot = answeredSlot(of: session, .subscribed(answer), counted: cells) else { return }
      watching(slot, answer, cells)
    case .viewEnded(let session, let messageID, let view):
      guard let slot = sessions.openSlot(of: session) else { return }
      refuse(slot, fanOut.viewEnded(&sessions[slot], messageID, view, queuing: &inputs))
    case .subscriptionRefused(let session, let error):
      guard let slot = answeredSlot(of: session, .refused(error), counted: []) else { return }
      send(.error(error), to: slot)
      if sessions[slot].stream != nil { close(slot, .tryAgainLater) }
    case .unsubscribed(let session, let messageID, let channel, let name):
      guard let slot = sessions.openSlot(of: session) else { return }
      let answer = Unsubscribed(replyTo: messageID, channel: name, reason: .asked)
      fanOut.unsubscribed(&sessions[slot], from: channel, answer, queuing: &inputs)
    case .named(let session, let channel, let name, let isParty):
      guard let slot = sessions.openSlot(of: session) else { return }
      fanOut.named(&sessions[slot], channel, name, isParty: isParty, queuing: &inputs)
    case .channelEnded(let channel, let name, let reason):
      fanOut.end(channel, name, reason, in: &sessions, queuing: &inputs)
    case .shareEnded(let channel, let name, let holder):
      fanOut.end(channel, name, .revoked, in: &sessions, where: { $0.id == holder }, queuing: &inputs)
    case .channelClaimed(let channel, let name, let driver):
      fanOut.claimed(channel, name, by: driver, in: &sessions, queuing: &inputs)
    case .reply(let session, let reply): deliver(reply, to: session)
    case .admitted(let session, let sampling): if let slot = sessions.slot(of: session) { admit(slot, sampling) }
    case .conflict(let session, let retryAfter):
      refuseDriver(session, .conflict, "this driver's sessions replace each other too often", retryAfter)
    case .full(let session): refuseDriver(session, .serviceUnavailable, "this hub's driver table is full", 60)
    case .replaced(let session, let isRepeated):
      guard let slot = sessions.slot(of: session) else { return }
      // A client that reconnected after it was replaced gets 1000, since it reconnects after every other code.
      close(slot, isRepeated ? .normal : .replaced, "\(CloseReason.replaced.text)")
    case .trips(let session, let answer, let replyTo): reply(.trips(answer), to: session, replyTo: replyTo)
    case .notified(let session, let answer): reply(.notification(answer), to: session)
    case .fences(let session, let answer): reply(.fences(answer), to: session)
    case .credentials(let session, let answer): reply(.credentials(answer), to: session)
    case .revoked(let change): sweep.apply(change, to: access.value, now: now.uptime)
    case .channelRestarted(let channel, let answer): fanOut.restarted(channel, answer)
    case .cluster: preconditionFailure("what is the cluster's goes to its own outlet")
    case .queryResult(let session, let result, let replyTo): reply(.query(result), to: session, replyTo: replyTo)
    }
  }

  /// Sends the answer to a subscription and the missed events behind it.
  private mutating func subscribed(
    _ slot: Int, to channel: ChannelHandle, _ answer: Subscribed, _ missed: [Publication], isParty: Bool
  ) {
    let before = loop.arena.count
    let refusal = fanOut.subscribed(
      &sessions[slot], to: channel, answer, missed: missed, isParty: isParty, queuing: &inputs)
    if refusal == nil { budget.chargeAnswer(&sessions[slot], bytes: loop.arena.count - before) }
    refuse(slot, refusal)
    if sessions[slot].stream != nil { followed(slot, wasMuch: !missed.isEmpty, refusal) }
  }

  /// Sends the answer to a subscription to cells.
  private mutating func watching(_ slot: Int, _ answer: Subscribed, _ cells: [ChannelHandle]) {
    var refused: MessageRefusal?
    switch fanOut.watching(&sessions[slot], answer, cells, queuing: &inputs) {
    case .refused(let refusal): refused = refusal
    case .watches(let new): budget.chargeCells(&sessions[slot], new: new, on: answer.channel)
    }
    refuse(slot, refused)
    if sessions[slot].stream != nil { followed(slot, wasMuch: false, refused) }
  }

  /// The session whose subscription was answered; nil where it has ended, or a request only checked the channel. The
  /// hub has counted subscriptions that have no owner then: these are released.
  private mutating func answeredSlot(
    of session: SessionRef, _ check: EventStream.ChannelCheck, counted channels: [ChannelHandle]
  ) -> Int? {
    guard let slot = sessions.openSlot(of: session) else {
      fanOut.release(channels, &inputs)
      checked(session, check, channels)
      return nil
    }
    budget.answered(&sessions[slot])
    return slot
  }

  // MARK: Questions and answers

  /// Puts a question to the hub; throws where the asker may not, or not now.
  mutating func ask(_ question: QueryRequest, for asker: Asker) throws(ErrorReply) {
    let input = try asker.input(for: question, maximumLimit: limits.hub.queryHits)
    if case .drivers = question { try pending.lists.admitQuery(asker, &counters) }
    inputs.append(input)
  }

  /// The hub's answer, to the message of a session or to the request that asked.
  mutating func reply(_ answer: HubAnswer, to session: SessionRef, replyTo: MessageID? = nil) {
    guard let slot = sessions.slot(of: session) else { return }
    var answer = answer
    if case .query(.drivers(var list)?) = answer, !sessions[slot].awaitsVehicles {
      guard let (asker, form, isCompressed) = sessions[slot].asker(session, replyTo: replyTo) else { return }
      guard pending.lists.mayWriteAtOnce(list, isCompressed: isCompressed, in: loop.turn) else {
        return pending.lists.append(DriverListReply(list, to: asker, form, isCompressed: isCompressed))
      }
      list.sort()
      answer = .query(.drivers(list))
    }
    guard let replyTo else { return answerRequest(of: session, answer) }
    if sessions[slot].phase == .open, sessions[slot].open.rights.isShare { answer = answer.withoutIDs }
    guard let reply = answer.reply(to: replyTo) else { return }
    let before = loop.arena.count
    send(reply, to: slot)
    if case .trips(.trip) = answer { budget.chargeAnswer(&sessions[slot], bytes: loop.arena.count - before) }
  }

  /// Delivers a reply to the session, or to the request that it stands for.
  private mutating func deliver(_ reply: Reply, to session: SessionRef) {
    if case .ack(let ack) = reply, let origin = ack.origin {
      counters.ackTimes[Int(origin.kind.rawValue)].record(nanoseconds: now.uptime - origin.since)
    }
    if let slot = sessions.openSlot(of: session) {
      send(reply, to: slot)
    } else if let answer = HubAnswer(reply) {
      answerRequest(of: session, answer)
    }
  }

  /// Delivers the journal's answers, and the counters that all loops have published.
  mutating func deliverAnswers() {
    for (session, answer) in pending.takeAnswers(http.settings, &counters, now: now.uptime) {
      answerRequest(of: session, answer)
      fanOut.flushIfLarge()
    }
    while budget.hasUnits, let (session, answer) = pending.nextUnsigned() { answerRequest(of: session, answer) }
  }

  /// Continues lists of many drivers, until the turn's share of them is gone, and asks for the next pages of feeds.
  mutating func writeLists() {
    pending.askPostponed(&inputs)
    while let (reply, share) = pending.lists.next(in: loop.turn) {
      guard let slot = sessions.slot(of: reply.asker),
        pending.lists.write(reply, share: share, loop, &fanOut, &counters)
      else { continue }
      if reply.asker.replyTo == nil {
        answerRequest(of: reply.asker.session, .made(reply.response(largest: limits.largestAnswer)))
      } else if let replyTo = reply.asker.replyTo, !fanOut.send(reply, replyTo, to: sessions[slot].recipient) {
        refuse(slot, MessageRefusal(.tooLarge, HubAnswer.tooLarge, replyTo: replyTo))
      }
      fanOut.flushIfLarge()
    }
  }
}
