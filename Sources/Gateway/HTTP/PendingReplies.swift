// Answers to requests that a loop cannot give in one turn: lists of drivers, what other threads find, pages of metrics
// that wait for other loops' counters, and tokens that are still to be signed.
import HubBytes
import HubCore
import HubMessages
import HubSystem
import HubTokens

struct PendingReplies {
  /// A page of metrics that waits for others' counters.
  private struct AwaitedCounters {
    let session: SessionRef
    let question: UInt64
    /// When it is answered without the missing ones (uptime, ns).
    let deadline: Int64
  }

  /// Between two checks whether the others have published their counters (ns).
  private static let metricsPause: Int64 = 1_000_000

  private let limits: Limits
  var lists: DriverListReplies
  var workers: WorkerAnswers
  private var pages: [AwaitedCounters] = []
  /// The next check (uptime, ns).
  private(set) var nextMetricsLook = Int64.max
  /// Answers of waiting requests whose tokens are still to be signed.
  private var unsigned: ArraySlice<(session: SessionRef, answer: HubAnswer)> = []
  /// Questions for the hub's next turn: each answer is as much work as one turn may have.
  private var postponed: [HubInput] = []

  init(_ limits: Limits, waking waker: Waker) {
    self.limits = limits
    lists = DriverListReplies(limits)
    workers = WorkerAnswers(limits, waking: waker)
  }

  /// Whether there is nothing to continue in the next turn.
  var isEmpty: Bool { lists.isEmpty && unsigned.isEmpty && postponed.isEmpty }
  /// Lists that are being written, and questions to the journal's past.
  var counts: (replies: Int, questions: Int) { (lists.count, workers.historyQuestions) }

  /// Puts a request's questions to the hub. That for the next page of a feed waits for the next turn; else all pages
  /// would be written in this one.
  mutating func ask(_ questions: [HubInput], for awaited: Awaited, _ inputs: inout HubInputs) {
    if case .vehicles = awaited {
      postponed += questions
    } else {
      for question in questions { inputs.append(question) }
    }
  }

  /// Puts the questions that were left for this turn.
  mutating func askPostponed(_ inputs: inout HubInputs) {
    for question in postponed { inputs.append(question) }
    postponed.removeAll()
  }

  // MARK: Signatures

  /// Whether an answer's tokens may be signed in this turn; if not, `nextUnsigned` returns it later. A hundred
  /// refreshes are stored, and so answered, at once, and an RSA signature takes almost a millisecond.
  mutating func maySign(
    _ answer: HubAnswer, of session: SessionRef, by signer: SigningKey?, _ budget: inout TurnBudget
  ) -> Bool {
    guard let signer, answer.signatures > 0 else { return true }
    guard budget.hasUnits else {
      unsigned.append((session, answer))
      return false
    }
    budget.spend(units: answer.signatures * WorkUnits.ofSigning(signer.algorithm))
    return true
  }

  /// The oldest answer that waits to be signed.
  mutating func nextUnsigned() -> (session: SessionRef, answer: HubAnswer)? { unsigned.popFirst() }

  // MARK: Metrics

  /// A request begins to wait for the counters of all loops.
  mutating func awaitCounters(_ session: SessionRef, question: UInt64, now: Int64) {
    let deadline = now + nanoseconds(limits.metricsSeconds)
    pages.append(AwaitedCounters(session: session, question: question, deadline: deadline))
    nextMetricsLook = now + PendingReplies.metricsPause
  }

  /// The pages for which all counters are there, or whose time is over.
  private mutating func takePages(
    _ settings: HTTPSettings, _ counters: inout LoopCounters, now: Int64
  ) -> [(session: SessionRef, answer: HubAnswer)] {
    var done: [(session: SessionRef, answer: HubAnswer)] = []
    pages.removeAll { page in
      let isWhole = settings.shared.metrics.isAnswered(page.question)
      guard isWhole || now >= page.deadline else { return false }
      if !isWhole { counters.count(.metricsTime) }
      done.append((page.session, .made(.success(settings.metricsPage()))))
      return true
    }
    nextMetricsLook = pages.isEmpty ? .max : now + PendingReplies.metricsPause
    return done
  }

  // MARK: All answers

  /// Whether `takeAnswers` may have something. Called each turn.
  func expectsAnswers(now: Int64) -> Bool {
    workers.areAwaited || now >= nextMetricsLook || !unsigned.isEmpty
  }

  /// Takes the answers of other threads, and the pages of metrics that are due.
  mutating func takeAnswers(
    _ settings: HTTPSettings, _ counters: inout LoopCounters, now: Int64
  ) -> [(session: SessionRef, answer: HubAnswer)] {
    let pages = now >= nextMetricsLook ? takePages(settings, &counters, now: now) : []
    return pages + workers.take(settings.shared.admissions, now: now)
  }
}
