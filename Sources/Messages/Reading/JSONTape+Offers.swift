// Offers: criteria, a driver's refusal, and the messages to drivers.
import HubBytes
import HubGeo

extension Offer.Withdrawal: WireEnum {}

extension OfferCriteria {
  // Shared checks of JSON and binary.

  static func radius(_ meters: Double) throws(ValidationError) -> Double {
    guard meters > 0, meters <= maximumRadiusMeters else {
      throw ValidationError(.radius, "expected more than 0 and up to 100,000 metres")
    }
    return meters
  }

  static func atOnce(_ drivers: UInt64) throws(ValidationError) -> Int {
    guard (1...UInt64(maximumAtOnce)).contains(drivers) else {
      throw ValidationError(.drivers, "expected a whole number from 1 to 16: drivers asked at a time")
    }
    return Int(drivers)
  }

  static func seconds(_ seconds: UInt64) throws(ValidationError) -> Int {
    guard let small = Int(exactly: seconds), secondsRange.contains(small) else {
      throw ValidationError(.duration, "expected whole seconds from 5 to 120")
    }
    return small
  }

  static func limit(_ drivers: UInt64) throws(ValidationError) -> Int {
    guard (1...UInt64(maximumLimit)).contains(drivers) else {
      throw ValidationError(.limit, "expected a whole number from 1 to 64: drivers asked in all")
    }
    return Int(drivers)
  }
}

extension JSONTape {
  /// The body of `POST /v1/trips/{id}/offers`.
  func offerCriteria(_ bytes: Span<UInt8>) throws(ValidationError) -> OfferCriteria {
    try offerCriteria(try members(ofBody: "expected an object: which drivers are asked"), bytes)
  }

  func offerCriteria(_ members: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> OfferCriteria {
    var criteria = OfferCriteria()
    criteria.vehicleType = try inlineText(members, .vehicleType, bytes)
    criteria.tags = try tags(members, bytes) ?? []
    if let radius = try number(members, .radius) { criteria.radiusMeters = try OfferCriteria.radius(radius) }
    if let drivers = try count(members, .drivers, bytes) { criteria.atOnce = try OfferCriteria.atOnce(drivers) }
    if let seconds = try count(members, .duration, bytes) { criteria.seconds = try OfferCriteria.seconds(seconds) }
    if let limit = try count(members, .limit, bytes) { criteria.limit = try OfferCriteria.limit(limit) }
    return criteria
  }

  func offerDecline(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> OfferDecline {
    OfferDecline(tripID: try required(identifier(payload, .tripId, bytes), .tripId))
  }

  func offer(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, _ time: TimeFormat
  ) throws(ValidationError) -> Offer {
    let terms = Offer.Terms(
      pickup: try required(place(payload, .pickup), .pickup), dropoff: try place(payload, .dropoff),
      distance: try required(nonNegative(payload, .distance), .distance),
      eta: try required(nonNegative(payload, .eta), .eta),
      expires: try required(timestamp(payload, .expiresAt, bytes, time), .expiresAt))
    return try offer(payload, bytes, .made(terms))
  }

  func offerWithdrawn(_ payload: JSONMembers, _ bytes: Span<UInt8>) throws(ValidationError) -> Offer {
    let words: StaticString = "expected taken, cancelled, expired, declined, unavailable or stopped"
    let reason: Offer.Withdrawal = try required(keyword(payload, .reason, bytes, words), .reason)
    return try offer(payload, bytes, .withdrawn(reason))
  }

  private func offer(
    _ payload: JSONMembers, _ bytes: Span<UInt8>, _ state: Offer.State
  ) throws(ValidationError) -> Offer {
    Offer(
      tripID: try required(identifier(payload, .tripId, bytes), .tripId), state: state,
      sequence: try required(count(payload, .sequence, bytes), .sequence))
  }
}
