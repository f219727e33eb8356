// Riders, and whoever else follows drivers.
import HubBytes
import HubClientCore
public import HubGeo
public import HubMessages
import Synchronization

/// A rider's connection to a hub: trips as they happen, the drivers around, questions.
///
/// ```swift
/// let hub = try RiderHub("wss://hub.example/v1/ws", tokens: TokenSource { _ in try await api.hubToken() })
/// hub.start()
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

  /// What happens on a trip; see `TripFeed`.
  public func trip(_ id: TripID) -> TripFeed { TripFeed(id: id, runner: runner) }

  /// The drivers within a radius in metres, as they move; see `AreaFeed`.
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
      throw HubError(.refused, "the hub has answered something else")
    }
    return list.drivers
  }

  /// A trip as it stands. It waits for the connection and the hub's answer.
  public func getTrip(_ id: TripID) async throws(HubError) -> Trip {
    guard case .trip(let trip) = try await ask(.trip(id)) else {
      throw HubError(.refused, "the hub has answered something else")
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
    let post: Post = try await runner.ask { engine, _, answer in
      answer.give(Result { () throws(HubError) in try Post(sharing: trip, until: until, engine.session) })
    }
    return try Share(try await runner.send(post), until: until)
  }

  /// Waits for the connection, and asks again after a break.
  private func ask(_ query: QueryRequest) async throws(HubError) -> QueryResult {
    try await runner.ask { engine, _, answer in engine.ask(query, for: ObjectIdentifier(answer)) { answer.give($0) } }
  }

  /// How the connection is; the present state first.
  public var connection: ConnectionStates { Latest(source: connectionSource) }
}
