// Communication of a hub's threads with the webhooks' thread, and its figures.
import HubBytes
public import HubSystem
import Synchronization

/// A webhook's counters and state.
public struct WebhookFigures: Sendable, Equatable {
  public let name: String
  public var delivered: UInt64 = 0
  public var failed: UInt64 = 0
  /// Events that were given up.
  public var dead: UInt64 = 0
  /// Events, or where these can't be counted groups of the journal, that retention deleted before they were
  /// delivered, or that are damaged.
  public var lost: UInt64 = 0
  /// The total time of tries, from beginning to answer or failure, in nanoseconds.
  public var nanoseconds: UInt64 = 0
  public var underWay = 0
  /// Channels behind the cursor.
  public var lanes = 0
  /// Milliseconds since the oldest known undelivered event was published; 0 for none.
  public var oldestMilliseconds: Int64 = 0
  public var isEnabled = true
  /// Whether one request at a time is sent, since the receiver seems to be down.
  public var isProbing = false
  /// Times that its progress could not be stored.
  public var notStored: UInt64 = 0

  init(name: String) { self.name = name }

  /// The figures of a webhook that could not be opened.
  init(off name: String) { (self.name, isEnabled) = (name, false) }
}

/// A stream's counters and state.
public struct StreamFigures: Sendable, Equatable {
  public let name: String
  public var stored: UInt64 = 0
  /// Events that the server had before.
  public var repeats: UInt64 = 0
  public var refused: UInt64 = 0
  /// Events that were given up.
  public var dead: UInt64 = 0
  /// Groups of the journal that retention deleted before they were sent, or that are damaged.
  public var lost: UInt64 = 0
  /// Connections that ended or failed.
  public var failures: UInt64 = 0
  public var underWay = 0
  /// Milliseconds since the oldest unstored event was published; 0 for none.
  public var oldestMilliseconds: Int64 = 0
  /// Whether the server accepts events, as far as known.
  public var isUp = false
  public var isEnabled = true
  public var notStored: UInt64 = 0
  /// Nil for a stream without positions.
  public var positionsSent: UInt64?
  /// Positions that a newer one replaced, or that the server refused.
  public var positionsLeftOut: UInt64 = 0

  init(name: String) { self.name = name }

  /// The figures of a stream that could not be opened.
  init(off name: String) { (self.name, isEnabled) = (name, false) }

  /// Counts an event of the server. It refuses no more positions than it was sent (`StreamSink`).
  mutating func count(_ event: SinkEvent) {
    switch event {
    case .stored(let positions, let repeated):
      stored += UInt64(positions.count)
      repeats += UInt64(repeated)
    case .refused(let positions, _, _): refused += UInt64(positions.count)
    case .positionsRefused(let count): positionsSent = (positionsSent ?? 0) - UInt64(count)
    case .ready, .plainTextEnds, .impossible, .gone, .finished, .failed: break
    }
  }
}

/// All webhooks and streams of a hub.
public struct Deliveries: Sendable {
  public var webhooks: [WebhookEndpoint]
  public var streams: [StreamEndpoint]

  public init(webhooks: [WebhookEndpoint] = [], streams: [StreamEndpoint] = []) {
    self.webhooks = webhooks
    self.streams = streams
  }

  /// Whether there is neither a webhook nor a stream.
  public var isEmpty: Bool { webhooks.isEmpty && streams.isEmpty }
}

/// State shared by a hub and its webhooks' thread.
public final class WebhookControl: Sendable {
  struct Asked: Sendable {
    let question: WebhookQuestion
    let answer: @Sendable (WebhookAnswer) -> Void
  }

  private struct State {
    var figures: [WebhookFigures] = []
    var streams: [StreamFigures] = []
    var deliveries: Deliveries?
    var questions: [Asked] = []
    var waker: Waker?
  }

  private let state = Locked(State())
  private let active = Atomic<Bool>(true)

  public init() {}

  /// The thread has begun; `waker` wakes it.
  public func begin(waking waker: Waker) { state.withLock { $0.waker = waker } }

  /// There are deliveries, or it is not known yet: the thread has to be woken when something is stored.
  public var isActive: Bool { active.load(ordering: .acquiring) }

  func setActive(_ isActive: Bool) { active.store(isActive, ordering: .releasing) }

  /// Replaces the deliveries. Those whose name stays continue.
  public func replace(_ deliveries: Deliveries) {
    let waker = state.withLock { state in
      state.deliveries = deliveries
      return state.waker
    }
    waker?.wake()
  }

  /// Asks the thread, which calls `answer` once; false at the limit of questions, or without a thread.
  public func ask(_ question: WebhookQuestion, _ answer: @escaping @Sendable (WebhookAnswer) -> Void) -> Bool {
    let waker = state.withLock { state -> Waker? in
      guard state.waker != nil, state.questions.count < Self.maximumQuestions else { return nil }
      state.questions.append(Asked(question: question, answer: answer))
      return state.waker
    }
    waker?.wake()
    return waker != nil
  }

  /// The questions for this turn, up to the first replay, which reads parts of the journal: those behind it are taken
  /// in the next turn.
  func takeQuestions() -> [Asked] {
    let (taken, waker) = state.withLock { state in
      let replay = state.questions.firstIndex { if case .replay = $0.question { true } else { false } }
      let taken = Array(state.questions.prefix(replay.map { $0 + 1 } ?? .max))
      state.questions.removeFirst(taken.count)
      return (taken, state.questions.isEmpty ? nil : state.waker)
    }
    waker?.wake()
    return taken
  }

  func takeDeliveries() -> Deliveries? { state.withLock { $0.deliveries.take() } }

  func show(_ figures: [WebhookFigures], _ streams: [StreamFigures]) {
    state.withLock { ($0.figures, $0.streams) = (figures, streams) }
  }

  /// The figures of all webhooks, at most a second old; nil if there are none.
  public var figures: [WebhookFigures]? { state.withLock { $0.figures.isEmpty ? nil : $0.figures } }
  /// The figures of all streams, at most a second old; nil if there are none.
  public var streamFigures: [StreamFigures]? { state.withLock { $0.streams.isEmpty ? nil : $0.streams } }
}
