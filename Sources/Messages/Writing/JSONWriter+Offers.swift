// Offers as JSON: the messages to drivers, and the bodies of the endpoint.
public import HubBytes
import HubGeo

extension JSONWriter {
  static func writeMembers(_ offer: Offer, _ time: TimeFormat, _ buffer: inout ByteBuffer) {
    buffer.append(",\"tripId\":", offer.tripID)
    switch offer.state {
    case .made(let terms):
      buffer.append(",\"pickup\":", terms.pickup)
      buffer.append(",\"dropoff\":", terms.dropoff)
      buffer.append(",\"distance\":", terms.distance)
      buffer.append(",\"eta\":", terms.eta)
      buffer.append(",\"expiresAt\":", terms.expires, as: time)
    case .withdrawn(let reason): buffer.append(",\"reason\":", reason.name)
    }
    buffer.append(",\"sequence\":", offer.sequence)
  }

  /// Appends the criteria of offers, as an object.
  static func write(_ criteria: OfferCriteria, _ buffer: inout ByteBuffer) {
    buffer.append("{\"radius\":", criteria.radiusMeters)
    buffer.append(",\"drivers\":", criteria.atOnce)
    buffer.append(",\"duration\":", criteria.seconds)
    buffer.append(",\"limit\":", criteria.limit)
    buffer.append(",\"vehicleType\":", criteria.vehicleType)
    if !criteria.tags.isEmpty { buffer.append(",\"tags\":", criteria.tags) }
    buffer.append("}")
  }

  /// Appends the offers of a trip: the body of `GET` and `POST /v1/trips/{id}/offers`.
  public static func write(_ report: OffersReport, time: TimeFormat, into buffer: inout ByteBuffer) {
    buffer.append("{\"tripId\":", report.tripID)
    buffer.append(",\"state\":", report.end?.name ?? "open")
    buffer.append(",\"created\":", report.began, as: time)
    buffer.append(",\"offer\":")
    write(report.criteria, &buffer)
    buffer.append(",\"asked\":")
    buffer.append(list: report.asked) { buffer, asked in
      buffer.append("{\"driverId\":", asked.driverID)
      buffer.append(",\"offered\":", asked.offered, as: time)
      buffer.append(",\"expiresAt\":", asked.expires, as: time)
      buffer.append(",\"answer\":", asked.answer.name)
      buffer.append("}")
    }
    buffer.append("}")
  }
}
