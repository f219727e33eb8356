// What comes out of the hub: publications go to fan-out, answers to the session or the request that asked.
import HubBytes
import HubCore
import HubMessages
import HubTransport

extension SessionLoop {
  mutating func deliverOutputs() {
    if outputs.isEmpty { return }
    var cursor = HubOutputs.Cursor()
    while let step = outputs.next(&cursor) {
      switch step {
      // Looked at where it lies: only the hub appends to the list, and it is not asked before all are delivered.
      case .common(let place): fanOut.publish(outputs.place(ofCommon: place))
      case .rare(let place): deliver(outputs[rare: place])
      }
      fanOut.flushIfLarge()
    }
    outputs.removeAll()
  }

  private mutating func deliver(_ output: HubOutput) {
    switch output {
    case .delivery(let delivery): fanOut.publish(delivery)
    case .subscribed(let session, let channel, let answer, let missed, let isParty):
      subscribed(session, channel, answer, missed, isParty: isParty)
    case .areaUpdate(let channel, let publication): fanOut.add(areaUpdate: publication, of: channel)
    case .areaTickEnded: for (session, channel, cell) in fanOut.endAreaTick() { sendWhole(session, channel, cell) }
    case .watching(let session, let answer, let cells): watching(session, answer, cells)
    case .wholeArea(let session, let channel, let publication): sendWhole(session, channel, publication)
    case .viewEnded(let session, let messageID, let view): viewEnded(session, messageID, view)
    case .subscriptionRefused(let session, let error):
      guard let slot = openSlot(of: session) else { return }
      subscriptionAnswered(slot)
      send(.error(error), to: slot)
    case .unsubscribed(let session, let messageID, let channel, let name):
      guard let slot = slot(of: session) else { return }
      _ = fanOut.unsubscribe(&sessions[slot].subscriptions, from: channel, telling: &inputs)
      send(.unsubscribed(Unsubscribed(replyTo: messageID, channel: name, reason: .asked)), to: slot)
    case .named(let session, let channel, let name, let isParty):
      if let slot = slot(of: session) { review(slot, channel, name, isParty: isParty) }
    case .channelClaimed(let channel, let name, let driver): claimed(channel, name, by: driver)
    case .channelEnded(let channel, let name, let reason):
      for subscriber in fanOut.subscribers(of: channel) {
        end(Int(subscriber.connection.slot), channel, name, reason)
      }
    case .reply(let session, let reply):
      deliver(reply, to: session)
    case .admitted(let session, let sampling):
      if let slot = slot(of: session) { admit(slot, sampling) }
    case .conflict(let session, let retryAfter):
      let message = "this driver's sessions replace each other too often"
      refuseDriver(session, .upgrade(.conflict, message, retryAfter: Int(retryAfter.rounded(.up))))
    case .full(let session):
      refuseDriver(session, .upgrade(.serviceUnavailable, "this hub's driver table is full", retryAfter: 60))
    case .replaced(let session, let isRepeated):
      if let slot = slot(of: session) { closeReplaced(slot, isRepeated: isRepeated) }
    case .trips(let session, let answer, let replyTo): reply(.trips(answer), to: session, replyTo: replyTo)
    case .notified(let session, let answer): reply(.notification(answer), to: session)
    case .fences(let session, let answer): reply(.fences(answer), to: session)
    case .queryResult(let session, let result, let replyTo): reply(.query(result), to: session, replyTo: replyTo)
    }
  }

  // MARK: Subscriptions

  /// From here on the session gets what is published; first how things stand, and what it missed.
  private mutating func subscribed(
    _ session: SessionRef, _ channel: ChannelHandle, _ answer: Subscribed, _ missed: [Publication], isParty: Bool
  ) {
    guard let slot = openSlot(of: session) else { return fanOut.release(channel, &inputs) }
    fanOut.releaseHeld(of: channel)
    subscriptionAnswered(slot)
    // The token may have been swapped while the hub was asked.
    guard mayKeep(slot, answer.channel, isParty: isParty) else {
      fanOut.release(channel, &inputs)
      return refuse(slot, answer.replyTo, .forbidden, "the session's token does not open this channel any more")
    }
    let before = loop.arena.count
    fanOut.subscribe(
      sessions[slot].recipient, &sessions[slot].subscriptions, to: channel, answer, missed: missed, now: now.timestamp,
      telling: &inputs)
    chargeAnswer(slot, bytes: loop.arena.count - before)
  }

  /// Takes a subscription away and tells the session why; nothing where it has none.
  mutating func end(_ slot: Int, _ channel: ChannelHandle, _ name: Channel, _ reason: Unsubscribed.Reason) {
    fanOut.end(
      sessions[slot].recipient, &sessions[slot].subscriptions, channel,
      Unsubscribed(replyTo: nil, channel: name, reason: reason), now: now.timestamp, telling: &inputs)
  }

  // MARK: Areas

  /// The hub has answered: the session watches these cells, instead of those that the view had before.
  private mutating func watching(_ session: SessionRef, _ answer: Subscribed, _ cells: [ChannelHandle]) {
    guard let slot = openSlot(of: session) else { return release(cells) }
    subscriptionAnswered(slot)
    do throws(WatchRefusal) {
      guard mayKeep(slot, answer.channel, isParty: false) else { throw .subscriptions }
      let (credential, admissions) = (sessions[slot].credential, shared.admissions)
      try fanOut.watch(
        cells, answer, sessions[slot].recipient, &sessions[slot].subscriptions,
        mayWatch: { more in credential.map { admissions.watches($0.role, IdentityKey($0), more: more) } ?? true },
        now: now.timestamp, telling: &inputs)
    } catch {
      release(cells)
      let text: String
      switch error {
      case .subscriptions:
        counters.count(.subscriptions)
        text = "a session has at most \(limits.subscriptionsPerSession) subscriptions; each cell of an area is one"
      case .cells:
        counters.count(.areasPerIdentity)
        let role = sessions[slot].role
        text =
          "one \(role.name) watches at most \(limits.areasPerIdentity[role]) cells of areas, over all its sessions "
          + "(max-areas-per-\(role.name))"
      }
      refuse(slot, answer.replyTo, .rateLimited, text, retryAfter: 1)
    }
  }

  private mutating func release(_ cells: [ChannelHandle]) {
    for cell in cells { fanOut.release(cell, &inputs) }
  }

  private mutating func viewEnded(_ session: SessionRef, _ messageID: MessageID, _ name: Unsubscribe) {
    guard let slot = openSlot(of: session) else { return }
    let channel: Channel
    if let view = fanOut.endView(name, slot, &sessions[slot].subscriptions, telling: &inputs) {
      channel = view.channel
      if let credential = sessions[slot].credential {
        _ = shared.admissions.watches(credential.role, IdentityKey(credential), more: -view.cells.count)
      }
    } else if case .channel(let named) = name {
      channel = named
    } else {
      return refuse(slot, messageID, .unknownChannel, "there is no view of that name")
    }
    send(.unsubscribed(Unsubscribed(replyTo: messageID, channel: channel, reason: .asked)), to: slot)
  }

  /// A cell as it is, for a session that has asked for it.
  private mutating func sendWhole(_ session: SessionRef, _ channel: ChannelHandle, _ publication: Publication) {
    guard !fanOut.putOff((session, channel, publication)), let slot = slot(of: session) else { return }
    fanOut.send(
      whole: publication, of: channel, to: sessions[slot].recipient, sessions[slot].subscriptions)
  }
}
