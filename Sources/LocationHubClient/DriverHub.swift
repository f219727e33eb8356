// The driver's phone.
import HubBytes
import HubClientCore
public import HubGeo
public import HubMessages
import Synchronization

/// A driver's connection to a hub: keeps fixes until the hub has them, over broken connections and app restarts.
///
/// Make one when the driver signs in, and keep it. Thread-safe.
///
/// ```swift
/// let hub = try DriverHub("wss://hub.example/v1/ws", tokens: TokenSource { _ in try await api.hubToken() })
/// hub.start()
/// hub.send(fix, trip: ride.id)
/// try await hub.move(ride.id, to: .arrivedPickup)
/// ```
public final class DriverHub: Sendable {
  private let runner: RunningClient
  private let sampling: SamplingController
  private let connectionSource = LatestSource<ConnectionState>(.idle)
  private let backlogSource = LatestSource(Backlog())
  /// `Backlog.dropped` as of the last `send`.
  private let droppedBefore: Atomic<UInt64>
  private let isErased = Atomic(false)

  /// Does not connect before `start()`.
  ///
  /// - Parameters:
  ///   - url: the hub's URL: `wss://hub.example/v1/ws`.
  ///   - tokens: the source of the driver's tokens.
  ///   - store: where unsent fixes are kept: a folder for one client at a time. For drivers who share a phone, a folder
  ///     each: `FixStore.applicationSupport(for:)`.
  ///   - power: how often the phone is asked to measure.
  ///   - options: settings of the connection.
  /// - Throws: `badURL`; `storage` where the store cannot be used: another client has it, or the disk fails. Damage
  ///   does not throw: see `Backlog.damage`.
  public init(
    _ url: String, tokens: TokenSource, store: FixStore = .applicationSupport, power: PowerPolicy = .standard,
    options: HubOptions = HubOptions()
  ) throws(HubError) {
    let configuration = try options.configuration(url, tokens)
    let files = try store.open()
    let queue: FixQueue
    do throws(FileFailure) { queue = try FixQueue(files) } catch { throw HubError(error, store.name) }
    sampling = SamplingController(power)
    let driver = DriverPart(queue, backlog: backlogSource, sampling: sampling)
    droppedBefore = Atomic(backlogSource.current.dropped)
    runner = try makeRunner(configuration, options, tokens, connectionSource, driver: driver)
  }

  /// Connects, now and whenever the connection breaks. No effect if started.
  public func start() { runner.submitRequired { engine, now in engine.start(now) } }

  /// Ends the connection, writes what is unsent to the store, and releases it: afterwards another client may use it.
  /// `start()` continues with the store's content; if another client has it, `connection` says so (`storage`). A fix
  /// sent before that takes the store again.
  ///
  /// - Parameter erasing: deletes the queue as well, sent or not: at log-out. The client cannot be used any more. If
  ///   the disk fails, `Backlog.diskFailure` has the reason, and the next client of this store sends the rest.
  public func stop(erasing: Bool = false) async {
    if erasing { isErased.store(true, ordering: .relaxed) }
    await runner.stop(erasing: erasing)
  }

  /// Call when the device has another network, or one again (`NWPathMonitor`): the client tries at once.
  ///
  /// A wait for the next attempt ends within a second, unless the hub has requested it; an existing connection is
  /// closed if the hub does not answer within 5 s. Without this call that takes up to 30 and 75 s.
  public func networkChanged() { runner.submit { engine, now in engine.networkChanged(now) } }

  /// The outcome of `send`.
  public enum Sent: Sendable, Equatable {
    /// It is kept until the hub has it.
    case queued
    /// Skipped: the power mode, or the hub's advice off a trip, wants fewer fixes (`samplingAdvice`); or the fix is
    /// nil, or from before the year 2000, which no hub accepts (counted in `Backlog.refused`).
    case leftOut
    /// Kept; older ones were dropped since the call before (`Backlog.dropped`).
    case droppedOldest
    /// Not kept: the client's thread is far behind, or has ended, or the queue was erased.
    case full
  }

  /// Sends a fix; never waits. Call it with every fix that the phone measures: those sooner than `samplingAdvice` asks
  /// for are skipped, and so is nil, which `Fix` gives for a `CLLocation` without a coordinate. Negative numbers for
  /// what can't be negative, and NaN, mean "unknown". Some microseconds.
  @discardableResult
  public func send(_ fix: Fix?, trip: TripID? = nil) -> Sent {
    guard !isErased.load(ordering: .relaxed) else { return .full }
    guard let fix = fix?.withKnownNumbers else { return .leftOut }
    let isAccepted = fix.timestamp.isAcceptedFromClients
    guard !isAccepted || sampling.takes(fix, trip: trip) else { return .leftOut }
    // The driver's part counts a fix that no hub accepts.
    guard runner.submit({ engine, now in engine.driver?.keep(fix, trip: trip, now) }) else { return .full }
    guard isAccepted else { return .leftOut }
    let dropped = backlogSource.current.dropped
    return droppedBefore.exchange(dropped, ordering: .relaxed) == dropped ? .queued : .droppedOldest
  }

  /// Sets the driver's status. Waits for the connection and the hub's answer, and for the answer to an earlier call: an
  /// older status never comes after a newer one.
  ///
  /// - Parameters:
  ///   - status: any but `onTrip`, which follows from the driver's trips.
  ///   - vehicleType: 1–64 bytes; nil leaves it unchanged.
  ///   - tags: up to 8, of 1–64 bytes each; empty removes all.
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

  /// Moves a trip to another status. The move is stored before it is sent, and is repeated under the same id after the
  /// app's end: it happens once. Only a failing disk does not delay it (`Backlog.diskFailure`): then it is sent from
  /// memory, and lost if the program ends before it arrives. Neither cancelling the task nor `stop()` withdraws it: it
  /// is sent when the client starts again.
  ///
  /// - Parameters:
  ///   - trip: a trip of this driver's.
  ///   - status: the next status (`protocol/trips.md`). The move has the phone's time or, if that is before the year
  ///     2000, the hub's, as far as known.
  ///   - place: where it happened.
  ///   - expected: the status that the app expects; with another one the hub refuses the move.
  /// - Returns: the trip after the move, for which the hub is asked, after a break as soon as there is a connection
  ///   again. Where it does not answer, or the client is stopped first, only what the move itself says: the trip, its
  ///   status, the driver, its time.
  /// - Throws: `hub(.invalidTransition)`, `hub(.unknownTrip)`, `hub(.forbidden)`: it has not happened. `full` where 256
  ///   moves wait, or the client's thread is far behind: it is not kept. `stopped`, where the client ends before the
  ///   answer, by `stop()`, for want of a token, or because the hub lets it in no more (`connection` says which), and
  ///   `cancelled`: it will happen, unless `stop(erasing: true)` deletes it. `storage` where the queue has lost it,
  ///   because the hub has identified another driver, or its file was damaged (`Backlog.damage`): it has happened only
  ///   if it was sent before.
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

  /// Accepts an offered trip: a move, kept and sent like every move.
  ///
  /// - Throws: `hub(.invalidTransition)` where another driver has it or it was cancelled, `hub(.forbidden)` where it is
  ///   not offered any more.
  @discardableResult
  public func accept(_ trip: TripID) async throws(HubError) -> Trip { try await move(trip, to: .accepted) }

  /// Declines an offered trip, so that the next driver is asked at once. Has no effect if too late.
  ///
  /// - Throws: `hub(.notFound)` where it was never offered to this driver.
  public func decline(_ trip: TripID) async throws(HubError) {
    try await runner.ask { engine, _, answer in engine.decline(trip, for: ObjectIdentifier(answer)) { answer.give($0) }
    }
  }

  /// Reports the phone's state: call it whenever its battery, its charger, its motion or the app's state changes.
  public func report(_ device: DeviceState) {
    sampling.report(device)
    runner.submit { _, _ in
      // Fixes that waited for a batch may be sent now.
    }
  }

  /// The connection's state; the present one first.
  public var connection: ConnectionStates { Latest(source: connectionSource) }
  /// What to request from the phone's location service; the present advice first.
  public var samplingAdvice: SamplingAdvice { Latest(source: sampling.wish) }
  /// What the hub does not have yet: `current`, or as it changes.
  public var backlog: Latest<Backlog> { Latest(source: backlogSource) }
}
