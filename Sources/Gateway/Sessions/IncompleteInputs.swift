// Incomplete input of peers: frames, fragments, heads, bodies, and what waits behind them. One connection may keep a
// message of 256 KiB; this file keeps 20,000 from doing so at once.
//
// The first KiB is free, so that an ordinary message split between two reads costs nothing and never fails. Further
// bytes count towards one limit of the process, and towards one of their address, so that nobody has all of the former;
// a connection that exceeds either is closed. And a message must be complete within a time, however steadily its bytes
// trickle in.
import HubMessages
import HubTransport

/// The bytes that the connections of one loop keep beyond what is free.
struct IncompleteInputs {
  private struct Entry {
    var bytes: Int
    /// Since when no message was completed (uptime, ns), without the time for which the hub held input.
    var since: Int64
    let isHeld: Bool
    /// The key of its address; 0 where that has no limit.
    let address: UInt64
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

  /// Whether a connection's bytes have to be counted after a read, which is rare.
  @inline(__always)
  func counts(_ session: borrowing Session) -> Bool { session.keptBytes > freeBytes || session.keepsInput }

  /// Updates the count of a connection's bytes; false where there is no room. `address`: the key of its address, 0
  /// where that has no limit.
  mutating func recount(_ session: inout Session, address: UInt64, now: Int64) -> Bool {
    let slot = Int(session.connection.slot)
    let bytes = max(0, session.keptBytes - freeBytes)
    let before = entries[slot]
    session.keepsInput = bytes > 0
    let address = before?.address ?? address
    let since = before.map { $0.isHeld ? now : $0.since } ?? now
    entries[slot] = bytes > 0 ? Entry(bytes: bytes, since: since, isHeld: session.isHolding, address: address) : nil
    return admissions.keeps(bytes - (before?.bytes ?? 0), of: address, now: now)
  }

  /// Stops counting a connection that has closed, or whose kept input was dropped.
  mutating func forget(_ session: inout Session, now: Int64) {
    guard session.keepsInput, let before = entries.removeValue(forKey: Int(session.connection.slot)) else { return }
    session.keepsInput = false
    _ = admissions.keeps(-before.bytes, of: before.address, now: now)
  }

  /// A message was completed: the next one has the full time.
  mutating func completed(_ slot: Int, now: Int64) { entries[slot]?.since = now }

  /// Gives incomplete messages so much more time (ns), in which the loop did not read.
  mutating func excuse(_ time: Int64, now: Int64) {
    for (slot, entry) in entries { entries[slot]?.since = min(now, entry.since + time) }
  }

  /// Whether a connection's message has been incomplete for too long, and not because the hub holds its input.
  func isOverdue(_ session: borrowing Session, now: Int64) -> Bool {
    guard session.keepsInput, !session.isHolding, let since = entries[Int(session.connection.slot)]?.since else {
      return false
    }
    return now - since >= timeLimit
  }
}
