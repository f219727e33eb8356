// The offers of a trip: ops and back ends have the hub look for a driver, see which were asked, and end the search.
import HubBytes
import HubCore
import HubHTTP
import HubMessages

enum OfferEndpoints {
  static func show(_ call: HTTPCall) throws(Refusal) -> Outcome { try ask(.show, call) }

  /// Answered, like `stop`, once it is stored. A request without a body uses the default criteria.
  static func begin(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let key = try call.idempotencyKey()
    guard !call.request.body.isEmpty else { return try ask(.begin(OfferCriteria(), key: key), call) }
    let criteria = try unsafe call.read { (reader, bytes) throws(MessageError) in
      try unsafe reader.readOfferCriteria(bytes)
    }
    return try ask(.begin(criteria, key: key), call)
  }

  static func stop(_ call: HTTPCall) throws(Refusal) -> Outcome { try ask(.stop, call) }

  private static func ask(_ question: OffersQuestion, _ call: HTTPCall) throws(Refusal) -> Outcome {
    .ask([.trips(call.context.session, .offers(try call.id(of: "trip"), question, try call.caller().actor))])
  }

  static func answer(_ report: OffersReport, isNew: Bool, time: TimeFormat) -> Response {
    let location = OutgoingField("Location", "/v1/trips/\(report.tripID)/offers")
    return .json(isNew ? .created : .ok, fields: isNew ? [location] : []) {
      JSONWriter.write(report, time: time, into: &$0)
    }
  }
}
