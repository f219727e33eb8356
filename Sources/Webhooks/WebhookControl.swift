// What the threads of a hub say to that of its webhooks, and what it shows of itself.
import HubBytes
public import HubSystem
import Synchronization

/// What a webhook has done, and how it stands.
public struct WebhookFigures: Sendable, Equatable {
  public let name: String
  public var delivered: UInt64 = 0
  public var failed: UInt64 = 0
  /// Events that were given up.
  public var dead: UInt64 = 0
  /// Events, or where these can't be counted groups of the journal, that retention deleted before they were delivered.
  public var lost: UInt64 = 0
  /// From the begin of a try to its answer or failure, in nanoseconds, all together.
  public var nanoseconds: UInt64 = 0
  public var underWay = 0
  /// Channels that are behind.
  public var lanes = 0
  /// Milliseconds since the oldest undelivered event that is known was published; 0 for none.
  public var oldestMilliseconds: Int64 = 0
  public var isEnabled = true
  /// One request at a time goes out, for the receiver seems to be down.
  public var isProbing = false
  /// Times that its progress could not be stored.
  public var notStored: UInt64 = 0

  init(name: String) { self.name = name }
}

/// What a stream has done, and how it stands.
public struct StreamFigures: Sendable, Equatable {
  public let name: String
  public var stored: UInt64 = 0
  /// Of these, what the server had before.
  public var repeats: UInt64 = 0
  public var refused: UInt64 = 0
  /// Events that were given up.
  public var dead: UInt64 = 0
  /// Groups of the journal that retention deleted before they were sent.
  public var lost: UInt64 = 0
  /// Connections that ended or could not be made.
  public var failures: UInt64 = 0
  public var underWay = 0
  /// Milliseconds since the oldest event that is not stored was published; 0 for none.
  public var oldestMilliseconds: Int64 = 0
  /// Its server takes events, as far as is known.
  public var isUp = false
  public var isEnabled = true
  public var notStored: UInt64 = 0
  /// Nil where the stream has none.
  public var positionsSent: UInt64?
  /// Positions that a newer one took the place of, or that the server did not take.
  public var positionsLeftOut: UInt64 = 0

  init(name: String) { self.name = name }

  /// Counts what the server says. Of positions it refuses no more than it was sent (`StreamSink`).
  mutating func count(_ event: SinkEvent) {
    switch event {
    case .stored(let places, let repeated):
      stored += UInt64(places.count)
      repeats += UInt64(repeated)
    case .refused(let places, _, _): refused += UInt64(places.count)
    case .positionsRefused(let count): positionsSent = (positionsSent ?? 0) - UInt64(count)
    case .ready, .plainTextEnds, .impossible, .gone, .finished, .failed: break
    }
  }
}

/// All that a hub delivers by itself.
public struct Deliveries: Sendable {
  public var webhooks: [WebhookEndpoint]
  public var streams: [StreamEndpoint]

  public init(webhooks: [WebhookEndpoint] = [], streams: [StreamEndpoint] = []) {
    self.webhooks = webhooks
    self.streams = streams
  }

  public var isEmpty: Bool { webhooks.isEmpty && streams.isEmpty }
}

/// What a hub and the thread of its webhooks share.
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

  /// The thread begins, which `waker` wakes.
  public func begin(waking waker: Waker) { state.withLock { $0.waker = waker } }

  /// Something is delivered, or it is not known yet: the thread is to be woken when something is stored.
  public var isActive: Bool { active.load(ordering: .acquiring) }

  func setActive(_ isActive: Bool) { active.store(isActive, ordering: .releasing) }

  /// Has others served from now on. Those whose name stays go on where they are.
  public func replace(_ deliveries: Deliveries) {
    let waker = state.withLock { state in
      state.deliveries = deliveries
      return state.waker
    }
    waker?.wake()
  }

  /// Asks the thread, which calls `answer` once; false, and nothing happens, where too many questions wait, or there is
  /// no thread.
  public func ask(_ question: WebhookQuestion, _ answer: @escaping @Sendable (WebhookAnswer) -> Void) -> Bool {
    let waker = state.withLock { state -> Waker? in
      guard state.waker != nil, state.questions.count < Self.maximumQuestions else { return nil }
      state.questions.append(Asked(question: question, answer: answer))
      return state.waker
    }
    waker?.wake()
    return waker != nil
  }

  func takeQuestions() -> [Asked] {
    state.withLock { state in
      defer { state.questions = [] }
      return state.questions
    }
  }

  func takeDeliveries() -> Deliveries? { state.withLock { $0.deliveries.take() } }

  func show(_ figures: [WebhookFigures], _ streams: [StreamFigures]) {
    state.withLock { ($0.figures, $0.streams) = (figures, streams) }
  }

  /// At most a second old; nil where there are no webhooks.
  public var figures: [WebhookFigures]? { state.withLock { $0.figures.isEmpty ? nil : $0.figures } }
  /// Nil where there are no streams.
  public var streamFigures: [StreamFigures]? { state.withLock { $0.streams.isEmpty ? nil : $0.streams } }
}
