// The tokens that back ends have revoked (`POST /v1/revocations`), and those of ended families, as all loops see them.
// The hub keeps them; each loop hears of a change in its turn, and the first to hear of it puts it in here, so that
// none takes a token that another has seen revoked.
import HubBytes
import HubCore
import HubMessages
import HubSystem
import Synchronization

/// A table that all loops share. It is locked where a credential is checked, never for a message.
public final class Revocations: Sendable {
  private struct State {
    /// The number of the newest change that is in it.
    var applied: UInt64 = 0
    /// When it ends; `.max` for never (ms since 1970).
    var ends: [RevokedName: Int64] = [:]
  }

  private let state = Locked(State())
  /// Whether there are any: most hubs have none.
  private let isEmpty = Atomic<Bool>(true)

  public init() {}

  /// All that there are when a hub starts.
  func begin(with all: [Revocation]) {
    state.withLock { state in
      for revocation in all { state.ends[revocation.name] = revocation.until?.milliseconds ?? .max }
      isEmpty.store(state.ends.isEmpty, ordering: .releasing)
    }
  }

  /// Each loop brings each change, in order; the first one counts.
  func apply(_ change: RevocationChange) {
    state.withLock { state in
      guard change.number > state.applied else { return }
      state.applied = change.number
      for name in change.removed { state.ends[name] = nil }
      for revocation in change.added { state.ends[revocation.name] = revocation.until?.milliseconds ?? .max }
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
