// One webhook at work: its queue, its reader of the journal, what it stores, and its tries under way.
import HubJournal
import HubMessages
import HubRuntime
import HubSystem
import HubTransport

/// One try to deliver an event.
final class Attempt {
  /// What it carries.
  enum Subject {
    case event(on: Channel)
    /// A test message, sent because an operator wants to see what the receiver answers.
    case test(@Sendable (WebhookAnswer) -> Void)
  }

  let subject: Subject
  let id: String
  let request: [UInt8]
  /// Uptime in nanoseconds.
  let began: Int64
  var untried: [SocketAddress] = []
  var connection = ConnectionID.none
  /// The connection had another request before: where it ends without a word, that need not be this one's fault.
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
  /// The events that the channels behind the cursor are at.
  private var current: [Channel: EventPosition] = [:]
  private var changed: Set<Channel> = []
  private var storedCursor: JournalPosition
  private var isStored = true
  private var isSynchronized = true
  private var missedGroups: UInt64 = 0
  /// What was published before is passed over, up to the first event that was not: the cursor was set back to a time.
  private var skipsBefore: Timestamp?
  /// Tries by connection; those that wait for an address have none yet.
  var attempts: [Attempt] = []
  /// Connections that have nothing to do, the newest last.
  var idle: [ConnectionID] = []
  var addresses: [SocketAddress] = []
  /// Until when the addresses are used (uptime, ns); the look-up that is under way, by its number.
  var addressesUntil = Int64.min
  var lookup: UInt64?
  let peer: TLSPeer?
  /// When it is to be looked at next (uptime, ns).
  var nextStep = Int64.min

  /// `figures`: of the webhook of this name before its settings were read again. `since`: earlier events are passed
  /// over.
  init(
    _ endpoint: WebhookEndpoint, _ file: ProgressFile, _ progress: DeliveryProgress, _ reader: EventReader,
    _ deadLetters: DeadLetterFile, figures: WebhookFigures?, since: Timestamp? = nil
  ) {
    skipsBefore = since
    self.endpoint = endpoint
    self.file = file
    self.reader = reader
    self.deadLetters = deadLetters
    queue = DeliveryQueue(endpoint.rule, from: progress)
    storedCursor = progress.cursor
    self.figures = figures ?? WebhookFigures(name: endpoint.name)
    peer = endpoint.url.isSecure ? TLSPeer(endpoint.tls, name: endpoint.url.host) : nil
  }

  // MARK: The journal

  /// Looks for the next event behind the cursor; false where there is none for now.
  func scan(through last: UInt64, _ now: Moment) throws(JournalError) -> Bool {
    let found = try reader.scan(from: queue.cursor, through: last)
    let missed = reader.missedGroups - missedGroups
    missedGroups += missed
    figures.lost += missed
    switch found {
    case .none(let end, let isAtEnd):
      queue.scanned(nil, through: end, now)
      if !isAtEnd { queue.journalGrew() }
      return !isAtEnd
    case .event(_, let position) where skipsBefore.map { position.published < $0 } ?? false:
      queue.scanned(nil, through: position.place.next, now)
      queue.journalGrew()
      return true
    case .event(let channel, let position):
      skipsBefore = nil
      let opensLane = queue.lane(of: channel) == nil
      reader.note(channel, position, opensLane: opensLane)
      queue.scanned(PendingEvent(place: position.place, channel: channel), through: position.place.next, now)
      if opensLane { current[channel] = position }
      changed.insert(channel)
      return true
    }
  }

  func look(for channel: Channel, in range: Range<JournalPosition>, _ now: Moment) throws(JournalError) {
    let position = try reader.look(for: channel, in: range, queue.progress.lanes)
    queue.found(position?.place, for: channel, now)
    current[channel] = position
    changed.insert(channel)
  }

  /// The event that a channel is at; nil where the journal has it no more.
  func event(on channel: Channel) throws(JournalError) -> Publication? {
    guard let position = current[channel] else { return nil }
    return try reader.event(at: position)
  }

  func id(of event: PendingEvent) -> String { event.webhookID(epoch: file.epoch) }

  func lost(_ channel: Channel) {
    queue.lost(channel)
    figures.lost += 1
    changed.insert(channel)
  }

  // MARK: Answers

  func answered(
    _ attempt: Attempt, on channel: Channel, _ reply: WebhookReply, _ now: Moment, unit: Double
  ) -> DeliveryOutcome {
    figures.nanoseconds += UInt64(max(0, now.uptime - attempt.began))
    let outcome = queue.answered(channel, reply, now, unit: unit)
    changed.insert(channel)
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

  /// Stores what has changed. Where the disk does not take it, `synchronize` writes all anew.
  func store() throws(SystemError) {
    guard isStored, !changed.isEmpty else { return }
    let lanes = changed.map { ($0, queue.lane(of: $0)) }
    for (channel, lane) in lanes where lane == nil { current[channel] = nil }
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

  /// Brings all to stable storage, also a cursor that went on without an event.
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

  /// The figures as they are now.
  func currentFigures(_ now: Moment) -> WebhookFigures {
    figures.underWay = queue.underWay
    figures.lanes = queue.laneCount
    figures.isEnabled = queue.isEnabled
    figures.isProbing = queue.isProbing
    let oldest = current.values.map(\.published).min()
    figures.oldestMilliseconds = oldest.map { max(0, now.timestamp.milliseconds - $0.milliseconds) } ?? 0
    return figures
  }
}
