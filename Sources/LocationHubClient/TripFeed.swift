// One trip, live.
import HubClientCore
public import HubMessages

/// The state of a trip: at the beginning of a feed, and after a gap.
public struct TripSnapshot: Sendable, Equatable {
  /// Nil where the trip has not begun.
  public var trip: TripState?
  /// The driver's newest position; nil before the first.
  public var position: Position?
  /// Nil where the hub has made none: the trip has no target, or no position yet.
  public var eta: ETA?

  /// For tests and previews of an app.
  public init(trip: TripState? = nil, position: Position? = nil, eta: ETA? = nil) {
    self.trip = trip
    self.position = position
    self.eta = eta
  }
}

/// An event of a trip.
public enum TripEvent: Sendable, Equatable {
  /// The present state; it replaces everything before.
  case snapshot(TripSnapshot)
  /// The driver's position. A slow loop gets only the newest.
  case position(Position)
  /// The estimated arrival; a slow loop gets only the newest.
  case eta(ETA)
  /// A move of the trip, or a change of its coordinates or route. Each comes once, in order.
  case update(TripUpdate)
  /// A notification for the rider. Each comes once, in order.
  case notice(Notice)
  /// Updates or notices were missed: the hub does not have them any more, or this loop left 256 of them unread. A
  /// snapshot follows.
  case gap
  /// The last event.
  case ended(EndReason)

  /// Why a feed has ended.
  public enum EndReason: Sendable, Equatable {
    /// The trip has ended; its channel closes some minutes later.
    case tripEnded
    /// A new token does not name the trip.
    case grantEnded
    /// Access was revoked: the trip is another driver's now.
    case revoked
    /// The hub refused the trip or, being newer than this client, has another reason; the client was stopped; or too
    /// many feeds are read (`HubError.Code.full`).
    case refused(HubError)
  }
}

/// A trip's events, over broken connections, until the trip ends.
///
/// The client is subscribed to the trip while at least one loop reads: leaving the loop, or cancelling its task, ends
/// its reading. Any number of loops may read one trip; each gets everything.
public struct TripFeed: AsyncSequence, Sendable {
  public typealias Element = TripEvent
  public typealias Failure = Never

  let id: TripID
  let runner: RunningClient

  /// Begins to follow the trip, for this loop: its first event is a snapshot.
  public func makeAsyncIterator() -> Iterator {
    let channel = Channel.trip(id)
    return Iterator(
      lease: runner.read(lastWhereFarBehind: .ended(.refused(.farBehind))) {
        $0.feeds.add($1, to: channel)
      } removing: { engine, key in
        engine.feeds.remove(key, from: channel, engine.session)
      })
  }

  /// One loop's position in the feed. The trip is followed until its last copy is gone.
  public struct Iterator: AsyncIteratorProtocol {
    let lease: FeedLease<TripEvent>

    /// The next event; nil behind `ended`, and as soon as the task is cancelled.
    public mutating func next() async -> TripEvent? { await lease.reader.next() }
    /// The next event, for a loop of an actor; nil like `next()`.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> TripEvent? {
      await lease.reader.next(isolation: actor)
    }
  }
}
