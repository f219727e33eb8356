// The audit trail of credentials: who did what, when, from where and with what outcome. Only `journal export --audit`
// reads it.
public import HubBytes
import HubMessages

/// The requests that are recorded.
public enum AuditAction: UInt8, Sendable, CaseIterable {
  case issueTokens = 1
  case refreshTokens, listTokens, endTokens, revoke, listRevocations, unrevoke

  /// The name in `journal export`.
  public var name: StaticString {
    switch self {
    case .issueTokens: "issue_tokens"
    case .refreshTokens: "refresh_tokens"
    case .listTokens: "list_tokens"
    case .endTokens: "end_tokens"
    case .revoke: "revoke"
    case .listRevocations: "list_revocations"
    case .unrevoke: "unrevoke"
    }
  }
}

/// Who acts, and from where.
public struct AuditSource: Sendable, Equatable {
  public var action: AuditAction
  /// Nil where no credential was accepted.
  public var actor: Actor?
  /// The client's address in text.
  public var address: InlineText

  public init(_ action: AuditAction, by actor: Actor?, from address: InlineText) {
    self.action = action
    self.actor = actor
    self.address = address
  }
}

/// One entry. It never holds a token.
public struct AuditEntry: Sendable, Equatable {
  public var source: AuditSource
  /// The `sub` or `jti` concerned; nil where the request had none yet.
  public var target: InlineText?
  /// The status of the answer.
  public var status: Int

  public init(_ source: AuditSource, about target: InlineText?, status: Int) {
    self.source = source
    self.target = target
    self.status = status
  }
}

/// An entry as the journal has it.
struct DurableAudit: Equatable {
  var entry: AuditEntry
  /// By the hub's wall clock.
  var time: Timestamp
  /// Entries that were left out before this one (`AuditTrail`).
  var leftOut: UInt64
}

/// Limits entries a second for each identity, or address where there is none. A stranger may have many addresses, so
/// all strangers together have a limit, too.
struct AuditTrail {
  /// An identity, or an address, which has no role. Compared in full, so that nobody can use up the limit of another.
  private struct Key: Hashable {
    let role: UInt8?
    let text: InlineText
  }

  private var second: Int64 = .min
  private var counts: [Key: Int] = [:]
  /// This second's entries without an accepted credential.
  private var strangers = 0
  /// Entries left out since the last one that was written.
  private var leftOut: UInt64 = 0

  /// The entry to write; nil where nothing can be stored, or at a limit of the identity, address or second. O(1).
  mutating func admit(_ entry: AuditEntry, isStorable: Bool = true, at now: Moment) -> DurableAudit? {
    let second = now.uptime / 1_000_000_000
    if second != self.second {
      self.second = second
      counts.removeAll(keepingCapacity: true)
      strangers = 0
    }
    let source = entry.source
    let key = Key(role: source.actor?.role.rawValue, text: source.actor?.id.text ?? source.address)
    let count = counts[key, default: 0]
    let isStranger = source.actor == nil && entry.target == nil
    guard isStorable, count < HubLimits.auditEntriesPerSecond, count > 0 || counts.count < HubLimits.auditedPerSecond,
      !isStranger || strangers < HubLimits.auditedStrangersPerSecond
    else {
      leftOut += 1
      return nil
    }
    if isStranger { strangers += 1 }
    counts[key] = count + 1
    defer { leftOut = 0 }
    return DurableAudit(entry: entry, time: now.timestamp, leftOut: leftOut)
  }
}
