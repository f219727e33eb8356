// When tokens and revocations end. Each expiry is recorded, since snapshots are written by a hub that only reads
// records. Where nothing can be stored, the entry is checked again later.
import HubMessages

extension Credentials {
  /// Begins the grace in which the previous token gets the newest one's answer. Its end is recorded: so after a restart
  /// a token whose answer may have been lost is distinguished from one used long ago.
  mutating func beginGrace(of index: Int, at now: Moment, _ deadlines: inout Deadlines) {
    families[index].graceEnds = now.uptime + HubLimits.refreshGrace
    guard !families[index].hasGrace else { return }
    families[index].hasGrace = true
    deadlines.arm(.tokenGrace, families.handle(of: index), at: families[index].graceEnds)
  }

  /// Checks a family or a revocation at its deadline.
  mutating func check(
    _ entry: Deadlines.Entry, at now: Moment, _ storage: inout HubStorage, _ deadlines: inout Deadlines
  ) {
    switch entry.kind {
    case .tokenFamily: checkFamily(entry.handle, at: now, &storage, &deadlines)
    case .tokenGrace: checkGrace(entry.handle, at: now, &storage, &deadlines)
    case .revocation: checkRevocation(entry.handle, at: now, &storage, &deadlines)
    case .driverStaleness, .lateOffline, .driverAbsence, .driverRetention, .replacedSession, .tripSilence, .trip,
      .offers:
      preconditionFailure("another domain's deadline")
    }
  }

  /// Checks whether the grace of a family's previous token is over.
  private mutating func checkGrace(
    _ handle: Handle, at now: Moment, _ storage: inout HubStorage, _ deadlines: inout Deadlines
  ) {
    guard let index = families.current(handle) else { return }
    let ticket = families[index].ticket
    let isAnswered = ticket <= storage.storedThrough && !(ticket > 0 && storage.unanswered.contains(ticket))
    guard families[index].graceEnds <= now.uptime, isAnswered, storage.hasRoom else {
      let ends = families[index].graceEnds
      return deadlines.arm(.tokenGrace, handle, at: ends > now.uptime ? ends : now.uptime + HubLimits.refreshGrace)
    }
    families[index].hasGrace = false
    storage.write(.tokensSettled(families[index].id))
  }

  /// Checks whether a family has expired.
  private mutating func checkFamily(
    _ handle: Handle, at now: Moment, _ storage: inout HubStorage, _ deadlines: inout Deadlines
  ) {
    guard let index = families.current(handle) else { return }
    let ends = families[index].refreshEnds
    if ends <= now.timestamp, storage.hasRoom { return forget(family: index, &storage) }
    deadlines.arm(.tokenFamily, handle, at: ends > now.timestamp ? now.look(at: ends) : now.uptime + Moment.longestLook)
  }

  mutating func forget(family index: Int, _ storage: inout HubStorage) {
    storage.write(.tokenFamilyEnded(families[index].id))
    remove(family: index)
  }

  /// Checks whether a revocation has expired by both clocks.
  private mutating func checkRevocation(
    _ handle: Handle, at now: Moment, _ storage: inout HubStorage, _ deadlines: inout Deadlines
  ) {
    guard let index = revocations.current(handle) else { return }
    revocations[index].isArmed = false
    if let until = revocations[index].revocation.inForceUntil, until <= now.timestamp,
      revocations[index].holdsUntil <= now.uptime
    {
      if storage.hasRoom {
        storage.write(.unrevoked(revocations[index].revocation.name))
        return remove(revocation: index)
      }
      revocations[index].holdsUntil = now.uptime + Moment.longestLook
    }
    arm(index, at: now, &deadlines)
  }
}

extension Moment {
  /// The uptime (ns) of the check of an entry that ends at `time` by the wall clock: within an hour, so that an entry
  /// that is removed early leaves its deadline behind for no longer than that.
  func look(at time: Timestamp) -> Int64 {
    let ahead = min(max(0, time.milliseconds - timestamp.milliseconds), HubLimits.longestLookMilliseconds)
    return uptime + ahead * 1_000_000
  }

  /// In nanoseconds.
  static var longestLook: Int64 { HubLimits.longestLookMilliseconds * 1_000_000 }
}
