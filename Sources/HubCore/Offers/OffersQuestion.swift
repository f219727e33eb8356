// Questions about the offers of a trip. The answers are cases of `TripAnswer`.
import HubBytes
public import HubMessages

/// A question about the offers of a trip, or a request to begin or stop them.
public enum OffersQuestion: Sendable {
  case show
  /// Begins to ask drivers. `key` is the id by which a repetition is recognised.
  case begin(OfferCriteria, key: MessageID?)
  case stop

  var isChange: Bool {
    switch self {
    case .show: false
    case .begin, .stop: true
    }
  }
}

/// A request to ask drivers for a trip.
struct OffersRequest {
  let criteria: OfferCriteria
  let role: Role
  /// `Actor.hashValue`, for the limits of one identity.
  let asker: UInt64
  /// Recognises a repetition; 0 for none.
  let key: UInt64

  init(_ criteria: OfferCriteria, by asker: OfferAsker, key: MessageID?) {
    self.criteria = criteria
    role = asker.actor.role
    self.asker = asker.hash
    self.key = key.map { max(1, $0.text.hashValue(seed: asker.hash)) } ?? 0
  }
}
