// A trip's track: its fixes in the journal, by their own times, each once.
import HubGeo
import HubMessages

/// Which of a fix's coordinates: measured or published.
package enum TrackSource: String, Sendable {
  case raw, filtered
}

package struct TrackPoint: Sendable, Equatable {
  /// The fix's time, by the phone's clock.
  var timestamp: Timestamp
  var coordinate: Coordinate
  /// Metres above the ellipsoid, as measured.
  var altitude: Double?
  /// Metres per second; degrees; metres (68 %).
  var speed: Double?
  var heading: Double?
  var accuracy: Double?
}

package struct Track: Sendable, Equatable {
  var tripID: Identifier
  /// Nil for a trip that never had a driver, which has no points.
  var driverID: Identifier?
  var source: TrackSource
  /// By time, ascending.
  var points: [TrackPoint]

  /// The track without the points that lie within `toleranceMeters` of the line through the others.
  package func simplified(toleranceMeters: Double) -> Track {
    var simple = self
    let kept = Polyline.simplify(points.map(\.coordinate), toleranceMeters: toleranceMeters)
    simple.points = kept.map { points[$0] }
    return simple
  }
}
