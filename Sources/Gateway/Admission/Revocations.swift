// Revoked tokens (`POST /v1/revocations`), and those of ended families, for all loops. The hub keeps them; each loop
// gets a change in its turn, and the first one applies it here, so that no loop accepts a token that another has seen
// revoked.
import HubBytes
import HubCore
import HubMessages
import HubSystem
import Synchronization

/// Shared by all loops. Locked where a credential is checked, never for a message.
public final class Revocations: Sendable {
  private struct State {
    /// The number of the newest applied change.
    var applied: UInt64 = 0
    /// The end (ms since 1970); `.max` for never.
    var ends: [RevokedName: Int64] = [:]
  }

  private let state = Locked(State())
  /// Whether there are none, as in most hubs.
  private let isEmpty = Atomic<Bool>(true)

  public init() {}

  /// Takes all revocations at a hub's start.
  func begin(with all: [Revocation]) {
    state.withLock { state in
      for revocation in all { state.ends[revocation.name] = revocation.inForceUntil?.milliseconds ?? .max }
      isEmpty.store(state.ends.isEmpty, ordering: .releasing)
    }
  }

  /// Applies a change. Each loop calls it for each change, in order; the first call counts.
  func apply(_ change: RevocationChange) {
    state.withLock { state in
      guard change.number > state.applied else { return }
      state.applied = change.number
      for name in change.removed { state.ends[name] = nil }
      for revocation in change.added { state.ends[revocation.name] = revocation.inForceUntil?.milliseconds ?? .max }
      isEmpty.store(state.ends.isEmpty, ordering: .releasing)
    }
  }

  /// O(1).
  func contains(subject: Identifier, tokenID: InlineText?, now: Timestamp) -> Bool {
    if isEmpty.load(ordering: .acquiring) { return false }
    return state.withLock { state in
      func has(_ name: RevokedName) -> Bool { state.ends[name].map { $0 > now.milliseconds } ?? false }
      return has(.subject(subject)) || tokenID.map { has(.tokenID($0)) } ?? false
    }
  }
}
