// Unanswered questions to other hubs, and their deadlines.

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
