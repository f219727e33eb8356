// A town with drivers on a line east of a pickup, and a hub that offers trips to them.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

/// The pickup of all trips.
let offerPickup = at(48.137, 11.575)

extension OfferCriteria {
  init(atOnce: Int = 1, seconds: Int = 15, limit: Int = 20, radius: Double = 10_000, vehicleType: String? = nil) {
    self.init()
    self.atOnce = atOnce
    self.seconds = seconds
    self.limit = limit
    radiusMeters = radius
    self.vehicleType = vehicleType.flatMap { InlineText($0) }
  }
}

/// One event of a driver's channel about offers, or of a trip's that nobody serves it.
struct Heard: Equatable, CustomStringConvertible {
  var driver: String
  var trip: String
  var word: String

  init(_ driver: String, _ trip: String, _ word: String) {
    (self.driver, self.trip, self.word) = (driver, trip, word)
  }

  var description: String { "\(driver):\(trip):\(word)" }
}

func heard(_ outputs: [HubOutput]) -> [Heard] {
  outputs.compactMap { output in
    guard case .delivery(let delivery) = output else { return nil }
    let publication = delivery.publication
    switch (publication.channel, publication.body) {
    case (.driver(let driver), .offer(let offer)):
      return switch offer.state {
      case .made: Heard("\(driver)", "\(offer.tripID)", "made")
      case .withdrawn(let reason): Heard("\(driver)", "\(offer.tripID)", "\(reason.name)")
      }
    case (.trip(let trip), .notification(let made)) where made.kind == .unserved:
      return Heard("-", "\(trip)", "unserved")
    case _: return nil
    }
  }
}

func requested(
  _ trip: String, by actor: Actor, _ criteria: OfferCriteria?, driver: String? = nil, pickup: Coordinate? = offerPickup,
  at now: Moment, message: MessageID
) -> HubInput {
  var report = TripStatusReport(
    tripID: id(trip), status: .requested, timestamp: now.timestamp, pickup: pickup, driverID: driver.map { id($0) })
  report.offer = criteria
  return .tripStatus(
    TripStatusInput(
      session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: actor, messageID: message, report: report,
      tripIsGranted: true))
}

extension HubBench {
  /// Drivers D1, D2, … each 100 m further from the pickup, with sessions and positions.
  @discardableResult
  func drivers(_ count: Int, vehicleType: String? = nil) -> [SessionRef] {
    (1...count).map { number in
      let session = connect("D\(number)", slot: UInt32(number))
      turn(fix(session, at: offerPickup.moved(90, Double(number) * 100), accuracy: 5))
      turn(subscribe(driver("D\(number)"), slot: UInt32(number) + 200))
      return session
    }
  }

  func request(_ trip: String, _ criteria: OfferCriteria?, by actor: Actor = Actor(role: .ops, id: id("o"))) -> Turn {
    turn(subscribe(self.trip(trip), slot: 199))
    return turn(requested(trip, by: actor, criteria, at: now, message: freshMessage()))
  }

  func accept(_ driver: String, _ trip: String) -> Turn { turn(move(.driver, driver, trip, .accepted, granted: false)) }

  func decline(_ driver: String, _ trip: String) -> Turn {
    turn(
      .offerDecline(
        SessionRef(outlet: 0, slot: 90, generation: 1), freshMessage(), OfferDecline(tripID: id(trip)), by: id(driver)))
  }

  func ask(_ trip: String, _ question: OffersQuestion, by ops: String = "o") -> Turn {
    turn(
      .trips(
        SessionRef(outlet: 0, slot: 91, generation: 1), .offers(id(trip), question, Actor(role: .ops, id: id(ops)))))
  }
}

extension Turn {
  var heard: [Heard] { HubCoreTests.heard(all) }
  var terms: [Offer.Terms] {
    deliveries.compactMap {
      if case .offer(let offer) = $0.publication.body, case .made(let terms) = offer.state { terms } else { nil }
    }
  }

  var answers: [TripAnswer] { all.compactMap { if case .trips(_, let answer, _) = $0 { answer } else { nil } } }
  var offers: OffersReport? {
    answers.lazy.compactMap { if case .offers(let report, _) = $0 { report } else { nil } }.first
  }
  var refusals: [ErrorCode] {
    answers.compactMap { if case .refused(let error) = $0 { error.code } else { nil } }
  }
}
