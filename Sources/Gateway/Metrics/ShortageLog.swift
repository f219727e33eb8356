// What an operator should know of the last second, once, however often it happened.
import HubRuntime
import HubTransport

/// Writes to the log what one loop was short of.
struct ShortageLog {
  private let log: Log
  private let loop: UInt32
  private var last = EventLoopCounters()
  private var lastAddressHits: UInt64 = 0

  init(_ log: Log, loop: UInt32) {
    self.log = log
    self.loop = loop
  }

  /// Says what has come since the last call.
  mutating func write(_ now: EventLoopCounters, _ limits: EventLoopLimits, addressHits: UInt64) {
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
