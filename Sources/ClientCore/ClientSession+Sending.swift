// Output: the commands that append to the queue, and `flush`, the only function that writes.
public import HubBytes
public import HubMessages
import HubWebSocket

extension ClientSession {
  // MARK: Commands

  /// Queues a live fix; false when there is no room, when it can't be sent at once and is not to be kept, or when the
  /// hub's advice makes it unnecessary (`followsSampling`). Some 50 ns, no allocation.
  @discardableResult
  public func send(_ fix: Fix, trip: Identifier? = nil) -> Bool {
    guard configuration.keepsFixes || phase.isOpen else {
      counters.fixesDropped += 1
      return false
    }
    if configuration.followsSampling, !isWorthSending(fix, trip) {
      counters.fixesLeftOut += 1
      return false
    }
    if let trip {
      if lastTrip?.id != trip { lastTrip = TripName(trip) }
    } else {
      lastTrip = nil
    }
    let before = queue.droppedFixes
    let isQueued = queue.append(.fix(fix, lastTrip), number: numbering.take(), limits: limits)
    counters.fixesDropped += queue.droppedFixes - before + (isQueued ? 0 : 1)
    return isQueued
  }

  /// Whether a fix is to be sent by the hub's advice; the first fix of a trip always is.
  private func isWorthSending(_ fix: Fix, _ trip: Identifier?) -> Bool {
    if trip != lastTrip?.id { gate.reset() }
    return gate.takes(fix, by: sampling)
  }

  /// Queues a trip's move and gives its id, which the `ack` or `error` will name; nil when there is no room. Kept over
  /// broken connections until it is answered.
  @discardableResult
  public func send(_ report: TripStatusReport) -> MessageID? { enqueue(.tripStatus(report)) }

  /// Queues a move that the application keeps itself, under its id (`makeMessageID`); false when there is no room. By
  /// its id the hub recognises a repetition, also from another run of the program.
  @discardableResult
  public func send(_ report: TripStatusReport, as id: MessageID) -> Bool {
    let number = numbering.next
    guard enqueue(.tripStatus(report), as: id) != nil else { return false }
    numbersByID[id] = number
    return true
  }

  /// An id that is unique among all messages and runs.
  public func makeMessageID() -> MessageID { numbering.id(numbering.take()) }

  /// Queues a change of a trip's coordinates or route and gives its id, which the `ack` or `error` will name; nil when
  /// there is no room. Kept over broken connections until it is answered.
  @discardableResult
  public func send(_ change: TripChange) -> MessageID? { enqueue(.tripChange(change)) }

  /// Queues a driver's refusal of an offered trip and gives its id, which the `ack` or `error` will name; nil when
  /// there is no room. Kept over broken connections until it is answered.
  @discardableResult
  public func send(_ decline: OfferDecline) -> MessageID? { enqueue(.offerDecline(decline)) }

  /// Queues a driver's status and gives its id, which the `ack` or `error` will name; nil when there is no room. Kept
  /// over broken connections until it is answered.
  @discardableResult
  public func send(_ report: DriverStatusReport) -> MessageID? { enqueue(.driverStatus(report)) }

  /// Queues fixes that were taken earlier and gives the message's id, which the `ack` or `error` will name; nil when
  /// there is no room. Kept over broken connections until it is answered.
  @discardableResult
  public func send(_ batch: LocationBatch) -> MessageID? { enqueue(.locationBatch(batch)) }

  /// Queues a question and gives its id, which the `result` or `error` will name; nil when there is no room. Kept and
  /// repeated after a break.
  @discardableResult
  public func send(_ query: QueryRequest) -> MessageID? { enqueue(.query(query)) }

  private func enqueue(_ message: ClientMessage, as id: MessageID? = nil) -> MessageID? {
    let number = numbering.take()
    let before = queue.droppedFixes
    let isQueued = queue.append(.message(QueuedMessage(message, id: id)), number: number, limits: limits)
    counters.fixesDropped += queue.droppedFixes - before
    return isQueued ? numbering.id(number) : nil
  }

  /// Subscribes, and again after every break from the last event seen; false at the limit of subscriptions.
  /// `isEventsOnly`: no positions and ETAs.
  @discardableResult
  public func subscribe(_ channel: Channel, resume: ResumePoint? = nil, isEventsOnly: Bool = false) -> Bool {
    subscriptions.add(channel, resume: resume, isEventsOnly: isEventsOnly, limit: limits.subscriptions)
  }

  /// Ends a subscription; false where there is none.
  @discardableResult
  public func unsubscribe(_ channel: Channel) -> Bool {
    guard subscriptions.remove(channel) else { return false }
    if case .open(let connection) = phase { connection.unsubscribes.append(.channel(channel)) }
    return true
  }

  /// Shows a part of the map, an `area` or `nearby` channel, under a name of 1–64 bytes; the same name again moves it.
  /// False at the limit of subscriptions.
  @discardableResult
  public func show(_ channel: Channel, as viewID: InlineText) -> Bool {
    subscriptions.show(viewID, channel, limit: limits.subscriptions)
  }

  /// Ends a view; false where there is none.
  @discardableResult
  public func hide(_ viewID: InlineText) -> Bool {
    guard subscriptions.removeView(viewID) else { return false }
    if case .open(let connection) = phase { connection.unsubscribes.append(.view(viewID)) }
    return true
  }

  /// Requests a pong now, which confirms a driver's stored fixes. Does nothing while not open or while a ping is
  /// pending.
  public func ping() { if case .open(let connection) = phase { connection.wantsPing = true } }

  /// The number of unconfirmed messages and fixes, unsent ones included.
  public var unconfirmed: Int { queue.count }
  /// The number of unsent messages and fixes, which wait for the rate, for the socket, or for a connection.
  public var backlog: Int { queue.unsent }
  /// The number of the oldest unconfirmed fix, batch or move; nil where all are confirmed. Lower numbers are stored by
  /// the hub, or refused. For callers that keep these messages themselves.
  package var oldestDurable: UInt64? { queue.oldestDurable }
  /// The number of the next message.
  package var nextNumber: UInt64 { numbering.next }
  /// Drops all fixes, batches and moves, for callers that keep them and send them again on the next connection.
  package func withdrawDurable() {
    queue.withdraw(durable: true)
    numbersByID = [:]
  }
  /// Drops all messages but fixes, batches and moves, and all subscriptions, for callers that have reported them as
  /// failed.
  package func withdrawRequests() {
    queue.withdraw(durable: false)
    subscriptions = SubscriptionList()
  }
  /// The most fixes that a batch may have on this connection; nil while none is open.
  package var maximumBatch: Int? { phase.isOpen ? connected.map(maximumBatch) : nil }
  /// The driver's entry that the hub's last error refused permanently; given once.
  package func takeRefused() -> RefusedEntry? {
    defer { lastRefused = nil }
    return lastRefused.flatMap { RefusedEntry($0) }
  }
  /// Gives up the oldest of fixes, batches and moves if the hub repeatedly fails at it.
  package func giveUpHeld() -> RefusedEntry? { queue.giveUpHeld().flatMap { RefusedEntry($0) } }
  /// Withdraws a question or a report. If it was sent, its answer is ignored.
  package func withdraw(_ id: MessageID) { if let number = numbering.number(of: id) { _ = queue.confirm(number) } }
  /// Whether a message with this id is unsent or unanswered.
  package func isKept(_ id: MessageID) -> Bool {
    guard let number = numbersByID[id] ?? numbering.number(of: id) else { return false }
    return queue.contains(number)
  }
  /// Whether a channel, or a view of this name, is subscribed; false once the hub has refused it.
  package func isSubscribed(_ channel: Channel) -> Bool { subscriptions.list.contains { $0.channel == channel } }
  package func isShown(_ viewID: InlineText) -> Bool { subscriptions.list.contains { $0.viewID == viewID } }
  /// The client's position on a channel; nil before the first answer.
  public func resumePoint(of channel: Channel) -> ResumePoint? {
    subscriptions.list.first { $0.channel == channel }?.resume
  }

  // MARK: Flush

  /// Appends the bytes to send to `buffer`, and gives the transport's next step. Call it after every event and command.
  /// While the transport is full (`mayWrite` false), messages stay in the queue.
  public func flush(_ now: Moment, mayWrite: Bool = true, into buffer: inout ByteBuffer) -> Step {
    if let connection = phase.connection {
      if connection.socket.wantsRequest { writeRequest(connection, into: &buffer) }
      // Pongs first: RFC 6455 §5.5.2 wants them "as soon as is practical". After a Close nothing is sent.
      connection.socket.writeControlFrames(into: &buffer, using: &random)
    }
    if case .open(let connection) = phase {
      connection.isBlocked = !mayWrite
      if mayWrite { writeMessages(connection, now, &buffer) }
    }
    renewal?.isDueNew = false
    defer { step = .none }
    return step
  }

  private func writeMessages(_ connection: ClientConnection, _ now: Moment, _ buffer: inout ByteBuffer) {
    let end = buffer.count + limits.flushBytes
    writePing(connection, now, &buffer)
    writeRefresh(connection, now, &buffer)
    while let name = connection.unsubscribes.first, connection.budget.allows(1, now: now.uptime), buffer.count < end {
      connection.unsubscribes.removeFirst()
      write(.unsubscribe(name), number: numbering.take(), connection, now, &buffer)
    }
    while buffer.count < end, let index = subscriptions.nextDue(now: now.uptime),
      connection.budget.allows(1, now: now.uptime)
    {
      let subscription = subscriptions.list[index]
      let number = numbering.take()
      subscriptions.asked(index, number: number)
      write(
        .subscribe(
          Subscribe(
            channel: subscription.channel, resume: subscription.viewID == nil ? subscription.resume : nil,
            viewID: subscription.viewID, isEventsOnly: subscription.isEventsOnly)), number: number, connection, now,
        &buffer)
    }
    queue.sendPostponed(at: now.uptime)
    guard now.uptime >= connection.queueNotBefore else { return }
    while buffer.count < end, let index = queue.next(), writeEntry(index, connection, now, &buffer) {}
  }

  /// A ping may exceed the rate by one: a silent connection must still be checked.
  private func writePing(_ connection: ClientConnection, _ now: Moment, _ buffer: inout ByteBuffer) {
    let isTooMuchUnconfirmed = connection.pingsSent.isEmpty && queue.unconfirmedFixes >= limits.unconfirmedFixes
    let isEarly = isTooMuchUnconfirmed && now.uptime >= connection.nextEarlyPing
    guard connection.wantsPing || isEarly || now.uptime >= connection.nextPing else { return }
    connection.wantsPing = false
    connection.nextEarlyPing = now.uptime + nanoseconds(limits.earlyPingSeconds)
    let number = numbering.take()
    if connection.pingsSent.count == limits.pingsOnTheWay { connection.pingsSent.removeFirst() }
    connection.pingsSent.append(SentPing(number: number, sentThrough: queue.sentThrough))
    write(.ping(Ping()), number: number, connection, now, &buffer)
    connection.nextPing = now.uptime + pingInterval
  }

  /// A new token may exceed the rate, too: without it the session ends.
  private func writeRefresh(_ connection: ClientConnection, _ now: Moment, _ buffer: inout ByteBuffer) {
    guard wantsRefresh, let token else { return }
    let number = numbering.take()
    renewal?.asked = (number, token)
    write(.refresh(Refresh(token: token)), number: number, connection, now, &buffer)
  }

  /// Writes one entry of the queue; false where the rate does not allow it yet.
  private func writeEntry(
    _ index: Int, _ connection: ClientConnection, _ now: Moment, _ buffer: inout ByteBuffer
  ) -> Bool {
    let entry = queue.entries[index]
    switch entry.payload {
    case .done: preconditionFailure("the queue gives only what is to be sent")
    case .fix(let fix, let trip):
      guard connection.budget.allows(1, now: now.uptime) else { return false }
      counters.fixesOut += 1
      write(.locationUpdate(LocationUpdate(tripID: trip?.id, fix: fix)), number: entry.number, connection, now, &buffer)
      queue.sent(index, keeping: configuration.keepsFixes)
    case .message(let queued), .resentFixes(let queued):
      guard connection.budget.allows(queued.cost, now: now.uptime) else { return false }
      let id = queued.id ?? numbering.id(entry.number)
      if let cost = write(
        queued.message, number: entry.number, id: id, withinRate: true, connection, now, &buffer)
      {
        queued.cost = cost
        return false
      }
      if case .locationBatch(let batch) = queued.message {
        if case .resentFixes = entry.payload { counters.fixesResent += UInt64(batch.fixes.count) }
        counters.fixesOut += UInt64(batch.fixes.count)
      }
      queue.sent(index, keeping: true)
    }
    return true
  }

  /// Writes a message and charges its cost, which is known only once it is encoded. With `withinRate`, a message that
  /// exceeds the present budget is removed from `buffer`, and its cost is returned; nil where it was written.
  @discardableResult
  private func write(
    _ message: ClientMessage, number: UInt64, id: MessageID? = nil, withinRate: Bool = false,
    _ connection: ClientConnection, _ now: Moment, _ buffer: inout ByteBuffer
  ) -> Double? {
    let id = id ?? numbering.id(number)
    // A hub would refuse the time of a phone that lost its clock (1970), whatever the message.
    let timestamp = max(now.timestamp, Timestamp.earliestFromClients)
    let start = buffer.count
    let payload = FrameWriter.begin(as: .client, in: &buffer)
    let kind: MessageKind
    switch form {
    case .json(let time):
      kind = .text
      JSONWriter.write(
        message, messageID: id, timestamp: timestamp, time: time, into: &buffer)
    case .binary:
      kind = .binary
      writeBinary(message, id: id, number: number, connection, timestamp, &buffer)
    }
    let cost = Double(WorkUnits.of(message, bytes: buffer.count - payload))
    if withinRate, !connection.budget.allows(cost, now: now.uptime) {
      buffer.truncate(to: start)
      return cost
    }
    connection.budget.charge(cost, now: now.uptime)
    connection.socket.finish(
      kind, payloadAt: payload, compressedBytes: limits.compressedBytes, mask: .random(using: &random), in: &buffer)
    return nil
  }

  private func writeBinary(
    _ message: ClientMessage, id: MessageID, number: UInt64, _ connection: ClientConnection, _ timestamp: Timestamp,
    _ buffer: inout ByteBuffer
  ) {
    var id = id
    var trip: Identifier?
    if case .locationUpdate(let update) = message {
      // At most an error answers it, on this connection: its number suffices as a name.
      id = MessageID(number: number)
      trip = update.tripID
    }
    BinaryWriter.write(
      message, messageID: id, timestamp: timestamp, tripBefore: connection.binary?.tripBefore, into: &buffer)
    if let trip { connection.binary?.tripBefore = trip }
  }

  func hasSomethingToSend(_ connection: ClientConnection) -> Bool {
    connection.wantsPing || wantsRefresh || !connection.unsubscribes.isEmpty || subscriptions.nextTime != nil
      || queue.hasUnsent || queue.postponedUntil != .max
  }

  /// When something that waits for the rate, or the hub's delay, may be sent.
  func sendingDeadline(_ connection: ClientConnection) -> Int64? {
    let budget = connection.budget
    var time = queue.postponedUntil
    if let next = subscriptions.nextTime { time = min(time, max(next, budget.time(for: 1))) }
    if !connection.unsubscribes.isEmpty { time = min(time, budget.time(for: 1)) }
    if queue.hasUnsent { time = min(time, max(connection.queueNotBefore, budget.time(for: queue.costOfNext))) }
    return time == .max ? nil : time
  }

  // MARK: Heartbeat

  /// Seconds.
  private var heartbeatInterval: Double { max(connected?.heartbeatInterval ?? 30, limits.shortestHeartbeat) }

  /// Nanoseconds.
  var pingInterval: Int64 { nanoseconds(heartbeatInterval * limits.pingPart) }

  func heartbeatDeadline(_ connection: ClientConnection) -> Int64 { min(connection.nextPing, silenceEnds(connection)) }

  func silenceEnds(_ connection: ClientConnection) -> Int64 {
    min(connection.lastHeard + nanoseconds(heartbeatInterval * limits.silentIntervals), connection.answersBy)
  }
}
