// What a stream sends when, as a state machine: no I/O, no clock.
//
// Events wait in a window in the order of the journal. The cursor is at the first one that is not stored at the server;
// a restart reads the journal from there. Of one source one event, or one batch, is unanswered at a time, so a refused
// event can't be overtaken by its successor.
//
// When a connection ends, unanswered events are sent again at once, and the server or the receiver drops duplicates.
// Events that the server *refuses* are retried by the schedule of webhooks, and become dead letters in the end; until
// then nothing else is sent. Events sent together with a refused one may be stored behind it: that is remembered by
// channel, also on disk, since the server's own memory of ids may be shorter than a refusal. The time of the first
// refusal is stored as well: streams are opened anew at each SIGHUP, and one event must not stop one for ever.
import HubMessages

struct StreamQueue {
  /// How events are sent.
  enum Mode: Sendable, Equatable {
    /// Each event is sent on its own, with up to `maximumUnderWay` unanswered.
    case single
    /// All waiting events together, as soon as the batch before is answered; a batch that is not full waits so many
    /// nanoseconds for more.
    case batches(delay: Int64)
  }

  private struct Entry {
    let message: StreamMessage
    var state = State.waiting
    /// When it was added to the window (uptime, ns).
    let added: Int64
    let published: Timestamp
    var firstRefusal: FirstRefusal?

    enum State: Equatable {
      case waiting
      /// It was sent at this uptime (ns).
      case underWay(since: Int64)
      case finished
    }

    var sent: Int64? { if case .underWay(let since) = state { since } else { nil } }
    /// The server refused it, and has not accepted it since.
    var isRefused: Bool { state != .finished && firstRefusal != nil }
  }

  private struct FirstRefusal {
    let time: Timestamp
    /// Its uptime (ns); nil if it was before the stream was opened.
    let uptime: Int64?
  }

  /// Refused events of a channel, as stored, that are not in the window yet.
  private struct Stored {
    /// The position of the first; nil for those behind it on its channel.
    let first: JournalPosition?
    let count: Int
    let firstRefusal: Timestamp
  }

  private let mode: Mode
  private let giveUpAfterSeconds: Double
  private var window: [Entry] = []
  /// The channels that are ahead of the cursor, each with the position before which all its events are done.
  private var passed: [Channel: JournalPosition] = [:]
  private var unread: [Channel: Stored] = [:]
  private var bytes = 0
  /// The position up to which the journal was read.
  private var scanned: JournalPosition
  private var failures = 0
  /// Nothing is sent before this uptime.
  private(set) var heldUntil = Int64.min
  private(set) var isEnabled: Bool
  private(set) var underWay = 0

  init(_ mode: Mode, giveUpAfterSeconds: Double, from progress: DeliveryProgress) {
    self.mode = mode
    self.giveUpAfterSeconds = giveUpAfterSeconds
    scanned = progress.cursor
    isEnabled = progress.isEnabled
    for lane in progress.lanes {
      passed[lane.channel] = lane.position
      guard let time = lane.firstTry else { continue }
      unread[lane.channel] = Stored(first: lane.position, count: lane.failures, firstRefusal: time)
    }
  }

  /// All events before this position are stored at the server, or given up.
  var cursor: JournalPosition { window.first?.message.position ?? scanned }

  var progress: DeliveryProgress {
    var lanes = refusedLanes
    for (channel, position) in passed where lanes[channel] == nil {
      lanes[channel] = .init(channel: channel, position: position, failures: 0, firstTry: nil)
    }
    return DeliveryProgress(
      cursor: cursor, lanes: lanes.values.sorted { $0.position < $1.position }, isEnabled: isEnabled)
  }

  /// The channels whose first unfinished event was refused: its position, and how many events of the channel were first
  /// refused together with it.
  private var refusedLanes: [Channel: DeliveryProgress.Lane] {
    var lanes: [Channel: DeliveryProgress.Lane] = [:]
    for (channel, stored) in unread {
      guard let first = stored.first, first >= scanned else { continue }
      lanes[channel] = .init(
        channel: channel, position: first, failures: stored.count, firstTry: stored.firstRefusal)
    }
    guard hasRefused else { return lanes }
    var seen: Set<Channel> = []
    for entry in window where entry.state != .finished {
      let (channel, time) = (entry.message.channel, entry.firstRefusal?.time)
      if seen.insert(channel).inserted {
        lanes[channel] = time.map {
          .init(
            channel: channel, position: entry.message.position, failures: 1 + (unread[channel]?.count ?? 0),
            firstTry: $0)
        }
      } else if let first = lanes[channel]?.firstTry, first == time {
        lanes[channel]?.failures += 1
      }
    }
    return lanes
  }

  /// Whether the window has room for another event. A disabled stream fills it as well, so that the age of what waits
  /// is known.
  var hasRoom: Bool { window.count < Self.maximumUnderWay && bytes < Self.windowBytes }

  /// When the oldest event in the window was published.
  var oldest: Timestamp? { window.first?.published }

  /// Since when the server owes the answer that has been due longest (uptime, ns).
  var unansweredSince: Int64? { window.lazy.compactMap(\.sent).min() }

  // MARK: In

  /// Adds the next event of the journal.
  /// - Precondition: it is behind all others.
  mutating func append(_ message: StreamMessage, published: Timestamp, _ now: Moment) {
    precondition(message.position >= scanned)
    window.append(
      Entry(message: message, added: now.uptime, published: published, firstRefusal: takeFirstRefusal(of: message)))
    bytes += message.size
    scanned = message.position.next
    guard let end = passed[message.channel], message.position < end else { return }
    window[window.count - 1].state = .finished
    close()
  }

  /// The stored time of an event's first refusal.
  private mutating func takeFirstRefusal(of message: StreamMessage) -> FirstRefusal? {
    guard let stored = unread[message.channel] else { return nil }
    let first = stored.first ?? message.position
    guard message.position >= first else { return nil }
    // An event behind the first: with changed settings the stream does not have that one any more.
    let isKnown = message.position == first
    unread[message.channel] =
      isKnown && stored.count > 1
      ? Stored(first: nil, count: stored.count - 1, firstRefusal: stored.firstRefusal) : nil
    return isKnown ? FirstRefusal(time: stored.firstRefusal, uptime: nil) : nil
  }

  /// All events before this position are in the window.
  mutating func scanned(through position: JournalPosition) { scanned = max(scanned, position) }

  // MARK: Out

  /// Whether events may be sent now, as far as the server's answers do not delay them.
  func isDue(_ now: Moment) -> Bool {
    guard isEnabled, heldUntil <= now.uptime, let first = window.first else { return false }
    return switch mode {
    case .single: true
    case .batches(let delay): underWay == 0 && (!hasRoom || first.added + delay <= now.uptime)
    }
  }

  /// The events to send now; they count as unanswered.
  mutating func takeDue(_ now: Moment) -> [StreamMessage] {
    guard isDue(now) else { return [] }
    var due: [StreamMessage] = []
    switch mode {
    case .single:
      let onlyRefused = hasRefused
      var busy: Set<String> = []
      for index in window.indices where window[index].state != .finished {
        // The first unfinished event of a source delays later ones, and a refused one all others.
        guard busy.insert(window[index].message.source).inserted else { continue }
        if !onlyRefused || window[index].isRefused { take(index, &due, now) }
      }
    case .batches:
      for index in window.indices { take(index, &due, now) }
    }
    return due
  }

  private mutating func take(_ index: Int, _ due: inout [StreamMessage], _ now: Moment) {
    guard window[index].state == .waiting else { return }
    window[index].state = .underWay(since: now.uptime)
    underWay += 1
    due.append(window[index].message)
  }

  /// When `takeDue` may have more to give, if no answer comes before (uptime, ns).
  var nextTime: Int64 {
    guard isEnabled, let first = window.first else { return .max }
    return switch mode {
    case .single: heldUntil == .min ? .max : heldUntil
    case .batches(let delay): underWay > 0 ? .max : max(heldUntil, first.added + delay)
    }
  }

  // MARK: Answers

  /// The server has stored these; other positions are ignored.
  mutating func stored(_ positions: [JournalPosition]) {
    for position in positions { if let index = index(of: position) { finish(index) } }
    if !hasRefused { (failures, heldUntil) = (0, .min) }
    close()
  }

  /// Whether an event that the server refused waits to be sent again; all others wait for it.
  var hasRefused: Bool { window.contains(where: \.isRefused) }

  /// The server refuses these. Gives those that are given up. `unit` is random: uniform, 0 ≤ unit < 1.
  mutating func refused(
    _ positions: [JournalPosition], retryAfterSeconds: Double?, _ now: Moment, unit: Double
  ) -> [StreamMessage] {
    if heldUntil <= now.uptime {  // those refused together are one failure
      failures += 1
      heldUntil =
        now.uptime + RetrySchedule.delay(afterFailures: failures, retryAfterSeconds: retryAfterSeconds, unit: unit)
    }
    var dead: [StreamMessage] = []
    for index in positions.compactMap({ index(of: $0) }) {
      underWay -= 1
      window[index].state = .waiting
      let first = window[index].firstRefusal ?? FirstRefusal(time: now.timestamp, uptime: now.uptime)
      window[index].firstRefusal = first
      if now.seconds(since: first.time, first.uptime) >= giveUpAfterSeconds {
        dead.append(window[index].message)
        window[index].state = .finished
      }
    }
    if !dead.isEmpty {  // the next event waits only as long as the server asked for
      (failures, heldUntil) = (0, now.uptime + nanoseconds(RetrySchedule.wait(retryAfterSeconds)))
    }
    close()
    return dead
  }

  /// Gives up an event that the server can never store; nil if it is not under way.
  mutating func giveUp(_ position: JournalPosition) -> StreamMessage? {
    guard let index = index(of: position) else { return nil }
    let message = window[index].message
    finish(index)
    close()
    return message
  }

  /// The connection ended: the outcome of unanswered events is unknown, and they are sent again.
  mutating func lost() {
    for index in window.indices where window[index].sent != nil { window[index].state = .waiting }
    underWay = 0
  }

  /// The receiver wants no more events.
  mutating func disable() {
    isEnabled = false
    lost()
  }

  private func index(of position: JournalPosition) -> Int? {
    window.firstIndex { $0.message.position == position && $0.sent != nil }
  }

  private mutating func finish(_ index: Int) {
    window[index].state = .finished
    underWay -= 1
  }

  private mutating func close() {
    let count = window.prefix { $0.state == .finished }.count
    bytes -= window[..<count].reduce(0) { $0 + $1.message.size }
    window.removeFirst(count)
    if hasRefused { notePassed() }
    if !passed.isEmpty { passed = passed.filter { $0.value > cursor } }
  }

  private mutating func notePassed() {
    var behind: Set<Channel> = []
    for entry in window {
      if entry.state != .finished {
        behind.insert(entry.message.channel)
      } else if !behind.contains(entry.message.channel) {
        passed[entry.message.channel] = entry.message.position.next
      }
    }
  }
}
