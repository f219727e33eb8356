// One running webhook: its queue, its reader of the journal, its stored progress, and its current tries.
import HubJournal
import HubMessages
import HubRuntime
import HubSystem
import HubTransport

/// One try to deliver an event.
final class Attempt {
  /// Its content.
  enum Subject {
    case event(on: Channel)
    /// A test message for an operator, who gets the receiver's answer.
    case test(@Sendable (WebhookAnswer) -> Void)
  }

  let subject: Subject
  let id: String
  let request: [UInt8]
  /// Uptime in nanoseconds.
  let began: Int64
  var untried: [SocketAddress] = []
  /// The address that it connects or is connected to, and when that began (uptime, ns).
  var address: SocketAddress?
  var dialled = Int64.min
  var connection = ConnectionID.none
  /// The connection was used before: if it ends without an answer, the receiver may have closed it as idle.
  var isOnUsedConnection = false

  init(_ subject: Subject, id: String, request: [UInt8], began: Int64) {
    self.subject = subject
    self.id = id
    self.request = request
    self.began = began
  }

  var isTest: Bool { if case .test = subject { true } else { false } }
}

final class Webhook {
  let endpoint: WebhookEndpoint
  var queue: DeliveryQueue
  let reader: EventReader
  private let file: ProgressFile
  let deadLetters: DeadLetterFile
  var figures: WebhookFigures
  /// The channels behind the cursor, each with the event that is delivered next.
  private var current: [Channel: FoundEvent] = [:]
  private var changed: Set<Channel> = []
  private var storedCursor: JournalPosition
  private var isStored = true
  private var isSynchronized = true
  private var missedGroups: UInt64 = 0
  /// Events that a replay skips.
  private var skipped: Skipped?
  /// Tries without an answer. One that waits for an address has no connection yet.
  var attempts: [Attempt] = []
  /// Idle connections, the newest last.
  var idle: [ConnectionID] = []
  var addresses: [SocketAddress] = []
  var addressOrder = AddressOrder()
  /// Until when the addresses are used (uptime, ns).
  var addressesUntil = Int64.min
  let peer: TLSPeer?
  /// When its queue may have a next step (uptime, ns).
  var nextStep = Int64.min
  /// It delivers nothing, since the journal or its own files could not be read. That is not stored: a webhook of its
  /// name that is opened later continues.
  var isStopped = false
  /// Its settings were replaced by others that could not be applied: it delivers nothing under them.
  var isOutdated = false

  /// What a replay by time skips: events before that time that were delivered already. It begins to read before them.
  struct Skipped {
    private var before: Timestamp
    /// The cursor and the channels' positions before it was set back.
    private(set) var cursor: JournalPosition
    private var lanes: [Channel: JournalPosition]

    /// `progress`: before the cursor was set back.
    init(before: Timestamp, _ progress: DeliveryProgress) {
      self.before = before
      cursor = progress.cursor
      lanes = Dictionary(uniqueKeysWithValues: progress.lanes.map { ($0.channel, $0.position) })
    }

    func has(_ channel: Channel, _ event: FoundEvent) -> Bool {
      event.published < before && event.position < lanes[channel] ?? cursor
    }

    /// What another replay skips, since `time`, that begins before this one has caught up.
    func limited(to time: Timestamp) -> Skipped {
      var rest = self
      rest.before = min(before, time)
      return rest
    }

    /// Leaves out what `request` delivers again.
    func without(_ request: DeliveryCommand?) -> Skipped {
      var rest = self
      switch request {
      case nil, .enable: break
      case .replay(let id): rest.end(at: id.position)
      case .replayFrom(let position): rest.end(at: position)
      case .replayEvents(let events):
        for event in events { rest.lanes[event.channel] = min(rest.lanes[event.channel] ?? cursor, event.position) }
      }
      return rest
    }

    private mutating func end(at position: JournalPosition) {
      cursor = min(cursor, position)
      lanes = lanes.mapValues { min($0, position) }
    }
  }

  /// `figures`: of the webhook of this name before the reload.
  init(
    _ endpoint: WebhookEndpoint, _ file: ProgressFile, _ progress: DeliveryProgress, _ reader: EventReader,
    _ deadLetters: DeadLetterFile, figures: WebhookFigures?, skipping: Skipped? = nil
  ) {
    skipped = skipping
    self.endpoint = endpoint
    self.file = file
    self.reader = reader
    self.deadLetters = deadLetters
    queue = DeliveryQueue(endpoint.rule, from: progress)
    storedCursor = progress.cursor
    self.figures = figures ?? WebhookFigures(name: endpoint.name)
    peer = endpoint.url.isSecure ? TLSPeer(endpoint.tls, name: endpoint.url.host) : nil
  }

  /// What a webhook that continues this one skips, once it has carried out `request`. `since`: the time of a replay by
  /// time.
  func skipped(since: Timestamp?, _ request: DeliveryCommand?) -> Skipped? {
    guard let since else { return skipped?.without(request) }
    return skipped?.limited(to: since) ?? Skipped(before: since, queue.progress)
  }

  // MARK: The journal

  /// Scans for the next event behind the cursor.
  func scan(through last: UInt64, _ now: Moment) throws(JournalError) {
    switch try reader.scan(from: queue.cursor, through: last) {
    case .none(let end, let isAtEnd):
      queue.scanned(nil, through: end, now)
      if !isAtEnd { queue.journalGrew() }
    case .event(let channel, let event) where skipped?.has(channel, event) ?? false:
      queue.scanned(nil, through: event.position.next, now)
      queue.journalGrew()
    case .event(let channel, let event):
      let opensLane = queue.lane(of: channel) == nil
      reader.note(channel, event, opensLane: opensLane)
      queue.scanned(PendingEvent(position: event.position, channel: channel), through: event.position.next, now)
      if opensLane { current[channel] = event }
      changed.insert(channel)
    }
    if let old = skipped, queue.cursor >= old.cursor { skipped = nil }
  }

  /// Looks for a channel's next event before the cursor; false where that takes another turn.
  func look(for channel: Channel, in range: Range<JournalPosition>, _ now: Moment) throws(JournalError) -> Bool {
    let event: FoundEvent?
    switch try reader.look(for: channel, in: range, queue.progress.lanes) {
    case .event(let found): event = found
    case .none: event = nil
    case .notYet:
      queue.putOff(channel)
      return false
    }
    queue.found(event?.position, for: channel, now)
    current[channel] = event
    noteChange(of: channel)
    return true
  }

  /// The groups that the journal did not have any more since the last call. They count as lost.
  func takeMissed() -> UInt64 {
    let missed = reader.missedGroups - missedGroups
    missedGroups += missed
    figures.lost += missed
    return missed
  }

  /// A channel's present event; nil where the journal does not have it any more.
  func event(on channel: Channel) throws(JournalError) -> Publication? {
    guard let event = current[channel] else { return nil }
    return try reader.publication(of: event)
  }

  /// The epoch in the ids of its events.
  var epoch: String { file.epoch }

  func id(of event: PendingEvent) -> String { "\(EventID(epoch: epoch, position: event.position))" }

  func lost(_ channel: Channel) {
    queue.lost(channel)
    figures.lost += 1
    noteChange(of: channel)
  }

  /// Marks a channel's progress to be stored; forgets what is kept of a channel that is not behind the cursor any more.
  private func noteChange(of channel: Channel) {
    changed.insert(channel)
    guard queue.lane(of: channel) == nil else { return }
    current[channel] = nil
    reader.forget(channel)
  }

  // MARK: Answers

  func answered(
    _ attempt: Attempt, on channel: Channel, _ reply: WebhookReply, _ now: Moment, unit: Double
  ) -> DeliveryOutcome {
    figures.nanoseconds += UInt64(max(0, now.uptime - attempt.began))
    let outcome = queue.answered(channel, reply, now, unit: unit)
    noteChange(of: channel)
    switch outcome {
    case .delivered: figures.delivered += 1
    case .retry, .disabled: figures.failed += 1
    case .dead:
      figures.failed += 1
      figures.dead += 1
    }
    return outcome
  }

  // MARK: What is stored

  /// Stores changes. If the disk fails, `synchronize` writes everything again.
  func store() throws(SystemError) {
    guard isStored, !changed.isEmpty else { return }
    let lanes = changed.map { ($0, queue.lane(of: $0)) }
    changed.removeAll(keepingCapacity: true)
    isStored = false
    guard try file.append(cursor: queue.cursor, isEnabled: queue.isEnabled, lanes) else { return try rewrite() }
    (isStored, isSynchronized, storedCursor) = (true, false, queue.cursor)
  }

  private func rewrite() throws(SystemError) {
    try file.rewrite(queue.progress)
    changed.removeAll()
    (isStored, isSynchronized, storedCursor) = (true, true, queue.cursor)
  }

  /// Syncs everything, also a cursor that moved without an event.
  func synchronize() throws(SystemError) {
    guard isStored else { return try rewrite() }
    try store()
    if storedCursor != queue.cursor {
      guard try file.append(cursor: queue.cursor, isEnabled: queue.isEnabled, []) else { return try rewrite() }
      (isSynchronized, storedCursor) = (false, queue.cursor)
    }
    guard !isSynchronized else { return }
    try file.synchronize()
    isSynchronized = true
  }

  /// The present figures.
  func currentFigures(_ now: Moment) -> WebhookFigures {
    figures.underWay = isStopped ? 0 : queue.underWay
    figures.lanes = queue.laneCount
    figures.isEnabled = queue.isEnabled && !isStopped
    figures.isProbing = queue.isProbing && !isStopped
    let oldest = current.values.map(\.published).min()
    figures.oldestMilliseconds = oldest.map { max(0, now.timestamp.milliseconds - $0.milliseconds) } ?? 0
    return figures
  }
}
