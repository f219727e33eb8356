// Logs a full disk: when it begins, each minute while it lasts, and at its end. A disk that keeps filling up would be
// logged twice a second; so within a minute of a line, a new episode is logged once it has lasted for two seconds.
import HubCore

struct FullDiskWatch: Sendable {
  /// Refusals for want of storage, and fixes that could not be stored, since the hub's start.
  struct Losses: Sendable, Equatable {
    var refused: UInt64
    var fixesNotStored: UInt64

    init(refused: UInt64, fixesNotStored: UInt64) {
      self.refused = refused
      self.fixesNotStored = fixesNotStored
    }

    init(_ counters: HubCounters) {
      self.init(refused: counters.refusedForStorage, fixesNotStored: counters.fixesNotStored)
    }

    static func - (left: Losses, right: Losses) -> Losses {
      Losses(refused: left.refused - right.refused, fixesNotStored: left.fixesNotStored - right.fixesNotStored)
    }
  }

  /// A line to log: since when it lasts, and its losses.
  enum Line: Sendable, Equatable {
    case full(seconds: Int64, Losses)
    case writable(seconds: Int64, Losses)
  }

  private static let second: Int64 = 1_000_000_000
  /// Between two lines that the disk is full, in ns.
  private static let interval = 60 * second
  /// How long a new episode must last to be logged within that time, in ns.
  private static let patience = 2 * second

  /// Since when the disk is full (uptime, ns); nil where it is not.
  private var since: Int64?
  /// The beginning of the logged or pending episode, and the losses before it.
  private var began: (uptime: Int64, losses: Losses)?
  private var lastLine: Int64?
  /// The log says that the disk is full.
  private var isNotified = false

  /// Whether an episode is open, though the disk has room now.
  var isOpen: Bool { since != nil || isNotified }

  /// Gives the line to log now, if any. `before` and `after`: the losses before this look and after it.
  mutating func look(
    isFull: Bool, before: Losses, after: Losses, uptime: Int64
  ) -> Line? {
    guard isFull else {
      since = nil
      guard isNotified, let began else { return nil }
      isNotified = false
      self.began = nil
      return .writable(seconds: (uptime - began.uptime) / Self.second, after - began.losses)
    }
    // An episode that was too short to be logged is over after a minute.
    if since == nil, !isNotified, let known = began, uptime - known.uptime >= Self.interval { began = nil }
    if began == nil { began = (uptime, before) }
    if since == nil { since = uptime }
    guard isDue(uptime), let began else { return nil }
    lastLine = uptime
    isNotified = true
    return .full(seconds: (uptime - began.uptime) / Self.second, after - began.losses)
  }

  private func isDue(_ uptime: Int64) -> Bool {
    guard let lastLine, uptime - lastLine < Self.interval else { return true }
    return !isNotified && uptime - (since ?? uptime) >= Self.patience
  }
}
