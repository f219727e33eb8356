// What one loop does from one look at its sockets to the next, and who waits for the next.
//
// Without it a peer decides how much this loop holds for it in one turn: hundreds of pipelined requests, or a resume of
// every trip of the day in one piece, whose answers would pass the outbox's limit and end the session each time anew.
import HubMessages
import HubTransport

/// Work towards `Limits.unitsPerPoll` and requests towards `Limits.requestsPerPoll`, done and not yet made up for; and
/// the connections that have to wait because of it, or had to for their peer to read.
struct TurnBudget {
  /// In bytes: a unit is as much work as `WorkUnits.bytes` of a message.
  private var work = 0
  private var requests = 0
  private let workPerPoll: Int
  private let requestsPerPoll: Int
  private let resumedPerTurn: Int
  private var waiting: [ConnectionID] = []

  init(_ limits: Limits) {
    workPerPoll = limits.unitsPerPoll * WorkUnits.bytes
    requestsPerPoll = limits.requestsPerPoll
    resumedPerTurn = limits.resumedPerTurn
  }

  /// Reading a message or request of so many bytes, or writing such an answer. A short one counts nothing: that is what
  /// everybody sends all the time. A unit's worth of bytes would be too much to be free, for many send it at once.
  @inline(__always)
  mutating func spend(bytes: Int) { if bytes > Limits.freeBytesPerMessage { work += bytes } }

  /// Work beyond that of reading the bytes.
  @inline(__always)
  mutating func spend(units: Int) { work += units * WorkUnits.bytes }

  /// A request, or a piece of a long answer, which is as much work.
  mutating func spendRequest() { requests += 1 }

  /// As much more work may be done as the limits of a look allow.
  mutating func renew() {
    work = max(0, work - workPerPoll)
    requests = max(0, requests - requestsPerPoll)
  }

  @inline(__always) var hasUnits: Bool { work < workPerPoll }
  var hasRoomForRequest: Bool { requests < requestsPerPoll && hasUnits }

  // MARK: Who waits

  var isAnyoneWaiting: Bool { !waiting.isEmpty }

  /// The connection goes on with the next turn.
  mutating func wait(_ connection: ConnectionID) { waiting.append(connection) }

  /// All that wait, in order, for a turn of their own.
  mutating func takeWaiting() -> [ConnectionID] {
    defer { waiting = [] }
    return waiting
  }

  /// Whether another of them may go on in this turn, where so many did.
  func mayResume(after resumed: Int) -> Bool { hasRoomForRequest && resumed < resumedPerTurn }

  /// Those whose turn did not come: first in the next turn, before those that had theirs in this one.
  mutating func putBack(_ connections: ArraySlice<ConnectionID>) { waiting.insert(contentsOf: connections, at: 0) }
}
