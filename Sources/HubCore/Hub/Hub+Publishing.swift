// Publishing: one publication, handed once to each loop that has a subscriber of the channel.
import HubGeo
import HubMessages

extension Hub {
  /// Publishes a state (a position) on a channel: no number, nothing kept, worthless once a newer one with the same
  /// key is there. Costs nothing where nobody listens.
  @inline(__always)
  mutating func publishState(_ delivery: inout PositionDelivery, driver: Int, channel: Int) {
    var outlets = channels.outlets(channel)
    if outlets.isEmpty { return }
    publicationNumber += 1
    delivery.channel = ChannelHandle(index: UInt32(channel))
    delivery.conflationKey = UInt64(channel) << 32 | UInt64(driver + 1)  // never an ETA's: there are fewer drivers
    delivery.position.channel = channels.name(channel)
    delivery.position.number = publicationNumber
    delivery.position.location.after = channels.sequence(channel, storedThrough: storage.storedThrough)
    while let outlet = outlets.popFirst() {
      outputs[outlet].append(common: delivery)
      counters.deliveries += 1
    }
  }

  /// Publishes a trip's ETA: state too, of which a channel has one.
  mutating func publishState(_ update: ETAUpdate, channel: Int) {
    var outlets = channels.outlets(channel)
    if outlets.isEmpty { return }
    publicationNumber += 1
    var update = update
    update.after = channels.sequence(channel, storedThrough: storage.storedThrough)
    let delivery = Delivery(
      channel: ChannelHandle(index: UInt32(channel)), conflationKey: UInt64(channel) << 32 | UInt64(UInt32.max),
      received: 0,
      publication: Publication(
        channel: channels.name(channel), number: publicationNumber, timestamp: now.timestamp, body: .etaUpdate(update)))
    while let outlet = outlets.popFirst() {
      outputs[outlet].append(.delivery(delivery))
      counters.deliveries += 1
    }
  }

  /// Publishes an event on a channel: numbered, kept for recovery, never dropped, told when it is stored. `body` gets
  /// its number.
  mutating func publishEvent(on channel: Int, _ body: (UInt64) -> Publication.Body) {
    let sequence = channels.nextSequence(
      channel, ticket: storage.isOn ? storage.ticket : 0, storedThrough: storage.storedThrough)
    publicationNumber += 1
    let publication = Publication(
      channel: channels.name(channel), number: publicationNumber, timestamp: now.timestamp, body: body(sequence))
    channels.keep(publication, channel)
    storage.write(.event(publication))
    counters.eventsPublished += 1
    var outlets = channels.outlets(channel)
    while let outlet = outlets.popFirst() {
      let delivery = Delivery(
        channel: ChannelHandle(index: UInt32(channel)), conflationKey: 0, received: 0, publication: publication)
      emitStored(.delivery(delivery), to: UInt32(outlet))
      counters.deliveries += 1
    }
  }

  /// Publishes an event on the driver's channel, and on that of the trip that its fixes named last, while that goes on.
  mutating func publishOfDriver(_ driver: Int, onTrip: Bool, _ body: (UInt64) -> Publication.Body) {
    if let channel = eventChannel(ofDriver: driver) { publishEvent(on: channel, body) }
    guard onTrip, let trip = lastTrip(of: driver), !trips[trip].status.isFinal,
      let channel = eventChannel(ofTrip: trip)
    else { return }
    publishEvent(on: channel, body)
  }

  /// The driver's channel, made and kept for its events; nil at the limit of channels.
  mutating func eventChannel(ofDriver driver: Int) -> Int? {
    let channel = eventChannel(drivers[driver].channel, .driver(drivers[driver].id))
    drivers[driver].channel = channel
    return channel
  }

  /// The trip's channel, likewise.
  mutating func eventChannel(ofTrip trip: Int) -> Int? {
    let channel = eventChannel(trips[trip].channel, .trip(trips[trip].id))
    trips[trip].channel = channel
    return channel
  }

  /// The fence's channel, likewise.
  mutating func eventChannel(ofFence id: Identifier) -> Int? { eventChannel(nil, .fence(id)) }

  /// The channel that is `known`, or else the one of this name, kept for its events.
  private mutating func eventChannel(_ known: Int?, _ name: Channel) -> Int? {
    guard let channel = known ?? channels.findOrInsert(name) else {
      counters.count(full: .channels)
      return nil
    }
    _ = channels.setKept(channel, true)
    return channel
  }
}
