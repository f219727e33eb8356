// Trips that the hub offers to the driver (protocol/offers.md).
import HubClientCore
public import HubMessages

/// What a driver is told of a trip to decide by; `expires` is when the offer ends, by the hub's clock.
public typealias OfferTerms = HubMessages.Offer.Terms
/// Why an offer holds no more.
public typealias OfferWithdrawal = HubMessages.Offer.Withdrawal

/// What happens about offers. Each comes once, in order.
public enum OfferEvent: Sendable, Equatable {
  /// The trip is the driver's by `DriverHub.accept(_:)` before the offer's end, unless another is faster.
  case offered(TripID, OfferTerms)
  /// An offer has ended, by whatever but the driver's own `accept`.
  case withdrawn(TripID, OfferWithdrawal)
  /// Events were missed: an offer that came before may have ended. `accept` says.
  case gap
  /// The last event: the hub refused the offers, or ended them, the client was stopped, or too many loops read them.
  case ended(HubError)
}

/// The offers to a driver, over all breaks of the connection, until the client is stopped or the hub refuses them.
///
/// The hub is asked while somebody reads: leaving the loop, or cancelling its task, ends that. Any number of loops may
/// read; each gets everything.
public struct OfferFeed: AsyncSequence, Sendable {
  public typealias Element = OfferEvent
  public typealias Failure = Never

  let runner: ClientLife

  public func makeAsyncIterator() -> Iterator {
    Iterator(
      lease: runner.read(lastWhereFarBehind: .ended(.farBehind)) {
        $0.offers.add($1)
      } removing: { engine, key in
        engine.offers.remove(key, engine.session)
      })
  }

  public struct Iterator: AsyncIteratorProtocol {
    let lease: FeedLease<OfferEvent>

    /// The next event; nil behind `ended`, and as soon as the task is cancelled.
    public mutating func next() async -> OfferEvent? { await lease.reader.next() }
    /// The next event, for a loop that belongs to an actor; nil as `next()` is.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> OfferEvent? {
      await lease.reader.next(isolation: actor)
    }
  }
}

/// Who reads the offers of one client. It belongs to the client's thread.
final class OfferDesk {
  private var readers: [ObjectIdentifier: FeedReader<OfferEvent>] = [:]
  /// The driver's own, as the hub's greeting names it.
  private var channel: Channel?
  private var isAsked = false
  /// The hub has answered: what is not recovered from now on was missed.
  private var hasBegun = false

  func add(_ reader: FeedReader<OfferEvent>) {
    guard readers.count < OfferDesk.maximumReaders else { return OfferDesk.end(reader, FeedTable.tooMany) }
    readers[ObjectIdentifier(reader)] = reader
  }

  func remove(_ key: ObjectIdentifier, _ session: ClientSession) {
    guard readers.removeValue(forKey: key) != nil, readers.isEmpty, isAsked, let channel else { return }
    (isAsked, hasBegun) = (false, false)
    session.unsubscribe(channel)
  }

  /// The hub has said whose connection it is.
  func opened(as id: DriverID) { channel = .driver(id) }

  /// Asks the hub for what it was not asked for yet; the session asks again by itself after each break.
  func settle(_ session: ClientSession) {
    guard !isAsked, !readers.isEmpty, let channel else { return }
    isAsked = session.subscribe(channel, isEventsOnly: true)
    if !isAsked { end(FeedTable.tooMany) }
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

  /// The hub has refused something: the offers, where the session has them no more.
  func refused(_ error: HubError, _ session: ClientSession) {
    guard isAsked, let channel, !session.isSubscribed(channel) else { return }
    end(error)
  }

  /// The hub has ended a subscription by itself.
  func unsubscribed(_ answer: Unsubscribed) {
    guard isAsked, answer.channel == channel, answer.reason != .asked else { return }
    end(HubError(.refused, "the hub has ended the offers: \(answer.reason.name)"))
  }

  /// The client, or what it reads, has ended.
  func end(_ error: HubError) {
    for reader in readers.values { OfferDesk.end(reader, error) }
    readers = [:]
    (isAsked, hasBegun) = (false, false)
  }

  /// What a reader must not miss: where there is no room, it takes the place of all that waits, behind a gap.
  private static func end(_ reader: FeedReader<OfferEvent>, _ error: HubError) {
    if !reader.push(.ended(error)) {
      reader.push(.gap)
      reader.push(.ended(error))
    }
    reader.finish(error)
  }
}
