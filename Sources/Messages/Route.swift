// The route of a trip from its pickup to its dropoff, checked on entry.
public import HubGeo

/// Two or more coordinates, in order.
///
/// Kept as Google's encoded polyline, precision 5, which routers send and which is the smallest. An edge between two
/// coordinates is straight in degrees, as in GeoJSON (RFC 7946 §3.1.1), and takes the short way round.
public struct Route: Sendable, Equatable {
  /// Why something is no route.
  public enum Fault: Error, Equatable {
    case notAPolyline(PolylineError)
    /// Fewer than two coordinates.
    case tooShort
    case tooManyPoints
  }

  /// Encoded, precision 5.
  public let polyline: String
  /// The number of coordinates.
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

  /// The route through these coordinates, each rounded to 5 decimals (1.1 m).
  public init(points: [Coordinate]) throws(Fault) {
    guard points.count >= 2 else { throw .tooShort }
    guard points.count <= Route.maximumPoints else { throw .tooManyPoints }
    polyline = Polyline.encode(points)
    count = points.count
  }

  /// Its coordinates. O(the length of the polyline).
  public var points: [Coordinate] {
    do throws(PolylineError) {
      return try Polyline.decode(polyline, limit: Route.maximumPoints)
    } catch {
      preconditionFailure("it was decoded before: \(error)")
    }
  }
}
