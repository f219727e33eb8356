// The hub's counters. Each fix counts for one outcome; a held one that is confirmed then counts as accepted, too.

import HubMessages

/// The outcome of a phone app's request; all are answered with success.
public enum PhoneOutcome: UInt8, Sendable, CaseIterable {
  case accepted, duplicate, rejected
  /// A request without a position.
  case ignored

  /// Its label in metrics.
  public var name: StaticString {
    switch self {
    case .accepted: "accepted"
    case .duplicate: "duplicate"
    case .rejected: "rejected"
    case .ignored: "ignored"
    }
  }
}

/// The outcome of a request for tokens of the hub.
public enum TokenOutcome: UInt8, Sendable, CaseIterable {
  case issued, refreshed, refused

  /// Its label in metrics.
  public var name: StaticString {
    switch self {
    case .issued: "issued"
    case .refreshed: "refreshed"
    case .refused: "refused"
    }
  }

  /// Nil for an entry that requests none.
  init?(_ entry: AuditEntry) {
    switch (entry.source.action, entry.status < 400) {
    case (.issueTokens, true): self = .issued
    case (.refreshTokens, true): self = .refreshed
    case (.issueTokens, false), (.refreshTokens, false): self = .refused
    case (.listTokens, _), (.endTokens, _), (.revoke, _), (.listRevocations, _), (.unrevoke, _): return nil
    }
  }
}

/// Counts since the start of the process; tables' entries are as of the last turn.
public struct HubCounters: Sendable, Equatable {
  // Fixes, by their outcome.
  public var fixesReceived: UInt64 = 0
  public var fixesAccepted: UInt64 = 0
  public var fixesHistory: UInt64 = 0
  /// Fixes of `fixesHistory` that were not published because their driver's clock had been ahead and was corrected.
  public var fixesBehindClock: UInt64 = 0
  /// How often a changed clock was accepted.
  public var clocksBelieved: UInt64 = 0
  public var fixesDuplicate: UInt64 = 0
  public var fixesHeld: UInt64 = 0
  /// Held fixes that the next one confirmed; also counted as accepted.
  public var fixesReleased: UInt64 = 0
  /// By `Tracker.Refusal.rawValue`.
  public var fixesRefused = [UInt64](repeating: 0, count: Tracker.Refusal.allCases.count)
  /// Fixes with a speed that no vehicle has, which was ignored. Also counted elsewhere.
  public var speedsIgnored: UInt64 = 0
  /// Accepted fixes whose coordinate was not, by the reason's `Tracker.Refusal.rawValue`.
  public var fixesAbsorbed = [UInt64](repeating: 0, count: Tracker.Refusal.allCases.count)
  /// Elements of a batch that were no readable fix.
  public var fixesUnreadable: UInt64 = 0
  /// Fixes with a trip that the driver is not entitled to.
  public var fixesForbidden: UInt64 = 0
  /// Fixes that are to be sent again: their trip, or their batch, could not be stored now, or too much waited.
  public var fixesPutOff: UInt64 = 0
  /// Fixes of phone apps by `PhoneFormat.rawValue` and `PhoneOutcome.rawValue`.
  public private(set) var phoneFixes = [[UInt64]](
    repeating: [UInt64](repeating: 0, count: PhoneOutcome.allCases.count), count: PhoneFormat.allCases.count)
  /// Fixes from a session that is not the driver's current one.
  public var fixesOrphaned: UInt64 = 0

  /// driver_location publications: one for each accepted fix.
  public var positionsPublished: UInt64 = 0
  /// ETAs that were worth publishing, with or without subscribers.
  public var etaUpdates: UInt64 = 0
  /// Routes beyond the limit: their trips' ETAs are direct.
  public var routesNotFollowed: UInt64 = 0
  public var tripMoves: UInt64 = 0
  /// Moves and changes of trips that were refused (`ErrorReply.refusesMove`).
  public var tripMovesRefused: UInt64 = 0
  /// Changes of pickup, dropoff or route.
  public var tripChanges: UInt64 = 0
  /// Notifications that back ends and ops have posted.
  public var notificationsPosted: UInt64 = 0
  /// Ended offers, by `OfferOutcome.rawValue`; and trips that no driver has accepted.
  public var offers = [UInt64](repeating: 0, count: OfferOutcome.allCases.count)
  public var tripsUnserved: UInt64 = 0
  public var replacements: UInt64 = 0
  /// Sampling advice sent to drivers, by `SamplingReason.rawValue`.
  public var samplingAdvised = [UInt64](repeating: 0, count: SamplingReason.allCases.count)
  /// Refusals, or entries not kept, because a table was full, by `HubTable.rawValue`; and because one party had used
  /// its share, by `ShareLimit.rawValue`.
  public var tableLimitHits = [UInt64](repeating: 0, count: HubTable.allCases.count)
  public var shareLimitHits = [UInt64](repeating: 0, count: ShareLimit.allCases.count)
  /// Outputs that wait for the journal.
  public var heldForStorage = 0
  /// Requests refused because nothing could be stored; and attempts to publish `driver_offline` that failed for it.
  public var refusedForStorage: UInt64 = 0
  public var eventsNotStored: UInt64 = 0
  /// Fixes accepted, and published where live, while nothing could be stored. Also counted elsewhere.
  public var fixesNotStored: UInt64 = 0

  /// Events about fences, by `Notification.Kind.rawValue`: each once, on however many channels.
  public var fenceEvents = [UInt64](repeating: 0, count: Notification.Kind.allCases.count)
  /// Fences that fixes were compared with, because they cover a part of the fix's cell.
  public var fencesLookedAt: UInt64 = 0

  /// Questions for tokens, by `TokenOutcome.rawValue`.
  public private(set) var tokens = [UInt64](repeating: 0, count: TokenOutcome.allCases.count)
  /// Refresh tokens used a second time, whose families ended; and entries of the audit trail that were not written.
  public var tokensReused: UInt64 = 0
  public var auditLeftOut: UInt64 = 0

  /// Batches whose older fixes were looked up in the journal.
  public var lookups: UInt64 = 0

  /// Queries for drivers that were answered, that took more than one turn, and that were refused because too many were
  /// running.
  public var searches: UInt64 = 0
  public var searchesContinued: UInt64 = 0
  public var searchesRefused: UInt64 = 0

  // What tables know, set by `Hub.shownCounters` alone.
  /// Present entries, by `HubTable.rawValue`.
  public private(set) var tableEntries = [Int](repeating: 0, count: HubTable.allCases.count)
  public var driversOnline = 0
  /// Fixes in batches that wait for their turn or for the journal.
  public var fixesWaiting = 0
  /// Answers among the outputs that wait for the journal.
  public var answersHeld = 0
  public var eventsPublished: UInt64 = 0
  /// Publications handed to outlets: one for each channel and outlet with a subscriber.
  public var deliveries: UInt64 = 0

  public init() {}

  package mutating func set(_ table: HubTable, _ entries: Int) { tableEntries[Int(table.rawValue)] = entries }
  /// Present entries of a table, of counters that `Hub.shownCounters` gave.
  public func entries(_ table: HubTable) -> Int { tableEntries[Int(table.rawValue)] }
  mutating func count(full table: HubTable) { tableLimitHits[Int(table.rawValue)] += 1 }
  mutating func count(_ limit: ShareLimit) { shareLimitHits[Int(limit.rawValue)] += 1 }
  /// How often something was refused or evicted because this table was full.
  public func hits(_ table: HubTable) -> UInt64 { tableLimitHits[Int(table.rawValue)] }
  /// How often something was refused at this limit of one owner's share.
  public func hits(_ limit: ShareLimit) -> UInt64 { shareLimitHits[Int(limit.rawValue)] }
}

extension HubCounters {
  /// Counts an answered question about tokens.
  mutating func count(_ entry: AuditEntry) {
    if let outcome = TokenOutcome(entry) { tokens[Int(outcome.rawValue)] += 1 }
  }

  /// Counts a request of a phone app.
  mutating func count(_ phone: PhoneFormat, _ batch: Ack.Batch) {
    func add(_ count: Int, _ outcome: PhoneOutcome) {
      phoneFixes[Int(phone.rawValue)][Int(outcome.rawValue)] += UInt64(count)
    }
    add(batch.accepted, .accepted)
    add(batch.duplicates, .duplicate)
    add(batch.rejected.count, .rejected)
    if batch.accepted == 0, batch.duplicates == 0, batch.rejected.isEmpty { add(1, .ignored) }
  }
}
