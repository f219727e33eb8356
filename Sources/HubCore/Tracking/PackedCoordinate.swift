// A coordinate in 8 bytes, for what each tracker stores beside its state.
import HubGeo

/// A coordinate to 1e-7° (1 cm), as coordinates are published.
struct PackedCoordinate: Sendable, Equatable, BitwiseCopyable {
  /// 1e-7°: 180° are 1.8e9, which an Int32 holds.
  private var latitude: Int32
  private var longitude: Int32

  @inline(__always) init(_ place: Coordinate) {
    latitude = Int32(TrackMath.rounded(place.latitude * 1e7, to: 1))
    longitude = Int32(TrackMath.rounded(place.longitude * 1e7, to: 1))
  }

  @inline(__always) var coordinate: Coordinate {
    guard let place = Coordinate(latitude: Double(latitude) / 1e7, longitude: Double(longitude) / 1e7) else {
      preconditionFailure("it was made of a coordinate")
    }
    return place
  }
}
