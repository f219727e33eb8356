// Riders, and whoever else follows drivers.
import HubBytes
import HubClientCore
public import HubGeo
public import HubMessages
import Synchronization

/// A rider's connection to a hub: books trips, follows them as they happen, shows the drivers around, asks.
///
/// Make one when the rider signs in, and keep it. All calls may come from any thread.
///
/// ```swift
/// let hub = try RiderHub("wss://hub.example/v1/ws", tokens: TokenSource { _ in try await api.hubToken() })
/// hub.start()
/// try await hub.request("T1", from: here, to: station)
/// for await event in hub.trip("T1") {
///   if case .position(let position) = event { marker.push(position) }
/// }
/// ```
public final class RiderHub: Sendable {
  private let runner: ClientLife
  private let connectionSource = LatestSource<ConnectionState>(.idle)
  private let views = Atomic<UInt64>(0)

  /// Nothing connects before `start()`. Throws `badURL`.
  public init(_ url: String, tokens: TokenSource, options: HubOptions = HubOptions()) throws(HubError) {
    let configuration = try options.configuration(url, tokens)
    runner = try makeRunner(configuration, options, tokens, connectionSource, driver: nil)
  }

  /// Connects, now and after every break. Nothing where it has started.
  public func start() { runner.submitRequired { engine, now in engine.start(now) } }

  /// Ends the connection. Feeds end, and questions fail with `stopped`; `start()` goes on.
  public func stop() async { await runner.stop() }

  /// Says that the device has another network, or one again (`NWPathMonitor`), so that the client tries at once.
  ///
  /// A wait for the next attempt ends within a second, unless the hub has asked for it; a connection that stands is cut
  /// off where the hub does not answer within 5 s. Without it all that takes up to 30 and 75 s.
  public func networkChanged() { runner.submit { engine, now in engine.networkChanged(now) } }

  /// What happens on a trip; see `TripFeed`.
  public func trip(_ id: TripID) -> TripFeed { TripFeed(id: id, runner: runner) }

  // MARK: This rider's trips

  /// Books a trip, which is this rider's then. It waits for the connection and until the hub has stored it.
  ///
  /// Booking the same trip again, also in another run of the app, changes nothing where the trip goes on. A task that
  /// is cancelled takes it back unless it has left: then the trip may be booked.
  ///
  /// - Parameters:
  ///   - trip: an id that no trip has yet: of the app's back end, or a UUID.
  ///   - pickup: where the rider waits.
  ///   - dropoff: where the trip goes, where that is known.
  ///   - criteria: the hub looks for a driver at once, who fits this; nil leaves that to the back end.
  /// - Throws: `hub(.invalidTransition)` where the trip is there and another one, or over; `hub(.forbidden)` where the
  ///   token does not allow it; `hub(.rateLimited)` where this rider has too many.
  public func request(
    _ trip: TripID, from pickup: Coordinate, to dropoff: Coordinate? = nil, offering criteria: OfferCriteria? = nil
  ) async throws(HubError) {
    try await move(trip, to: .requested) { report in
      (report.pickup, report.dropoff, report.offer) = (pickup, dropoff, criteria)
    }
  }

  /// Cancels a trip of this rider's that has not started. It waits as `request` does.
  ///
  /// - Throws: `hub(.forbidden)` once the trip has started; `hub(.invalidTransition)` where it is over.
  public func cancel(_ trip: TripID) async throws(HubError) {
    try await move(trip, to: .cancelled) { _ in
      // It has no more than its state.
    }
  }

  /// Changes where a trip of this rider's begins or goes to; what is nil stays. It waits as `request` does.
  ///
  /// - Throws: `hub(.invalidTransition)` from the arrival at the destination on.
  public func change(
    _ trip: TripID, pickup: Coordinate? = nil, dropoff: Coordinate? = nil
  ) async throws(HubError) {
    let change = TripChange(tripID: trip, pickup: pickup, dropoff: dropoff)
    guard !change.isEmpty else { throw HubError(.badValue, "another pickup or dropoff is needed") }
    try await runner.ask { engine, _, answer in engine.change(change, for: ObjectIdentifier(answer)) { answer.give($0) }
    }
  }

  private func move(
    _ trip: TripID, to status: TripStatus, with complete: (inout TripStatusReport) -> Void
  ) async throws(HubError) {
    var report = TripStatusReport(tripID: trip, status: status, timestamp: .now)
    complete(&report)
    let made = report
    try await runner.ask { engine, now, answer in
      var report = made
      report.timestamp = engine.timestamp(now)
      engine.request(report, for: ObjectIdentifier(answer)) { answer.give($0) }
    }
  }

  // MARK: Maps and questions

  /// The drivers within a radius in metres, as they move; see `AreaFeed`. A hub shows riders up to 5 km.
  public func area(around center: Coordinate, radius: Double) -> AreaFeed {
    AreaFeed(runner, number: views.add(1, ordering: .relaxed).newValue, around: center, radius: radius)
  }

  /// The drivers around a place, nearest first. It waits for the connection and the hub's answer.
  ///
  /// - Parameters:
  ///   - center: the place.
  ///   - radius: metres.
  ///   - limit: 1…1,000.
  public func nearby(
    _ center: Coordinate, radius: Double, limit: Int = 20
  ) async throws(HubError) -> [NearbyDriver] {
    guard (1...1000).contains(limit), radius > 0, radius.isFinite else {
      throw HubError(.badValue, "the radius must be above 0, and the limit 1...1000")
    }
    let search = DriverSearch(area: .nearby(center, radiusMeters: radius), limit: limit)
    guard case .drivers(let list) = try await ask(.drivers(search)) else {
      throw .anotherAnswer
    }
    return list.drivers
  }

  /// A trip as it stands. It waits for the connection and the hub's answer.
  public func getTrip(_ id: TripID) async throws(HubError) -> Trip {
    guard case .trip(let trip) = try await ask(.trip(id)) else {
      throw .anotherAnswer
    }
    return trip
  }

  /// Makes a link by which others follow a trip, its rider's or a control room's.
  ///
  /// The client has to have been connected: the link is made with its token. The hub has to be one that signs
  /// (`--token-sign-key`), else `hub(.notFound)` is thrown.
  ///
  /// - Parameters:
  ///   - trip: a trip that has not ended.
  ///   - until: when the link ends before its trip does.
  public func share(_ trip: TripID, until: Timestamp? = nil) async throws(HubError) -> Share {
    let request: SideRequest = try await runner.ask { engine, _, answer in
      answer.give(Result { () throws(HubError) in try SideRequest(sharing: trip, until: until, engine.session) })
    }
    return try Share(try await runner.send(request), until: until)
  }

  /// Takes a link back: whoever follows the trip by it hears no more of it.
  ///
  /// - Parameters:
  ///   - share: `Share.id`.
  ///   - trip: the trip that was shared.
  /// - Throws: `hub(.notFound)` where the trip has no such link (any more).
  public func revoke(_ share: Identifier, of trip: TripID) async throws(HubError) {
    let request: SideRequest = try await runner.ask { engine, _, answer in
      answer.give(Result { () throws(HubError) in try SideRequest(revoking: share, of: trip, engine.session) })
    }
    let answer = try await runner.send(request)
    guard answer.status == 204 else { throw answer.refusal }
  }

  /// Waits for the connection, and asks again after a break.
  private func ask(_ query: QueryRequest) async throws(HubError) -> QueryResult {
    try await runner.ask { engine, _, answer in engine.ask(query, for: ObjectIdentifier(answer)) { answer.give($0) } }
  }

  /// How the connection is; the present state first.
  public var connection: ConnectionStates { Latest(source: connectionSource) }
}
