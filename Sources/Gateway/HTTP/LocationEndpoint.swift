// `POST /v1/locations`: a fix or a batch, of a driver without a socket.
import HubBytes
import HubCore
import HubHTTP
import HubMessages

enum LocationEndpoint {
  private static let messageID = MessageID("http")!  // four letters that ids may have

  static func post(_ call: HTTPCall) throws(Refusal) -> Outcome {
    let (caller, context) = (call.caller, call.context)
    let batch = try call.request.read { (bytes) throws(MessageError) in
      try context.settings.reader.readLocations(bytes, time: call.time)
    }
    call.request.charge(fixes: batch.fixes.count)
    let input = BatchInput(
      session: context.session, driverID: caller.id, messageID: messageID, sent: context.now.timestamp,
      received: context.now, batch: batch, tripIsGranted: batch.tripID.map(caller.names(trip:)) ?? false)
    return .ask([.batch(input)] + (caller.vehicle.map { [.vehicle(caller.id, $0)] } ?? []))
  }

  /// The outcome of each fix.
  static func answer(_ batch: Ack.Batch?) -> Response {
    .json(capacity: 128) { body in
      body.append("{\"accepted\":")
      body.append(integer: Int64(batch?.accepted ?? 0))
      body.append(",\"duplicates\":")
      body.append(integer: Int64(batch?.duplicates ?? 0))
      body.append(",\"rejected\":[")
      for (place, rejection) in (batch?.rejected ?? []).enumerated() {
        body.append(place == 0 ? "{\"index\":" : ",{\"index\":")
        body.append(integer: Int64(rejection.index))
        body.append(",\"code\":\"")
        body.append(rejection.code.name)
        body.append("\"}")
      }
      body.append("]}")
    }
  }
}
