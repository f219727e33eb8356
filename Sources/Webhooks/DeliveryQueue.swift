// One webhook's progress through the journal, as a state machine: which event is sent when, and the consequences of the
// answer. It does no I/O and reads no clock.
//
// The journal is the queue. A cursor passes over it once. An event at the cursor opens a lane for its channel; later
// events of that channel are skipped, and looked up in the journal when the lane's event is done. So events of a
// channel arrive in order, one at a time, and a failing channel does not delay others. Memory has a position for each
// channel behind the cursor, and no event's content.
//
// After ten consecutive failures the receiver counts as down: one request at a time probes it, by RetrySchedule. It may
// be up and refuse some events only, so events that have not failed are sent first then, and looked for. Each success
// doubles the concurrency, each failure halves it, like TCP's slow start and multiplicative decrease (RFC 5681 §3.1): a
// receiver that returns is not flooded by the backlog.
import HubMessages

/// Decides for one webhook. Each call costs O(lanes) at most, of which there are `maximumLanes`.
struct DeliveryQueue: Sendable {
  /// The next action of its owner.
  enum Step: Sendable, Equatable {
    /// Send this event; then call `answered`.
    case deliver(PendingEvent)
    /// Look for the first event of the webhook's channels from here on; then call `scanned`.
    case scan(from: JournalPosition)
    /// Look for the first event of this channel in this range; then call `found`.
    case look(for: Channel, in: Range<JournalPosition>)
    /// Nothing to do before this uptime (ns), an answer, or a new event (`journalGrew`).
    case wait(until: Int64)
    /// Nothing to do before an answer or a new event.
    case idle
  }

  private struct Lane {
    var state: State
    /// The position of the channel's first unfinished event, or where the search for it begins.
    var position: JournalPosition
    var failures = 0
    var firstTry: Timestamp?
    /// The uptime of the first try (ns); nil if that was before the webhook was opened.
    var triedAt: Int64?
    /// There may be events of the channel between `position` and the cursor.
    var hasMore = true

    enum State {
      case due(at: Int64)
      case underWay
      /// The next event has to be looked up.
      case unknown
      /// The next event is being looked up, among those before this position.
      case asked(through: JournalPosition)
    }
  }

  private enum Scan { case possible, underWay, atEnd }

  private(set) var isEnabled: Bool
  /// All events before this position are delivered, given up, or in a lane.
  private(set) var cursor: JournalPosition
  private(set) var underWay = 0
  /// The present limit of concurrent requests: 1 to the rule's `concurrency`.
  private(set) var allowance = 1
  private var rule: WebhookRule
  private var lanes: [Channel: Lane] = [:]
  private var scan = Scan.possible
  private var failuresInRow = 0
  /// Failed requests that were sent alone, to probe the receiver.
  private var failedProbes = 0
  /// No request is sent before these uptimes: the next probe's, and that of the receiver's Retry-After.
  private var probesAt = Int64.min
  private var heldUntil = Int64.min

  /// Continues from stored progress. Unanswered events are sent again. Channels that are not behind the cursor have
  /// nothing to look up: they are left out, and the scan finds their events.
  init(_ rule: WebhookRule, from progress: DeliveryProgress) {
    self.rule = rule
    cursor = progress.cursor
    isEnabled = progress.isEnabled
    for lane in progress.lanes where lane.position < progress.cursor {
      lanes[lane.channel] = Lane(
        state: .unknown, position: lane.position, failures: lane.failures, firstTry: lane.firstTry)
    }
  }

  /// Channels that are behind the cursor.
  var laneCount: Int { lanes.count }
  /// Whether one request at a time is sent, since the receiver seems to be down.
  var isProbing: Bool { failuresInRow >= Self.failuresBeforeProbing }

  /// The progress to store.
  var progress: DeliveryProgress {
    DeliveryProgress(
      cursor: cursor,
      lanes: lanes.map {
        .init(channel: $0.key, position: $0.value.position, failures: $0.value.failures, firstTry: $0.value.firstTry)
      },
      isEnabled: isEnabled)
  }

  /// A channel's progress to store; nil where it is not behind the cursor.
  func lane(of channel: Channel) -> DeliveryProgress.Lane? {
    lanes[channel].map { .init(channel: channel, position: $0.position, failures: $0.failures, firstTry: $0.firstTry) }
  }

  // MARK: What to do

  /// The next action, which counts as begun. Call it again until it gives `wait` or `idle`. `mayLook`: false after a
  /// look that was put off in this turn.
  mutating func step(_ now: Moment, mayLook: Bool = true) -> Step {
    // A disabled webhook looks as well, so that the age of its oldest undelivered event is known.
    if mayLook, let channel = lanes.first(where: { if case .unknown = $0.value.state { true } else { false } })?.key {
      return look(for: channel)
    }
    guard isEnabled else { return .idle }
    let next = earliestDue()
    guard underWay < allowance else { return .idle }
    let start = max(probesAt, heldUntil)
    guard start <= now.uptime else { return .wait(until: start) }
    let mayScan = scan == .possible && lanes.count < Self.maximumLanes
    if let next, next.time <= now.uptime, !(isProbing && next.hasFailed && mayScan) {
      return deliver(next.channel, now)
    }
    if mayScan {
      scan = .underWay
      return .scan(from: cursor)
    }
    return next.map { .wait(until: $0.time) } ?? .idle
  }

  private mutating func look(for channel: Channel) -> Step {
    guard let lane = lanes[channel] else { preconditionFailure("the lane was there") }
    lanes[channel]?.state = .asked(through: cursor)
    lanes[channel]?.hasMore = false
    return .look(for: channel, in: lane.position..<cursor)
  }

  private mutating func deliver(_ channel: Channel, _ now: Moment) -> Step {
    guard var lane = lanes[channel] else { preconditionFailure("the lane was there") }
    lane.state = .underWay
    if lane.firstTry == nil { (lane.firstTry, lane.triedAt) = (now.timestamp, now.uptime) }
    lanes[channel] = lane
    underWay += 1
    return .deliver(PendingEvent(position: lane.position, channel: channel))
  }

  /// The lane that has waited longest; of several, the one with the oldest event. While probing, one without failures
  /// comes before all others: it is due at once.
  private func earliestDue() -> (channel: Channel, time: Int64, hasFailed: Bool)? {
    var earliest: (channel: Channel, time: Int64, hasFailed: Bool, position: JournalPosition)?
    for (channel, lane) in lanes {
      guard case .due(let time) = lane.state else { continue }
      let hasFailed = lane.failures > 0
      if let found = earliest {
        let isLater =
          isProbing && found.hasFailed != hasFailed
          ? hasFailed : (found.time, found.position) <= (time, lane.position)
        if isLater { continue }
      }
      earliest = (channel, time, hasFailed, lane.position)
    }
    return earliest.map { ($0.channel, $0.time, $0.hasFailed) }
  }

  // MARK: What the journal says

  /// The answer to `scan`: the first event, or none before the journal's end, and the position up to which it looked.
  /// - Precondition: a scan is running, and any event is between the cursor and `end`.
  mutating func scanned(_ event: PendingEvent?, through end: JournalPosition, _ now: Moment) {
    precondition(scan == .underWay && end >= cursor)
    scan = event == nil ? .atEnd : .possible
    defer { cursor = end }
    guard let event else { return }
    precondition(event.position >= cursor && event.position < end)
    if lanes[event.channel] == nil {
      lanes[event.channel] = Lane(state: .due(at: now.uptime), position: event.position, hasMore: false)
    } else {
      lanes[event.channel]?.hasMore = true
    }
  }

  /// There may be events beyond the last scan's end.
  mutating func journalGrew() {
    if scan == .atEnd { scan = .possible }
  }

  /// The answer to `look`: the position of the channel's first event in the range; nil where there is none.
  /// - Precondition: such a look is running.
  mutating func found(_ position: JournalPosition?, for channel: Channel, _ now: Moment) {
    guard var lane = lanes[channel], case .asked(let end) = lane.state else {
      preconditionFailure("nobody asked for \(channel)")
    }
    guard let position else {
      lane.position = end
      lanes[channel] = lane
      return resume(channel, behind: end)
    }
    precondition(position >= lane.position && position < end)
    if position != lane.position { (lane.failures, lane.firstTry, lane.triedAt) = (0, nil, nil) }
    lane.position = position
    lane.state = .due(at: now.uptime)
    lane.hasMore = true
    lanes[channel] = lane
  }

  /// The answer to `look` where it is not known yet: it is asked again.
  /// - Precondition: such a look is running.
  mutating func putOff(_ channel: Channel) {
    guard let lane = lanes[channel], case .asked = lane.state else {
      preconditionFailure("nobody asked for \(channel)")
    }
    lanes[channel]?.state = .unknown
    lanes[channel]?.hasMore = true
  }

  /// The channel's events before `position` are done: looks up its next event, or closes the lane.
  private mutating func resume(_ channel: Channel, behind position: JournalPosition) {
    guard let lane = lanes[channel], lane.hasMore else {
      lanes[channel] = nil
      return
    }
    lanes[channel] = Lane(state: .unknown, position: position)
  }

  /// The answer to `deliver` where the journal does not have the event any more: its channel continues behind it.
  /// - Precondition: it is being delivered.
  mutating func lost(_ channel: Channel) {
    guard let lane = lanes[channel], case .underWay = lane.state else {
      preconditionFailure("nothing is under way on \(channel)")
    }
    underWay -= 1
    resume(channel, behind: lane.position.next)
  }

  // MARK: What the receiver says

  /// The answer to `deliver`. 2xx is success; everything else is a failure, including redirects. `unit` is random:
  /// uniform, 0 ≤ unit < 1.
  /// - Precondition: a request for this channel is unanswered.
  mutating func answered(
    _ channel: Channel, _ reply: WebhookReply, _ now: Moment, unit: Double
  ) -> DeliveryOutcome {
    guard let lane = lanes[channel], case .underWay = lane.state else {
      preconditionFailure("nothing is under way on \(channel)")
    }
    underWay -= 1
    switch reply {
    case .status(200..<300, _):
      succeeded()
      resume(channel, behind: lane.position.next)
      return .delivered
    case .status(410, _):  // Standard Webhooks: "the sender should disable the endpoint"
      isEnabled = false
      lanes[channel]?.state = .due(at: now.uptime)
      return .disabled
    case .status(_, let retryAfter): return failed(channel, lane, retryAfter, now, unit)
    case .none: return failed(channel, lane, nil, now, unit)
    }
  }

  private mutating func succeeded() {
    // A request that was under way beside it does not end the time of a Retry-After.
    (failuresInRow, failedProbes, probesAt) = (0, 0, .min)
    allowance = min(rule.concurrency, 2 * allowance)
  }

  private mutating func failed(
    _ channel: Channel, _ lane: Lane, _ retryAfter: Double?, _ now: Moment, _ unit: Double
  ) -> DeliveryOutcome {
    failuresInRow += 1
    allowance = isProbing ? 1 : max(1, allowance / 2)
    hold(retryAfter, now, unit)
    if let first = lane.firstTry, now.seconds(since: first, lane.triedAt) >= rule.giveUpAfterSeconds {
      resume(channel, behind: lane.position.next)
      return .dead
    }
    let delay = RetrySchedule.delay(afterFailures: lane.failures + 1, retryAfterSeconds: retryAfter, unit: unit)
    lanes[channel]?.failures += 1
    lanes[channel]?.state = .due(at: now.uptime + delay)
    return .retry(at: now.uptime + delay)
  }

  /// Delays all requests if the receiver asks for it or seems to be down. Requests that were unanswered together when
  /// it went down count as one probe, or a single outage would lead to the longest delay at once.
  private mutating func hold(_ retryAfter: Double?, _ now: Moment, _ unit: Double) {
    heldUntil = max(heldUntil, now.uptime + nanoseconds(RetrySchedule.wait(retryAfter)))
    guard isProbing, underWay == 0 else { return }
    failedProbes += 1
    let delay = RetrySchedule.delay(afterFailures: failedProbes, retryAfterSeconds: retryAfter, unit: unit)
    probesAt = max(probesAt, now.uptime + delay)
  }

  /// Enables it after a 410, or after its owner stopped it, without waiting for later retries.
  mutating func enable(_ now: Moment) {
    isEnabled = true
    (failuresInRow, failedProbes, allowance) = (0, 0, 1)
    (probesAt, heldUntil) = (.min, .min)
    for (channel, lane) in lanes {
      if case .due = lane.state { lanes[channel]?.state = .due(at: now.uptime) }
    }
  }

  /// Stops sending; unanswered requests may still be answered.
  mutating func disable() { isEnabled = false }
}

extension Moment {
  /// The seconds since a first try: by uptime, which setting the clock does not change; by the wall clock for a try
  /// from before the webhook was opened.
  func seconds(since first: Timestamp, _ triedAt: Int64?) -> Double {
    triedAt.map { Double(uptime - $0) / 1e9 } ?? timestamp.seconds(since: first)
  }
}
