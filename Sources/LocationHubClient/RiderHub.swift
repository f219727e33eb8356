// Riders and other followers of drivers.
import HubBytes
import HubClientCore
public import HubGeo
public import HubMessages
import Synchronization

/// A rider's connection to a hub: books trips, follows them live, shows and searches the drivers around.
///
/// Make one when the rider signs in, and keep it. Thread-safe.
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
  private let runner: RunningClient
  private let connectionSource = LatestSource<ConnectionState>(.idle)
  private let views = Atomic<UInt64>(0)

  /// Does not connect before `start()`. Throws `badURL`.
  public init(_ url: String, tokens: TokenSource, options: HubOptions = HubOptions()) throws(HubError) {
    let configuration = try options.configuration(url, tokens)
    runner = try makeRunner(configuration, options, tokens, connectionSource, driver: nil)
  }

  /// Connects, now and whenever the connection breaks. No effect if started.
  public func start() { runner.submitRequired { engine, now in engine.start(now) } }

  /// Ends the connection. Feeds end, and questions fail with `stopped`; `start()` connects again.
  public func stop() async { await runner.stop() }

  /// Call when the device has another network, or one again (`NWPathMonitor`): the client tries at once.
  ///
  /// A wait for the next attempt ends within a second, unless the hub has requested it; an existing connection is
  /// closed if the hub does not answer within 5 s. Without this call that takes up to 30 and 75 s.
  public func networkChanged() { runner.submit { engine, now in engine.networkChanged(now) } }

  /// A trip's events; see `TripFeed`.
  public func trip(_ id: TripID) -> TripFeed { TripFeed(id: id, runner: runner) }

  // MARK: This rider's trips

  /// Books a trip for this rider. Waits for the connection and until the hub has stored it.
  ///
  /// Booking the same trip again, also after a restart of the app, changes nothing while the trip is active. Cancelling
  /// the task withdraws the request unless it was sent: then the trip may be booked. While this rider has as many trips
  /// as the hub allows, or the hub has no room for another, the request waits, and is repeated when the hub says. Only
  /// what concerns the same trip waits with it.
  ///
  /// - Parameters:
  ///   - trip: a new id, from the app's back end, or a UUID.
  ///   - pickup: where the rider waits.
  ///   - dropoff: where the trip goes, where that is known.
  ///   - criteria: the hub looks at once for a driver who fits; nil leaves that to the back end.
  /// - Throws: `hub(.invalidTransition)` where another trip has the id, or it has ended; `hub(.forbidden)` where the
  ///   token does not allow it.
  public func request(
    _ trip: TripID, from pickup: Coordinate, to dropoff: Coordinate? = nil, offering criteria: OfferCriteria? = nil
  ) async throws(HubError) {
    try await move(trip, to: .requested) { report in
      (report.pickup, report.dropoff, report.offer) = (pickup, dropoff, criteria)
    }
  }

  /// Cancels a trip of this rider's that has not started. Waits like `request`.
  ///
  /// - Throws: `hub(.forbidden)` once the trip has started; `hub(.invalidTransition)` where it has ended.
  public func cancel(_ trip: TripID) async throws(HubError) {
    try await move(trip, to: .cancelled) { _ in
      // A cancellation has no members beyond its status.
    }
  }

  /// Changes the pickup, dropoff or route of this rider's trip; nil leaves it unchanged. Waits like `request`, and for
  /// the answer to an earlier change of the trip: an older one never comes after a newer one.
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

  /// A live map of the drivers within a radius in metres; see `AreaFeed`. A hub shows riders up to 5 km.
  public func area(around center: Coordinate, radius: Double) -> AreaFeed {
    AreaFeed(runner, number: views.add(1, ordering: .relaxed).newValue, around: center, radius: radius)
  }

  /// The drivers around a coordinate, nearest first. Waits for the connection and the hub's answer.
  ///
  /// - Parameters:
  ///   - center: the coordinate.
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

  /// The state of a trip. Waits for the connection and the hub's answer.
  public func getTrip(_ id: TripID) async throws(HubError) -> Trip {
    guard case .trip(let trip) = try await ask(.trip(id)) else {
      throw .anotherAnswer
    }
    return trip
  }

  /// Makes a link by which others follow a trip; for its rider or a control room.
  ///
  /// The client must have been connected, since its token is used, and the hub must sign links (`--token-sign-key`),
  /// else this throws `hub(.notFound)`.
  ///
  /// - Parameters:
  ///   - trip: a trip that has not ended.
  ///   - until: the link's end, if before its trip's; past the year 9999 it is the end of that.
  public func share(_ trip: TripID, until: Timestamp? = nil) async throws(HubError) -> Share {
    let until = until?.nearestAccepted
    let request: SideRequest = try await runner.ask { engine, _, answer in
      answer.give(Result { () throws(HubError) in try SideRequest(sharing: trip, until: until, engine.session) })
    }
    return try Share(try await runner.send(request), until: until)
  }

  /// Revokes a link: its holders do not get the trip any more.
  ///
  /// - Parameters:
  ///   - share: `Share.id`.
  ///   - trip: the shared trip.
  /// - Throws: `hub(.notFound)` where the trip has no such link (any more).
  public func revoke(_ share: Identifier, of trip: TripID) async throws(HubError) {
    let request: SideRequest = try await runner.ask { engine, _, answer in
      answer.give(Result { () throws(HubError) in try SideRequest(revoking: share, of: trip, engine.session) })
    }
    let answer = try await runner.send(request)
    guard answer.status == 204 else { throw answer.refusal }
  }

  /// Waits for the connection, and repeats the question after a break.
  private func ask(_ query: QueryRequest) async throws(HubError) -> QueryResult {
    try await runner.ask { engine, _, answer in engine.ask(query, for: ObjectIdentifier(answer)) { answer.give($0) } }
  }

  /// The connection's state; the present one first.
  public var connection: ConnectionStates { Latest(source: connectionSource) }
}
