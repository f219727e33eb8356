// Who did what about credentials, when, from where and with what outcome: entries of the journal, which nobody but
// `journal export --audit` reads.
public import HubBytes
import HubMessages

/// What is written down.
public enum AuditAction: UInt8, Sendable, CaseIterable {
  case issueTokens = 1
  case refreshTokens, listTokens, endTokens, revoke, listRevocations, unrevoke

  /// As `journal export` has it.
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

/// Who does something, and from where.
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
  /// Whose tokens, or which: a `sub` or a `jti`; nil where the request did not come to that.
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
  /// Entries between the one before and this that there was no room for (`AuditTrail`).
  var leftOut: UInt64
}

/// Bounds what is written: so many entries a second of one identity, and of one address where there is none. A stranger
/// may have any number of addresses, so all strangers together have a bound, too.
struct AuditTrail {
  /// An identity, or an address, which has no role. Compared whole: nobody can choose a name that uses up another's.
  private struct Key: Hashable {
    let role: UInt8?
    let text: InlineText
  }

  private var second: Int64 = .min
  private var counts: [Key: Int] = [:]
  /// Entries of this second about nobody: of whom no credential was accepted.
  private var strangers = 0
  /// Since the last one that was written.
  private var leftOut: UInt64 = 0

  /// The entry as it is to be written; nil where nothing can be stored, where this identity or address has enough of
  /// this second, or more of them came in it than are looked at. O(1).
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
