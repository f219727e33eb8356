// An offer between two hubs, from the trip's to the driver's (Offers+Others.swift).
import HubBytes
import HubGeo
public import HubMessages

/// An offer, or its end, on its way between two hubs of a cluster.
public struct SentOffer: Sendable, Equatable {
  /// The direction.
  enum Way: UInt8 {
    case toDriver, toTrip
  }

  var way = Way.toDriver
  public internal(set) var tripID: Identifier
  public internal(set) var driverID: Identifier
  /// When it was made, by the clock of the trip's hub. With the trip and the driver it identifies the offer.
  var made: Timestamp
  /// The driver's time to answer, in seconds.
  var seconds: UInt8
  var pickup: Coordinate?
  var dropoff: Coordinate?
  /// `open` makes the offer; other values end it.
  var answer: OffersReport.Asked.Answer

  /// The channel whose hub gets it.
  public var receiver: Channel {
    switch way {
    case .toDriver: .driver(driverID)
    case .toTrip: .trip(tripID)
    }
  }

  init(_ asked: AskedDriver, of search: OfferSearch, pickup: Coordinate? = nil, dropoff: Coordinate? = nil) {
    (tripID, driverID, made, answer) = (search.tripID, asked.id, asked.offered, asked.answer)
    seconds = UInt8(search.criteria.seconds)
    (self.pickup, self.dropoff) = (pickup, dropoff)
  }

  var places: [Coordinate?] { [pickup, dropoff] }

  /// The answer of the driver's hub: the driver can't be asked, or no longer.
  var declined: SentOffer {
    var answer = self
    (answer.way, answer.answer) = (.toTrip, .withdrawn(.unavailable))
    return answer
  }
}

extension SentOffer.Way: Recorded {}

extension SentOffer: Recorded {
  func write(into bytes: inout ByteBuffer) {
    bytes.record(way, tripID, driverID, made, seconds, pickup, dropoff, answer)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    (way, tripID, driverID) = (try reader.read(), try reader.read(), try reader.read())
    (made, seconds) = (try reader.read(), try reader.read())
    (pickup, dropoff) = (try reader.read(), try reader.read())
    answer = try reader.read()
    guard OfferCriteria.secondsRange.contains(Int(seconds)) else { throw reader.failure(.number) }
  }
}

extension Reply {
  /// The answer that another hub's offer is stored.
  static var offerTaken: Reply { .ack(Ack(replyTo: ClusterOutput.unsolicited)) }
}
