// When states leave for other hubs: the first after a pause at once, a stream of them in frames a while apart.
//
//     sent ──── less than two gather times later: again ──→ a stream: the thread may sleep through what the hub posts
//     sent ──── later ──→ the next one wakes the thread, and leaves at once
//
// As interrupts of network cards are moderated: most of what a position costs on its way to another hub are the frame's
// wake-ups and system calls, in both hubs and in the engine. Times are in nanoseconds of uptime.

/// The times of a hub's frames of states, to all peers together.
struct StateGathering {
  /// When states were sent last, and whether they come in a stream.
  private var sent = Int64.min / 2
  private var isStream = false
  // For the flush that is under way.
  private var now: Int64 = 0
  private var gatherTime: Int64 = 0
  private var hasStates = false
  private var hasLeft = false
  /// Whether states are sent in this flush.
  private(set) var isDue = true
  /// When those that wait are due; `Int64.max` where none do.
  private(set) var due = Int64.max
  /// Until when further states may gather before the thread looks at them.
  private(set) var until = Int64.min

  mutating func begin(_ gatherTime: Int64, now: Int64) {
    (self.gatherTime, self.now, hasStates, hasLeft) = (gatherTime, now, false, false)
    isDue = now - sent >= gatherTime
  }

  /// There are states for a peer that can be reached.
  mutating func noteStates() { hasStates = true }

  /// The bus had no room for all of a peer's states.
  mutating func noteLeft() { hasLeft = true }

  mutating func end() {
    if isDue {
      isStream = hasStates && now - sent < 2 * gatherTime
      if hasStates { sent = now }
    }
    due = hasLeft || hasStates && !isDue ? sent + gatherTime : .max
    until = isStream || hasStates && !isDue ? sent + gatherTime : .min
  }
}
