// Phone apps that exist already (protocol/phones.md): what they send becomes a batch of fixes, which goes the way of
// `POST /v1/locations`. Whatever can be read is answered as each app wants it once it is stored, also what is refused
// as implausible or ignored: these apps send again what is not, and what they gathered behind it waits for ever.
import HubBytes
import HubCore
import HubHTTP
import HubMessages

enum PhoneEndpoints {
  static func ownTracks(_ call: HTTPCall) throws(Refusal) -> Outcome { try take(call, try report(call, .ownTracks)) }

  static func overland(_ call: HTTPCall) throws(Refusal) -> Outcome { try take(call, try report(call, .overland)) }

  /// Parameters in the query or in a form, or Traccar Client's JSON.
  static func osmAnd(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let form = call.request.body.array()
    if form.first(where: { $0 > 0x20 }) == UInt8(ascii: "{") { return try take(call, try report(call, .traccar)) }
    var parameters: [(name: String, value: String)]
    do throws(HTTPError) {
      parameters = try call.query.items()
      parameters += try Query(form[...]).items()
    } catch {
      throw Refusal(.badMessage, "the parameters are not well encoded")
    }
    return try take(call, PhoneReport(osmAnd: parameters, now: call.context.now.timestamp))
  }

  private static func report(_ call: HTTPCall, _ format: PhoneFormat) throws(Refusal) -> PhoneReport {
    try unsafe call.read { (reader, bytes) throws(MessageError) in try unsafe reader.readPhone(bytes, format) }
  }

  private static func take(_ call: HTTPCall, _ report: PhoneReport) throws(Refusal) -> Outcome {
    let (caller, now) = (try call.caller(), call.context.now)
    guard report.isOf(caller.id) else {
      throw Refusal(.forbidden, "the app says that it is another device: its id must be that of the key's driver")
    }
    call.request.charge(fixes: report.fixes.count)
    var input = BatchInput(
      session: call.context.session, driverID: caller.id, messageID: DriverEndpoints.messageID, sent: now.timestamp,
      received: now, batch: LocationBatch(fixes: report.fixes), tripIsGranted: false)
    input.phone = report.format
    input.takesCurrentTrip = true
    return .ask([.batch(input)] + (caller.vehicleInput.map { [$0] } ?? []), .phone(report.format))
  }

  /// What each app takes for "it is there": another answer makes it send the same again.
  static func success(_ format: PhoneFormat) -> Response {
    switch format {
    case .ownTracks: .json { $0.append("[]") }
    case .overland: .json { $0.append(#"{"result":"ok"}"#) }
    case .traccar, .osmAnd: Response(.ok)
    }
  }
}
