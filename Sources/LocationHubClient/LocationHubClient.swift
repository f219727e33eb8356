// The client of a location hub: `DriverHub` for a driver's phone, `RiderHub` for those who follow drivers.
//
// One import is enough. The types of the API (`Fix`, `Coordinate`, `TripStatus`, `MarkerInterpolator`, …) are the hub's
// own, of modules that come with this one: client and hub share the code. They are exported one by one, since others
// have names that an app may use, too (`Notification`, `Channel`). On Linux it uses this project's own sockets and TLS,
// on Apple systems URLSession (HubRunner.swift).
import HubBytes
public import HubMessages

@_exported public import struct HubClientCore.ClientLimits
@_exported public import struct HubClientCore.MarkerInterpolator
@_exported public import enum HubClientCore.TokenNeed
@_exported public import struct HubGeo.Coordinate
@_exported public import enum HubMessages.Confidence
@_exported public import struct HubMessages.Connected
@_exported public import struct HubMessages.DriverLocation
@_exported public import struct HubMessages.DriverReport
@_exported public import enum HubMessages.DriverStatus
@_exported public import enum HubMessages.ETABasis
@_exported public import struct HubMessages.ETAUpdate
@_exported public import enum HubMessages.ErrorCode
@_exported public import struct HubMessages.Fix
@_exported public import enum HubMessages.FixSource
@_exported public import struct HubMessages.Identifier
@_exported public import struct HubMessages.Offer
@_exported public import struct HubMessages.OfferCriteria
@_exported public import enum HubMessages.Role
@_exported public import enum HubMessages.Subprotocol
@_exported public import enum HubMessages.TimeSource
@_exported public import struct HubMessages.Timestamp
@_exported public import struct HubMessages.TripReport
@_exported public import struct HubMessages.TripState
@_exported public import enum HubMessages.TripStatus
@_exported public import struct HubMessages.TripSummary
@_exported public import enum HubMessages.TripTarget
@_exported public import struct HubMessages.TripUpdate

/// The id of a trip, a driver or a fence: 1–64 of `A-Z a-z 0-9 . _ -`. `TripID("T1")` is nil for anything else; an
/// invalid literal ends the program.
public typealias TripID = Identifier
/// The id of a driver: like `TripID`.
public typealias DriverID = Identifier

/// The state of a trip (`RiderHub.trip(_:)` follows one).
public typealias Trip = TripReport
/// A published position of a driver: filtered by the hub, at most 7 decimals of a degree.
public typealias Position = DriverLocation
/// The estimated arrival of a trip's driver.
public typealias ETA = ETAUpdate
/// A notification for people.
public typealias Notice = HubMessages.Notification
/// How often the hub wants fixes: seconds between them, and metres to move before another one is worth sending.
public typealias Sampling = Connected.Sampling
/// A driver that a search has found.
public typealias NearbyDriver = DriverReport

extension OfferCriteria {
  /// Drivers to look for when a trip is booked (`RiderHub.request`): with this type of vehicle, nil for any, and all of
  /// these tags. Nil where a text does not have 1–64 bytes, or there are more than 8 tags.
  public init?(vehicleType: String?, tags: [String] = []) {
    self.init()
    let texts = (vehicleType.map { [$0] } ?? []) + tags
    let made = texts.compactMap { InlineText($0) }.filter { !$0.isEmpty }
    guard made.count == texts.count, tags.count <= 8 else { return nil }
    self.vehicleType = vehicleType == nil ? nil : made[0]
    self.tags = Array(made.suffix(tags.count))
  }
}

extension Identifier: ExpressibleByStringLiteral {
  /// An id literal, which ends the program if it is invalid; use `Identifier(_:)` for data.
  public init(stringLiteral text: String) {
    guard let id = Identifier(text) else { preconditionFailure("\(text) is no id: 1-64 of A-Z a-z 0-9 . _ -") }
    self = id
  }
}
