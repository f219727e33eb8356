// An event for a stream's server.
import HubBytes
import HubMessages

struct StreamMessage: Sendable, Equatable {
  let position: JournalPosition
  /// Like a webhook's `webhook-id`.
  let id: String
  /// Its channel.
  let channel: Channel
  /// Its source: `trip.T1`, `driver.D1`, `fence.F1`, `trips.T1`, the id escaped. Events of one source stay in order.
  let source: String
  /// `trip_update`, or `notification.` and its kind.
  let kind: String
  /// The body that a webhook would get.
  let payload: [UInt8]

  /// Nil for a publication that is no event.
  init?(_ event: Publication, _ position: JournalPosition, epoch: String) {
    var body = ByteBuffer()
    guard WebhookBody.write(event, into: &body) else { return nil }
    payload = body.array()
    self.position = position
    channel = event.channel
    id = "\(EventID(epoch: epoch, position: position))"
    switch event.body {
    case .tripUpdate(let update):
      kind = "trip_update"
      let trip = "\(Self.escaped(update.tripID))"
      source = event.channel == .trips ? "trips.\(trip)" : Self.source(event.channel)
    case .notification(let notification):
      kind = "notification.\(notification.kind.name)"
      source = Self.source(event.channel)
    case .offer(let offer):
      kind =
        switch offer.state {
        case .made: "offer"
        case .withdrawn: "offer_withdrawn"
        }
      source = Self.source(event.channel)
    case .driverLocation, .etaUpdate, .areaUpdate, .rawFix, .countsUpdate, .stats: return nil
    }
  }

  /// Its size in a stream's memory.
  var size: Int { payload.count + 256 }

  private static func source(_ channel: Channel) -> String {
    switch channel {
    case .trip(let id): "trip.\(escaped(id))"
    case .driver(let id): "driver.\(escaped(id))"
    case .fence(let id): "fence.\(escaped(id))"
    case .area, .nearby, .box, .counts, .countsBlock, .fleet, .raw, .trips, .stats: "other"  // these have no events
    }
  }

  /// An id as one token of a subject: a full stop, which separates tokens, is `%2E`.
  static func escaped(_ id: Identifier) -> String {
    var text = ""
    for byte in "\(id)".utf8 { text += isPlain(byte) ? String(Unicode.Scalar(byte)) : "%2E" }
    return text
  }

  static func isPlain(_ byte: UInt8) -> Bool { byte.isLetter || byte.isDigit || "-_".utf8.contains(byte) }
}
