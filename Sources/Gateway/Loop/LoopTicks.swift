// Which loop of a server hangs: any of them can, and its sessions hang with it, while the others serve.
import HubMessages
import HubSystem

/// When each loop last ticked, which it does once a second, and when it last ended.
final class LoopTicks: Sendable {
  /// The uptime of each loop's last tick, in ns; nil before any loop has ticked, .max for a loop that has ended.
  private let ticks: Locked<[Int64?]>

  init(loops: Int) { ticks = Locked(Array(repeating: nil, count: loops)) }

  /// Notes a loop's tick. The first one counts for all loops, so that one that never ticks is found hanging.
  func note(_ loop: Int, at uptime: Int64) {
    ticks.withLock { ticks in
      ticks[loop] = uptime
      for other in ticks.indices where ticks[other] == nil { ticks[other] = uptime }
    }
  }

  func ended(_ loop: Int) { ticks.withLock { $0[loop] = .max } }

  /// The loop that has not ticked for longest, and for how many seconds; nil where all have within
  /// `Limits.hangSeconds`. `asker`: the loop that asks, and so does not hang.
  func hanging(at uptime: Int64, asker: Int) -> (loop: Int, seconds: Int64)? {
    ticks.withLock { ticks in
      let others = ticks.indices.filter { $0 != asker }
      guard let loop = others.min(by: { ticks[$0] ?? .max < ticks[$1] ?? .max }), let last = ticks[loop],
        last < uptime - nanoseconds(Limits.hangSeconds)
      else { return nil }
      return (loop, (uptime - last) / 1_000_000_000)
    }
  }
}
