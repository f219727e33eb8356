// What the known trips of one driver or rider take together: how many a rider created, and how many bytes their routes
// have. It is computed from the trips, so that a restart does not change it. A trip counts for its creator, not for the
// rider that it is for, or any driver could use up a rider's limit; and for nobody where ops created it, since a back
// end creates trips for others.
import HubMessages

/// A sum over the known trips, and that of each creator.
struct SumByCreator {
  private(set) var all = 0
  /// By a hash of the creator, for those whose sum is not 0: 16 bytes each, or some 40 while the table grows.
  private var sums: [UInt64: Int] = [:]

  func sum(of creator: UInt64) -> Int { sums[creator] ?? 0 }

  /// Adds an amount, which may be negative, for a creator; nil for ops.
  mutating func add(_ amount: Int, of creator: UInt64?) {
    if amount == 0 { return }
    all += amount
    guard let creator else { return }
    let sum = sum(of: creator) + amount
    sums[creator] = sum > 0 ? sum : nil
  }
}

/// For the sums of routes, in bytes.
extension SumByCreator {
  /// Checks that a trip may have this route in place of one of `old` bytes. `creator`: nil for ops.
  func check(
    _ route: Route?, insteadOf old: Int = 0, of creator: Actor?, seed: UInt64, _ limits: HubLimits,
    counting counters: inout HubCounters
  ) throws(ErrorReply) {
    let more = (route?.polyline.utf8.count ?? 0) - old
    if more <= 0 { return }
    let role = creator?.role ?? .ops
    guard all + more <= role.share(of: limits.routeBytes) else {
      counters.count(full: .routeBytes)
      throw ErrorReply(code: .storageFull, message: "this hub has no room for another route", retryAfter: 60)
    }
    let limit = limits.routeBytesPerIdentity
    guard let creator, sum(of: creator.hashValue(seed: seed)) + more > limit else { return }
    counters.count(.routeBytesPerIdentity)
    throw ErrorReply(
      ownLimit: "the trips that one \(role.name) begins within a day have at most \(limit) bytes of routes")
  }
}
