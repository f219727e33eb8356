// The body of a webhook's request: type, time and data, as Standard Webhooks recommends ("Payload structure").
public import HubBytes
public import HubMessages

public enum WebhookBody {
  /// Appends `{"type":…,"timestamp":…,"data":…}`; false, with nothing appended, for a publication that is no event.
  /// `type` is `trip.update`, or `notification.` and its kind; `data` is the payload that a subscriber gets, with times
  /// in RFC 3339.
  public static func write(_ event: Publication, into buffer: inout ByteBuffer) -> Bool {
    switch event.body {
    case .tripUpdate: buffer.append("{\"type\":\"trip.update\"")
    case .notification(let notification):
      buffer.append("{\"type\":\"notification.")
      buffer.append(notification.kind.name)
      buffer.append("\"")
    case .driverLocation, .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats: return false
    }
    buffer.append(",\"timestamp\":", event.timestamp, as: .rfc3339)
    buffer.append(",\"data\":")
    JSONWriter.writePayload(ofEvent: event, time: .rfc3339, into: &buffer)
    buffer.append("}")
    return true
  }
}
