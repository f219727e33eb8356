// The formats of existing phone apps (protocol/phones.md): each is read into fixes, in the hub's units, and the app's
// id of its phone. Pure: bytes or parameters in, values out.
//
// Every readable request is a report, also one without a fix: an app repeats what is refused, and everything behind it
// waits.
import HubBytes
import HubGeo

/// The formats of phone apps.
public enum PhoneFormat: UInt8, Sendable, CaseIterable {
  /// JSON over HTTP (owntracks.org/booklet/tech/json).
  case ownTracks
  /// JSON of Traccar Client 9 and newer (traccar.org/osmand).
  case traccar
  /// Parameters, as OsmAnd, older Traccar clients and many trackers send them (traccar.org/osmand).
  case osmAnd
  /// GeoJSON in batches (github.com/aaronpk/Overland-iOS).
  case overland

  /// The name in metrics.
  public var name: StaticString {
    switch self {
    case .ownTracks: "owntracks"
    case .traccar: "traccar"
    case .osmAnd: "osmand"
    case .overland: "overland"
    }
  }
}

/// One request of an app.
public struct PhoneReport: Sendable, Equatable {
  public var format: PhoneFormat
  /// Its fixes in order, or why one is invalid; none for a request without a position.
  public var fixes: [Result<Fix, ErrorCode>] = []
  /// The first two distinct device ids in the request. If there are two, not both can be the driver's.
  public var deviceIDs: [String] = []

  public init(_ format: PhoneFormat) { self.format = format }

  mutating func add(_ deviceID: String?) {
    guard deviceIDs.count < 2, let deviceID, !deviceID.isEmpty, !deviceIDs.contains(where: deviceID.isSpelled) else {
      return
    }
    deviceIDs.append(deviceID)
  }

  /// Whether every id in the request is this driver's.
  public func isOf(_ driver: Identifier) -> Bool { deviceIDs.allSatisfy { Identifier($0) == driver } }
}

/// The values of a fix from an app, in the hub's units. Negative values mean "unknown", like absent ones.
struct PhoneFix {
  var latitude: Double?
  var longitude: Double?
  var timestamp: Timestamp?
  /// Metres per second.
  var speed: Double?
  var heading: Double?
  var accuracy: Double?
  var altitude: Double?
  /// 0…1.
  var battery: Double?

  static let kilometersPerHour = 1 / 3.6
  /// A knot is 1,852 m an hour (ISO 80000-3).
  static let knots = 1852.0 / 3600

  /// The fix, or why there is none.
  var checked: Result<Fix, ErrorCode> {
    guard let latitude, let longitude, let timestamp else { return .failure(.badMessage) }
    guard let coordinate = Coordinate(latitude: latitude, longitude: longitude),
      timestamp >= Timestamp.earliestFromClients
    else { return .failure(.invalidLocation) }
    return .success(
      Fix(
        coordinate: coordinate, timestamp: timestamp, accuracy: PhoneFix.known(accuracy),
        heading: PhoneFix.known(heading).flatMap(HubMessages.heading(of:)), speed: PhoneFix.known(speed),
        altitude: altitude.flatMap { $0.isFinite ? $0 : nil },
        batteryLevel: PhoneFix.known(battery).map { min($0, 1) }))
  }

  private static func known(_ value: Double?) -> Double? {
    guard let value, value.isFinite else { return nil }
    return HubMessages.known(value)
  }
}

/// Times in the forms that apps write.
enum PhoneTime {
  /// RFC 3339, and variants of apps: an offset without its colon, or with a space for its `+` (decoding a form turns a
  /// `+` into a space), a space for the `T`, no offset (UTC).
  static func timestamp(_ text: some Sequence<UInt8>) -> Timestamp? {
    var bytes = Array(text)
    guard (19...40).contains(bytes.count) else { return nil }
    if bytes[10] == UInt8(ascii: " ") { bytes[10] = UInt8(ascii: "T") }
    for index in 19..<bytes.count where bytes[index] == UInt8(ascii: " ") { bytes[index] = UInt8(ascii: "+") }
    let sign = bytes[19...].lastIndex { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") }
    if let sign {
      if bytes.count - sign == 5 { bytes.insert(UInt8(ascii: ":"), at: sign + 3) }
    } else if bytes.last != UInt8(ascii: "Z"), bytes.last != UInt8(ascii: "z") {
      bytes.append(UInt8(ascii: "Z"))
    }
    return unsafe bytes.withUnsafeBytes { unsafe Timestamp(rfc3339: $0) }
  }

  static func timestamp(seconds: Double?) -> Timestamp? {
    seconds.flatMap { Timestamp(number: $0 * 1000, format: .unixMilliseconds) }
  }

  /// Seconds, or milliseconds where that would be after January 2038: 2³¹ s.
  static func timestamp(secondsOrMilliseconds number: Double) -> Timestamp? {
    number < 0x1p31 ? timestamp(seconds: number) : Timestamp(number: number, format: .unixMilliseconds)
  }
}
