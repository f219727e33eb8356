// What comes out of the hub: publications and what it says about subscriptions go to fan-out, answers to the session or
// the request that asked.
import HubCore
import HubMessages
import HubWebSocket

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
    let time = now.timestamp
    switch output {
    case .delivery(let delivery): fanOut.publish(delivery)
    case .areaUpdate(let channel, let publication): fanOut.add(areaUpdate: publication, of: channel)
    case .areaTickEnded: for snapshot in fanOut.endAreaTick() { deliver(snapshot) }
    case .areaSnapshot(let session, let channel, let publication): deliver((session, channel, publication))
    case .subscribed(let session, let channel, let answer, let missed, let isParty):
      subscribed(session, channel, answer, missed, isParty: isParty)
    case .watching(let session, let answer, let cells): watching(session, answer, cells)
    case .viewEnded(let session, let messageID, let view): viewEnded(session, messageID, view)
    case .subscriptionRefused(let session, let error):
      guard let slot = openSlot(of: session) else { return }
      subscriptionAnswered(slot)
      send(.error(error), to: slot)
    case .unsubscribed(let session, let messageID, let channel, let name):
      guard let slot = openSlot(of: session) else { return }
      let answer = Unsubscribed(replyTo: messageID, channel: name, reason: .asked)
      fanOut.unsubscribed(&sessions[slot], from: channel, answer, now: time, telling: &inputs)
    case .named(let session, let channel, let name, let isParty):
      guard let slot = openSlot(of: session), !sessions[slot].open.rights.mayKeep(name, isParty: isParty) else {
        return
      }
      fanOut.end(&sessions[slot], channel, name, .grantEnded, now: time, telling: &inputs)
    case .channelEnded(let channel, let name, let reason):
      fanOut.end(channel, name, reason, in: &sessions, now: time, telling: &inputs)
    case .channelClaimed(let channel, let name, let driver):
      // A trip has a driver now. Other drivers that followed it by development's word alone are let go; what a token
      // names stays open.
      fanOut.end(
        channel, name, .revoked, in: &sessions,
        where: { $0.id != driver && $0.credential.grant(for: name) == .whileUnclaimed }, now: time, telling: &inputs)
    case .reply(let session, let reply): deliver(reply, to: session)
    case .admitted(let session, let sampling):
      if let slot = slot(of: session) { admit(slot, sampling) }
    case .conflict(let session, let retryAfter):
      refuseDriver(session, .conflict, "this driver's sessions replace each other too often", retryAfter)
    case .full(let session):
      refuseDriver(session, .serviceUnavailable, "this hub's driver table is full", 60)
    case .replaced(let session, let isRepeated):
      guard let slot = slot(of: session) else { return }
      // A client that came again after it was told so gets 1000: it connects again on every other code.
      close(slot, isRepeated ? .normal : CloseCode(CloseReason.replaced.rawValue), "\(CloseReason.replaced.text)")
    case .trips(let session, let answer, let replyTo): reply(.trips(answer), to: session, replyTo: replyTo)
    case .notified(let session, let answer): reply(.notification(answer), to: session)
    case .fences(let session, let answer): reply(.fences(answer), to: session)
    case .queryResult(let session, let result, let replyTo): reply(.query(result), to: session, replyTo: replyTo)
    }
  }

  private mutating func subscribed(
    _ session: SessionRef, _ channel: ChannelHandle, _ answer: Subscribed, _ missed: [Publication], isParty: Bool
  ) {
    guard let slot = openSlot(of: session) else { return fanOut.release(channel, &inputs) }
    subscriptionAnswered(slot)
    let before = loop.arena.count
    do throws(MessageRefusal) {
      try fanOut.subscribed(
        &sessions[slot], to: channel, answer, missed: missed, isParty: isParty, now: now.timestamp, telling: &inputs)
      chargeAnswer(slot, bytes: loop.arena.count - before)
    } catch {
      refuse(slot, error)
    }
  }

  private mutating func watching(_ session: SessionRef, _ answer: Subscribed, _ cells: [ChannelHandle]) {
    guard let slot = openSlot(of: session) else { return fanOut.release(cells, &inputs) }
    subscriptionAnswered(slot)
    do throws(MessageRefusal) {
      try fanOut.watching(
        &sessions[slot], answer, cells, limits, shared.admissions, now: now.timestamp, telling: &inputs)
    } catch {
      refuse(slot, error)
    }
  }

  private mutating func viewEnded(_ session: SessionRef, _ messageID: MessageID, _ view: Unsubscribe) {
    guard let slot = openSlot(of: session) else { return }
    do throws(MessageRefusal) {
      try fanOut.viewEnded(
        &sessions[slot], messageID, view, shared.admissions, now: now.timestamp, telling: &inputs)
    } catch {
      refuse(slot, error)
    }
  }

  /// A whole cell, for a session that has asked for it; within a tick it waits for the end of that.
  private mutating func deliver(_ snapshot: AreaDeliveries.Snapshot) {
    guard !fanOut.putOff(snapshot), let slot = openSlot(of: snapshot.session) else { return }
    fanOut.send(
      whole: snapshot.publication, of: snapshot.channel, to: sessions[slot].recipient,
      sessions[slot].open.subscriptions)
  }
}
