// Trips that the hub offers to the driver (protocol/offers.md).
import HubClientCore
public import HubMessages

/// The terms of an offered trip; `expires` is when the offer ends, by the hub's clock.
public typealias OfferTerms = HubMessages.Offer.Terms
/// Why an offer was withdrawn.
public typealias OfferWithdrawal = HubMessages.Offer.Withdrawal

/// An event about offers. Each comes once, in order.
public enum OfferEvent: Sendable, Equatable {
  /// The driver may accept the trip (`DriverHub.accept(_:)`) until the offer ends, unless another driver is faster. It
  /// comes again, with other terms, where the trip's pickup or dropoff changes.
  case offered(TripID, OfferTerms)
  /// An offer has ended otherwise than by the driver's own `accept`.
  case withdrawn(TripID, OfferWithdrawal)
  /// Events were missed: an earlier offer may have ended, which `accept` would show.
  case gap
  /// The last event: the hub refused or ended the offers, the client was stopped, or too many loops read them.
  case ended(HubError)
}

/// The offers to a driver, over broken connections, until the client is stopped or the hub refuses them.
///
/// The client is subscribed while at least one loop reads: leaving the loop, or cancelling its task, ends its reading.
/// Any number of loops may read; each gets everything.
public struct OfferFeed: AsyncSequence, Sendable {
  public typealias Element = OfferEvent
  public typealias Failure = Never

  let runner: RunningClient

  /// Begins to read: events from now on. The first loop subscribes at the hub; when the last ends, that ends, too.
  public func makeAsyncIterator() -> Iterator {
    Iterator(
      lease: runner.read(lastWhereFarBehind: .ended(.farBehind)) {
        $0.offers.add($1)
      } removing: { engine, key in
        engine.offers.remove(key, engine.session)
      })
  }

  /// One reader of the offers.
  public struct Iterator: AsyncIteratorProtocol {
    let lease: FeedLease<OfferEvent>

    /// The next event; nil behind `ended`, and as soon as the task is cancelled.
    public mutating func next() async -> OfferEvent? { await lease.reader.next() }
    /// The next event, for a loop of an actor; nil like `next()`.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> OfferEvent? {
      await lease.reader.next(isolation: actor)
    }
  }
}

/// The readers of one client's offers. Used only on the client's thread.
final class OfferDesk {
  private var readers: [ObjectIdentifier: FeedReader<OfferEvent>] = [:]
  /// The driver's own channel, once `connected` has named the driver.
  private var channel: Channel?
  private var isSubscribed = false
  /// The hub has answered: an unrecovered answer means missed events from now on.
  private var hasBegun = false

  func add(_ reader: FeedReader<OfferEvent>) {
    guard readers.count < OfferDesk.maximumReaders else { return OfferDesk.end(reader, FeedTable.tooMany) }
    readers[ObjectIdentifier(reader)] = reader
  }

  func remove(_ key: ObjectIdentifier, _ session: ClientSession) {
    guard readers.removeValue(forKey: key) != nil, readers.isEmpty, isSubscribed, let channel else { return }
    (isSubscribed, hasBegun) = (false, false)
    session.unsubscribe(channel)
  }

  /// The hub has named the connection's driver.
  func opened(as id: DriverID) { channel = .driver(id) }

  /// Subscribes if needed; the session subscribes again by itself after each break.
  func reconcile(_ session: ClientSession) {
    guard !isSubscribed, !readers.isEmpty, let channel else { return }
    isSubscribed = session.subscribe(channel, isEventsOnly: true)
    if !isSubscribed { end(FeedTable.tooMany) }
  }

  func subscribed(_ answer: Subscribed) {
    guard answer.channel == channel else { return }
    if hasBegun, !answer.recovered { push(.gap) }
    hasBegun = true
  }

  func published(_ offer: Offer) {
    switch offer.state {
    case .made(let terms): push(.offered(offer.tripID, terms))
    case .withdrawn(let reason): push(.withdrawn(offer.tripID, reason))
    }
  }

  private func push(_ event: OfferEvent) {
    for reader in readers.values where !reader.push(event) { reader.push(.gap) }
  }

  /// Ends the offers if the session has removed their subscription, since the hub has refused it.
  func refused(_ error: HubError, _ session: ClientSession) {
    guard isSubscribed, let channel, !session.isSubscribed(channel) else { return }
    end(error)
  }

  /// The hub has ended a subscription.
  func unsubscribed(_ answer: Unsubscribed) {
    guard isSubscribed, answer.channel == channel, !answer.isAsked else { return }
    end(HubError(.refused, "the hub has ended the offers: \(answer.reason?.name ?? "for a reason of a newer hub")"))
  }

  /// The client, or its subscription, has ended.
  func end(_ error: HubError) {
    for reader in readers.values { OfferDesk.end(reader, error) }
    readers = [:]
    (isSubscribed, hasBegun) = (false, false)
  }

  /// Appends what a reader must not miss: without room, it replaces everything unread, behind a gap.
  private static func end(_ reader: FeedReader<OfferEvent>, _ error: HubError) {
    if !reader.push(.ended(error)) {
      reader.push(.gap)
      reader.push(.ended(error))
    }
    reader.finish(error)
  }
}
