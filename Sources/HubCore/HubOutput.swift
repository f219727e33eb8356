// Outputs of the hub: a list for each outlet, drained once a turn, in order.
public import HubBytes
import HubGeo
public import HubMessages

/// A channel for outlets: a dense number, reused only after every outlet has released it.
public struct ChannelHandle: Sendable, Hashable, BitwiseCopyable {
  public var index: UInt32
  public init(index: UInt32) { self.index = index }
}

/// The output of a turn for one outlet, in order: positions separately, everything else among them.
public typealias HubOutputs = MixedList<PositionDelivery, HubOutput>

/// A position for an outlet with subscribers: trivial, so that it is used in place.
public struct PositionDelivery: Sendable, BitwiseCopyable {
  public var channel: ChannelHandle
  /// A newer delivery with the same key replaces an unsent older one; never 0.
  public var conflationKey: UInt64
  /// When the fix arrived (uptime, ns), from which latency is measured.
  public var received: Int64
  public var position: PublishedPosition

  /// An empty one.
  static var blank: PositionDelivery {
    guard let nowhere = Coordinate(latitude: 0, longitude: 0), let nobody = Identifier("-") else {
      preconditionFailure("both are right")
    }
    let time = Timestamp(milliseconds: 0)
    return PositionDelivery(
      channel: ChannelHandle(index: 0), conflationKey: 0, received: 0,
      position: PublishedPosition(
        channel: .fleet, number: 0, timestamp: time,
        location: DriverLocation(
          driverID: nobody, tripID: nil, coordinate: nowhere, heading: nil, speed: nil, accuracy: 0, confidence: .low,
          timestamp: time, age: 0, after: 0)))
  }

  /// This position as a `Delivery`.
  public var delivery: Delivery {
    Delivery(
      channel: channel, conflationKey: conflationKey, received: received, publication: Publication(position))
  }
}

extension PositionDelivery {
  /// The delivery of a position; nil for any other.
  public init?(_ delivery: Delivery) {
    guard case .driverLocation(let location) = delivery.publication.body else { return nil }
    self.init(
      channel: delivery.channel, conflationKey: delivery.conflationKey, received: delivery.received,
      position: PublishedPosition(
        channel: delivery.publication.channel, number: delivery.publication.number,
        timestamp: delivery.publication.timestamp, location: location))
  }
}

/// A publication for an outlet with subscribers.
public struct Delivery: Sendable {
  public var channel: ChannelHandle
  /// Not 0 for state: a newer delivery with the same key replaces an unsent older one.
  public var conflationKey: UInt64
  /// When the fix arrived (uptime, ns), or 0; latency is measured from it.
  public var received: Int64
  public var publication: Publication
}

/// Outputs for an outlet. All but the frequent case are `indirect`, as in `HubInput`.
public enum HubOutput: Sendable {
  /// An event or an ETA; positions are `PositionDelivery` (but for `Hub.drain(_:)`, which gives all as these).
  case delivery(Delivery)
  /// Takes effect when the outlet drains it: what follows in this list is live. `missed` leads up to it: events in
  /// order, and then, for a subscriber that resumed, the newest position and ETA. A party may follow its trip whatever
  /// its token names.
  indirect case subscribed(SessionRef, ChannelHandle, Subscribed, missed: [Publication], isParty: Bool)
  /// The session watches these cells from now on: each has one subscriber more, even if the session had it already.
  indirect case watching(SessionRef, Subscribed, [ChannelHandle])
  /// A snapshot of a cell, in parts, for one session; changes follow.
  indirect case areaSnapshot(SessionRef, ChannelHandle, [Publication])
  /// A trip's share with this id has ended: its holder is unsubscribed.
  indirect case shareEnded(ChannelHandle, Channel, of: Identifier)
  /// Changes in a cell, to be sent at `areaTickEnded`.
  indirect case areaUpdate(ChannelHandle, Publication)
  /// `due`: when the tick was due (uptime, ns).
  case areaTickEnded(due: Int64)
  /// The answer to `HubInput.leaveView`.
  indirect case viewEnded(SessionRef, MessageID, Unsubscribe)
  indirect case subscriptionRefused(SessionRef, ErrorReply)
  indirect case unsubscribed(SessionRef, MessageID, ChannelHandle, Channel)
  /// The channel has ended for all subscribers of this outlet.
  indirect case channelEnded(ChannelHandle, Channel, Unsubscribed.Reason)
  /// The channel's trip has this driver now: followers by `ChannelGrant.whileUnclaimed` are unsubscribed.
  indirect case channelClaimed(ChannelHandle, Channel, by: Identifier)
  /// The answer to `HubInput.name`.
  indirect case named(SessionRef, ChannelHandle, Channel, isParty: Bool)
  indirect case reply(SessionRef, Reply)
  /// The driver may connect, with this sampling advice.
  case admitted(SessionRef, Connected.Sampling)
  /// Too many replacements of this driver's session: refused for this many seconds.
  case conflict(SessionRef, retryAfter: Double)
  /// The driver table is full.
  case full(SessionRef)
  /// A newer session of the driver replaced this one. `isRepeated`: its client has reconnected after an earlier 4409.
  case replaced(SessionRef, isRepeated: Bool)
  /// The answer to a query; nil for an unknown driver. The writer of a list sorts it (`DriverListWriter`), to save the
  /// hub's thread.
  indirect case queryResult(SessionRef, QueryResult?, replyTo: MessageID?)
  /// The answer to a question about trips.
  indirect case trips(SessionRef, TripAnswer, replyTo: MessageID?)
  /// The answer to a notification that was posted.
  indirect case notified(SessionRef, NotificationAnswer)
  /// The answer to a question about fences.
  indirect case fences(SessionRef, FenceAnswer)
  /// The answer to a question about tokens.
  indirect case credentials(SessionRef, CredentialAnswer)
  /// Revocations changed. All outlets get the changes in the same order, before they are stored, and the asking one
  /// before the answer.
  indirect case revoked(RevocationChange)
  /// A followed channel has a new owner, or new sequence numbers: its state, for all subscribers of this outlet.
  indirect case channelRestarted(ChannelHandle, Subscribed)
  /// Only for the cluster's outlet (`Hub.joinCluster`).
  indirect case cluster(ClusterOutput)
}

extension MixedList where Common == PositionDelivery, Rare == HubOutput {
  /// All outputs as copies.
  var inOrder: [HubOutput] {
    var list: [HubOutput] = []
    var cursor = Cursor()
    while let step = next(&cursor) {
      switch step {
      case .common(let index): list.append(.delivery(self[common: index].delivery))
      case .rare(let index): list.append(self[rare: index])
      }
    }
    return list
  }
}

/// The outputs of each outlet.
@safe
struct OutletOutputs: ~Copyable {
  // All lists are initialised from `init` to `deinit`, and never move.
  private let lists: UnsafeMutablePointer<HubOutputs>
  let count: Int

  init(count: Int) {
    self.count = count
    unsafe lists = .allocate(capacity: count)
    for outlet in 0..<count { unsafe (lists + outlet).initialize(to: HubOutputs()) }
  }

  deinit {
    unsafe lists.deinitialize(count: count)
    unsafe lists.deallocate()
  }

  subscript(outlet: Int) -> HubOutputs {
    @inline(__always) unsafeAddress { unsafe UnsafePointer(pointer(outlet)) }
    @inline(__always) unsafeMutableAddress { unsafe pointer(outlet) }
  }

  /// Hands over an outlet's output and takes the emptied list of a turn before, to reuse its memory.
  @inline(__always)
  mutating func drain(_ outlet: Int, into list: inout HubOutputs) {
    swap(&self[outlet], &list)
    self[outlet].removeAll()
  }

  @inline(__always)
  private func pointer(_ outlet: Int) -> UnsafeMutablePointer<HubOutputs> {
    precondition(outlet >= 0 && outlet < count)
    return unsafe lists + outlet
  }
}

extension HubOutput {
  /// The merged answer of several hubs, in the form of one hub's answer.
  static func answer(_ answer: FleetAnswer, to question: FleetQuestion) -> HubOutput {
    let (session, replyTo) = (question.session, question.replyTo)
    return switch (answer, question.request) {
    case (.result(.trip(let report)?), _): .trips(session, .trip(report, isNew: false), replyTo: replyTo)
    case (.result(let result), _): .queryResult(session, result, replyTo: replyTo)
    case (.trips(let page), _): .trips(session, .list(page), replyTo: replyTo)
    case (.refused(let error), .query(.trip)), (.refused(let error), .trips):
      .trips(session, .refused(error.replying(to: replyTo)), replyTo: replyTo)
    case (.refused(let error), _): .reply(session, .error(error.replying(to: replyTo)))
    }
  }
}
