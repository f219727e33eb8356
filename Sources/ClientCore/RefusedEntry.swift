// A permanent refusal of the hub, to be counted by the owner of fixes and moves.
package import HubMessages

/// A driver's entry that a hub refused.
package enum RefusedEntry {
  /// Fixes, and their trip.
  case fixes([Fix], trip: Identifier?)
  case move

  init?(_ payload: SendQueue.Payload) {
    switch payload {
    case .fix(let fix, let trip): self = .fixes([fix], trip: trip?.id)
    case .message(let queued), .resentFixes(let queued):
      switch queued.message {
      case .locationBatch(let batch):
        self = .fixes(
          batch.fixes.compactMap { if case .success(let fix) = $0 { fix } else { nil } }, trip: batch.tripID)
      case .tripStatus: self = .move
      case .locationUpdate, .driverStatus, .tripChange, .offerDecline, .subscribe, .unsubscribe, .ping, .refresh,
        .query:
        return nil
      }
    case .done: return nil
    }
  }
}
