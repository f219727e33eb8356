// Who comes all at once, and who leaves and comes again. Both are due at a time fixed beforehand, and how long it took
// counts from then to the hub's `subscribed`.
import HubTransport

extension Generator {
  /// The storm, when it is due, and all who are due to leave.
  func join(_ schedule: Schedule, _ now: Int64) {
    if !hasStormed, !storm.isEmpty, now >= schedule.storm {
      hasStormed = true
      for peer in storm.reversed() {
        peer.pointee.dueAt = schedule.storm
        if scenario.cut { leaving.append(peer) } else { waiting.append(peer) }
      }
    }
    guard !churners.isEmpty else { return }
    while let due = schedule.churnDue(share.number(nextChurn)), due <= now {
      let peer = churners[nextChurn % churners.count]
      nextChurn += 1
      // Still on its way from the last time: with fewer churners than come in that time. It is not due twice.
      guard peer.pointee.isReady, peer.pointee.dueAt == nil else { continue }
      peer.pointee.dueAt = due
      counts.joinsDue += 1
      leaving.append(peer)
    }
  }

  /// Cuts sessions off without a word, some in each turn; they come again at once.
  func cutOffLeaving() {
    var steps = Generator.stepsPerTurn
    while steps > 0, let peer = leaving.popLast() {
      steps -= 1
      if peer.pointee.id == .none {
        waiting.append(peer)
      } else {
        peer.pointee.isLeaving = true
        loop.abort(peer.pointee.id, reset: true)
      }
    }
  }

  /// The connection of one who left is gone.
  func reconnect(_ peer: PeerPointer) { waiting.append(peer) }
}
