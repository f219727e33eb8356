// What comes out of the hub, on its way to sockets: encoded once for each form in use (JSON by time format, binary),
// the same bytes for all subscribers of the channel on this loop.
import HubBytes
import HubCore
import HubMessages
import HubTransport
import HubWebSocket

extension SessionLoop {
  mutating func deliverOutputs() {
    if outputs.isEmpty { return }
    var cursor = HubOutputs.Cursor()
    while let step = outputs.next(&cursor) {
      switch step {
      // Looked at where it lies: only the hub appends to the list, and it is not asked before all are delivered.
      case .common(let place): deliver(outputs.place(ofCommon: place))
      case .rare(let place): deliver(outputs[rare: place])
      }
      flushIfLarge()
    }
    outputs.removeAll()
  }

  /// Between two outputs no range of the arena is in use.
  mutating func flushIfLarge() {
    if loop.arena.count > limits.arenaFlushBytes { loop.flushEarly() }
  }

  @inline(__always)
  private mutating func deliver(_ position: UnsafePointer<PositionDelivery>) {
    if configuration.flushIntervalMilliseconds > 0 { hold(position.pointee.delivery) } else { fanOut(position) }
  }

  private mutating func deliver(_ output: HubOutput) {
    switch output {
    case .delivery(let delivery):
      if configuration.flushIntervalMilliseconds > 0, delivery.conflationKey != 0 {
        hold(delivery)
      } else {
        fanOut(delivery)
      }
    case .subscribed(let session, let channel, let answer, let missed, let isParty):
      subscribed(session, channel, answer, missed, isParty: isParty)
    case .areaUpdate(let channel, let publication): areas.pending.append((channel, publication))
    case .areaTickEnded: fanOutAreas()
    case .watching(let session, let answer, let cells): watching(session, answer, cells)
    case .wholeArea(let session, let channel, let publication): sendWhole(session, channel, publication)
    case .viewEnded(let session, let messageID, let view): viewEnded(session, messageID, view)
    case .subscriptionRefused(let session, let error):
      // A session that is closing gave its subscriptions back already.
      guard let connection = connection(of: session), sessions[Int(connection.slot)].phase == .open else { return }
      sessions[Int(connection.slot)].subscriptions -= 1
      subscriptionAnswered(Int(connection.slot))
      send(.error(error), to: Int(connection.slot))
    case .unsubscribed(let session, let messageID, let channel, let name):
      unsubscribed(session, messageID, channel, name)
    case .named(let session, let channel, let name, let isParty):
      if let connection = connection(of: session) { review(Int(connection.slot), channel, name, isParty: isParty) }
    case .channelClaimed(let channel, let name, let driver): claimed(channel, name, by: driver)
    case .channelEnded(let channel, let name, let reason): ended(channel, name, reason)
    case .reply(let session, let reply):
      if let connection = connection(of: session) { answer(Int(connection.slot), reply) }
    case .admitted(let session, let sampling):
      if let connection = connection(of: session) { admit(Int(connection.slot), sampling) }
    case .conflict(let session, let retryAfter):
      if let connection = connection(of: session) { refuseDriver(Int(connection.slot), .conflict, retryAfter) }
    case .full(let session):
      if let connection = connection(of: session) { refuseDriver(Int(connection.slot), .serviceUnavailable, 60) }
    case .replaced(let session, let isRepeated):
      if let connection = connection(of: session) { closeReplaced(Int(connection.slot), isRepeated: isRepeated) }
    case .trips(let session, let result, let replyTo):
      if let connection = connection(of: session) { answer(Int(connection.slot), result, replyTo: replyTo) }
    case .notified(let session, let result):
      if let connection = connection(of: session) { answer(Int(connection.slot), result) }
    case .fences(let session, let result):
      if let connection = connection(of: session) { answer(Int(connection.slot), result) }
    case .queryResult(let session, let result, let replyTo):
      if let connection = connection(of: session) { answer(Int(connection.slot), result, replyTo: replyTo) }
    }
  }

  // MARK: Fan-out

  /// One position to every subscriber: one encode for each form in use, then a range for each connection.
  @inline(__always)
  private mutating func fanOut(_ delivery: UnsafePointer<PositionDelivery>) {
    let subscribers = subscriptions.subscribers(of: delivery.pointee.channel)
    guard !subscribers.isEmpty else { return }
    var encoded = EncodedFrames()
    for subscriber in subscribers {
      let encoding = subscriber.encoding
      let frame = encoded[encoding] ?? encode(delivery, encoding, &encoded)
      send(frame, to: subscriber.connection, conflationKey: delivery.pointee.conflationKey)
    }
    counters.publicationsOut += UInt64(subscribers.count)
    counters.positionsOut += UInt64(subscribers.count)
    turnReceived.append(delivery.pointee.received)
  }

  /// The same for a publication of any kind.
  mutating func fanOut(_ delivery: borrowing Delivery) {
    let subscribers = subscriptions.subscribers(of: delivery.channel)
    guard !subscribers.isEmpty else { return }
    var encoded = EncodedFrames()
    for subscriber in subscribers {
      let frame =
        encoded[subscriber.encoding]
        ?? encode(delivery.publication, on: delivery.channel, subscriber.encoding, &encoded)
      send(frame, to: subscriber.connection, conflationKey: delivery.conflationKey)
    }
    counters.publicationsOut += UInt64(subscribers.count)
    if case .driverLocation = delivery.publication.body { counters.positionsOut += UInt64(subscribers.count) }
    if delivery.received != 0 { turnReceived.append(delivery.received) }
  }

  private mutating func encode(
    _ delivery: UnsafePointer<PositionDelivery>, _ encoding: Encoding, _ encoded: inout EncodedFrames
  ) -> Range<Int> {
    guard case .json(let time) = encoding.form, !encoding.isCompressed,
      let position = delivery.pointer(to: \.position)
    else {
      return encode(Publication(delivery.pointee.position), on: delivery.pointee.channel, encoding, &encoded)
    }
    let payload = FrameWriter.begin(as: .server, in: &loop.arena)
    JSONWriter.write(at: position, time: time, into: &loop.arena)
    let start = FrameWriter.finish(.text, payloadAt: payload, in: &loop.arena)
    counters.encodes += 1
    let frame = start..<loop.arena.count
    encoded[encoding] = frame
    return frame
  }

  /// The first subscriber of a form: encodes for it. The compressed form is made of the plain one, which is encoded for
  /// that if need be.
  mutating func encode(
    _ publication: borrowing Publication, on channel: ChannelHandle, _ encoding: Encoding,
    _ encoded: inout EncodedFrames
  ) -> Range<Int> {
    guard encoding.isCompressed else {
      let frame = encode(publication, on: channel, encoding.form).frame
      encoded[encoding] = frame
      return frame
    }
    let plain = Encoding(form: encoding.form)
    let payload: Range<Int>
    if let ready = encoded[plain] {
      payload = FrameWriter.serverPayload(of: ready)
    } else {
      let new = encode(publication, on: channel, encoding.form)
      encoded[plain] = new.frame
      payload = new.payload
    }
    let frame = deflate(payload) ?? encoded[plain]!
    encoded[encoding] = frame
    return frame
  }

  private mutating func encode(
    _ publication: borrowing Publication, on channel: ChannelHandle, _ form: MessageForm
  ) -> (frame: Range<Int>, payload: Range<Int>) {
    counters.encodes += 1
    guard case .json(let time) = form else { return encodeBinary(publication, on: channel) }
    let payload = FrameWriter.begin(as: .server, in: &loop.arena)
    JSONWriter.write(publication, time: time, into: &loop.arena)
    let start = FrameWriter.finish(.text, payloadAt: payload, in: &loop.arena)
    return (start..<loop.arena.count, payload..<loop.arena.count)
  }

  // MARK: Positions that are held back

  /// Keeps only the newest position of each driver and channel until the interval is over.
  private mutating func hold(_ delivery: Delivery) {
    if held.deadline == nil {
      held.deadline = now.uptime + Int64(configuration.flushIntervalMilliseconds) * 1_000_000
    }
    if held.put(delivery) { counters.conflatedByInterval += 1 }
  }

  mutating func releaseHeldPositions() {
    guard let deadline = held.deadline, now.uptime >= deadline || isDraining else { return }
    for delivery in held.takeAll() { fanOut(delivery) }
  }

  // MARK: Subscriptions

  /// From here on the session gets what is published; first how things stand, and what it missed.
  private mutating func subscribed(
    _ session: SessionRef, _ channel: ChannelHandle, _ answer: Subscribed, _ missed: [Publication], isParty: Bool
  ) {
    guard let connection = connection(of: session), sessions[Int(connection.slot)].phase == .open else {
      return inputs.append(.released(loop: index, channel))
    }
    // What is held of the channel is older than the snapshot. It is for those who are there already: where nobody is,
    // the handle may have been another channel's when it was published.
    for delivery in held.take(of: channel) { fanOut(delivery) }
    let slot = Int(connection.slot)
    subscriptionAnswered(slot)
    // The token may have been swapped while the hub was asked.
    guard mayKeep(slot, answer.channel, isParty: isParty) else {
      sessions[slot].subscriptions -= 1
      inputs.append(.released(loop: index, channel))
      return refuse(slot, answer.replyTo, .forbidden, "the session's token does not open this channel any more")
    }
    let encoding = Encoding(form: sessions[slot].form, isCompressed: sharesCompression(slot))
    var first = sessions[slot].firstSubscription
    let isNew = subscriptions.add(connection, encoding: encoding, to: channel, first: &first)
    sessions[slot].firstSubscription = first
    if !isNew {
      // It had subscribed before and now asks what it missed: one subscription, counted once.
      sessions[slot].subscriptions -= 1
      inputs.append(.released(loop: index, channel))
    }
    if encoding.form == .binary { binary.open(channel, answer.channel) }
    let before = loop.arena.count
    send(.subscribed(answer), to: slot, naming: channel)
    for publication in missed {
      // Beyond what is free it goes out uncompressed: compressing takes ten times as long as writing, and nobody else
      // is served meanwhile.
      let isLong = loop.arena.count - before > WorkUnits.freeAnswerBytes
      var encoded = EncodedFrames()
      send(encode(publication, on: channel, isLong ? encoding.uncompressed : encoding, &encoded), to: connection)
      counters.publicationsOut += 1
      counters.recovered += 1
    }
    chargeAnswer(slot, bytes: loop.arena.count - before)
  }

  private mutating func unsubscribed(
    _ session: SessionRef, _ messageID: MessageID, _ channel: ChannelHandle, _ name: Channel
  ) {
    guard let connection = connection(of: session) else { return }
    let slot = Int(connection.slot)
    _ = drop(slot, channel)
    send(.unsubscribed(Unsubscribed(replyTo: messageID, channel: name, reason: .asked)), to: slot)
  }

  /// Takes a session's subscription away and tells the hub; false when it has none.
  mutating func drop(_ slot: Int, _ channel: ChannelHandle) -> Bool {
    var first = sessions[slot].firstSubscription
    guard subscriptions.remove(channel, first: &first) else { return false }
    sessions[slot].firstSubscription = first
    sessions[slot].subscriptions -= 1
    released(channel)
    return true
  }

  /// A subscription is gone: the hub counts them, and what was agreed on of a channel ends with its last one.
  mutating func released(_ channel: ChannelHandle) {
    inputs.append(.released(loop: index, channel))
    if !binary.isEmpty, subscriptions.subscribers(of: channel).isEmpty { binary.forget(channel) }
  }

  /// The channel is over: every subscriber is told and let go.
  private mutating func ended(_ channel: ChannelHandle, _ name: Channel, _ reason: Unsubscribed.Reason) {
    for subscriber in subscriptions.subscribers(of: channel) {
      end(Int(subscriber.connection.slot), channel, name, reason)
    }
  }

  /// Takes a subscription away and tells the session why; nothing where it has none.
  mutating func end(_ slot: Int, _ channel: ChannelHandle, _ name: Channel, _ reason: Unsubscribed.Reason) {
    guard drop(slot, channel) else { return }
    counters.subscriptionsEnded[Int(reason.rawValue)] += 1
    send(.unsubscribed(Unsubscribed(replyTo: nil, channel: name, reason: reason)), to: slot)
  }
}

/// Where the frame of each form lies in the arena, once it was encoded.
struct EncodedFrames {
  private var unixMilliseconds: Range<Int>?
  private var apple: Range<Int>?
  private var rfc3339: Range<Int>?
  private var binary: Range<Int>?
  private var compressedUnixMilliseconds: Range<Int>?
  private var compressedApple: Range<Int>?
  private var compressedRFC3339: Range<Int>?

  subscript(encoding: Encoding) -> Range<Int>? {
    @inline(__always) get {
      switch (encoding.form, encoding.isCompressed) {
      case (.json(.unixMilliseconds), false): unixMilliseconds
      case (.json(.apple), false): apple
      case (.json(.rfc3339), false): rfc3339
      case (.binary, _): binary  // never compressed
      case (.json(.unixMilliseconds), true): compressedUnixMilliseconds
      case (.json(.apple), true): compressedApple
      case (.json(.rfc3339), true): compressedRFC3339
      }
    }
    set {
      switch (encoding.form, encoding.isCompressed) {
      case (.json(.unixMilliseconds), false): unixMilliseconds = newValue
      case (.json(.apple), false): apple = newValue
      case (.json(.rfc3339), false): rfc3339 = newValue
      case (.binary, _): binary = newValue
      case (.json(.unixMilliseconds), true): compressedUnixMilliseconds = newValue
      case (.json(.apple), true): compressedApple = newValue
      case (.json(.rfc3339), true): compressedRFC3339 = newValue
      }
    }
  }
}

/// Positions that wait for the flush interval, the newest of each channel and driver.
struct HeldPositions {
  private struct Entry {
    /// Nil once it was taken before the rest.
    var delivery: Delivery?
    /// The place of the same channel's entry before this one; −1 for none.
    var previous: Int
  }

  /// Uptime in ns; nil while nothing is held.
  var deadline: Int64?
  private var entries: [Entry] = []
  private var places: [UInt64: Int] = [:]
  /// The last place of each channel.
  private var lastOfChannel: [UInt32: Int] = [:]

  /// True when it took the place of an older one.
  mutating func put(_ delivery: Delivery) -> Bool {
    if let place = places[delivery.conflationKey] {
      entries[place].delivery = delivery
      return true
    }
    let place = entries.count
    places[delivery.conflationKey] = place
    let previous = lastOfChannel.updateValue(place, forKey: delivery.channel.index)
    entries.append(Entry(delivery: delivery, previous: previous ?? -1))
    return false
  }

  mutating func takeAll() -> [Delivery] {
    deadline = nil
    places.removeAll(keepingCapacity: true)
    lastOfChannel.removeAll(keepingCapacity: true)
    defer { entries = [] }
    return entries.compactMap(\.delivery)
  }

  /// Takes what is held of one channel, in no particular order. O(1) for each.
  mutating func take(of channel: ChannelHandle) -> [Delivery] {
    guard var place = lastOfChannel.removeValue(forKey: channel.index) else { return [] }
    var taken: [Delivery] = []
    while place >= 0 {
      if let delivery = entries[place].delivery {
        places[delivery.conflationKey] = nil
        taken.append(delivery)
      }
      entries[place].delivery = nil
      place = entries[place].previous
    }
    return taken
  }
}
