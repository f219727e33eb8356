// The hub's output on its way to sockets: encoded once for each form in use (JSON by time format, binary, compressed),
// the same bytes for all subscribers of the channel on this loop.
import HubBytes
import HubCore
import HubMessages
import HubSystem
import HubTransport
import HubWebSocket

/// The subscriptions of one loop, and everything sent to its sessions.
struct FanOut: ~Copyable {
  let loop: EventLoop
  let number: UInt32
  let limits: Limits
  let admissions: Admissions
  private let holdsPositions: Bool
  var subscriptions = SubscriptionTable()
  private var encoder: MessageEncoder
  private var held: HeldPositions
  var areas = AreaDeliveries()
  /// Sessions that are streams of events.
  var streams = OpenStreams()
  /// When the fix of each delivery of this turn arrived (uptime, ns), to compute its latency once the turn is flushed.
  private var turnReceived = TurnList<Int64>()
  var counters = FanOutCounters()

  /// `number`: the loop's number in the hub.
  init(
    _ loop: EventLoop, number: UInt32, _ limits: Limits, _ admissions: Admissions, flushIntervalMilliseconds: Int
  ) {
    self.loop = loop
    self.number = number
    self.limits = limits
    self.admissions = admissions
    holdsPositions = flushIntervalMilliseconds > 0
    held = HeldPositions(interval: Int64(flushIntervalMilliseconds) * 1_000_000)
    encoder = MessageEncoder(loop, limits)
  }

  /// The counters, with the number of subscriptions and what the encoder counts.
  var allCounters: FanOutCounters {
    var all = counters
    all.subscriptions = subscriptions.count
    all.encodes = encoder.encodes
    all.compression = encoder.compression.counters
    return all
  }

  /// When to continue (uptime, ns; 0 for at once) with held positions or an unfinished tick. Nil while there is
  /// neither.
  var deadline: Int64? { areas.isPublishing ? 0 : holdsPositions ? held.deadline : nil }

  // MARK: Publications

  @inline(__always)
  mutating func publish(_ position: UnsafePointer<PositionDelivery>) {
    if holdsPositions { unsafe hold(position.pointee.delivery) } else { unsafe fanOut(position) }
  }

  mutating func publish(_ delivery: Delivery) {
    if holdsPositions, delivery.conflationKey != 0 { hold(delivery) } else { fanOut(delivery) }
  }

  /// Sends a position to every subscriber: one encode for each form in use, then a range for each connection.
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
    counters.publicationsOut += UInt64(count)
    counters.positionsOut += UInt64(count)
    if unsafe delivery.pointee.received != 0 { unsafe turnReceived.append(delivery.pointee.received) }
  }

  /// Sends a publication of any kind to every subscriber.
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
    counters.publicationsOut += UInt64(count)
    if case .driverLocation = delivery.publication.body { counters.positionsOut += UInt64(count) }
    if delivery.received != 0 { turnReceived.append(delivery.received) }
  }

  /// Encodes for the first subscriber of a form. Before a position, new names are sent to all binary subscribers.
  mutating func encode(
    _ publication: borrowing Publication, on channel: ChannelHandle, _ encoding: Encoding,
    _ encoded: inout EncodedFrames
  ) -> Range<Int> {
    if encoder.isBinary(encoding), let names = encoder.announcement(before: publication, on: channel) {
      for subscriber in subscriptions.subscribers(of: channel) where encoder.isBinary(subscriber.encoding) {
        send(names, to: subscriber.connection)
        counters.namesSent += 1
      }
    }
    return encoder.encode(publication, on: channel, encoding, &encoded)
  }

  /// Keeps only the newest position of each driver and channel until the interval is over.
  private mutating func hold(_ delivery: Delivery) {
    if held.put(delivery, now: loop.now.uptimeNanoseconds) { counters.conflatedByInterval += 1 }
  }

  /// Sends held positions that are due by `now` (uptime, ns), and continues an unfinished tick.
  @inline(__always)
  mutating func advance(to now: Int64, in sessions: borrowing SessionTable) {
    if holdsPositions { releaseHeld(dueBy: now) }
    if areas.isPublishing { continueAreaTick(in: sessions) }
  }

  // Not inlined: few hubs hold positions, and each turn of the others would carry its code.
  @inline(never)
  private mutating func releaseHeld(dueBy now: Int64) {
    while let delivery = held.takeDue(by: now) { fanOut(delivery) }
  }

  /// Notes that the turn's output has something that arrived, or was due, at a time (uptime, ns).
  mutating func noteReceived(at time: Int64) { turnReceived.append(time) }

  /// Notes the latency of the turn's output, which was written.
  @inline(__always)
  mutating func turnFlushed() {
    if turnReceived.isEmpty { return }
    let flushed = loop.readUptime()
    for index in 0..<turnReceived.count { counters.latency.record(nanoseconds: flushed - turnReceived[index]) }
    turnReceived.removeAll()
  }

  // MARK: Sending

  /// Writes the output if there is much. Only between two messages, where no range of the arena is in use.
  mutating func flushIfLarge() {
    if loop.arena.count > limits.arenaFlushBytes { loop.flushEarly() }
  }

  /// Sends the frame at a range of the arena, compressed with the session's own context if it has one.
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

  /// Sends a reply; false, with nothing sent, for too large a result. `channel`: the one that a `subscribed` is about.
  @discardableResult
  mutating func send(_ reply: Reply, to recipient: Recipient, naming channel: ChannelHandle? = nil) -> Bool {
    guard let frame = encoder.encode(reply, recipient.encoding, naming: channel) else { return false }
    send(frame, to: recipient.connection)
    counters.repliesOut += 1
    return true
  }

  /// Sends a list that was written over several turns; false, and nothing is sent, where it is too large.
  mutating func send(_ reply: DriverListReply, _ replyTo: MessageID, to recipient: Recipient) -> Bool {
    guard let frame = encoder.encode(reply, replyTo, recipient.encoding) else { return false }
    send(frame, to: recipient.connection)
    counters.repliesOut += 1
    return true
  }

  /// Compresses in place what is behind `start` in the arena, a part of a message.
  mutating func compress(partAt start: Int, isLast: Bool) { encoder.compress(partAt: start, isLast: isLast) }

  // MARK: Sessions

  /// What is accepted of a new session's offers of compression.
  var compressionPolicy: DeflatePolicy { encoder.compression.policy }

  /// A session opens, with the form of its messages.
  mutating func open(_ slot: Int, _ form: MessageForm, _ agreed: DeflateParameters?) -> Encoding {
    encoder.open(slot, form, agreed)
  }

  /// A session has ended.
  mutating func close(_ slot: Int, _ session: inout SessionSubscriptions, queuing inputs: inout HubInputs) {
    areas.removeAll(slot)
    streams.close(slot)
    while let channel = subscriptions.removeAny(of: &session) { release(channel, &inputs) }
    encoder.compression.close(slot)
  }

  /// Decompresses a session's payload; the result is valid until the next call. `work`: the bytes to charge for it.
  mutating func inflate(
    _ slot: Int, _ payload: UnsafeRawBufferPointer, _ kind: MessageKind
  ) throws(FrameError) -> (message: UnsafeRawBufferPointer, work: Int) {
    do throws(FrameError) {
      let (message, work) = try unsafe encoder.compression.inflate(slot, payload, kind)
      loop.spend(bytes: work)
      return unsafe (message, work)
    } catch {
      loop.spend(bytes: limits.messageBytes)  // a bomb is inflated up to its limit before it is refused
      throw error
    }
  }

  // MARK: Subscriptions

  /// Checks the subscriptions of a session whose rights have changed. Loops know channels by number: the hub gives
  /// their names, and `named` checks the rights.
  func review(_ session: inout Session, asking inputs: inout HubInputs) {
    let (reference, actor) = (reference(session.connection), session.open.rights.credential.actor)
    subscriptions.forEach(of: session.open.subscriptions) { channel, _ in
      inputs.append(.name(reference, actor, channel))
    }
  }

  /// Subscribes the session: it gets a snapshot, or what it missed, and then live publications. Gives the refusal, if
  /// any.
  mutating func subscribed(
    _ session: inout Session, to channel: ChannelHandle, _ answer: Subscribed, missed: [Publication], isParty: Bool,
    queuing inputs: inout HubInputs
  ) -> MessageRefusal? {
    // Held positions of the channel are older than the new subscriber's snapshot: they are only for earlier ones.
    for delivery in held.take(of: channel) { fanOut(delivery) }
    // The token may have been replaced meanwhile.
    guard session.open.rights.mayKeep(answer.channel, isParty: isParty) else {
      release(channel, &inputs)
      return .grantEnded(replyTo: answer.replyTo)
    }
    // At the limit a session may still ask for what it missed on a channel that it has.
    guard
      Int(session.open.subscriptions.open) < limits.subscriptionsPerSession
        || subscriptions.subscriber(of: channel, session.open.subscriptions) != nil
    else {
      release(channel, &inputs)
      return .tooManySubscriptions(limits, replyTo: answer.replyTo)
    }
    let recipient = session.recipient
    let isNew = subscriptions.add(
      recipient.connection, encoding: recipient.encoding, to: channel, isEventsOnly: answer.isEventsOnly,
      of: &session.open.subscriptions)
    // It was subscribed before and asked for what it missed: the hub has counted it twice.
    if !isNew { inputs.append(.released(outlet: number, channel)) }
    encoder.opened(channel, answer.channel, recipient.encoding)
    let before = loop.arena.count
    if let stream = session.stream {
      stream.subscribed(answer, to: channel)
      sendID(of: stream, to: recipient.connection)
    }
    send(.subscribed(answer), to: recipient, naming: channel)
    for publication in missed {
      // Beyond what is free it is sent uncompressed: compressing takes ten times as long as writing and delays others.
      let isLong = loop.arena.count - before > WorkUnits.freeAnswerBytes
      var encoded = EncodedFrames()
      let encoding = isLong ? recipient.encoding.uncompressed : recipient.encoding
      let frame = encode(publication, on: channel, encoding, &encoded)
      if session.stream != nil, let sequence = publication.sequence {
        sendID(sequence, of: channel, to: recipient.connection)
      }
      if isLong {
        loop.send(frame, to: recipient.connection)
      } else {
        send(frame, to: recipient.connection)
      }
      counters.publicationsOut += 1
      counters.recovered += 1
    }
    return nil
  }

  /// A channel's numbers come from another owner: all subscribers get its present state, as a new subscriber does.
  mutating func restarted(_ channel: ChannelHandle, _ answer: Subscribed) {
    for delivery in held.take(of: channel) { fanOut(delivery) }
    var encoded = EncodedFrames()
    for subscriber in subscriptions.subscribers(of: channel) {
      if let stream = streams[subscriber.connection] {
        stream.restarted(answer, on: channel)
        sendID(of: stream, to: subscriber.connection)
      }
      guard
        let frame = encoded[subscriber.encoding]
          ?? encoder.encode(.subscribed(answer), subscriber.encoding, naming: channel)
      else { continue }
      encoded[subscriber.encoding] = frame
      send(frame, to: subscriber.connection)
      counters.repliesOut += 1
    }
  }

  /// Unsubscribes the session at its request.
  mutating func unsubscribed(
    _ session: inout Session, from channel: ChannelHandle, _ answer: Unsubscribed, queuing inputs: inout HubInputs
  ) {
    _ = remove(channel, &session.open.subscriptions, &inputs)
    send(.unsubscribed(answer), to: session.recipient)
  }

  /// Ends a session's subscription and sends the reason; does nothing where it has none.
  mutating func end(
    _ session: inout Session, _ channel: ChannelHandle, _ name: Channel, _ reason: Unsubscribed.Reason,
    queuing inputs: inout HubInputs
  ) {
    guard remove(channel, &session.open.subscriptions, &inputs) else { return }
    counters.subscriptionsEnded[Int(reason.rawValue)] += 1
    send(.unsubscribed(Unsubscribed(replyTo: nil, channel: name, reason: reason)), to: session.recipient)
    if session.stream?.isAsking == false, session.open.subscriptions.count == 0 { streams.end(session.connection) }
  }

  /// The hub has given a channel's name: ends the session's subscription if its rights do not include it any more.
  mutating func named(
    _ session: inout Session, _ channel: ChannelHandle, _ name: Channel, isParty: Bool, queuing inputs: inout HubInputs
  ) {
    if session.open.rights.mayKeep(name, isParty: isParty) { return }
    end(&session, channel, name, .grantEnded, queuing: &inputs)
  }

  /// A trip has a driver now: unsubscribes other drivers that followed it by a development credential; what a token
  /// names stays.
  mutating func claimed(
    _ channel: ChannelHandle, _ name: Channel, by driver: Identifier, in sessions: inout SessionTable,
    queuing inputs: inout HubInputs
  ) {
    end(
      channel, name, .revoked, in: &sessions,
      where: { $0.id != driver && $0.credential.grant(for: name) == .whileUnclaimed }, queuing: &inputs)
  }

  /// Ends the subscriptions to a channel of those for whom `isConcerned` is true.
  mutating func end(
    _ channel: ChannelHandle, _ name: Channel, _ reason: Unsubscribed.Reason, in sessions: inout SessionTable,
    where isConcerned: (SessionRights) -> Bool = { _ in true }, queuing inputs: inout HubInputs
  ) {
    for subscriber in subscriptions.subscribers(of: channel) {
      let slot = Int(subscriber.connection.slot)
      if isConcerned(sessions[slot].open.rights) { end(&sessions[slot], channel, name, reason, queuing: &inputs) }
    }
  }

  /// Removes a session's subscription; false when it has none.
  mutating func remove(
    _ channel: ChannelHandle, _ session: inout SessionSubscriptions, _ inputs: inout HubInputs
  ) -> Bool {
    guard subscriptions.remove(channel, of: &session) else { return false }
    release(channel, &inputs)
    return true
  }

  /// Reports a subscription that has ended, or could not begin, to the hub, which counts them. After the last one on
  /// this loop nothing is kept under the handle, which the hub may give to another channel.
  mutating func release(_ channel: ChannelHandle, _ inputs: inout HubInputs) {
    inputs.append(.released(outlet: number, channel))
    guard subscriptions.subscribers(of: channel).isEmpty else { return }
    _ = held.take(of: channel)
    areas.forget(channel)
    encoder.released(channel)
  }

  func reference(_ connection: ConnectionID) -> SessionRef {
    SessionRef(outlet: number, slot: connection.slot, generation: connection.generation)
  }
}

// MARK: Streams

extension FanOut {
  /// Sends the line before a stream's event with the client's position in all channels. It is for one stream alone,
  /// since each follows other channels; the message behind it is shared. Neither is ever replaced.
  mutating func sendID(_ sequence: UInt64, of channel: ChannelHandle, to connection: ConnectionID) {
    guard let stream = streams[connection] else { return }
    stream.sending(sequence, of: channel)
    sendID(of: stream, to: connection)
  }

  func sendID(of stream: EventStream, to connection: ConnectionID) {
    loop.send(to: connection) { stream.lastEventID.writeLine(into: &$0) }
  }
}
