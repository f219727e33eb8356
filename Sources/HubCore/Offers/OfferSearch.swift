// The search for a driver of one trip: criteria, drivers that were asked, and the outcome.
import HubBytes
import HubGeo
import HubMessages

/// A driver that was asked for a trip.
struct AskedDriver {
  let id: Identifier
  /// Nil where the driver is at another hub, or is not known any more.
  var driver: Handle?
  let offered: Timestamp
  let expires: Timestamp
  /// When its time to answer ends (uptime, ns).
  var deadline: Int64
  var answer: OffersReport.Asked.Answer
  /// For another hub's trip: the pickup and dropoff that the driver was sent last.
  var sentPlaces: [Coordinate?] = []
  /// Its hub could not make the offer: it does not count as asked, but is not asked again.
  var isPassed = false

  var isOpen: Bool { answer == .open }
}

struct OfferSearch {
  /// How the next drivers to ask are searched.
  enum Look {
    /// Depth first (DriverIndex+Nearest.swift), which is complete at once where enough of the drivers fit.
    case nearest
    /// Cell by cell from the cursor, with the best hits so far: where a turn's budget finds no driver that fits.
    case scanning(SearchCursor, [DriverHit])
  }

  let tripID: Identifier
  let trip: Handle
  let asker: UInt64
  let key: UInt64
  var criteria: OfferCriteria
  let began: Timestamp
  /// Nil while it is running.
  var end: OffersReport.End?
  /// In the order in which they were asked, each driver once.
  var asked: [AskedDriver] = []
  var look = Look.nearest
  /// It is in the queue of searches.
  var isQueued = false
  /// Set while all hubs are being asked for drivers: the pickup and the limit of the question.
  var gathering: (pickup: Coordinate, limit: Int)?
  /// How many more drivers are requested of all hubs than are wanted.
  var spare = OfferSearch.initialSpare
  /// How often in a row a hub refused the question.
  var refusals = 0
  /// The earliest deadline armed for it (uptime, ns).
  var armed = Int64.max

  var openOffers: Int { asked.count { $0.isOpen } }

  /// How many more drivers to ask now.
  var wanted: Int { max(0, min(criteria.atOnce - openOffers, criteria.limit - asked.count { !$0.isPassed })) }

  /// The trip is at another hub, which decides. This search only has its offers to drivers of this hub.
  var isOfOther: Bool { criteria.limit == 0 }

  var report: OffersReport {
    OffersReport(
      tripID: tripID, criteria: criteria, began: began, end: end,
      asked: asked.map {
        OffersReport.Asked(driverID: $0.id, offered: $0.offered, expires: $0.expires, answer: $0.answer)
      })
  }

  /// Extra drivers that are requested, as some may not fit.
  static let initialSpare = 16

  var durable: DurableOffers {
    DurableOffers(
      asker: asker, key: key, report: report, passed: asked.filter(\.isPassed).map(\.id),
      sentPlaces: asked.first { $0.isOpen }?.sentPlaces ?? [])
  }

  init(_ request: OffersRequest, tripID: Identifier, trip: Handle, at time: Timestamp) {
    self.tripID = tripID
    self.trip = trip
    asker = request.asker
    key = request.key
    criteria = request.criteria
    began = time
  }

  /// An ended search for another hub's trip, without offers.
  init(ofOther tripID: Identifier, at time: Timestamp) {
    var none = OfferCriteria()
    none.limit = 0
    let report = OffersReport(tripID: tripID, criteria: none, began: time, end: .stopped, asked: [])
    self.init(DurableOffers(asker: 0, key: 0, report: report), trip: OfferSearch.noTrip)
  }

  static let noTrip = Handle(index: .max, generation: 0)

  init(_ durable: DurableOffers, trip: Handle) {
    tripID = durable.report.tripID
    self.trip = trip
    asker = durable.asker
    key = durable.key
    criteria = durable.report.criteria
    began = durable.report.began
    end = durable.report.end
    asked = durable.report.asked.map {
      AskedDriver(
        id: $0.driverID, driver: nil, offered: $0.offered, expires: $0.expires, deadline: 0, answer: $0.answer,
        sentPlaces: $0.answer == .open ? durable.sentPlaces : [], isPassed: durable.passed.contains($0.driverID))
    }
  }
}

/// What is stored of a search: all of it, at each change.
struct DurableOffers: Equatable {
  var asker: UInt64
  var key: UInt64
  var report: OffersReport
  /// The drivers of `report` that do not count as asked (`AskedDriver.isPassed`).
  var passed: [Identifier] = []
  /// What its open offers were sent (`AskedDriver.sentPlaces`): the drivers of one trip are all sent the same.
  var sentPlaces: [Coordinate?] = []
}

extension OffersReport.End: Recorded {}
extension Offer.Withdrawal: Recorded {}

extension OfferCriteria: Recorded {
  func write(into bytes: inout ByteBuffer) {
    bytes.record(vehicleType, tags, radiusMeters, UInt8(atOnce), UInt8(seconds), UInt8(limit))
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init()
    (vehicleType, tags) = (try reader.read(), try reader.read())
    radiusMeters = try reader.finite(in: 0...OfferCriteria.maximumRadiusMeters)
    atOnce = Int(try reader.read() as UInt8)
    seconds = Int(try reader.read() as UInt8)
    limit = Int(try reader.read() as UInt8)
  }
}

/// 0 for open, 1 for accepted, from 2 on the reason of its withdrawal.
extension OffersReport.Asked.Answer: Recorded {
  func write(into bytes: inout ByteBuffer) {
    switch self {
    case .open: bytes.append(UInt8(0))
    case .accepted: bytes.append(UInt8(1))
    case .withdrawn(let reason): bytes.append(reason.rawValue + 2)
    }
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    switch try reader.read() as UInt8 {
    case 0: self = .open
    case 1: self = .accepted
    case let number:
      guard let reason = Offer.Withdrawal(rawValue: number - 2) else { throw reader.failure(.status) }
      self = .withdrawn(reason)
    }
  }
}

extension OffersReport.Asked: Recorded {
  func write(into bytes: inout ByteBuffer) { bytes.record(driverID, offered, expires, answer) }

  init(from reader: inout RecordReader) throws(RecordError) {
    self.init(
      driverID: try reader.read(), offered: try reader.read(), expires: try reader.read(), answer: try reader.read())
  }
}

extension DurableOffers: Recorded {
  func write(into bytes: inout ByteBuffer) {
    bytes.record(report.tripID, asker, key, report.criteria, report.began, report.end, report.asked, passed, sentPlaces)
  }

  init(from reader: inout RecordReader) throws(RecordError) {
    let tripID: Identifier = try reader.read()
    (asker, key) = (try reader.read(), try reader.read())
    report = OffersReport(
      tripID: tripID, criteria: try reader.read(), began: try reader.read(), end: try reader.read(),
      asked: try reader.read())
    (passed, sentPlaces) = (try reader.read(), try reader.read())
  }
}
