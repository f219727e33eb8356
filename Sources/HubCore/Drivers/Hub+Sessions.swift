// A driver's sessions. The newest one speaks for the driver; the older one is told that it was replaced (4409).
//
// Where both belong to one client (same credential, same address), the older one is told only after
// `HubTimings.takeover`. Clients exist that open a new connection at once and a second one by a timer, and that connect
// again after a 4409, too: told at once, such a client would replace its own sessions without end and be refused with
// 409. In the meantime it may close one of the two itself; if it closes the newer one, the older one speaks for the
// driver again.
//
// A client that comes again within `HubTimings.replacementWindow` of a 4409 does not understand that code. Its older
// sessions are closed with 1000, which means the same to everybody: do not connect again.
import HubMessages

/// The older sessions of a driver whose client has connected again.
struct SessionOverlap {
  /// Oldest first, with the time from which each may be told (uptime, ns).
  var older: [(session: SessionRef, tellsAt: Int64)] = []
  /// When one was told last (uptime, ns).
  var told: Int64?
}

extension Hub {
  /// In `sessions`, the cell of a session that was replaced and not told yet.
  private static func cell(ofReplaced driver: Int) -> Int32 { -2 - Int32(driver) }

  /// A driver's session begins; an older one of the same driver ends. `client` says whose it is; 0 for unknown.
  mutating func connect(_ session: SessionRef, _ id: Identifier, client: UInt32) {
    guard let driver = findOrInsertDriver(id) else { return emit(.full(session), to: session.loop) }
    if let old = drivers[driver].session {
      if client != 0, client == clients[Int(old.loop)][Int(old.slot)] {
        keepForNow(old, of: driver)
      } else {
        if let wait = drivers[driver].replacements.replace(at: now.uptime, timings: timings) {
          return emit(.conflict(session, retryAfter: wait), to: session.loop)
        }
        sessions[Int(old.loop)][Int(old.slot)] = -1
        emit(.replaced(old, isRepeated: false), to: old.loop)
      }
      counters.replacements += 1
    }
    drivers[driver].session = session
    drivers[driver].clock = SessionClock(inheriting: drivers[driver].clock.offsetMilliseconds)
    drivers[driver].sendingInterval = -1
    let (loop, slot) = (Int(session.loop), Int(session.slot))
    if sessions[loop].count <= slot {
      let missing = max(slot + 1 - sessions[loop].count, sessions[loop].count)
      sessions[loop].append(contentsOf: repeatElement(-1, count: missing))
      clients[loop].append(contentsOf: repeatElement(0, count: missing))
    }
    sessions[loop][slot] = Int32(driver)
    clients[loop][slot] = client
    emit(.admitted(session, beginSampling(driver)), to: session.loop)
  }

  mutating func disconnect(_ session: SessionRef) {
    guard let driver = driver(of: session) else { return forgetReplaced(session) }
    sessions[Int(session.loop)][Int(session.slot)] = -1
    if let older = overlaps[Int32(driver)]?.older.popLast()?.session {
      sessions[Int(older.loop)][Int(older.slot)] = Int32(driver)
      drivers[driver].session = older
      drivers[driver].clock = SessionClock(inheriting: drivers[driver].clock.offsetMilliseconds)
      return
    }
    drivers[driver].session = nil
    drivers[driver].disconnected = now.uptime
  }

  // MARK: Two sessions of one client

  private mutating func keepForNow(_ old: SessionRef, of driver: Int) {
    let tellsAt = now.uptime + nanoseconds(timings.takeover)
    sessions[Int(old.loop)][Int(old.slot)] = Self.cell(ofReplaced: driver)
    overlaps[Int32(driver), default: SessionOverlap()].older.append((old, tellsAt))
    armReplaced(driver, at: tellsAt)
  }

  private mutating func armReplaced(_ driver: Int, at uptime: Int64) {
    let handle = Handle(index: UInt32(driver), generation: drivers.generation(of: driver))
    deadlines.arm(.replacedSession, handle, at: uptime)
  }

  /// Tells the driver's older sessions whose time has come, and forgets that any were told once that is long ago.
  mutating func tellReplaced(_ driver: Int) {
    guard var overlap = overlaps[Int32(driver)] else { return }
    let window = nanoseconds(timings.replacementWindow)
    while let (session, tellsAt) = overlap.older.first, tellsAt <= now.uptime {
      overlap.older.removeFirst()
      sessions[Int(session.loop)][Int(session.slot)] = -1
      let isRepeated = overlap.told.map { now.uptime < $0 + window } ?? false
      emit(.replaced(session, isRepeated: isRepeated), to: session.loop)
      overlap.told = now.uptime
      armReplaced(driver, at: now.uptime + window)
    }
    let isOver = overlap.older.isEmpty && overlap.told.map { now.uptime >= $0 + window } ?? true
    overlaps[Int32(driver)] = isOver ? nil : overlap
  }

  /// Whether a newer session of its driver has taken over from this one, which has not been told yet.
  private func isReplaced(_ session: SessionRef) -> Bool { driver(replacedFor: session) != nil }

  private func driver(replacedFor session: SessionRef) -> Int? {
    let (loop, slot) = (Int(session.loop), Int(session.slot))
    guard slot < sessions[loop].count, sessions[loop][slot] <= -2 else { return nil }
    let driver = -2 - Int(sessions[loop][slot])
    let isThere = overlaps[Int32(driver)]?.older.contains { $0.session == session } ?? false
    return isThere ? driver : nil
  }

  private mutating func forgetReplaced(_ session: SessionRef) {
    guard let driver = driver(replacedFor: session) else { return }
    sessions[Int(session.loop)][Int(session.slot)] = -1
    overlaps[Int32(driver)]?.older.removeAll { $0.session == session }
  }

  /// What a session sends that does not speak for its driver any more: while it has not been told so, it hears that the
  /// driver's newer session is the one to send it on.
  mutating func refuseReplaced(_ session: SessionRef, _ messageID: MessageID) {
    guard isReplaced(session) else { return }
    refuse(
      session, messageID, .rateLimited, "a newer session of this driver has taken over: send it there",
      retryAfter: timings.takeover)
  }
}
