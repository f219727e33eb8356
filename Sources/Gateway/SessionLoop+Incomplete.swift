// What peers have begun to send and not finished: frames, fragments, heads, bodies, and what waits behind them. One
// connection may keep a message of 256 KiB; that 20,000 do at once is what this file prevents.
//
// The first KiB is free, so that an ordinary message that two reads cut in two costs nothing here and never fails.
// Bytes beyond count against one limit of the whole process; who would pass it is sent away. And a message must be
// complete in a time, however diligently its bytes trickle in.
import HubBytes
import HubMessages
import HubRuntime
import HubTransport
import HubWebSocket

/// What one connection keeps beyond what is free.
struct IncompleteInput {
  var bytes: Int
  /// Since when, without a message that was completed (uptime, ns).
  var since: Int64
}

extension SessionLoop {
  /// Brings the count of a connection's bytes up to date, and ends it if there is no room for them. Called when
  /// something was read; the common case is three comparisons.
  @inline(__always)
  mutating func settleIncomplete(_ slot: Int) {
    let bytes = keptBytes(slot)
    if bytes > limits.incompleteFreeBytes || sessions[slot].keepsInput { recount(slot, bytes) }
  }

  @inline(__always)
  private func keptBytes(_ slot: Int) -> Int {
    var bytes = sessions[slot].frames.bufferedBytes
    if let held = sessions[slot].held { bytes += held.bytes.count }
    if let exchange = sessions[slot].exchange { bytes += exchange.keptBytes }
    return bytes
  }

  private mutating func recount(_ slot: Int, _ kept: Int) {
    let bytes = max(0, kept - limits.incompleteFreeBytes)
    let before = incomplete[slot]
    sessions[slot].keepsInput = bytes > 0
    incomplete[slot] = bytes > 0 ? IncompleteInput(bytes: bytes, since: before?.since ?? now.uptime) : nil
    guard !shared.admissions.keeps(bytes - (before?.bytes ?? 0)) else { return }
    counters.count(.incompleteBytes)
    refuseInput(slot)
    forgetIncomplete(slot)
  }

  /// The connection is gone, or what it kept is.
  mutating func forgetIncomplete(_ slot: Int) {
    guard sessions[slot].keepsInput, let before = incomplete.removeValue(forKey: slot) else { return }
    sessions[slot].keepsInput = false
    _ = shared.admissions.keeps(-before.bytes)
  }

  /// There is no room: the peer is told, and what it sent so far is dropped.
  private mutating func refuseInput(_ slot: Int) {
    switch sessions[slot].phase {
    case .free: break
    case .open, .closing:
      close(slot, .tryAgainLater)
      // Mid-message there is nothing to be understood any more: the transport throws away what comes.
      sessions[slot].frames = FrameReader(role: .server)
      loop.close(sessions[slot].connection)
    case .http, .admitting:
      if let exchange = sessions[slot].exchange { refuseInput(slot, exchange) }
    }
  }

  /// A message was completed: the next one has the whole time.
  @inline(__always)
  mutating func messageCompleted(_ slot: Int) {
    guard sessions[slot].keepsInput else { return }
    let time = now.uptime
    incomplete[slot]?.since = time
  }

  /// So much of the time that messages have been under way (ns) is not theirs.
  mutating func excuseIncomplete(_ time: Int64) {
    let now = now.uptime
    for (slot, input) in incomplete { incomplete[slot]?.since = min(now, input.since + time) }
  }

  /// Whether a session's message has been under way for too long. Looked at with each of the session's timers.
  func isOverdue(_ slot: Int) -> Bool {
    guard sessions[slot].keepsInput, stallTime == 0, let since = incomplete[slot]?.since else { return false }
    return now.uptime - since >= nanoseconds(limits.messageSeconds)
  }
}
