// The body of a webhook's request: type, time and data, as Standard Webhooks recommends ("Payload structure").
import HubBytes
import HubMessages

/// The JSON of events for receivers.
enum WebhookBody {
  /// `trip.update`, `offer.made`, `offer.withdrawn`, or `notification.` and its kind; nil where it is no event.
  static func type(of event: Publication) -> String? {
    switch event.body {
    case .tripUpdate: "trip.update"
    case .notification(let notification): "notification.\(notification.kind.name)"
    case .offer(let offer):
      switch offer.state {
      case .made: "offer.made"
      case .withdrawn: "offer.withdrawn"
      }
    case .driverLocation, .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats: nil
    }
  }

  /// Appends `{"type":…,"timestamp":…,"data":…}`; false, with nothing appended, for a publication that is no event.
  /// `data` is the payload that a subscriber gets, with times in RFC 3339.
  static func write(_ event: Publication, into buffer: inout ByteBuffer) -> Bool {
    guard let type = type(of: event) else { return false }
    buffer.append("{\"type\":\"")
    buffer.append(utf8: type)
    buffer.append("\",\"timestamp\":", event.timestamp, as: .rfc3339)
    buffer.append(",\"data\":")
    JSONWriter.writePayload(ofEvent: event, time: .rfc3339, into: &buffer)
    buffer.append("}")
    return true
  }
}
