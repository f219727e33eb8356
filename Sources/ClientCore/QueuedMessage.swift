// A message in a client's queue: what is known of it beside its bytes, and what it must not overtake.
import HubGeo
import HubMessages

/// A message other than a fix, on the heap because it is large and rare.
final class QueuedMessage {
  let message: ClientMessage
  let bytes: Int
  /// Its cost, once found to exceed the budget on this connection; 1 before.
  var cost = 1.0
  /// When to send it while it is held (uptime, ns); `.max` while it waits for the answer to an earlier one.
  var notBefore = Int64.min
  /// For a run of fixes, the number of its first one: the entry has that of its last.
  let first: UInt64?
  /// The application's id for it; nil where its number is its id.
  let id: MessageID?

  init(_ message: ClientMessage, first: UInt64? = nil, id: MessageID? = nil) {
    self.message = message
    self.first = first
    self.id = id
    bytes = QueuedMessage.bytes(of: message)
  }

  /// What messages set that are sent one at a time, each after the answer to the last: none overtakes a newer one.
  enum Subject: Equatable {
    case status
    case change(of: Identifier)
    case move(of: Identifier)
  }

  /// Nil for what others may overtake, and for what the queue keeps in order.
  var subject: Subject? {
    switch message {
    case .driverStatus: .status
    case .tripChange(let change): .change(of: change.tripID)
    case .tripStatus(let report): .move(of: report.tripID)
    case .offerDecline, .query, .locationUpdate, .locationBatch, .subscribe, .unsubscribe, .ping, .refresh: nil
    }
  }

  /// Whether it is sent only after the answer to `earlier`. A change also waits for moves of its trip, which may be the
  /// trip's beginning; a move, which may be its cancellation, waits for no change.
  func waits(for earlier: QueuedMessage) -> Bool {
    guard let subject, let other = earlier.subject else { return false }
    if case .change(let trip) = subject, other == .move(of: trip) { return true }
    return subject == other
  }

  private static func bytes(of message: ClientMessage) -> Int {
    switch message {
    case .locationBatch(let batch): 256 + batch.fixes.count * MemoryLayout<Result<Fix, ErrorCode>>.stride
    case .tripStatus(let report): 1024 + (report.route?.polyline.utf8.count ?? 0)
    case .tripChange(let change): 1024 + (change.route?.polyline.utf8.count ?? 0)
    case .driverStatus(let report): 256 + (report.tags?.count ?? 0) * 80
    case .locationUpdate, .offerDecline, .subscribe, .unsubscribe: 512
    case .ping(let ping): 256 + (ping.members?.count ?? 0)
    case .refresh(let refresh): 256 + refresh.token.utf8.count
    case .query(.driver), .query(.trip): 512
    case .query(.drivers(let search)): 1024 + search.area.positionCount * MemoryLayout<(Coordinate, Coordinate)>.size
    }
  }
}
