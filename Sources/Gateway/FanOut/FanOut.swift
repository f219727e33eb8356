// What comes out of the hub, on its way to sockets: encoded once for each form in use (JSON by time format, binary,
// compressed), the same bytes for all subscribers of the channel on this loop.
import HubBytes
import HubCore
import HubMessages
import HubSystem
import HubTransport
import HubWebSocket

/// The subscriptions of one loop, and all that is sent to its sessions.
struct FanOut: ~Copyable {
  let loop: EventLoop
  let number: UInt32
  let limits: Limits
  let admissions: Admissions
  /// For how long positions may be held back (ns); 0 for not at all.
  private let flushInterval: Int64
  var subscriptions = SubscriptionTable()
  private var encoder: MessageEncoder
  private var held = HeldPositions()
  var areas = AreaDeliveries()
  /// Of the sessions that are streams of events.
  var streams = OpenStreams()
  /// When each delivery of this turn came in as a fix (uptime, ns): its latency is known once the turn is flushed.
  private var turnReceived = TurnList<Int64>()
  var counted = FanOutCounters()

  /// `number`: the loop's, by which the hub knows it.
  init(
    _ loop: EventLoop, number: UInt32, _ limits: Limits, _ admissions: Admissions, flushIntervalMilliseconds: Int
  ) {
    self.loop = loop
    self.number = number
    self.limits = limits
    self.admissions = admissions
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

  /// When there is something to go on with (uptime, ns; 0 for at once): positions that are held back, or a tick that
  /// not all were told of. Nil while there is nothing.
  var deadline: Int64? { areas.isPublishing ? 0 : held.deadline }

  // MARK: Publications

  @inline(__always)
  mutating func publish(_ position: UnsafePointer<PositionDelivery>) {
    if flushInterval > 0 { unsafe hold(position.pointee.delivery) } else { unsafe fanOut(position) }
  }

  mutating func publish(_ delivery: Delivery) {
    if flushInterval > 0, delivery.conflationKey != 0 { hold(delivery) } else { fanOut(delivery) }
  }

  /// One position to every subscriber: one encode for each form in use, then a range for each connection.
  @inline(__always)
  private mutating func fanOut(_ delivery: UnsafePointer<PositionDelivery>) {
    let subscribers = unsafe subscriptions.subscribers(of: delivery.pointee.channel)
    guard !subscribers.isEmpty else { return }
    var encoded = EncodedFrames()
    var count = 0
    for subscriber in subscribers where !subscriber.isEventsOnly {
      count += 1
      let frame =
        unsafe encoded[subscriber.encoding] ?? encoder.encode(delivery, subscriber.encoding, &encoded)
        ?? encode(
          Publication(delivery.pointee.position), on: delivery.pointee.channel, subscriber.encoding, &encoded)
      unsafe send(frame, to: subscriber.connection, conflationKey: delivery.pointee.conflationKey)
    }
    guard count > 0 else { return }
    counted.publicationsOut += UInt64(count)
    counted.positionsOut += UInt64(count)
    unsafe turnReceived.append(delivery.pointee.received)
  }

  /// A publication of any kind to every subscriber.
  private mutating func fanOut(_ delivery: borrowing Delivery) {
    let subscribers = subscriptions.subscribers(of: delivery.channel)
    guard !subscribers.isEmpty else { return }
    var encoded = EncodedFrames()
    let sequence = delivery.publication.sequence
    var count = 0
    for subscriber in subscribers where sequence != nil || !subscriber.isEventsOnly {
      count += 1
      let frame =
        encoded[subscriber.encoding]
        ?? encode(delivery.publication, on: delivery.channel, subscriber.encoding, &encoded)
      if let sequence, subscriber.encoding.isStream {
        sendID(sequence, of: delivery.channel, to: subscriber.connection)
      }
      send(frame, to: subscriber.connection, conflationKey: delivery.conflationKey)
    }
    guard count > 0 else { return }
    counted.publicationsOut += UInt64(count)
    if case .driverLocation = delivery.publication.body { counted.positionsOut += UInt64(count) }
    if delivery.received != 0 { turnReceived.append(delivery.received) }
  }

  /// The first subscriber of a form: encodes for it. Before a position, new names are said to all binary subscribers.
  mutating func encode(
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

  /// Sends what was held back, if it is due by `now` (uptime, ns), and tells some more sessions of a tick.
  @inline(__always)
  mutating func goOn(to now: Int64, in sessions: borrowing SessionTable) {
    if let deadline = held.deadline, now >= deadline { for delivery in held.takeAll() { fanOut(delivery) } }
    if areas.isPublishing { continueAreaTick(in: sessions) }
  }

  /// Something that came, or was due, at a time (uptime, ns) is among the turn's output.
  mutating func noteReceived(at time: Int64) { turnReceived.append(time) }

  /// The turn's output was written: the latency of what it brought out is known.
  @inline(__always)
  mutating func turnFlushed() {
    if turnReceived.isEmpty { return }
    let flushed = loop.readUptime()
    for index in 0..<turnReceived.count { counted.latency.record(nanoseconds: flushed - turnReceived[index]) }
    turnReceived.removeAll()
  }

  // MARK: Sending

  /// Between two messages no range of the arena is in use.
  mutating func flushIfLarge() {
    if loop.arena.count > limits.arenaFlushBytes { loop.flushEarly() }
  }

  /// Sends the frame that lies at a range of the arena, compressed with the session's own context where it has one.
  @inline(__always)
  mutating func send(_ frame: Range<Int>, to connection: ConnectionID, conflationKey: UInt64 = 0) {
    guard let own = encoder.compression[Int(connection.slot)] else {
      return loop.send(frame, to: connection, conflationKey: conflationKey)
    }
    if conflationKey == 0 || !loop.isBlocked(connection), let compressed = encoder.deflate(frame, with: own) {
      loop.send(compressed, to: connection)
    } else {
      loop.send(frame, to: connection, conflationKey: conflationKey)
    }
  }

  /// False, and nothing is sent, where it is a result that is too large. `channel`: with `subscribed`, whose messages
  /// follow.
  @discardableResult
  mutating func send(_ reply: Reply, to recipient: Recipient, naming channel: ChannelHandle? = nil) -> Bool {
    guard let frame = encoder.encode(reply, recipient.encoding, naming: channel) else { return false }
    send(frame, to: recipient.connection)
    counted.repliesOut += 1
    return true
  }

  /// Sends a list that was written over several turns, as one that is written at once; false, and nothing is sent,
  /// where it is too large.
  mutating func send(_ reply: DriverListReply, _ replyTo: MessageID, to recipient: Recipient) -> Bool {
    guard let frame = encoder.encode(reply, replyTo, recipient.encoding) else { return false }
    send(frame, to: recipient.connection)
    counted.repliesOut += 1
    return true
  }

  /// Compresses what stands behind `start` in the arena, in place, as a part of a message that is made in several.
  mutating func compress(partAt start: Int, isLast: Bool) { encoder.compress(partAt: start, isLast: isLast) }

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
    streams.close(slot)
    while let channel = subscriptions.removeAny(of: &session) { release(channel, &inputs) }
    encoder.compression.close(slot)
  }

  /// The message of a session's compressed payload, valid until the next one.
  mutating func inflate(
    _ slot: Int, _ payload: UnsafeRawBufferPointer, _ kind: MessageKind
  ) throws(FrameError) -> UnsafeRawBufferPointer {
    do throws(FrameError) {
      let message = try unsafe encoder.compression.inflate(slot, payload, kind)
      loop.spend(bytes: message.count)
      return unsafe message
    } catch {
      loop.spend(bytes: limits.messageBytes)  // a bomb is inflated up to its limit before it is refused
      throw error
    }
  }

  // MARK: Subscriptions

  /// The session's rights have changed. Loops know channels by number: the hub says their names, and then it is looked
  /// whether they are still granted (`named`).
  func review(_ session: inout Session, asking inputs: inout HubInputs) {
    let (reference, actor) = (reference(session.connection), session.open.rights.credential.actor)
    subscriptions.forEach(of: session.open.subscriptions) { channel, _ in
      inputs.append(.name(reference, actor, channel))
    }
  }

  /// From here on the session gets what is published on the channel; first how things stand, and what it missed. Gives
  /// why not, where it may not.
  mutating func subscribed(
    _ session: inout Session, to channel: ChannelHandle, _ answer: Subscribed, missed: [Publication], isParty: Bool,
    telling inputs: inout HubInputs
  ) -> MessageRefusal? {
    // What is held of the channel is older than what a new subscriber gets first. It is for those who are there
    // already: where nobody is, the handle may have been another channel's when it was published.
    for delivery in held.take(of: channel) { fanOut(delivery) }
    // The token may have been swapped while the hub was asked.
    guard session.open.rights.mayKeep(answer.channel, isParty: isParty) else {
      release(channel, &inputs)
      return MessageRefusal(
        .forbidden, "the session's token does not open this channel any more", replyTo: answer.replyTo)
    }
    let recipient = session.recipient
    let isNew = subscriptions.add(
      recipient.connection, encoding: recipient.encoding, to: channel, isEventsOnly: answer.isEventsOnly,
      of: &session.open.subscriptions)
    // It had subscribed before and now asks what it missed: one subscription, counted once.
    if !isNew { inputs.append(.released(outlet: number, channel)) }
    encoder.opened(channel, answer.channel, recipient.encoding)
    let before = loop.arena.count
    if let stream = session.stream {
      stream.subscribed(answer, to: channel)
      sendID(of: stream, to: recipient.connection)
    }
    send(.subscribed(answer), to: recipient, naming: channel)
    for publication in missed {
      // Beyond what is free it goes out uncompressed: compressing takes ten times as long as writing, and nobody else
      // is served meanwhile.
      let isLong = loop.arena.count - before > WorkUnits.freeAnswerBytes
      var encoded = EncodedFrames()
      let encoding = isLong ? recipient.encoding.uncompressed : recipient.encoding
      let frame = encode(publication, on: channel, encoding, &encoded)
      if session.stream != nil, let sequence = publication.sequence {
        sendID(sequence, of: channel, to: recipient.connection)
      }
      send(frame, to: recipient.connection)
      counted.publicationsOut += 1
      counted.recovered += 1
    }
    return nil
  }

  /// A channel's numbers are another owner's from now on: all subscribers are told how it stands, as one is that has
  /// just subscribed.
  mutating func restarted(_ channel: ChannelHandle, _ answer: Subscribed, in sessions: borrowing SessionTable) {
    for delivery in held.take(of: channel) { fanOut(delivery) }
    for subscriber in subscriptions.subscribers(of: channel) {
      send(.subscribed(answer), to: sessions[Int(subscriber.connection.slot)].recipient, naming: channel)
    }
  }

  /// The session leaves a channel, as it has asked for.
  mutating func unsubscribed(
    _ session: inout Session, from channel: ChannelHandle, _ answer: Unsubscribed, telling inputs: inout HubInputs
  ) {
    _ = remove(channel, &session.open.subscriptions, &inputs)
    send(.unsubscribed(answer), to: session.recipient)
  }

  /// Takes a session's subscription away and says why; nothing where it has none.
  mutating func end(
    _ session: inout Session, _ channel: ChannelHandle, _ name: Channel, _ reason: Unsubscribed.Reason,
    telling inputs: inout HubInputs
  ) {
    guard remove(channel, &session.open.subscriptions, &inputs) else { return }
    counted.subscriptionsEnded[Int(reason.rawValue)] += 1
    send(.unsubscribed(Unsubscribed(replyTo: nil, channel: name, reason: reason)), to: session.recipient)
    if session.stream?.isAsking == false, session.open.subscriptions.count == 0 { streams.end(session.connection) }
  }

  /// The hub has said a channel's name: the session's subscription ends if its rights do not have it any more.
  mutating func named(
    _ session: inout Session, _ channel: ChannelHandle, _ name: Channel, isParty: Bool, telling inputs: inout HubInputs
  ) {
    if session.open.rights.mayKeep(name, isParty: isParty) { return }
    end(&session, channel, name, .grantEnded, telling: &inputs)
  }

  /// A trip has a driver now. Other drivers that followed it by development's word alone are let go; what a token names
  /// stays open.
  mutating func claimed(
    _ channel: ChannelHandle, _ name: Channel, by driver: Identifier, in sessions: inout SessionTable,
    telling inputs: inout HubInputs
  ) {
    end(
      channel, name, .revoked, in: &sessions,
      where: { $0.id != driver && $0.credential.grant(for: name) == .whileUnclaimed }, telling: &inputs)
  }

  /// The channel is over for those of its subscribers of whom `isConcerned` holds.
  mutating func end(
    _ channel: ChannelHandle, _ name: Channel, _ reason: Unsubscribed.Reason, in sessions: inout SessionTable,
    where isConcerned: (SessionRights) -> Bool = { _ in true }, telling inputs: inout HubInputs
  ) {
    for subscriber in subscriptions.subscribers(of: channel) {
      let slot = Int(subscriber.connection.slot)
      if isConcerned(sessions[slot].open.rights) { end(&sessions[slot], channel, name, reason, telling: &inputs) }
    }
  }

  /// Takes a session's subscription away; false when it has none.
  mutating func remove(
    _ channel: ChannelHandle, _ session: inout SessionSubscriptions, _ inputs: inout HubInputs
  ) -> Bool {
    guard subscriptions.remove(channel, of: &session) else { return false }
    release(channel, &inputs)
    return true
  }

  /// A subscription has ended, or could not begin. The hub counts subscriptions; a channel's binary names end with its
  /// last one.
  mutating func release(_ channel: ChannelHandle, _ inputs: inout HubInputs) {
    inputs.append(.released(outlet: number, channel))
    if subscriptions.subscribers(of: channel).isEmpty { encoder.released(channel) }
  }

  func reference(_ connection: ConnectionID) -> SessionRef {
    SessionRef(outlet: number, slot: connection.slot, generation: connection.generation)
  }
}

// MARK: Streams

extension FanOut {
  /// The line before an event on a stream that says where its client is then. It belongs to one stream alone, as each
  /// follows other channels: the message behind it is shared. Neither ever gives way to anything newer.
  mutating func sendID(_ sequence: UInt64, of channel: ChannelHandle, to connection: ConnectionID) {
    guard let stream = streams[connection] else { return }
    stream.sending(sequence, of: channel)
    sendID(of: stream, to: connection)
  }

  func sendID(of stream: EventStream, to connection: ConnectionID) {
    loop.send(to: connection) { stream.lastEventID.writeLine(into: &$0) }
  }
}

extension Publication {
  /// Of an event; state has none.
  fileprivate var sequence: UInt64? {
    switch body {
    case .tripUpdate(let update): update.sequence
    case .notification(let notification): notification.sequence
    case .offer(let offer): offer.sequence
    case .driverLocation, .etaUpdate, .areaUpdate, .countsUpdate, .rawFix, .stats: nil
    }
  }
}
