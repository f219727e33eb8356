// One webhook's way through the journal, as a state machine: which event is sent when, and what follows from the
// answer. It does no I/O and reads no clock.
//
// The journal is the queue. A cursor goes over it once. The event that it finds opens a lane for its channel; later
// events of that channel are passed over, and looked up in the journal when the lane's event is through. So events of a
// channel arrive in order, one at a time, and a channel that fails keeps no other one waiting. Memory has one place for
// each channel that is behind, and never an event's content.
//
// After ten failures in a row the receiver is taken to be down: one request at a time probes it, by the schedule of
// RetrySchedule. Each success doubles what may be under way, each failure halves it, as TCP's slow start and
// multiplicative decrease do (RFC 5681 §3.1): a receiver that comes back is not met by all that has gathered.
public import HubMessages

/// Decides for one webhook. Each call costs O(lanes) at most, of which there are `maximumLanes`.
public struct DeliveryQueue: Sendable {
  /// What its owner is to do next.
  public enum Step: Sendable, Equatable {
    /// Send this event; then call `answered`.
    case deliver(PendingEvent)
    /// Look for the first event of the webhook's channels from here on; then call `scanned`.
    case scan(from: JournalPosition)
    /// Look for the first event of this channel in this range; then call `found`.
    case look(for: Channel, in: Range<JournalPosition>)
    /// Nothing to do before this uptime in nanoseconds, or an answer, or a new event (`journalGrew`).
    case wait(until: Int64)
    /// Nothing to do before an answer or a new event.
    case idle
  }

  private struct Lane {
    var state: State
    /// Where the channel's first event that is not through stands, or where the search for it begins.
    var place: JournalPosition
    var failures = 0
    var firstTry: Timestamp?
    /// There may be events of the channel between `place` and the cursor.
    var hasMore = true

    enum State {
      case due(at: Int64)
      case underWay
      /// The next event is to be looked up.
      case unknown
      /// It is being looked up, in places before this one.
      case asked(through: JournalPosition)
    }
  }

  private enum Scan { case possible, underWay, atEnd }

  public private(set) var isEnabled: Bool
  /// See `DeliveryProgress.cursor`.
  public private(set) var cursor: JournalPosition
  public private(set) var underWay = 0
  /// How many requests may be under way now: 1 to the rule's `concurrency`.
  public private(set) var allowance = 1
  private var rule: WebhookRule
  private var lanes: [Channel: Lane] = [:]
  private var scan = Scan.possible
  private var failuresInRow = 0
  /// Failures of requests that were sent alone, to find out whether the receiver is back.
  private var failedProbes = 0
  /// No request goes out before this uptime.
  private var heldUntil = Int64.min

  /// Goes on from what was stored. What was under way then is sent again.
  public init(_ rule: WebhookRule, from progress: DeliveryProgress) {
    self.rule = rule
    cursor = progress.cursor
    isEnabled = progress.isEnabled
    for lane in progress.lanes {
      lanes[lane.channel] = Lane(state: .unknown, place: lane.place, failures: lane.failures, firstTry: lane.firstTry)
    }
  }

  /// Channels that are behind the cursor.
  public var laneCount: Int { lanes.count }
  /// Whether one request at a time goes out, for the receiver seems to be down.
  public var isProbing: Bool { failuresInRow >= Self.failuresBeforeProbing }

  /// What is to be stored now.
  public var progress: DeliveryProgress {
    DeliveryProgress(
      cursor: cursor,
      lanes: lanes.map {
        .init(channel: $0.key, place: $0.value.place, failures: $0.value.failures, firstTry: $0.value.firstTry)
      },
      isEnabled: isEnabled)
  }

  /// What is to be stored of a channel now; nil where it is not behind the cursor.
  public func lane(of channel: Channel) -> DeliveryProgress.Lane? {
    lanes[channel].map { .init(channel: channel, place: $0.place, failures: $0.failures, firstTry: $0.firstTry) }
  }

  // MARK: What to do

  /// What is to be done next; it counts as begun. Call it again until it says `wait` or `idle`. `mayLook`: not after a
  /// look that was put off in this turn.
  public mutating func step(_ now: Moment, mayLook: Bool = true) -> Step {
    guard isEnabled else { return .idle }
    if mayLook, let channel = lanes.first(where: { if case .unknown = $0.value.state { true } else { false } })?.key {
      return look(for: channel)
    }
    let next = earliestDue()
    guard underWay < allowance else { return .idle }
    guard heldUntil <= now.uptime else { return .wait(until: heldUntil) }
    if let next, next.time <= now.uptime { return deliver(next.channel, now) }
    if scan == .possible, lanes.count < Self.maximumLanes {
      scan = .underWay
      return .scan(from: cursor)
    }
    return next.map { .wait(until: $0.time) } ?? .idle
  }

  private mutating func look(for channel: Channel) -> Step {
    guard let lane = lanes[channel] else { preconditionFailure("the lane was there") }
    lanes[channel]?.state = .asked(through: cursor)
    lanes[channel]?.hasMore = false
    return .look(for: channel, in: lane.place..<cursor)
  }

  private mutating func deliver(_ channel: Channel, _ now: Moment) -> Step {
    guard var lane = lanes[channel] else { preconditionFailure("the lane was there") }
    lane.state = .underWay
    lane.firstTry = lane.firstTry ?? now.timestamp
    lanes[channel] = lane
    underWay += 1
    return .deliver(PendingEvent(place: lane.place, channel: channel))
  }

  /// The lane that waits since longest; of several, the one whose event is oldest.
  private func earliestDue() -> (channel: Channel, time: Int64)? {
    var earliest: (channel: Channel, time: Int64, place: JournalPosition)?
    for (channel, lane) in lanes {
      guard case .due(let time) = lane.state else { continue }
      if let found = earliest, (found.time, found.place) <= (time, lane.place) { continue }
      earliest = (channel, time, lane.place)
    }
    return earliest.map { ($0.channel, $0.time) }
  }

  // MARK: What the journal says

  /// The answer to `scan`: the first event, or none before the journal's end, and the place up to which was looked.
  /// - Precondition: a scan is under way, and an event stands between the cursor and `end`.
  public mutating func scanned(_ event: PendingEvent?, through end: JournalPosition, _ now: Moment) {
    precondition(scan == .underWay && end >= cursor)
    scan = event == nil ? .atEnd : .possible
    defer { cursor = end }
    guard let event else { return }
    precondition(event.place >= cursor && event.place < end)
    if lanes[event.channel] == nil {
      lanes[event.channel] = Lane(state: .due(at: now.uptime), place: event.place, hasMore: false)
    } else {
      lanes[event.channel]?.hasMore = true
    }
  }

  /// There may be events behind the end that the last scan found.
  public mutating func journalGrew() {
    if scan == .atEnd { scan = .possible }
  }

  /// The answer to `look`: where the channel's first event in the range stands; nil where there is none.
  /// - Precondition: such a look is under way.
  public mutating func found(_ place: JournalPosition?, for channel: Channel, _ now: Moment) {
    guard var lane = lanes[channel], case .asked(let end) = lane.state else {
      preconditionFailure("nobody asked for \(channel)")
    }
    guard let place else {
      lane.place = end
      lanes[channel] = lane
      return goOn(channel, behind: end)
    }
    precondition(place >= lane.place && place < end)
    if place != lane.place { (lane.failures, lane.firstTry) = (0, nil) }
    lane.place = place
    lane.state = .due(at: now.uptime)
    lane.hasMore = true
    lanes[channel] = lane
  }

  /// The answer to `look` where it is not known yet: it is asked for again.
  /// - Precondition: such a look is under way.
  public mutating func putOff(_ channel: Channel) {
    guard let lane = lanes[channel], case .asked = lane.state else {
      preconditionFailure("nobody asked for \(channel)")
    }
    lanes[channel]?.state = .unknown
    lanes[channel]?.hasMore = true
  }

  /// The channel is through up to `place`: its next event is looked up, or the lane closed.
  private mutating func goOn(_ channel: Channel, behind place: JournalPosition) {
    guard let lane = lanes[channel], lane.hasMore else {
      lanes[channel] = nil
      return
    }
    lanes[channel] = Lane(state: .unknown, place: place)
  }

  /// The answer to `deliver` where the journal does not have the event any more: its channel goes on behind it.
  /// - Precondition: it is under way.
  public mutating func lost(_ channel: Channel) {
    guard let lane = lanes[channel], case .underWay = lane.state else {
      preconditionFailure("nothing is under way on \(channel)")
    }
    underWay -= 1
    goOn(channel, behind: lane.place.next)
  }

  // MARK: What the receiver says

  /// The answer to `deliver`. 2xx is success; everything else is a failure, redirects too. `unit` is chance: uniform,
  /// 0 ≤ unit < 1.
  /// - Precondition: a request for this channel is under way.
  public mutating func answered(
    _ channel: Channel, _ reply: WebhookReply, _ now: Moment, unit: Double
  ) -> DeliveryOutcome {
    guard let lane = lanes[channel], case .underWay = lane.state else {
      preconditionFailure("nothing is under way on \(channel)")
    }
    underWay -= 1
    switch reply {
    case .status(200..<300, _):
      succeeded()
      goOn(channel, behind: lane.place.next)
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
    (failuresInRow, failedProbes, heldUntil) = (0, 0, .min)
    allowance = min(rule.concurrency, 2 * allowance)
  }

  private mutating func failed(
    _ channel: Channel, _ lane: Lane, _ retryAfter: Double?, _ now: Moment, _ unit: Double
  ) -> DeliveryOutcome {
    failuresInRow += 1
    allowance = isProbing ? 1 : max(1, allowance / 2)
    hold(retryAfter, now, unit)
    if let first = lane.firstTry, now.timestamp.seconds(since: first) >= rule.giveUpAfterSeconds {
      goOn(channel, behind: lane.place.next)
      return .dead
    }
    let delay = RetrySchedule.delay(afterFailures: lane.failures + 1, retryAfterSeconds: retryAfter, unit: unit)
    lanes[channel]?.failures += 1
    lanes[channel]?.state = .due(at: now.uptime + delay)
    return .retry(at: now.uptime + delay)
  }

  /// Keeps all requests back where the receiver asked for it or seems to be down. Requests that were under way together
  /// when it went down count as one probe, or a single outage would lead to the longest delay at once.
  private mutating func hold(_ retryAfter: Double?, _ now: Moment, _ unit: Double) {
    heldUntil = max(heldUntil, now.uptime + Int64(RetrySchedule.wait(retryAfter) * 1e9))
    guard isProbing, underWay == 0 else { return }
    failedProbes += 1
    let delay = RetrySchedule.delay(afterFailures: failedProbes, retryAfterSeconds: retryAfter, unit: unit)
    heldUntil = max(heldUntil, now.uptime + delay)
  }

  /// Sends again after a 410, or after its owner stopped it, and does not wait for what was due later.
  public mutating func enable(_ now: Moment) {
    isEnabled = true
    (failuresInRow, failedProbes, heldUntil, allowance) = (0, 0, .min, 1)
    for (channel, lane) in lanes {
      if case .due = lane.state { lanes[channel]?.state = .due(at: now.uptime) }
    }
  }

  /// Nothing more is sent; what is under way may still be answered.
  public mutating func disable() { isEnabled = false }
}
