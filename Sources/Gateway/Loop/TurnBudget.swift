// What one loop does from one look at its sockets to the next, and who waits for the next.
//
// Without it a peer decides how much this loop holds for it in one turn: hundreds of pipelined requests, or a resume of
// every trip of the day in one piece, whose answers would pass the outbox's limit and end the session each time anew.
import HubTransport

/// Work towards `Limits.unitsPerPoll` and requests towards `Limits.requestsPerPoll`, done and not yet made up for; and
/// the connections that have to wait because of it, or had to for their peer to read.
struct TurnBudget {
  private var units = 0
  private var requests = 0
  private let unitsPerPoll: Int
  private let requestsPerPoll: Int
  private let resumedPerTurn: Int
  private var waiting: [ConnectionID] = []

  init(_ limits: Limits) {
    unitsPerPoll = limits.unitsPerPoll
    requestsPerPoll = limits.requestsPerPoll
    resumedPerTurn = limits.resumedPerTurn
  }

  /// Work beyond the first unit of a message or request.
  @inline(__always)
  mutating func spend(units more: Int) { units += more }

  /// A request, or a piece of a long answer, which is as much work.
  mutating func spendRequest() { requests += 1 }

  /// As much more work may be done as the limits of a look allow.
  mutating func renew() {
    units = max(0, units - unitsPerPoll)
    requests = max(0, requests - requestsPerPoll)
  }

  @inline(__always) var hasUnits: Bool { units < unitsPerPoll }
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
