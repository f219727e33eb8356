// The driver's phone.
import HubBytes
import HubClientCore
public import HubGeo
public import HubMessages
import Synchronization

/// A driver's connection to a hub: keeps what the phone measures until the hub has it, over breaks and the app's death.
///
/// Make one when the driver signs in, and keep it. All calls may come from any thread.
///
/// ```swift
/// let hub = try DriverHub("wss://hub.example/v1/ws", tokens: TokenSource { _ in try await api.hubToken() })
/// hub.start()
/// hub.send(fix, trip: ride.id)
/// try await hub.move(ride.id, to: .arrivedPickup)
/// ```
public final class DriverHub: Sendable {
  private let runner: ClientLife
  private let sampling: SamplingDesk
  private let connectionSource = LatestSource<ConnectionState>(.idle)
  private let backlogSource = LatestSource(Backlog())
  /// What `Backlog.dropped` was when `send` looked last.
  private let droppedBefore: Atomic<UInt64>
  private let isErased = Atomic(false)

  /// Nothing connects before `start()`.
  ///
  /// - Parameters:
  ///   - url: where the hub is: `wss://hub.example/v1/ws`.
  ///   - tokens: where the driver's tokens come from.
  ///   - store: where what is unsent is kept: a folder for one client at a time. Where drivers take turns on a phone, a
  ///     folder for each: `FixStore.applicationSupport(for:)`.
  ///   - power: how often the phone is asked to measure.
  ///   - options: how it speaks with the hub.
  /// - Throws: `badURL`; `storage` where the store cannot be used: another client has it, or the disk refuses it.
  ///   What of it is damaged does not throw: see `Backlog.damage`.
  public init(
    _ url: String, tokens: TokenSource, store: FixStore = .applicationSupport, power: PowerPolicy = .standard,
    options: HubOptions = HubOptions()
  ) throws(HubError) {
    let configuration = try options.configuration(url, tokens)
    let files = try store.open()
    let queue: FixQueue
    do throws(FileFailure) { queue = try FixQueue(files) } catch { throw HubError(error, store.name) }
    sampling = SamplingDesk(power)
    let driver = DriverPart(queue, backlog: backlogSource, sampling: sampling)
    droppedBefore = Atomic(backlogSource.current.dropped)
    runner = try makeRunner(configuration, options, tokens, connectionSource, driver: driver)
  }

  /// Connects, now and after every break. Nothing where it has started.
  public func start() { runner.submitRequired { engine, now in engine.start(now) } }

  /// Ends the connection, writes what is unsent to the store, and lets go of it: when this returns, another client may
  /// use it. `start()` goes on with what lies there then; where another client has it, `connection` says so
  /// (`storage`). A fix that is handed over before that takes the store again.
  ///
  /// - Parameter erasing: deletes the queue, too, sent or not: at log-out. The client is of no use after that. Where
  ///   the disk refuses it, `Backlog.diskFailure` says why, and the next client of this store sends what is left.
  public func stop(erasing: Bool = false) async {
    if erasing { isErased.store(true, ordering: .relaxed) }
    await runner.stop(erasing: erasing)
  }

  /// Says that the device has another network, or one again (`NWPathMonitor`), so that the client tries at once.
  ///
  /// A wait for the next attempt ends within a second, unless the hub has asked for it; a connection that stands is cut
  /// off where the hub does not answer within 5 s. Without it all that takes up to 30 and 75 s.
  public func networkChanged() { runner.submit { engine, now in engine.networkChanged(now) } }

  /// What became of a fix that was handed over.
  public enum Sent: Sendable, Equatable {
    /// It is kept until the hub has it.
    case queued
    /// The power mode, or the hub off a trip, wants fixes more seldom (`samplingAdvice`); or it is none, or of a time
    /// before the year 2000, which no hub takes (`Backlog.refused` counts that).
    case leftOut
    /// It is kept; since the call before, older ones gave way (`Backlog.dropped`).
    case droppedOldest
    /// It is not kept: the client's thread is far behind, or it has ended, or the queue was erased.
    case full
  }

  /// Hands over a fix; it never waits. Call it with every fix that the phone measures: what comes sooner than
  /// `samplingAdvice` has it is left out, and so is nil, which `Fix` makes of a `CLLocation` that is no place. Numbers
  /// below 0 for what cannot be, and what is no number, mean "unknown". Some microseconds.
  @discardableResult
  public func send(_ fix: Fix?, trip: TripID? = nil) -> Sent {
    guard !isErased.load(ordering: .relaxed) else { return .full }
    guard let fix = fix?.withKnownNumbers else { return .leftOut }
    let isTaken = fix.timestamp.isTaken
    guard !isTaken || sampling.takes(fix, trip: trip) else { return .leftOut }
    // The driver's part counts one that no hub takes.
    guard runner.submit({ engine, now in engine.driver?.keep(fix, trip: trip, now) }) else { return .full }
    guard isTaken else { return .leftOut }
    let dropped = backlogSource.current.dropped
    return droppedBefore.exchange(dropped, ordering: .relaxed) == dropped ? .queued : .droppedOldest
  }

  /// Says what the driver is available for; it waits for the connection and the hub's answer.
  ///
  /// - Parameters:
  ///   - status: any but `onTrip`, which follows from the driver's trips.
  ///   - vehicleType: 1–64 bytes; nil leaves it as it was.
  ///   - tags: up to 8, of 1–64 bytes each; empty takes all away.
  public func setStatus(
    _ status: DriverStatus, vehicleType: String? = nil, tags: [String]? = nil
  ) async throws(HubError) {
    guard status != .onTrip else { throw HubError(.badValue, "onTrip follows from trips: it is not for the driver") }
    let report = DriverStatusReport(
      status: status, vehicleType: try vehicleType.map { (text) throws(HubError) in try DriverHub.text(text) },
      tags: try tags.map { (tags) throws(HubError) in
        guard tags.count <= 8 else { throw HubError(.badValue, "there are at most 8 tags") }
        return try tags.map { (text) throws(HubError) in try DriverHub.text(text) }
      })
    try await runner.ask { engine, _, answer in engine.report(report, for: ObjectIdentifier(answer)) { answer.give($0) }
    }
  }

  private static func text(_ text: String) throws(HubError) -> InlineText {
    guard let made = InlineText(text), !made.isEmpty else { throw HubError(.badValue, "\(text) has not 1-64 bytes") }
    return made
  }

  /// Moves a trip to another state. The move is on the disk before it leaves, and goes on under the same id after the
  /// app's death: it happens once. Only a disk that takes nothing does not hold it up (`Backlog.diskFailure`): it is
  /// sent from memory then, and lost with the program until it has arrived. Cancelling the task does not take it back,
  /// nor does `stop()`: it goes out when the client starts again.
  ///
  /// - Parameters:
  ///   - trip: a trip of this driver's.
  ///   - status: the next state (`protocol/trips.md`). It is the phone's time that it has; where that is before the
  ///     year 2000, the hub's, as far as it is known.
  ///   - place: where it happened.
  ///   - expected: the state that the app takes the trip to be in: in another one the hub refuses the move.
  /// - Returns: the trip as it stands then. Where the connection or the client ends just behind the move, what the move
  ///   itself says of it: the trip, its state, the driver, its time.
  /// - Throws: `hub(.invalidTransition)`, `hub(.unknownTrip)`, `hub(.forbidden)`: it has not happened. `full` where 256
  ///   moves wait, or the client's thread is far behind: it is not kept. `stopped` and `cancelled`: it happens yet,
  ///   unless the client was stopped for good.
  @discardableResult
  public func move(
    _ trip: TripID, to status: TripStatus, at place: Coordinate? = nil, expecting expected: TripStatus? = nil
  ) async throws(HubError) -> Trip {
    try await runner.ask { engine, now, answer in
      let report = TripStatusReport(
        tripID: trip, status: status, timestamp: now.timestamp, location: place, expectedStatus: expected)
      engine.move(report, now) { moved in
        switch moved {
        case .failure(let error): answer.give(.failure(error))
        case .success: engine.askMoved(report, for: ObjectIdentifier(answer)) { answer.give(.success($0)) }
        }
      }
    }
  }

  /// Trips that the hub offers to this driver; see `OfferFeed`.
  public var offers: OfferFeed { OfferFeed(runner: runner) }

  /// Takes an offered trip: a move, which is kept and sent as every move is.
  ///
  /// - Throws: `hub(.invalidTransition)` where another driver has it or it was cancelled, `hub(.forbidden)` where it is
  ///   not offered any more.
  @discardableResult
  public func accept(_ trip: TripID) async throws(HubError) -> Trip { try await move(trip, to: .accepted) }

  /// Says no to an offered trip, so that the next driver is asked at once. Too late it changes nothing.
  ///
  /// - Throws: `hub(.notFound)` where it was never offered to this driver.
  public func decline(_ trip: TripID) async throws(HubError) {
    try await runner.ask { engine, _, answer in engine.decline(trip, for: ObjectIdentifier(answer)) { answer.give($0) }
    }
  }

  /// Says what the phone is like: whenever its battery, its charger, its motion or the app's place changes.
  public func report(_ device: DeviceState) {
    sampling.report(device)
    runner.submit { _, _ in
      // Whatever goes out with another batch now goes when the client's thread has looked.
    }
  }

  /// How the connection is; the present state first.
  public var connection: ConnectionStates { Latest(source: connectionSource) }
  /// What to ask of the phone's location service; the present wish first.
  public var samplingAdvice: SamplingAdvice { Latest(source: sampling.wish) }
  /// What the hub does not have yet; by its `current` now, or as it changes.
  public var backlog: Latest<Backlog> { Latest(source: backlogSource) }
}
