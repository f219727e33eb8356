// What a run of histories came across: a check that never meets what it checks for proves nothing.

/// What may happen in a history, and is counted.
public enum Reach: Int, Sendable, CaseIterable {
  // What clients heard.
  case events, fenceEvents, positions, acks, recovered, notRecovered, repeated, duplicates, postponed, absences
  // What broke, and what was done about it.
  case groups, kills, powerCuts, starts, full, refusedWhenFull, gone, stopped, spoiled, losses, lookups, snapshots
  case places, cuts, cutsInFrame, unnoticed, suspensions, slowClients
  // How connections ended that did not just break, by close code or status.
  case replaced, silentTooLong, slowConsumer, protocolError, tooLarge, tooManyBadMessages, overRate
  case requestRefused, requestTimedOut, driverConflict
  // What the gateway did on the way.
  case offers, offersWithdrawn, offersAccepted, offersDeclined
  case conflated, binarySessions, compressedSessions, fencesPut
}

/// How often.
public struct HistoryReach: Sendable, Equatable {
  private var counts = [Int](repeating: 0, count: Reach.allCases.count)

  public init() {}

  public subscript(reach: Reach) -> Int {
    get { counts[reach.rawValue] }
    set { counts[reach.rawValue] = newValue }
  }

  public static func += (sum: inout HistoryReach, more: HistoryReach) {
    for reach in Reach.allCases { sum[reach] += more[reach] }
  }
}
