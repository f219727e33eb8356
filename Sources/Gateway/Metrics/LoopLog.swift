// One loop's log lines: shortages of the last second, once each; stalls; and, for debugging, sessions.
import HubBytes
import HubMessages
import HubRuntime
import HubTransport
import HubWebSocket

struct LoopLog {
  private let log: Log
  private let loop: UInt32
  private var last = EventLoopCounters()
  private var lastAddressHits: UInt64 = 0

  init(_ log: Log, loop: UInt32) {
    self.log = log
    self.loop = loop
  }

  func tlsFailed(_ failure: TLSFailure) { log(.debug, "tls_failed", ["reason": "\(failure)"]) }

  func opened(_ session: InlineText, _ credential: Credential) {
    guard log.level == .debug else { return }
    log(
      .debug, "session_opened",
      ["session": "\(session)", "role": "\(credential.role.name)", "id": "\(credential.id)"])
  }

  func closed(_ session: InlineText, _ code: CloseCode, _ reason: String) {
    guard log.level == .debug else { return }
    log(.debug, "session_closed", ["session": "\(session)", "code": "\(code.rawValue)", "reason": reason])
  }

  /// The loop did not turn for this time (ns).
  func stalled(_ time: Int64) {
    log(.warning, "loop_stalled", ["seconds": "\(Double(time / 1_000_000) / 1000)", "loop": "\(loop)"])
  }

  /// Logs the shortages since the last call.
  mutating func shortages(_ now: EventLoopCounters, _ limits: EventLoopLimits, _ counters: LoopCounters) {
    let addressHits = counters.hits(.connectionsPerAddress) + counters.hits(.requestRate)
    if addressHits > lastAddressHits {
      log(
        .warning, "address_over_limit",
        [
          "loop": "\(loop)", "count": "\(addressHits - lastAddressHits)",
          "hint": "if that is a proxy's address, name it with --trusted-proxy",
        ])
    }
    if now.acceptWaits > last.acceptWaits {
      log(.info, "accept_waits", ["loop": "\(loop)", "limit": "\(limits.acceptsPerSecond)"])
    }
    if now.acceptPauses > last.acceptPauses {
      log(.warning, "accept_paused", ["loop": "\(loop)", "hint": "out of file descriptors or memory: raise ulimit -n"])
    }
    if now.refused > last.refused {
      log(
        .warning, "connections_refused",
        ["loop": "\(loop)", "count": "\(now.refused - last.refused)", "limit": "\(limits.maximumConnections)"])
    }
    if now.overflowed > last.overflowed {
      log(.info, "slow_consumers", ["loop": "\(loop)", "count": "\(now.overflowed - last.overflowed)"])
    }
    lastAddressHits = addressHits
    last = now
  }
}
