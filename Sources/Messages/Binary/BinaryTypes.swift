// The first bytes of binary messages, and the bits of their flags (protocol/binary.md). Clients in the field are built
// with them: a number is never reused.
import HubBytes

/// The first byte of a client's message, except for the frequent one.
enum BinaryClientType: UInt8 {
  case locationBatch = 1
  case driverStatus, tripStatus, subscribe, unsubscribe, ping, refresh, query, tripChange, offerDecline
}

/// The first byte of the hub's message, except for the frequent one.
enum BinaryServerType: UInt8 {
  case connected = 1
  case subscribed, unsubscribed, ack, pong, sampling, error, result
  case etaUpdate = 16
  case tripUpdate, notification, areaUpdate, names, rawFix, countsUpdate, stats, offer, offerWithdrawn

  /// Its type in JSON.
  var name: String {
    switch self {
    case .connected: "connected"
    case .subscribed: "subscribed"
    case .unsubscribed: "unsubscribed"
    case .ack: "ack"
    case .pong: "pong"
    case .sampling: "sampling"
    case .error: "error"
    case .result: "result"
    case .etaUpdate: "eta_update"
    case .tripUpdate: "trip_update"
    case .notification: "notification"
    case .areaUpdate: "area_update"
    case .names: "names"
    case .rawFix: "raw_fix"
    case .countsUpdate: "counts_update"
    case .stats: "stats"
    case .offer: "offer"
    case .offerWithdrawn: "offer_withdrawn"
    }
  }
}

/// The frequent message of each direction, a fix or a position, has its flags in the first byte, beside this bit.
let binaryFrequentBit: UInt8 = 0x80

/// In the first byte of a `location_update` and of each fix of a batch.
enum FixFlags {
  static let accuracy: UInt8 = 0x01
  static let heading: UInt8 = 0x02
  static let speed: UInt8 = 0x04
  static let altitude: UInt8 = 0x08
  /// Another byte of flags follows.
  static let more: UInt8 = 0x10
  /// Two bits, only in a `location_update`: how it names its trip.
  static let tripShift: UInt8 = 5
  /// Instead of a fix's flags in a batch: a fix that could not be read.
  static let none: UInt8 = 0x80

  // The second byte. Its lowest three bits are the source, 0 for none.
  static let source: UInt8 = 0x07
  static let headingAccuracy: UInt8 = 0x08
  static let speedAccuracy: UInt8 = 0x10
  static let batteryLevel: UInt8 = 0x20
  static let reserved: UInt8 = 0xC0
}

/// How a `location_update` names its trip.
enum TripNaming: UInt8 {
  case none, asBefore, inline
}

/// In the first byte of a `driver_location`. The lowest two bits are the confidence.
enum PositionFlags {
  static let confidence: UInt8 = 0x03
  static let heading: UInt8 = 0x04
  static let speed: UInt8 = 0x08
  /// The driver's id follows; else it is the channel's.
  static let names: UInt8 = 0x10
  /// The trip's id follows the driver's.
  static let trip: UInt8 = 0x20
  /// The lag follows; else it is the channel's.
  static let lag: UInt8 = 0x40

  /// Instead of the confidence, which is then in the lowest two bits of a byte behind the channel's number, whose bit
  /// `timedByHub` says that the `timestamp` is by the hub's clock.
  static let moreFollows: UInt8 = 0x03
  static let timedByHub: UInt8 = 0x04
  /// In that byte: the driver's status is in the two bits above.
  static let status: UInt8 = 0x08
  static let statusShift: UInt8 = 4
  /// `timedByHub` in a snapshot.
  static let snapshotTimedByHub: UInt8 = 0x40
}

/// The values that a channel's positions leave out, from `subscribed` and `names`.
public struct ImpliedNames: Sendable, Equatable {
  public var driverID: Identifier?
  public var tripID: Identifier?
  /// The lag of the session's clock behind the hub's: time of publication − time of the fix − age.
  public var lagMilliseconds: Int64

  public init(driverID: Identifier? = nil, tripID: Identifier? = nil, lagMilliseconds: Int64 = 0) {
    self.driverID = driverID
    self.tripID = tripID
    self.lagMilliseconds = lagMilliseconds
  }
}

extension DriverLocation {
  /// The lag of a position published at `timestamp`.
  public func lagMilliseconds(publishedAt timestamp: Timestamp) -> Int64 {
    timestamp.milliseconds &- self.timestamp.milliseconds &- Int64(FixedPoint.count(age, FixedPoint.milliseconds))
  }
}
