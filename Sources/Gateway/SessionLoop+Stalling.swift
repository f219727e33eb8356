// Peers that ask for more than they take: what they sent further waits until they have read the answers.
//
// Without it a peer decides how much this loop holds for it in one turn: hundreds of pipelined requests, or a resume of
// every trip of the day in one piece, whose answers would pass the outbox's limit and end the session each time anew.
import HubBytes
import HubHTTP
import HubMessages
import HubTransport
import HubWebSocket

/// Frames that were read and wait.
final class HeldInput {
  var bytes = ByteBuffer()
  /// So many of them are done with. They stay until all are: a session over its rate takes up one message at a time,
  /// and what lies behind it is not moved for each.
  var done = 0
}

extension SessionLoop {
  /// WebSocket: enough subscriptions are under way, or the session is over its rate. `rest` is what was read behind
  /// them: 64 KiB may hold 7,000 pings, which others would wait for. It is copied, unless it lies `taken` bytes on in
  /// what has waited before.
  mutating func stall(_ slot: Int, _ rest: UnsafeRawBufferPointer, taken: Int, of waiting: HeldInput?) {
    let held = waiting ?? HeldInput()
    if waiting == nil { held.bytes.append(rest) } else { held.done += taken }
    sessions[slot].held = held
    loop.pauseReading(sessions[slot].connection)
  }

  var hasRoomForRequest: Bool {
    requestsDone < limits.requestsPerPoll && unitsDone < limits.unitsPerPoll
  }

  /// As much more work may be done as the limits of a look allow.
  mutating func allowUnits() {
    unitsDone = max(0, unitsDone - limits.unitsPerPoll)
    requestsDone = max(0, requestsDone - limits.requestsPerPoll)
  }

  /// WebSocket: whether what this session sent has to wait, since enough was done. A crowd of sessions may each send
  /// dear messages within its rate, in the same moment; positions come in and leave between them.
  @inline(__always)
  func mustWaitForTurn(_ slot: Int) -> Bool {
    unitsDone >= limits.unitsPerPoll && sessions[slot].role != .driver && sessions[slot].phase == .open
  }

  /// WebSocket: what this session sent goes on with the next turn.
  mutating func waitForTurn(_ slot: Int, _ rest: UnsafeRawBufferPointer, taken: Int, of waiting: HeldInput?) {
    guard !rest.isEmpty else { return }
    counters.turnWaits += 1
    stall(slot, rest, taken: taken, of: waiting)
    stalled.append(sessions[slot].connection)
  }

  /// A subscription was answered: the session goes on once all of them are and its reader has kept up.
  mutating func subscriptionAnswered(_ slot: Int) {
    sessions[slot].subscriptions.answered()
    if sessions[slot].held != nil, sessions[slot].subscriptions.unanswered == 0 {
      stalled.append(sessions[slot].connection)
    }
  }

  /// The peer has read everything: what waited for that goes on with the next turn.
  mutating func drained(_ id: ConnectionID) {
    guard isCurrent(id) else { return }
    let slot = Int(id.slot)
    if fanOut.catchUp(id, sessions[slot].subscriptions, asking: &inputs) { armLoopTimer() }
    guard sessions[slot].exchange?.isStalled == true || sessions[slot].held != nil else { return }
    stalled.append(id)
    armLoopTimer()
  }

  /// A turn later: goes on with what waited, but for peers that have not read the answers so far. Those go on when they
  /// have (`drained`), or end with the time that a silent connection has.
  mutating func resumeStalled() {
    // Who is ready comes first: their turns follow each other without a look at the sockets of all others.
    guard !stalled.isEmpty, !loop.hasUnhandledReports else { return }
    let connections = stalled
    stalled.removeAll(keepingCapacity: true)
    allowUnits()
    var resumed = 0
    for (place, id) in connections.enumerated() where isCurrent(id) && !loop.isBlocked(id) {
      guard hasRoomForRequest, resumed < limits.resumedPerTurn else {
        // First in the next turn, before those that had theirs in this one.
        stalled.insert(contentsOf: connections[place...], at: 0)
        return
      }
      let slot = Int(id.slot)
      resumed += 1
      // The socket is read again only where nothing is left to wait: most of those who flood have more.
      if let exchange = sessions[slot].exchange, exchange.isStalled {
        resume(slot, exchange)
      } else if let held = sessions[slot].held, sessions[slot].subscriptions.unanswered == 0, !sessions[slot].isPaused {
        sessions[slot].held = nil
        held.bytes.withMutableBytes {
          receivedFrames(slot, UnsafeMutableRawBufferPointer(rebasing: $0[held.done...]), of: held)
        }
        readAgain(slot)
      }
      settleIncomplete(slot)
      fanOut.flushIfLarge()
    }
  }

  /// The session is level with its rate again: what waits goes on with the next turn, else its socket is read.
  mutating func goOn(_ slot: Int) {
    guard sessions[slot].held != nil else { return readAgain(slot) }
    stalled.append(sessions[slot].connection)
    armLoopTimer()
  }

  /// Reads from a session's socket again, unless something else keeps it from that.
  mutating func readAgain(_ slot: Int) {
    guard sessions[slot].held == nil, !sessions[slot].isPaused else { return }
    loop.resumeReading(sessions[slot].connection)
  }
}
