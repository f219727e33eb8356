// What peers have begun to send and not finished: frames, fragments, heads, bodies, and what waits behind them. One
// connection may keep a message of 256 KiB; that 20,000 do at once is what this file prevents.
//
// The first KiB is free, so that an ordinary message that two reads cut in two costs nothing here and never fails.
// Bytes beyond count against one limit of the whole process; who would pass it is sent away. And a message must be
// complete in a time, however diligently its bytes trickle in.
import HubTransport

/// What the connections of one loop keep beyond what is free.
struct IncompleteInputs {
  private struct Entry {
    var bytes: Int
    /// Since when, without a message that was completed (uptime, ns).
    var since: Int64
  }

  /// By slot, for the few connections that keep much.
  private var entries: [Int: Entry] = [:]
  private let freeBytes: Int
  private let timeLimit: Int64
  private let admissions: Admissions

  init(_ limits: Limits, _ admissions: Admissions) {
    freeBytes = limits.incompleteFreeBytes
    timeLimit = nanoseconds(limits.messageSeconds)
    self.admissions = admissions
  }

  /// Brings the count of a connection's bytes up to date, when something was read; false where there is no room for
  /// them. The common case is three comparisons.
  @inline(__always)
  mutating func reconcile(_ session: inout Session, now: Int64) -> Bool {
    let bytes = session.keptBytes
    return bytes > freeBytes || session.keepsInput ? recount(&session, bytes, now) : true
  }

  private mutating func recount(_ session: inout Session, _ kept: Int, _ now: Int64) -> Bool {
    let slot = Int(session.connection.slot)
    let bytes = max(0, kept - freeBytes)
    let before = entries[slot]
    session.keepsInput = bytes > 0
    entries[slot] = bytes > 0 ? Entry(bytes: bytes, since: before?.since ?? now) : nil
    return admissions.keeps(bytes - (before?.bytes ?? 0))
  }

  /// The connection is gone, or what it kept is.
  mutating func forget(_ session: inout Session) {
    guard session.keepsInput, let before = entries.removeValue(forKey: Int(session.connection.slot)) else { return }
    session.keepsInput = false
    _ = admissions.keeps(-before.bytes)
  }

  /// A message was completed: the next one has the whole time.
  mutating func completed(_ slot: Int, now: Int64) { entries[slot]?.since = now }

  /// So much of the time that messages have been under way (ns) is not theirs.
  mutating func excuse(_ time: Int64, now: Int64) {
    for (slot, entry) in entries { entries[slot]?.since = min(now, entry.since + time) }
  }

  /// Whether a connection's message has been under way for too long.
  func isOverdue(_ session: borrowing Session, now: Int64) -> Bool {
    guard session.keepsInput, let since = entries[Int(session.connection.slot)]?.since else { return false }
    return now - since >= timeLimit
  }
}
