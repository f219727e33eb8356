// Phone apps with formats of their own (protocol/phones.md): their requests become batches of fixes, as with `POST
// /v1/locations`. Every readable request is answered as the app expects once it is stored, also with fixes refused as
// implausible or ignored: these apps repeat the rest, and everything behind it waits.
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
      throw Refusal(error)
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
    call.request.isReadOnly = false  // also with GET
    call.request.charge(fixes: report.fixes.count)
    var input = BatchInput(
      session: call.context.session, driverID: caller.id, messageID: DriverEndpoints.messageID, sent: now.timestamp,
      received: now, batch: LocationBatch(fixes: report.fixes), tripIsGranted: false)
    input.phone = report.format
    input.takesCurrentTrip = true
    return .ask([.batch(input)] + (caller.vehicleInput.map { [$0] } ?? []), .phone(report.format))
  }

  /// The answer that each app takes for success; with any other it sends the same again.
  static func success(_ format: PhoneFormat) -> Response {
    switch format {
    case .ownTracks: .json { $0.append("[]") }
    case .overland: .json { $0.append(#"{"result":"ok"}"#) }
    case .traccar, .osmAnd: Response(.ok)
    }
  }
}
