// Areas: the cells that sessions watch, changes in them, and snapshots for sessions that begin or have fallen behind.
import HubBytes
import HubCore
import HubMessages
import HubTransport

extension FanOut {
  /// Takes the changes in a cell, which are sent when the tick is complete.
  mutating func add(areaUpdate publication: Publication, of channel: ChannelHandle) { areas.add(channel, publication) }

  /// Cells of all views of a session, counted for each view.
  func cellCount(_ slot: Int) -> Int { areas.cellCount(slot) }

  enum Watching {
    case refused(MessageRefusal)
    /// The number of cells that it did not watch before.
    case watches(new: Int)
  }

  /// The session watches these cells instead of those of the view before. The hub has counted all of them as
  /// subscribed.
  mutating func watching(
    _ session: inout Session, _ answer: Subscribed, _ cells: [ChannelHandle], queuing inputs: inout HubInputs
  ) -> Watching {
    let (rights, recipient) = (session.open.rights, session.recipient)
    let view = AreaDeliveries.View(id: answer.viewID, channel: answer.channel, cells: cells)
    let before = areas.cells(recipient.slot, ofViewBefore: view)
    let left = areas.cellsLeft(recipient.slot, by: view)
    let new = cells.filter { subscriptions.subscriber(of: $0, session.open.subscriptions) == nil }
    let count = Int(session.open.subscriptions.open) - left.count + new.count
    var refusal: MessageRefusal?
    if !rights.mayKeep(answer.channel, isParty: false) {
      refusal = .grantEnded(replyTo: answer.replyTo)
    } else if count > limits.subscriptionsPerSession {
      refusal = .tooManySubscriptions(limits, replyTo: answer.replyTo)
    } else if !admissions.watches(rights.role, IdentityKey(rights.credential), more: cells.count - before.count) {
      refusal = .tooManyCells(of: rights.role, limits, replyTo: answer.replyTo)
    }
    if let refusal {
      release(cells, &inputs)
      return .refused(refusal)
    }
    areas.set(recipient.slot, view)
    for cell in left { _ = remove(cell, &session.open.subscriptions, &inputs) }
    for cell in cells
    where !subscriptions.add(
      recipient.connection, encoding: recipient.encoding, to: cell, isOfCell: true, of: &session.open.subscriptions)
    {
      inputs.append(.released(outlet: number, cell))
    }
    if let stream = session.stream {
      stream.subscribed(answer, to: nil)
      sendID(of: stream, to: recipient.connection)
    }
    send(.subscribed(answer), to: recipient)
    if !new.isEmpty { inputs.append(.areaSnapshots(reference(recipient.connection), new)) }
    return .watches(new: new.count)
  }

  /// Releases cells that the hub has counted and nobody watches.
  mutating func release(_ cells: [ChannelHandle], _ inputs: inout HubInputs) {
    for cell in cells { release(cell, &inputs) }
  }

  /// Ends a view at the session's request.
  mutating func viewEnded(
    _ session: inout Session, _ messageID: MessageID, _ name: Unsubscribe, queuing inputs: inout HubInputs
  ) -> MessageRefusal? {
    let slot = session.recipient.slot
    let channel: Channel
    switch (areas.remove(slot, name), name) {
    case (let view?, _):
      for cell in view.cells where !areas.isWatching(slot, cell) {
        _ = remove(cell, &session.open.subscriptions, &inputs)
      }
      let rights = session.open.rights
      _ = admissions.watches(rights.role, IdentityKey(rights.credential), more: -view.cells.count)
      channel = view.channel
    case (nil, .channel(let named)): channel = named
    case (nil, .view): return MessageRefusal(.unknownChannel, "there is no view of that name", replyTo: messageID)
    }
    send(.unsubscribed(Unsubscribed(replyTo: messageID, channel: channel, reason: .asked)), to: session.recipient)
    return nil
  }

  /// A tick is complete: from this turn on sessions get its updates. Their latency counts from `due` (uptime, ns) to
  /// the last session.
  mutating func endAreaTick(in sessions: borrowing SessionTable, due: Int64) {
    while areas.isPublishing {  // a loop with so many watchers that a second was not enough
      continueAreaTick(in: sessions)
      flushIfLarge()
    }
    areas.beginPublishing(due: due)
  }

  /// Sends the next sessions the updates of a tick, each with one write, and behind the last one the next snapshots
  /// that have waited.
  ///
  /// One turn sends a share of it (`Limits.areaBytesPerTurn`): two hundred maps at once would delay positions by 8 ms
  /// in each second.
  mutating func continueAreaTick(in sessions: borrowing SessionTable) {
    guard var tick = areas.takePublishing() else { return }
    var share = limits.areaBytesPerTurn
    while share > 0, let slot = tick.slots.popLast() {
      if sessions[slot].phase == .open { share -= sendUpdates(sessions[slot].open.subscriptions, of: &tick) }
      if tick.slots.isEmpty { for _ in tick.updates { noteReceived(at: tick.due) } }
    }
    tick.forgetFrames()
    var last: SessionRef?
    while share > 0, let snapshot = tick.nextSnapshot() {
      share -= send(snapshot, in: sessions) + (snapshot.session == last ? 0 : limits.areaBytesPerWrite)
      last = snapshot.session
    }
    guard tick.slots.isEmpty, tick.snapshots.isEmpty else { return areas.putBack(tick) }
    areas.encoded.removeAll()
  }

  /// Sends one session the changes in its cells; gives the bytes sent, with the cost of a write.
  private mutating func sendUpdates(_ session: SessionSubscriptions, of tick: inout AreaTick) -> Int {
    tick.gatherUpdates(of: session, in: subscriptions)
    areas.unwrittenBytes = 0
    if tick.sessionUpdates.isEmpty { return limits.areaBytesPerWrite / 64 }  // a check without a write
    var bytes = limits.areaBytesPerWrite
    for (updates, subscriber) in tick.sessionUpdates {
      for update in updates {
        if makeRoom(for: tick.bytesForOps[update]) { tick.forgetFrames() }
        // Its outbox has unread data: the newest state follows when that is read.
        guard !loop.isBlocked(subscriber.connection) else {
          subscriptions.set(.changes, of: subscriber.node)
          counters.areaUpdatesSkipped += 1
          break
        }
        let frame = frame(of: update, in: &tick, subscriber.encoding)
        send(frame, to: subscriber.connection)
        bytes += frame.count
        counters.publicationsOut += 1
        counters.areaUpdatesOut += 1
      }
    }
    return bytes
  }

  /// An update of a tick in the arena.
  @inline(__always)
  private mutating func frame(of update: Int, in tick: inout AreaTick, _ encoding: Encoding) -> Range<Int> {
    if let frame = tick.frame(of: update, encoding) { return frame }
    let (channel, publication) = tick.updates[update]
    let frame = cellFrame(publication, on: channel, encoding)
    tick.keep(frame, of: update, encoding)
    return frame
  }

  /// Sends a snapshot to a session that asked for it, within a tick at its end.
  mutating func deliver(_ snapshot: AreaTick.Snapshot, in sessions: borrowing SessionTable) {
    if !areas.putOff(snapshot) { _ = send(snapshot, in: sessions) }
  }

  /// Sends a snapshot, but not to a session with unread data, which asks again later. Gives the bytes sent.
  private mutating func send(_ snapshot: AreaTick.Snapshot, in sessions: borrowing SessionTable) -> Int {
    guard let slot = sessions.openSlot(of: snapshot.session),
      let subscriber = subscriptions.subscriber(of: snapshot.channel, sessions[slot].open.subscriptions),
      subscriber.lacks != .nothing
    else { return 0 }
    var bytes = 0
    for part in snapshot.parts {
      _ = makeRoom(for: part.usualBytesForOps)
      // What is missing follows with the snapshot that it asks for when it has read everything.
      guard !loop.isBlocked(subscriber.connection) else {
        subscriptions.set(.changes, of: subscriber.node)
        return bytes
      }
      let frame = cellFrame(part, on: snapshot.channel, subscriber.encoding)
      send(frame, to: subscriber.connection)
      bytes += frame.count
      counters.publicationsOut += 1
    }
    subscriptions.set(.nothing, of: subscriber.node)
    counters.areaSnapshotsOut += 1
    return bytes
  }

  /// Before an update for ops is encoded: writes what was sent so far, if both might exceed the outbox of a slow
  /// reader. So a session that is too slow for a large map is blocked, and misses updates, before it has to be closed.
  /// Riders' cells are smaller. True where it wrote: the arena is empty then.
  private mutating func makeRoom(for bytes: Int) -> Bool {
    if bytes == 0 { return false }
    let writes = areas.unwrittenBytes > 0 && areas.unwrittenBytes + bytes > limits.outboxBytesPerSession * 3 / 4
    if writes {
      loop.flushEarly()
      areas.unwrittenBytes = 0
    }
    areas.unwrittenBytes += bytes
    return writes
  }

  /// The frame of a cell's changes or snapshot in the arena: encoded once in a second.
  private mutating func cellFrame(
    _ publication: borrowing Publication, on channel: ChannelHandle, _ encoding: Encoding
  ) -> Range<Int> {
    if let known = areas.encoded.frame(publication.number, encoding) {
      let start = loop.arena.count
      loop.arena.append(known)
      return start..<loop.arena.count
    }
    var encoded = EncodedFrames()
    let frame = encode(publication, on: channel, encoding, &encoded)
    unsafe areas.encoded.keep(
      loop.arena.withBytes { unsafe Array($0[frame]) }, publication.number, encoding, limit: limits.areaCacheBytes)
    return frame
  }

  /// The session has read everything: requests snapshots of the cells whose changes it missed, each once.
  mutating func catchUp(_ connection: ConnectionID, _ session: SessionSubscriptions, asking inputs: inout HubInputs) {
    guard areas.hasViews(Int(connection.slot)) else { return }
    var missed: [(channel: ChannelHandle, node: UInt32)] = []
    subscriptions.forEach(of: session) { channel, subscriber in
      if subscriber.lacks == .changes { missed.append((channel, subscriber.node)) }
    }
    for cell in missed { subscriptions.set(.snapshot, of: cell.node) }
    if !missed.isEmpty { inputs.append(.areaSnapshots(reference(connection), missed.map(\.channel))) }
  }
}
