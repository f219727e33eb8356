// What comes out of the hub, on its way to sockets: encoded once for each form in use (JSON by time format, binary,
// compressed), the same bytes for all subscribers of the channel on this loop.
import HubBytes
import HubCore
import HubMessages
import HubTransport
import HubWebSocket

/// Why a session may not watch an area.
enum WatchRefusal: Error {
  case subscriptions, cells
}

/// The subscriptions of one loop, and all that is sent to its sessions.
struct FanOut: ~Copyable {
  private let loop: EventLoop
  private let number: UInt32
  private let limits: Limits
  /// For how long positions may be held back (ns); 0 for not at all.
  private let flushInterval: Int64
  private var subscriptions = SubscriptionTable()
  private var encoder: MessageEncoder
  private var held = HeldPositions()
  private var areas = AreaDeliveries()
  /// When each delivery of this turn came in as a fix (uptime, ns): its latency is known once the turn is flushed.
  private var turnReceived = TurnList<Int64>()
  private var counted = FanOutCounters()

  /// `number`: the loop's, by which the hub knows it.
  init(_ loop: EventLoop, number: UInt32, _ limits: Limits, flushIntervalMilliseconds: Int) {
    self.loop = loop
    self.number = number
    self.limits = limits
    flushInterval = Int64(flushIntervalMilliseconds) * 1_000_000
    encoder = MessageEncoder(loop, limits)
  }

  var counters: FanOutCounters {
    var all = counted
    all.subscriptions = subscriptions.count
    all.encodes = encoder.encodes
    all.compression = encoder.compression.counters
    return all
  }

  /// When positions that are held back are due (uptime, ns); nil while there are none.
  var deadline: Int64? { held.deadline }

  // MARK: Publications

  @inline(__always)
  mutating func publish(_ position: UnsafePointer<PositionDelivery>) {
    if flushInterval > 0 { hold(position.pointee.delivery) } else { fanOut(position) }
  }

  mutating func publish(_ delivery: Delivery) {
    if flushInterval > 0, delivery.conflationKey != 0 { hold(delivery) } else { fanOut(delivery) }
  }

  /// One position to every subscriber: one encode for each form in use, then a range for each connection.
  @inline(__always)
  private mutating func fanOut(_ delivery: UnsafePointer<PositionDelivery>) {
    let subscribers = subscriptions.subscribers(of: delivery.pointee.channel)
    guard !subscribers.isEmpty else { return }
    var encoded = EncodedFrames()
    for subscriber in subscribers {
      let frame =
        encoded[subscriber.encoding] ?? encoder.encode(delivery, subscriber.encoding, &encoded)
        ?? encode(
          Publication(delivery.pointee.position), on: delivery.pointee.channel, subscriber.encoding, &encoded)
      send(frame, to: subscriber.connection, conflationKey: delivery.pointee.conflationKey)
    }
    counted.publicationsOut += UInt64(subscribers.count)
    counted.positionsOut += UInt64(subscribers.count)
    turnReceived.append(delivery.pointee.received)
  }

  /// A publication of any kind to every subscriber.
  private mutating func fanOut(_ delivery: borrowing Delivery) {
    let subscribers = subscriptions.subscribers(of: delivery.channel)
    guard !subscribers.isEmpty else { return }
    var encoded = EncodedFrames()
    for subscriber in subscribers {
      let frame =
        encoded[subscriber.encoding]
        ?? encode(delivery.publication, on: delivery.channel, subscriber.encoding, &encoded)
      send(frame, to: subscriber.connection, conflationKey: delivery.conflationKey)
    }
    counted.publicationsOut += UInt64(subscribers.count)
    if case .driverLocation = delivery.publication.body { counted.positionsOut += UInt64(subscribers.count) }
    if delivery.received != 0 { turnReceived.append(delivery.received) }
  }

  /// The first subscriber of a form: encodes for it. Before a position, new names are said to all binary subscribers.
  private mutating func encode(
    _ publication: borrowing Publication, on channel: ChannelHandle, _ encoding: Encoding,
    _ encoded: inout EncodedFrames
  ) -> Range<Int> {
    if encoder.isBinary(encoding), let names = encoder.announcement(before: publication, on: channel) {
      for subscriber in subscriptions.subscribers(of: channel) where encoder.isBinary(subscriber.encoding) {
        send(names, to: subscriber.connection)
        counted.namesSent += 1
      }
    }
    return encoder.encode(publication, on: channel, encoding, &encoded)
  }

  /// Keeps only the newest position of each driver and channel until the interval is over.
  private mutating func hold(_ delivery: Delivery) {
    if held.deadline == nil { held.deadline = loop.now.uptimeNanoseconds + flushInterval }
    if held.put(delivery) { counted.conflatedByInterval += 1 }
  }

  /// Sends what was held back, if it is due by `now` (uptime, ns).
  mutating func releaseHeld(by now: Int64) {
    guard let deadline = held.deadline, now >= deadline else { return }
    for delivery in held.takeAll() { fanOut(delivery) }
  }

  /// The turn's output was written: the latency of what it brought out is known.
  @inline(__always)
  mutating func turnFlushed() {
    if turnReceived.isEmpty { return }
    let flushed = loop.readUptime()
    for place in 0..<turnReceived.count { counted.latency.record(nanoseconds: flushed - turnReceived[place]) }
    turnReceived.removeAll()
  }

  // MARK: Sending

  /// Between two messages no range of the arena is in use.
  mutating func flushIfLarge() {
    if loop.arena.count > limits.arenaFlushBytes { loop.flushEarly() }
  }

  /// Sends the frame that lies at a range of the arena, compressed with the session's own context where it has one.
  @inline(__always)
  private mutating func send(_ frame: Range<Int>, to connection: ConnectionID, conflationKey: UInt64 = 0) {
    guard let own = encoder.compression[Int(connection.slot)] else {
      return loop.send(frame, to: connection, conflationKey: conflationKey)
    }
    if conflationKey == 0 || !loop.isBlocked(connection), let compressed = encoder.deflate(frame, with: own) {
      loop.send(compressed, to: connection)
    } else {
      loop.send(frame, to: connection, conflationKey: conflationKey)
    }
  }

  /// False, and nothing is sent, where it is a result that is too large.
  mutating func send(_ reply: Reply, to recipient: Recipient, now: Timestamp) -> Bool {
    send(reply, to: recipient, naming: nil, now: now)
  }

  /// `channel`: with `subscribed`, whose messages follow.
  private mutating func send(
    _ reply: Reply, to recipient: Recipient, naming channel: ChannelHandle?, now: Timestamp
  ) -> Bool {
    guard let frame = encoder.encode(reply, recipient.encoding, naming: channel, now: now) else { return false }
    send(frame, to: recipient.connection)
    counted.repliesOut += 1
    return true
  }

  // MARK: Replies that are written over several turns

  mutating func nextReplyNumber() -> UInt64 { encoder.nextReplyNumber() }

  /// Compresses what stands behind `start` in the arena, in place, as a part of a message that is made in several.
  mutating func compress(partAt start: Int, isLast: Bool) { encoder.compress(partAt: start, isLast: isLast) }

  /// Sends the reply that begins at `payload` and ends with the arena; `plainBytes` is its length before compression,
  /// nil where it was not compressed.
  mutating func send(replyAt payload: Int, to recipient: Recipient, compressedFrom plainBytes: Int?) {
    let frame = encoder.finish(recipient.encoding, payloadAt: payload, compressedFrom: plainBytes)
    send(frame, to: recipient.connection)
    counted.repliesOut += 1
  }

  // MARK: Sessions

  /// What is taken of a newcomer's offers to compress.
  var compressionPolicy: DeflatePolicy { encoder.compression.policy }

  /// A session opens: in which form it gets its messages.
  mutating func open(_ slot: Int, _ form: MessageForm, _ agreed: DeflateParameters?) -> Encoding {
    encoder.open(slot, form, agreed)
  }

  /// A session has ended.
  mutating func close(_ slot: Int, _ session: inout SessionSubscriptions, telling inputs: inout HubInputs) {
    areas.removeAll(slot)
    while let channel = subscriptions.removeAny(of: &session) { release(channel, &inputs) }
    encoder.close(slot)
  }

  /// The message of a session's compressed payload, valid until the next one.
  mutating func inflate(
    _ slot: Int, _ payload: UnsafeRawBufferPointer, _ kind: MessageKind
  ) throws(FrameError) -> UnsafeRawBufferPointer {
    do throws(FrameError) {
      let message = try encoder.inflate(slot, payload, kind)
      loop.spend(bytes: message.count)
      return message
    } catch {
      loop.spend(bytes: limits.messageBytes)  // a bomb is inflated up to its limit before it is refused
      throw error
    }
  }

  // MARK: Subscriptions

  func subscribers(of channel: ChannelHandle) -> [Subscriber] { subscriptions.subscribers(of: channel) }

  func forEachChannel(of session: SessionSubscriptions, _ body: (ChannelHandle) -> Void) {
    subscriptions.forEach(of: session, body)
  }

  /// Sends what is held of a channel: it is older than what a new subscriber is told first. It is for those who are
  /// there already: where nobody is, the handle may have been another channel's when it was published.
  mutating func releaseHeld(of channel: ChannelHandle) {
    for delivery in held.take(of: channel) { fanOut(delivery) }
  }

  /// From here on the session gets what is published; first how things stand, and what it missed.
  mutating func subscribe(
    _ recipient: Recipient, _ session: inout SessionSubscriptions, to channel: ChannelHandle, _ answer: Subscribed,
    missed: [Publication], now: Timestamp, telling inputs: inout HubInputs
  ) {
    let isNew = subscriptions.add(recipient.connection, encoding: recipient.encoding, to: channel, of: &session)
    // It had subscribed before and now asks what it missed: one subscription, counted once.
    if !isNew { inputs.append(.released(outlet: number, channel)) }
    encoder.opened(channel, answer.channel, recipient.encoding)
    let before = loop.arena.count
    _ = send(.subscribed(answer), to: recipient, naming: channel, now: now)
    for publication in missed {
      // Beyond what is free it goes out uncompressed: compressing takes ten times as long as writing, and nobody else
      // is served meanwhile.
      let isLong = loop.arena.count - before > WorkUnits.freeAnswerBytes
      var encoded = EncodedFrames()
      let encoding = isLong ? recipient.encoding.uncompressed : recipient.encoding
      send(encode(publication, on: channel, encoding, &encoded), to: recipient.connection)
      counted.publicationsOut += 1
      counted.recovered += 1
    }
  }

  /// Takes a session's subscription away; false when it has none.
  mutating func unsubscribe(
    _ session: inout SessionSubscriptions, from channel: ChannelHandle, telling inputs: inout HubInputs
  ) -> Bool {
    guard subscriptions.remove(channel, of: &session) else { return false }
    release(channel, &inputs)
    return true
  }

  /// Takes a session's subscription away and tells it why; nothing where it has none.
  mutating func end(
    _ recipient: Recipient, _ session: inout SessionSubscriptions, _ channel: ChannelHandle,
    _ notice: Unsubscribed, now: Timestamp, telling inputs: inout HubInputs
  ) {
    guard unsubscribe(&session, from: channel, telling: &inputs) else { return }
    counted.subscriptionsEnded[Int(notice.reason.rawValue)] += 1
    _ = send(.unsubscribed(notice), to: recipient, now: now)
  }

  /// A subscription has ended, or could not begin. The hub counts subscriptions; a channel's binary names end with its
  /// last one.
  mutating func release(_ channel: ChannelHandle, _ inputs: inout HubInputs) {
    inputs.append(.released(outlet: number, channel))
    if subscriptions.subscribers(of: channel).isEmpty { encoder.released(channel) }
  }

  // MARK: Areas

  /// What changed in a cell; it goes out when the tick is all there.
  mutating func add(areaUpdate publication: Publication, of channel: ChannelHandle) { areas.add(channel, publication) }

  /// Cells of all views of a session, counted for each.
  func cellCount(_ slot: Int) -> Int { areas.cellCount(slot) }

  /// The session watches these cells, instead of those that the view had before. The hub has counted all of them as
  /// subscribed to. `mayWatch`: whether so many cells more (or fewer) are within what its identity may.
  mutating func watch(
    _ cells: [ChannelHandle], _ answer: Subscribed, _ recipient: Recipient, _ session: inout SessionSubscriptions,
    mayWatch: (Int) -> Bool, now: Timestamp, telling inputs: inout HubInputs
  ) throws(WatchRefusal) {
    let view = AreaDeliveries.View(id: answer.viewID, channel: answer.channel, cells: cells)
    let before = areas.cells(recipient.slot, ofViewBefore: view)
    let left = areas.cellsLeft(recipient.slot, by: view)
    let new = cells.filter { subscriptions.subscriber(of: $0, session) == nil }
    guard session.count - left.count + new.count <= limits.subscriptionsPerSession else { throw .subscriptions }
    guard mayWatch(cells.count - before.count) else { throw .cells }
    areas.set(recipient.slot, view)
    for cell in left { _ = unsubscribe(&session, from: cell, telling: &inputs) }
    for cell in cells
    where !subscriptions.add(
      recipient.connection, encoding: recipient.encoding, to: cell, isBehind: true, of: &session)
    {
      inputs.append(.released(outlet: number, cell))
    }
    _ = send(.subscribed(answer), to: recipient, now: now)
    if !new.isEmpty { inputs.append(.areaSnapshots(reference(recipient.connection), new)) }
  }

  /// A session ends a view of its own; nil where it has none of that name.
  mutating func endView(
    _ name: Unsubscribe, _ slot: Int, _ session: inout SessionSubscriptions, telling inputs: inout HubInputs
  ) -> AreaDeliveries.View? {
    guard let view = areas.remove(slot, name) else { return nil }
    for cell in view.cells where !areas.isWatching(slot, cell) {
      _ = unsubscribe(&session, from: cell, telling: &inputs)
    }
    return view
  }

  /// A tick is all there: each session gets what changed in its cells, with one write. Gives the whole cells that have
  /// waited for it.
  mutating func endAreaTick() -> [AreaDeliveries.Snapshot] {
    var behind: [UInt32] = []
    for (channel, publication) in areas.takeTick() {
      var encoded = EncodedFrames()
      for subscriber in subscriptions.subscribers(of: channel) where !subscriber.isBehind {
        // What it has not read yet is enough: the newest state follows when it has.
        guard !loop.isBlocked(subscriber.connection) else {
          behind.append(subscriber.node)
          continue
        }
        let frame = encoded[subscriber.encoding] ?? encode(publication, on: channel, subscriber.encoding, &encoded)
        send(frame, to: subscriber.connection)
        counted.publicationsOut += 1
        counted.areaUpdatesOut += 1
      }
      for node in behind { subscriptions.setBehind(node, true) }
      counted.areaUpdatesSkipped += UInt64(behind.count)
      behind.removeAll(keepingCapacity: true)
      flushIfLarge()
    }
    return areas.endTick()
  }

  /// True where a whole cell has to wait for the end of the tick.
  mutating func putOff(_ snapshot: AreaDeliveries.Snapshot) -> Bool { areas.putOff(snapshot) }

  /// A cell as it is, for a session that has asked for it: unless it has to read what waits first, and asks again then.
  mutating func send(
    whole publication: Publication, of channel: ChannelHandle, to recipient: Recipient, _ session: SessionSubscriptions
  ) {
    guard let subscriber = subscriptions.subscriber(of: channel, session), subscriber.isBehind,
      !loop.isBlocked(recipient.connection)
    else { return }
    send(snapshotFrame(publication, on: channel, subscriber.encoding), to: recipient.connection)
    subscriptions.setBehind(subscriber.node, false)
    counted.publicationsOut += 1
    counted.areaSnapshotsOut += 1
  }

  private mutating func snapshotFrame(
    _ publication: borrowing Publication, on channel: ChannelHandle, _ encoding: Encoding
  ) -> Range<Int> {
    if let known = areas.frame(publication.number, encoding) {
      let start = loop.arena.count
      loop.arena.append(known)
      return start..<loop.arena.count
    }
    var encoded = EncodedFrames()
    let frame = encode(publication, on: channel, encoding, &encoded)
    areas.keep(
      loop.arena.withBytes { Array($0[frame]) }, publication.number, encoding, limit: limits.areaCacheBytes)
    return frame
  }

  /// The session has read everything: asks for the cells whose changes it missed. False where there are none.
  func catchUp(_ connection: ConnectionID, _ session: SessionSubscriptions, asking inputs: inout HubInputs) -> Bool {
    guard areas.hasViews(Int(connection.slot)) else { return false }
    var missed: [ChannelHandle] = []
    subscriptions.forEach(of: session) { channel in
      if subscriptions.subscriber(of: channel, session)?.isBehind == true { missed.append(channel) }
    }
    if missed.isEmpty { return false }
    inputs.append(.areaSnapshots(reference(connection), missed))
    return true
  }

  private func reference(_ connection: ConnectionID) -> SessionRef {
    SessionRef(outlet: number, slot: connection.slot, generation: connection.generation)
  }
}
