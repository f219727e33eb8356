// Reads the journal for the queue of one webhook: the next event behind the cursor, and the next one of a channel
// before it.
//
// The cursor's scan reads forwards once. Events that are skipped because their channel is busy are remembered by their
// positions, up to `rememberedEvents`; beyond that, and after a restart, the journal is read again for all channels
// behind the cursor. That may be days of journal, so it continues turn by turn, beside the scan.
import HubCore
import HubJournal
import HubMessages

/// An event of the journal: where it is stored, and when it was published.
struct FoundEvent: Sendable, Equatable {
  var position: JournalPosition
  var group: GroupPosition
  var published: Timestamp
}

final class EventReader {
  /// The result of a scan behind the cursor.
  enum Scan {
    case event(Channel, FoundEvent)
    /// None before this position, where the journal ends for now, or the budget did.
    case none(through: JournalPosition, isAtEnd: Bool)
  }

  /// The result of a look for an event before the cursor.
  enum Look: Equatable {
    case event(FoundEvent)
    case none
    /// It is not known yet: the look continues when it is asked for again in another turn.
    case notYet
  }

  struct Passed {
    var events: ArraySlice<FoundEvent> = []
    /// The group of the last event that was delivered or is being delivered: the next one is there or behind it.
    var group: GroupPosition?
    /// Whether `events` has all of the channel's skipped events before the cursor.
    var isComplete: Bool
  }

  private let filter: EventFilter
  private let ahead: JournalTail
  /// Reads skipped events again, before the cursor.
  private let behind: JournalTail
  /// Reads the content of an event that is delivered.
  private let lastGroup: LastGroup
  /// Events of the group that was read last.
  private var found: ArraySlice<(channel: Channel, event: FoundEvent)> = []
  /// What is remembered of each channel behind the cursor.
  private(set) var passed: [Channel: Passed] = [:]
  private(set) var remembered = 0
  /// The recall in progress: the channels that want events, and from which position on; nil without one.
  private var recalled: [Channel: JournalPosition]?
  private var missed = RangeSet<UInt64>()
  private let turnBytes: Int
  /// The bytes that may be read in this turn, ahead of the cursor and behind it.
  private var bytesAhead = 0
  private var bytesBehind = 0

  /// Begins at `cursor`. Both tails are of one journal and used only here. It reads `turnBytes` in a turn, or a group
  /// more, ahead of the cursor, and as many behind it.
  init(
    _ filter: EventFilter, ahead: JournalTail, behind: JournalTail, cursor: JournalPosition,
    lastGroup: LastGroup = LastGroup(), turnBytes: Int = scanBytes
  ) {
    self.filter = filter
    self.ahead = ahead
    self.behind = behind
    self.lastGroup = lastGroup
    self.turnBytes = turnBytes
    ahead.seek(to: cursor.group)
    beginTurn()
  }

  /// Renews the budget in a new turn.
  func beginTurn() { (bytesAhead, bytesBehind) = (turnBytes, turnBytes) }

  /// `scan` reads nothing more in this turn.
  var isSpent: Bool { bytesAhead <= 0 }

  /// Groups that retention deleted before they were read, or that are damaged, ahead of the cursor or behind it.
  var missedGroups: UInt64 { missed.ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) } }
  /// Increases with each damage that is met, also with one that was met before.
  var damagedGroups: UInt64 { ahead.damagedGroups + behind.damagedGroups }

  /// The first event at or behind the cursor, in groups up to `last`.
  func scan(from cursor: JournalPosition, through last: UInt64) throws(JournalError) -> Scan {
    while found.isEmpty, !isSpent {
      let sought = ahead.next
      let isMore = try unsafe ahead.read(through: last) { group, payload in
        missed.insert(contentsOf: sought..<group.number)
        bytesAhead -= payload.count
        unsafe forEachEvent(in: payload, group) { channel, event in
          if event.position >= cursor { found.append((channel, event)) }
        }
      }
      guard isMore else { return .none(through: max(cursor, end), isAtEnd: true) }
    }
    guard let (channel, event) = found.popFirst() else {
      return .none(through: max(cursor, end), isAtEnd: false)
    }
    return .event(channel, event)
  }

  private var end: JournalPosition { JournalPosition(group: ahead.next, record: 0) }

  /// Notes an event of `scan`: `opensLane` where its channel was not behind the cursor.
  func note(_ channel: Channel, _ event: FoundEvent, opensLane: Bool) {
    if opensLane {
      recalled?[channel] = nil
      passed[channel] = Passed(group: event.group, isComplete: true)
    } else if passed[channel]?.isComplete == true {
      guard remembered < Self.rememberedEvents else {
        passed[channel]?.isComplete = false
        return
      }
      passed[channel]?.events.append(event)
      remembered += 1
    }
  }

  /// The channel is not behind the cursor any more.
  func forget(_ channel: Channel) {
    recalled?[channel] = nil
    remembered -= passed.removeValue(forKey: channel)?.events.count ?? 0
  }

  /// The first event of a channel in `range`, whose end is the cursor. `lanes` are all channels behind it.
  func look(
    for channel: Channel, in range: Range<JournalPosition>, _ lanes: [DeliveryProgress.Lane]
  ) throws(JournalError) -> Look {
    while true {
      if let event = takePassed(channel, from: range.lowerBound) { return .event(event) }
      guard passed[channel]?.isComplete != true else {
        passed[channel] = nil
        return .none
      }
      // A recall in progress may be for other channels only: then another one follows.
      guard try recall(lanes, before: range.upperBound) else { return .notYet }
    }
  }

  private func takePassed(_ channel: Channel, from position: JournalPosition) -> FoundEvent? {
    while let event = passed[channel]?.events.popFirst() {
      remembered -= 1
      passed[channel]?.group = event.group
      if event.position >= position { return event }
    }
    return nil
  }

  /// Reads again between the lanes and the cursor, for all channels with unknown events, or continues that. Each gets
  /// at least one event, and it ends when no channel wants more. False where the turn's bytes end before the cursor.
  private func recall(_ lanes: [DeliveryProgress.Lane], before cursor: JournalPosition) throws(JournalError) -> Bool {
    if recalled == nil { beginRecall(lanes) }
    // The cursor's own group is read last, at once: what comes behind the cursor is for `note`.
    while recalled?.isEmpty == false, behind.next <= cursor.group {
      guard bytesBehind > 0 else { return false }
      let sought = behind.next
      let isMore = try unsafe behind.read(through: cursor.group) { group, payload in
        missed.insert(contentsOf: sought..<group.number)
        bytesBehind -= payload.count
        unsafe forEachEvent(in: payload, group) { channel, event in
          if event.position < cursor { remember(channel, event) }
        }
      }
      guard isMore else {
        missed.insert(contentsOf: behind.next..<cursor.group)
        break
      }
    }
    for channel in (recalled ?? [:]).keys { passed[channel]?.isComplete = true }
    recalled = nil
    return true
  }

  private func beginRecall(_ lanes: [DeliveryProgress.Lane]) {
    var starts: [Channel: JournalPosition] = [:]
    for lane in lanes where passed[lane.channel].map({ !$0.isComplete && $0.events.isEmpty }) ?? true {
      starts[lane.channel] = lane.position
      passed[lane.channel] = Passed(group: passed[lane.channel]?.group, isComplete: false)
    }
    recalled = starts
    guard let first = starts.min(by: { $0.value < $1.value }) else { return }
    // After a restart no group is known: then its segment is walked through.
    if let group = passed[first.key]?.group { behind.seek(to: group) } else { behind.seek(to: first.value.group) }
  }

  private func remember(_ channel: Channel, _ event: FoundEvent) {
    guard let start = recalled?[channel], event.position >= start else { return }
    if remembered >= Self.rememberedEvents, passed[channel]?.events.isEmpty == false {
      recalled?[channel] = nil
    } else {
      passed[channel]?.events.append(event)
      remembered += 1
    }
  }

  private func forEachEvent(
    in payload: UnsafeRawBufferPointer, _ group: GroupPosition, _ body: (Channel, FoundEvent) -> Void
  ) {
    unsafe StoredEvents.forEach(in: payload) { event, offset in
      if filter.matches(event) {
        let position = JournalPosition(group: group.number, record: UInt32(offset))
        body(event.channel, FoundEvent(position: position, group: group, published: event.timestamp))
      }
      return true
    }
  }

  /// The content of an event; nil where the journal does not have it any more.
  func publication(of event: FoundEvent) throws(JournalError) -> Publication? {
    let found = try unsafe lastGroup.withGroup(at: event.group, of: behind) { payload in
      unsafe StoredEvents.event(in: payload, at: Int(event.position.record))
    }
    return found ?? nil
  }
}
