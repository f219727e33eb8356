// Bytes of the trips' routes, of all and by who began the trips, computed from the trips, so that a restart does not
// change them. Trips that ops begin count only among all: a back end begins trips for everybody.
import HubMessages

struct RouteBytes {
  private(set) var all = 0
  /// By beginner, a hash. An entry for each that has any: 16 bytes, or some 40 while the table grows.
  private var held: [UInt64: Int] = [:]

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
    guard let beginner, bytes(of: beginner, seed: seed) + more > limits.routeBytesPerIdentity else { return }
    counters.count(.routeBytesPerIdentity)
    var refusal = ErrorReply(
      code: .rateLimited,
      message: "the trips that one \(role.name) begins within a day have at most \(limits.routeBytesPerIdentity) bytes"
        + " of routes", retryAfter: 60)
    refusal.isOwnLimit = true
    throw refusal
  }

  func bytes(of beginner: Actor, seed: UInt64) -> Int { held[beginner.hashValue(seed: seed)] ?? 0 }

  /// Counts so many bytes more, or fewer.
  mutating func add(_ bytes: Int, of beginner: Actor?, seed: UInt64) {
    if bytes == 0 { return }
    all += bytes
    guard let beginner else { return }
    let key = beginner.hashValue(seed: seed)
    let sum = held[key, default: 0] + bytes
    held[key] = sum > 0 ? sum : nil
  }
}
