// A driver's sessions. The newest one is current; the older one is closed as replaced (4409).
//
// Where both belong to one client (same credential, same address), the older one is closed only after
// `HubTimings.takeover`. Some clients open a second connection by a timer and reconnect after a 4409, too: closed at
// once, such a client would replace its own sessions forever and be refused with 409. Meanwhile it may close one of the
// two itself; if it closes the newer one, the older one is current again.
//
// A client that reconnects within `HubTimings.replacementWindow` of a 4409 does not understand that code. Its older
// sessions are closed with 1000, after which every client stays away.
import HubMessages

/// Counts recent replacements of a driver's session, so that a driver app that runs twice does not replace itself
/// forever.
struct ReplacementWindow {
  private var times: [Int64] = []
  private var refusedUntil = Int64.min

  /// The seconds for which a new session is refused; nil when it may replace the old one, which is counted.
  mutating func replace(at uptime: Int64, timings: HubTimings) -> Double? {
    if uptime < refusedUntil { return Double(refusedUntil - uptime) / 1e9 }
    times.removeAll { $0 <= uptime - nanoseconds(timings.replacementWindow) }
    if times.count >= timings.replacements {
      refusedUntil = uptime + nanoseconds(timings.conflict)
      times.removeAll()
      return timings.conflict
    }
    times.append(uptime)
    return nil
  }
}

/// The older sessions of a driver whose client has connected again.
struct SessionOverlap {
  /// Oldest first, with the time from which each may be closed (uptime, ns). `isRepeated`: the newer session began soon
  /// after another one of the client was closed.
  var older: [(session: SessionRef, closesAt: Int64, isRepeated: Bool)] = []
  /// When one was closed last (uptime, ns).
  var lastClosed: Int64?

  /// Whether one was closed shortly before this time.
  func isRepeated(at uptime: Int64, _ timings: HubTimings) -> Bool {
    lastClosed.map { uptime < $0 + nanoseconds(timings.replacementWindow) } ?? false
  }
}

/// The outcome for a driver's older session when a newer one begins.
enum SessionTakeover {
  case none
  /// The newer one is refused for so many seconds.
  case refused(retryAfter: Double)
  /// The older one is closed at once.
  case replaces(SessionRef)
  /// The older one, of the same client, is closed at this time (uptime, ns) if both still exist.
  case overlaps(closesAt: Int64)
}

struct DriverSessions {
  /// By outlet and slot: the session's driver; −1 for none; below −1 (`cell(ofReplaced:)`) the driver of a session that
  /// was replaced but is not closed yet.
  private var drivers: [[Int32]]
  /// By outlet and slot: the client of that session (`HubInput.driverConnecting`).
  private var clients: [[UInt32]]
  /// By driver: older sessions of its client, while there are any and for a while after.
  private(set) var overlaps: [Int32: SessionOverlap] = [:]
  /// By driver: recent replacements of its session by another client's.
  private var replacements: [Int32: ReplacementWindow] = [:]
  /// By driver: the client whose session was closed last for one at another hub, and when (uptime, ns).
  private var departures: [Int32: (client: UInt32, at: Int64)] = [:]

  init(outlets: Int) {
    drivers = Array(repeating: [], count: outlets)
    clients = Array(repeating: [], count: outlets)
  }

  private static func cell(ofReplaced driver: Int) -> Int32 { -2 - Int32(driver) }

  /// The driver of the session in this slot, which may be another session; negative for none.
  @inline(__always)
  func cell(_ session: SessionRef) -> Int {
    // Accessed in place: a local array would be retained and released.
    let (outlet, slot) = (Int(session.outlet), Int(session.slot))
    return slot < drivers[outlet].count ? Int(drivers[outlet][slot]) : -1
  }

  private mutating func set(_ session: SessionRef, _ cell: Int32) {
    drivers[Int(session.outlet)][Int(session.slot)] = cell
  }

  /// Decides and counts the outcome for the driver's present session, `old`, when a newer one of `client` (0: unknown)
  /// begins.
  mutating func takeOver(
    _ driver: Int, from old: SessionRef?, client: UInt32, at uptime: Int64, _ timings: HubTimings
  ) -> SessionTakeover {
    guard let old else { return .none }
    if client != 0, client == clients[Int(old.outlet)][Int(old.slot)] {
      let closesAt = uptime + nanoseconds(timings.takeover)
      set(old, Self.cell(ofReplaced: driver))
      var overlap = overlaps[Int32(driver)] ?? SessionOverlap()
      overlap.older.append((old, closesAt, overlap.isRepeated(at: uptime, timings)))
      overlaps[Int32(driver)] = overlap
      return .overlaps(closesAt: closesAt)
    }
    let wait = replacements[Int32(driver), default: ReplacementWindow()].replace(at: uptime, timings: timings)
    if let wait { return .refused(retryAfter: wait) }
    set(old, -1)
    return .replaces(old)
  }

  /// Makes the session the driver's current one.
  mutating func begin(_ session: SessionRef, driver: Int, client: UInt32) {
    let (outlet, slot) = (Int(session.outlet), Int(session.slot))
    if drivers[outlet].count <= slot {
      let missing = max(slot + 1 - drivers[outlet].count, drivers[outlet].count / 8)
      drivers[outlet].append(contentsOf: repeatElement(-1, count: missing))
      clients[outlet].append(contentsOf: repeatElement(0, count: missing))
    }
    drivers[outlet][slot] = Int32(driver)
    clients[outlet][slot] = client
  }

  /// Ends the driver's current session. Gives the older one that becomes current again, if there is one.
  mutating func end(_ session: SessionRef, driver: Int) -> SessionRef? {
    set(session, -1)
    guard let older = overlaps[Int32(driver)]?.older.popLast()?.session else { return nil }
    set(older, Int32(driver))
    return older
  }

  /// Notes that the driver's session is closed for one at another hub. True where its client has reconnected shortly
  /// after a session of it was closed for the same reason.
  mutating func leave(_ session: SessionRef, driver: Int, at uptime: Int64, _ timings: HubTimings) -> Bool {
    let client = clients[Int(session.outlet)][Int(session.slot)]
    guard client != 0, let last = departures.updateValue((client, uptime), forKey: Int32(driver)) else { return false }
    return last.client == client && uptime < last.at + nanoseconds(timings.replacementWindow)
  }

  // MARK: Older sessions

  /// The driver of a replaced session that is not closed yet.
  func driver(replacedFor session: SessionRef) -> Int? {
    let cell = cell(session)
    guard cell <= -2, let overlap = overlaps[Int32(-2 - cell)] else { return nil }
    return overlap.older.contains { $0.session == session } ? -2 - cell : nil
  }

  /// Removes a replaced session that has ended.
  mutating func forgetReplaced(_ session: SessionRef) {
    guard let driver = driver(replacedFor: session) else { return }
    set(session, -1)
    overlaps[Int32(driver)]?.older.removeAll { $0.session == session }
  }

  /// The driver's older sessions that are due to be closed, and whether each one's client has come again after it was
  /// replaced. Drops expired notes of replacements.
  mutating func takeReplaced(of driver: Int, at uptime: Int64, _ timings: HubTimings)
    -> [(session: SessionRef, isRepeated: Bool)]
  {
    guard var overlap = overlaps[Int32(driver)] else { return [] }
    var replaced: [(session: SessionRef, isRepeated: Bool)] = []
    while let older = overlap.older.first, older.closesAt <= uptime {
      overlap.older.removeFirst()
      set(older.session, -1)
      replaced.append((older.session, older.isRepeated))
      overlap.lastClosed = uptime
    }
    let isOver = overlap.older.isEmpty && !overlap.isRepeated(at: uptime, timings)
    overlaps[Int32(driver)] = isOver ? nil : overlap
    return replaced
  }

  /// Removes all notes about a driver that is forgotten.
  mutating func forget(_ driver: Int) {
    overlaps[Int32(driver)] = nil
    replacements[Int32(driver)] = nil
    departures[Int32(driver)] = nil
  }
}
