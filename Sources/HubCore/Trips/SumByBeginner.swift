// What the known trips of one driver or rider take together: how many a rider began, and how many bytes their routes
// have. It is computed from the trips, so that a restart does not change it. A trip counts for who began it, not for
// whom, or any driver could use up a rider's limit; and for nobody where ops began it, since a back end begins trips
// for everybody.
import HubMessages

/// A sum over the known trips, and the part of each beginner.
struct SumByBeginner {
  private(set) var all = 0
  /// By a hash of the beginner, for those that have a part: 16 bytes each, or some 40 while the table grows.
  private var parts: [UInt64: Int] = [:]

  func part(of beginner: UInt64) -> Int { parts[beginner] ?? 0 }

  /// Adds so much, which may be negative.
  mutating func add(_ amount: Int, of beginner: UInt64?) {
    if amount == 0 { return }
    all += amount
    guard let beginner else { return }
    let part = part(of: beginner) + amount
    parts[beginner] = part > 0 ? part : nil
  }
}

/// Of routes, in bytes.
extension SumByBeginner {
  /// Checks that a trip may have this route in place of one of `old` bytes. `beginner`: nil for ops.
  func check(
    _ route: Route?, insteadOf old: Int = 0, of beginner: Actor?, seed: UInt64, _ limits: HubLimits,
    counting counters: inout HubCounters
  ) throws(ErrorReply) {
    let more = (route?.polyline.utf8.count ?? 0) - old
    if more <= 0 { return }
    let role = beginner?.role ?? .ops
    guard all + more <= role.share(of: limits.routeBytes) else {
      counters.count(full: .routeBytes)
      throw ErrorReply(code: .storageFull, message: "this hub has no room for another route", retryAfter: 60)
    }
    let limit = limits.routeBytesPerIdentity
    guard let beginner, part(of: beginner.hashValue(seed: seed)) + more > limit else { return }
    counters.count(.routeBytesPerIdentity)
    var refusal = ErrorReply(
      code: .rateLimited,
      message: "the trips that one \(role.name) begins within a day have at most \(limit) bytes of routes",
      retryAfter: 60)
    refusal.isOwnLimit = true
    throw refusal
  }
}
