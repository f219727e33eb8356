// Unanswered questions to other hubs and their deadlines, and what is answered.
import HubMessages

/// Questions by their token, which an answer names.
struct PendingQuestions<Question> {
  private var questions: [UInt64: Question] = [:]
  /// How often one was put that was put more than once.
  private var attempts: [UInt64: Int] = [:]
  private var lastToken: UInt64 = 0
  /// In the order of their times, since each waits equally long.
  private var deadlines = TimedQueue<UInt64>()

  var count: Int { questions.count }

  subscript(token: UInt64) -> Question? {
    get { questions[token] }
    _modify { yield &questions[token] }
  }

  mutating func insert(_ question: Question) -> UInt64 {
    lastToken += 1
    questions[lastToken] = question
    return lastToken
  }

  mutating func wait(_ token: UInt64, until time: Int64) { deadlines.append(token, at: time) }

  /// The next unanswered one that is due.
  mutating func nextOverdue(now: Int64) -> UInt64? {
    while let token = deadlines.next(now: now) {
      if questions[token] != nil { return token }
    }
    return nil
  }

  /// Counts a repetition; false at the limit.
  mutating func repeats(_ token: UInt64, atMost limit: Int) -> Bool {
    let known = attempts[token] ?? 1
    guard known < limit else { return false }
    attempts[token] = known + 1
    return true
  }

  /// Whether it was put more than once.
  func wasRepeated(_ token: UInt64) -> Bool { attempts[token] != nil }

  /// It is answered, one way or the other.
  mutating func finish(_ token: UInt64) -> Question? {
    attempts[token] = nil
    return questions.removeValue(forKey: token)
  }
}

/// Elements with ascending times.
struct TimedQueue<Element> {
  private var elements: [(time: Int64, element: Element)] = []
  private var head = 0

  mutating func append(_ element: Element, at time: Int64) { elements.append((time, element)) }

  /// Takes the next element that is due. O(1), amortised.
  mutating func next(now: Int64) -> Element? {
    guard head < elements.count, elements[head].time <= now else { return nil }
    defer { head += 1 }
    let element = elements[head].element
    if head >= 1024, head * 2 >= elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }
}

/// The trips that have begun here within a tenth of a second or so, of which the hub may not know yet.
struct RecentBeginnings {
  private var trips: Set<Channel> = []
  /// Uptime, ns.
  private var last: Int64 = 0

  mutating func insert(_ trip: Channel, at now: Int64, atMost limit: Int) {
    if now - last > 100_000_000 { trips.removeAll() }
    last = now
    if trips.count < limit { trips.insert(trip) }
  }

  func contains(_ trip: Channel, at now: Int64) -> Bool { now - last <= 100_000_000 && trips.contains(trip) }
}

extension Reply {
  /// Why fixes of a batch could not be read, which its driver's hub is not told.
  mutating func explain(_ batch: LocationBatch) {
    guard case .ack(var ack) = self, let rejected = ack.batch?.rejected else { return }
    for (number, rejection) in rejected.enumerated() where batch.fixes.indices.contains(rejection.index) {
      if case .failure(let code) = batch.fixes[rejection.index] { ack.batch?.rejected[number].code = code }
    }
    self = .ack(ack)
  }

  /// This answer as one to the message of that id.
  func replying(to messageID: MessageID) -> Reply {
    switch self {
    case .ack(var ack):
      ack.replyTo = messageID
      return .ack(ack)
    case .error(var error):
      error.replyTo = messageID
      return .error(error)
    case .connected, .subscribed, .unsubscribed, .pong, .sampling, .result: return self
    }
  }
}

extension ErrorReply {
  static let overloaded = ErrorReply(
    code: .rateLimited, message: "the hub that has this channel is overloaded; try again", retryAfter: 2)
  static let unknownWhere = ErrorReply(
    code: .rateLimited,
    message: "it is not at this hub, and the cluster's engine cannot say now where it is; try again", retryAfter: 2)
  static let unreachable = ErrorReply(
    code: .rateLimited, message: "the hub that has this channel cannot be reached now; try again", retryAfter: 2)
}
