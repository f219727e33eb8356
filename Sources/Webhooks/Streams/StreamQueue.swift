// What a stream sends when, as a state machine: no I/O, no clock.
//
// Events wait in a window in the order of the journal. The cursor stands at the first one that is not stored at the
// server, and behind it the journal is read again after a restart. Of one source one event is under way at a time, or,
// where the server takes batches, one batch: so an event that is refused can't come behind its successor.
//
// A connection that ends costs nothing but the way: what was under way is sent again at once, and the server or the
// receiver drops what it has. What the server *refuses* is tried again by the schedule of webhooks, and becomes a dead
// letter in the end; until then nothing else is sent. What was sent together with it may be stored behind it: that is
// remembered by channel, also on the disk, for the server's own memory of ids need not last as long as a refusal.
import HubMessages

struct StreamQueue {
  /// How events go out.
  enum Mode: Sendable, Equatable {
    /// Each by itself, up to `maximumUnderWay`.
    case single
    /// All that wait together, as soon as the batch before is answered; a batch that is not full waits so many
    /// nanoseconds for more.
    case batches(delay: Int64)
  }

  private struct Entry {
    let message: StreamMessage
    var state = State.waiting
    /// When it came into the window (uptime, ns).
    let added: Int64
    let published: Timestamp
    var firstRefusal: Timestamp?

    enum State { case waiting, underWay, through }

    /// The server did not take it, and has not taken it since.
    var isRefused: Bool { state != .through && firstRefusal != nil }
  }

  private let mode: Mode
  private let giveUpAfterSeconds: Double
  private var window: [Entry] = []
  /// Channels of which all events before a place are through, though the cursor is not there.
  private var passed: [Channel: JournalPosition] = [:]
  private var bytes = 0
  /// Up to where the journal was looked at.
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
    for lane in progress.lanes { passed[lane.channel] = lane.place }
  }

  /// All events before this place are stored at the server, or given up.
  var cursor: JournalPosition { window.first?.message.place ?? scanned }

  var progress: DeliveryProgress {
    DeliveryProgress(
      cursor: cursor,
      lanes: passed.sorted { $0.value < $1.value }.map {
        .init(channel: $0.key, place: $0.value, failures: 0, firstTry: nil)
      },
      isEnabled: isEnabled)
  }

  /// Whether another event is wanted of the journal.
  var hasRoom: Bool { isEnabled && window.count < Self.maximumUnderWay && bytes < Self.windowBytes }

  /// When the oldest event in the window was published.
  var oldest: Timestamp? { window.first?.published }

  // MARK: In

  /// The next event of the journal.
  /// - Precondition: it stands behind all others.
  mutating func append(_ message: StreamMessage, published: Timestamp, _ now: Moment) {
    precondition(message.place >= scanned)
    window.append(Entry(message: message, added: now.uptime, published: published))
    bytes += message.size
    scanned = message.place.next
    guard let end = passed[message.channel], message.place < end else { return }
    window[window.count - 1].state = .through
    close()
  }

  /// There is no event before this place that is not in the window.
  mutating func scanned(through place: JournalPosition) { scanned = max(scanned, place) }

  // MARK: Out

  /// Whether events wait that may be sent now, as far as the server's answers do not keep them back.
  func isDue(_ now: Moment) -> Bool {
    guard isEnabled, heldUntil <= now.uptime, let first = window.first else { return false }
    return switch mode {
    case .single: true
    case .batches(let delay): underWay == 0 && (!hasRoom || first.added + delay <= now.uptime)
    }
  }

  /// What is to be sent now; it counts as under way.
  mutating func takeDue(_ now: Moment) -> [StreamMessage] {
    guard isDue(now) else { return [] }
    var due: [StreamMessage] = []
    switch mode {
    case .single:
      let onlyRefused = hasRefused
      var busy: Set<String> = []
      for index in window.indices where window[index].state != .through {
        // The first of a source that is not through keeps the later ones back, and one that was refused all others.
        guard busy.insert(window[index].message.source).inserted else { continue }
        if !onlyRefused || window[index].isRefused { take(index, &due) }
      }
    case .batches:
      for index in window.indices { take(index, &due) }
    }
    return due
  }

  private mutating func take(_ index: Int, _ due: inout [StreamMessage]) {
    guard window[index].state == .waiting else { return }
    window[index].state = .underWay
    underWay += 1
    due.append(window[index].message)
  }

  /// When `takeDue` may have something that it has not now (uptime, ns); what answers bring is not in it.
  var nextTime: Int64 {
    guard isEnabled, let first = window.first else { return .max }
    return switch mode {
    case .single: heldUntil == .min ? .max : heldUntil
    case .batches(let delay): underWay > 0 ? .max : max(heldUntil, first.added + delay)
    }
  }

  // MARK: Answers

  /// The server has stored these; a place that is not under way is passed over.
  mutating func stored(_ places: [JournalPosition]) {
    for place in places { if let index = index(of: place) { through(index) } }
    if !hasRefused { (failures, heldUntil) = (0, .min) }
    close()
  }

  /// An event waits that the server refused, and all others with it.
  var hasRefused: Bool { window.contains(where: \.isRefused) }

  /// The server does not take these. Returns those that are given up. `unit` is chance: uniform, 0 ≤ unit < 1.
  mutating func refused(
    _ places: [JournalPosition], retryAfterSeconds: Double?, _ now: Moment, unit: Double
  ) -> [StreamMessage] {
    if heldUntil <= now.uptime {  // what was refused together is one failure
      failures += 1
      heldUntil =
        now.uptime + RetrySchedule.delay(afterFailures: failures, retryAfterSeconds: retryAfterSeconds, unit: unit)
    }
    var dead: [StreamMessage] = []
    for index in places.compactMap({ index(of: $0) }) {
      underWay -= 1
      window[index].state = .waiting
      let first = window[index].firstRefusal ?? now.timestamp
      window[index].firstRefusal = first
      if now.timestamp.seconds(since: first) >= giveUpAfterSeconds {
        dead.append(window[index].message)
        window[index].state = .through
      }
    }
    if !dead.isEmpty {  // the next event need not be like this one: it waits as long as the server asked for
      (failures, heldUntil) = (0, now.uptime + Int64(RetrySchedule.wait(retryAfterSeconds) * 1e9))
    }
    close()
    return dead
  }

  /// This one can never be stored.
  mutating func giveUp(_ place: JournalPosition) -> StreamMessage? {
    guard let index = index(of: place) else { return nil }
    let message = window[index].message
    through(index)
    close()
    return message
  }

  /// The connection ended: nobody knows what became of what was under way, and it is sent again.
  mutating func lost() {
    for index in window.indices where window[index].state == .underWay { window[index].state = .waiting }
    underWay = 0
  }

  /// The receiver wants no more.
  mutating func disable() {
    isEnabled = false
    lost()
  }

  private func index(of place: JournalPosition) -> Int? {
    window.firstIndex { $0.message.place == place && $0.state == .underWay }
  }

  private mutating func through(_ index: Int) {
    window[index].state = .through
    underWay -= 1
  }

  private mutating func close() {
    let count = window.prefix { $0.state == .through }.count
    bytes -= window[..<count].reduce(0) { $0 + $1.message.size }
    window.removeFirst(count)
    if hasRefused { notePassed() }
    if !passed.isEmpty { passed = passed.filter { $0.value > cursor } }
  }

  private mutating func notePassed() {
    var behind: Set<Channel> = []
    for entry in window {
      if entry.state != .through {
        behind.insert(entry.message.channel)
      } else if !behind.contains(entry.message.channel) {
        passed[entry.message.channel] = entry.message.place.next
      }
    }
  }
}
