// The trips that have just begun here without the ledger, which the hub may not know yet (Forwarding.swift).
//
// Two sets that take turns, so that each trip is forgotten after at most three times `beginningTime`, however fast
// others come.
import HubMessages

/// Trips, each of which is remembered for `beginningTime` at least.
struct RecentBeginnings {
  private var newest: Set<Channel> = []
  private var older: Set<Channel> = []
  /// When `newest` took the place of `older` (uptime, ns).
  private var since: Int64 = 0

  mutating func insert(_ trip: Channel, at now: Int64, _ limits: ClusterLimits) {
    if now - since > limits.beginningTime {
      (older, newest, since) = (now - since > 2 * limits.beginningTime ? [] : newest, [], now)
    }
    if newest.count < limits.pending { newest.insert(trip) }
  }

  func contains(_ trip: Channel, at now: Int64, _ limits: ClusterLimits) -> Bool {
    let (age, time) = (now - since, limits.beginningTime)
    return age <= time && older.contains(trip) || age <= 2 * time && newest.contains(trip)
  }
}
