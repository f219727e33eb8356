// Offers in binary, both ways (protocol/binary.md).
import HubBytes
import HubGeo

extension BinaryInput {
  mutating func offerCriteria() throws(ValidationError) -> OfferCriteria {
    var criteria = OfferCriteria()
    let flags = try byte(.offer)
    if flags & 0x01 != 0 { criteria.vehicleType = try filledText(.vehicleType) }
    if flags & 0x02 != 0 { criteria.tags = try tags() }
    if flags & 0x04 != 0 { criteria.radiusMeters = try OfferCriteria.radius(try number(.radius)) }
    if flags & 0x08 != 0 { criteria.atOnce = try OfferCriteria.atOnce(try varint(.drivers)) }
    if flags & 0x10 != 0 { criteria.seconds = try OfferCriteria.seconds(try varint(.duration)) }
    if flags & 0x20 != 0 { criteria.limit = try OfferCriteria.limit(try varint(.limit)) }
    return criteria
  }

  mutating func offer(_ type: BinaryServerType) throws(ValidationError) -> Offer {
    let tripID = try identifier(.tripId)
    let state: Offer.State
    if type == .offerWithdrawn {
      state = .withdrawn(try keyword(.reason))
    } else {
      let flags = try byte(.offer)
      state = .made(
        Offer.Terms(
          pickup: try coordinate(), dropoff: flags & 0x01 != 0 ? try coordinate() : nil,
          distance: Double(try varint(.distance)), eta: Double(try varint(.eta)), expires: try timestamp(.expiresAt)))
    }
    return Offer(tripID: tripID, state: state, sequence: try varint(.sequence))
  }
}

extension BinaryWriter {
  /// Writes all numeric criteria, also those that have their default.
  static func write(_ criteria: OfferCriteria, _ buffer: inout ByteBuffer) {
    buffer.append(flagByte(criteria.vehicleType != nil, !criteria.tags.isEmpty, true, true, true, true))
    if let vehicleType = criteria.vehicleType { buffer.append(values: { $0.append(lengthAnd: vehicleType) }) }
    if !criteria.tags.isEmpty { write(criteria.tags, &buffer) }
    buffer.append(values: { room in
      room.append(exactly: criteria.radiusMeters)
      room.append(varint: UInt64(clamping: criteria.atOnce))
      room.append(varint: UInt64(clamping: criteria.seconds))
      room.append(varint: UInt64(clamping: criteria.limit))
    })
  }

  static func write(_ offer: Offer, _ buffer: inout ByteBuffer) {
    buffer.append(values: { room in
      room.append(offer.tripID)
      switch offer.state {
      case .made(let terms):
        room.append(flagByte(terms.dropoff != nil))
        room.append(terms.pickup)
        if let dropoff = terms.dropoff { room.append(dropoff) }
        room.append(varint: FixedPoint.count(terms.distance, 1))
        room.append(varint: FixedPoint.count(terms.eta, 1))
        room.append(terms.expires)
      case .withdrawn(let reason): room.append(reason.rawValue)
      }
      room.append(varint: offer.sequence)
    })
  }
}
