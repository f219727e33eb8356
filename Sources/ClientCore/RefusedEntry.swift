// What a driver's client hears no more of: its owner, who keeps fixes and moves himself, counts it.
package import HubMessages

/// What a hub did not take of what a driver has said.
package enum RefusedEntry {
  /// Fixes, and the trip that they named.
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
