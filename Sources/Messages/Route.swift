// The way that a trip is to take from its pickup to its dropoff, checked where it enters.
public import HubGeo

/// Two places or more, in the order in which they are passed.
///
/// Kept as what routers send and what is smallest: Google's encoded polyline, precision 5. An edge between two places
/// is straight in degrees, as in GeoJSON (RFC 7946 §3.1.1), and goes the short way round.
public struct Route: Sendable, Equatable {
  public enum Fault: Error, Equatable {
    case notAPolyline(PolylineError)
    /// Fewer than two places.
    case tooShort
    case tooManyPoints
  }

  /// Encoded, precision 5.
  public let polyline: String
  /// How many places.
  public let count: Int

  /// Checks an encoded polyline of precision 5. O(its length).
  public init(polyline: String) throws(Fault) {
    let points: [Coordinate]
    do throws(PolylineError) {
      points = try Polyline.decode(polyline, limit: Route.maximumPoints)
    } catch {
      if case .tooManyPoints = error { throw .tooManyPoints }
      throw .notAPolyline(error)
    }
    guard points.count >= 2 else { throw .tooShort }
    self.polyline = polyline
    count = points.count
  }

  /// The route by these places, each rounded to 5 decimals (1.1 m).
  public init(points: [Coordinate]) throws(Fault) {
    guard points.count >= 2 else { throw .tooShort }
    guard points.count <= Route.maximumPoints else { throw .tooManyPoints }
    polyline = Polyline.encode(points)
    count = points.count
  }

  /// Its places. O(the length of the polyline).
  public var points: [Coordinate] {
    do throws(PolylineError) {
      return try Polyline.decode(polyline, limit: Route.maximumPoints)
    } catch {
      preconditionFailure("it was decoded before: \(error)")
    }
  }
}
