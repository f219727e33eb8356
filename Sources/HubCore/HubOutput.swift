// What comes out of the hub: a list for each outlet, drained once a turn, in order.
public import HubBytes
import HubGeo
public import HubMessages

/// A channel as outlets know it: dense, reused only after every outlet has released it.
public struct ChannelHandle: Sendable, Hashable, BitwiseCopyable {
  public var index: UInt32
  public init(index: UInt32) { self.index = index }
}

/// What comes out of a turn for one outlet, in order: positions by themselves, with everything else among them.
public typealias HubOutputs = MixedList<PositionDelivery, HubOutput>

/// A position on its way to an outlet that has subscribers: nothing but bits, so that it is used where it lies.
public struct PositionDelivery: Sendable, BitwiseCopyable {
  public var channel: ChannelHandle
  /// A newer one with the same key makes an unsent older one worthless; never 0.
  public var conflationKey: UInt64
  /// When the fix came in (uptime, ns): what latency is measured from.
  public var received: Int64
  public var position: PublishedPosition

  /// One that says nothing.
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

  /// This position in the form that publications of all kinds have.
  public var delivery: Delivery {
    Delivery(
      channel: channel, conflationKey: conflationKey, received: received, publication: Publication(position))
  }
}

/// A publication on its way to an outlet that has subscribers.
public struct Delivery: Sendable {
  public var channel: ChannelHandle
  /// Not 0 for state: a newer delivery with the same key makes an unsent older one worthless.
  public var conflationKey: UInt64
  /// When the fix came in (uptime, ns), or 0: what latency is measured from.
  public var received: Int64
  public var publication: Publication
}

/// What an outlet is told. All but the frequent case are `indirect`, as in `HubInput`.
public enum HubOutput: Sendable {
  /// An event or an ETA; positions are `PositionDelivery` (but for `Hub.drain(_:)`, which gives all as these).
  case delivery(Delivery)
  /// Takes effect when the outlet drains it: what follows in this list is live. `missed` leads up to it: events in
  /// order, and after them, where the subscriber was brought up to date, the newest position and ETA. A party may
  /// follow its trip whatever its token names.
  indirect case subscribed(SessionRef, ChannelHandle, Subscribed, missed: [Publication], isParty: Bool)
  /// The session watches these cells from now on: one subscriber of each more, also where it has it already.
  indirect case watching(SessionRef, Subscribed, [ChannelHandle])
  /// A cell as it stands, for one session that asked, in parts; what changes from now on follows.
  indirect case areaSnapshot(SessionRef, ChannelHandle, [Publication])
  /// A trip is shared no more with the one who has this id: a subscription of that one ends.
  indirect case shareEnded(ChannelHandle, Channel, of: Identifier)
  /// What changed in a cell. To be sent when `areaTickEnded` says that the tick's last cell has come.
  indirect case areaUpdate(ChannelHandle, Publication)
  /// `due`: when the tick was to begin (uptime, ns).
  case areaTickEnded(due: Int64)
  /// The answer to `HubInput.leaveView`.
  indirect case viewEnded(SessionRef, MessageID, Unsubscribe)
  indirect case subscriptionRefused(SessionRef, ErrorReply)
  indirect case unsubscribed(SessionRef, MessageID, ChannelHandle, Channel)
  /// The channel is over for all subscribers of this outlet.
  indirect case channelEnded(ChannelHandle, Channel, Unsubscribed.Reason)
  /// The channel's trip has this driver now: who follows it by `ChannelGrant.whileUnclaimed` is let go.
  indirect case channelClaimed(ChannelHandle, Channel, by: Identifier)
  /// The answer to `HubInput.name`.
  indirect case named(SessionRef, ChannelHandle, Channel, isParty: Bool)
  indirect case reply(SessionRef, Reply)
  /// The driver may connect, and is to send this often.
  case admitted(SessionRef, Connected.Sampling)
  /// Too many replacements of this driver's session: refused for this many seconds.
  case conflict(SessionRef, retryAfter: Double)
  /// The driver table is full.
  case full(SessionRef)
  /// A newer session of the same driver took over. `isRepeated`: its client came again although it was told so before.
  case replaced(SessionRef, isRepeated: Bool)
  /// The answer to a query; nil for a driver that nobody knows. Who writes a list puts it in order
  /// (`DriverListWriter`): that is not the hub's thread's work.
  indirect case queryResult(SessionRef, QueryResult?, replyTo: MessageID?)
  /// The answer to a question about trips.
  indirect case trips(SessionRef, TripAnswer, replyTo: MessageID?)
  /// The answer to a notification that was posted.
  indirect case notified(SessionRef, NotificationAnswer)
  /// The answer to a question about fences.
  indirect case fences(SessionRef, FenceAnswer)
  /// The answer to a question about tokens.
  indirect case credentials(SessionRef, CredentialAnswer)
  /// Tokens are revoked from now on, or no more. All outlets are told, in the same order, and the one of who asked
  /// before the answer.
  indirect case revoked(RevocationChange)
  /// A followed channel has another owner, or its owner other numbers: how it stands, for all subscribers of this
  /// outlet.
  indirect case channelRestarted(ChannelHandle, Subscribed)
  /// For the outlet of the cluster alone (`Hub.joinCluster`).
  indirect case cluster(ClusterOutput)
}

extension MixedList where Common == PositionDelivery, Rare == HubOutput {
  /// All of it, each copied.
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

/// What has come out for each outlet.
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

  @inline(__always)
  private func pointer(_ outlet: Int) -> UnsafeMutablePointer<HubOutputs> {
    precondition(outlet >= 0 && outlet < count)
    return unsafe lists + outlet
  }
}

extension HubOutput {
  /// What hubs have found together, in the form in which one hub answers such a question.
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
