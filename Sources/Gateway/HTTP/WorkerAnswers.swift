// Questions of requests that other threads answer: the journal's reader, the webhooks' thread and the map's. Each kind
// has its limit, and whoever asks has a share of it.
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubSystem
import HubTiles
import HubWebhooks

/// The answer of such a thread to a waiting request.
struct WorkerAnswer: Sendable {
  enum Worker {
    case history
    case webhooks
    case map
  }

  let session: SessionRef
  fileprivate let worker: Worker
  /// Counts for who asked, until the answer is sent; nil for an image of the map on loopback.
  fileprivate let question: QuestionReservation?
  /// The key of the address that is charged for the records that were read, and their number; 0 for none.
  private let rateKey: UInt64
  var records = 0
  var result = Result<Response, Refusal>.failure(.journalIsBusy)
  var memory: MemoryReservation?

  init(
    to session: SessionRef, from worker: Worker = .history, _ question: QuestionReservation?, rateKey: UInt64 = 0
  ) {
    (self.session, self.worker, self.question, self.rateKey) = (session, worker, question, rateKey)
  }

  /// Answers on the reader's thread, if there is room for one more answer to its asker.
  mutating func take(
    _ asked: HistoryQuestion, by owner: MemoryOwner, from access: HistoryAccess, in memory: MemoryBudget,
    _ limits: Limits
  ) {
    guard memory.hasRoom(for: owner) else { return }
    let before = access.recordsRead
    result = asked.answer(from: access, limits)
    records = access.recordsRead - before
    guard case .success(let response) = result else { return }
    self.memory = MemoryReservation(response.body.count, of: memory, by: owner, for: question)
    if self.memory == nil { result = .failure(.journalIsBusy) }
  }

  func charge(_ admissions: Admissions, now: Int64) {
    let units = WorkUnits.of(records: records)
    if units > 0, rateKey != 0 { admissions.chargeMore(rateKey, units, now: now) }
  }
}

struct WorkerAnswers {
  private let limits: Limits
  private let found: Mailbox<WorkerAnswer>
  /// Questions that are not answered: to the journal's reader, to the webhooks' thread, and for images of the map.
  private(set) var historyQuestions = 0
  private var webhookQuestions = 0
  private var tileQuestions = 0

  init(_ limits: Limits, waking waker: Waker) {
    self.limits = limits
    found = Mailbox(
      capacity: limits.historyQuestions + WebhookControl.maximumQuestions + limits.tileQuestions, waking: waker)
  }

  var areAwaited: Bool { historyQuestions + webhookQuestions + tileQuestions > 0 }

  /// Puts a question to the journal's reader or the webhooks' thread, answered through `take`. `rateKey`: that
  /// of the address, which pays for what is read, unless ops ask.
  mutating func consult(
    _ question: WorkerQuestion, for asker: Asker, at rateKey: UInt64, _ shared: SharedState,
    _ counters: inout LoopCounters
  ) throws(Refusal) {
    let role = asker.credential.role
    guard let reservation = QuestionReservation(of: asker.credential, in: shared.admissions) else {
      if case .history = question { counters.historyRefused += 1 }
      throw Refusal(
        .rateLimited, role.queriesLimit(limits.hub.queriesPerIdentity), status: .tooManyRequests, retryAfter: 1,
        counting: { $0.count(.queriesPerIdentity) })
    }
    switch question {
    case .history(let question):
      let answer = WorkerAnswer(to: asker.session, reservation, rateKey: role == .ops ? 0 : rateKey)
      guard historyQuestions < role.share(of: limits.historyQuestions),
        put(question, for: asker.credential, answer, shared)
      else {
        counters.historyRefused += 1
        counters.historyFull += 1
        throw Refusal.journalIsBusy
      }
      historyQuestions += 1
    case .webhooks(let question, let time):
      let empty = WorkerAnswer(to: asker.session, from: .webhooks, reservation)
      guard let webhooks = shared.webhooks, webhookQuestions < WebhookControl.maximumQuestions,
        webhooks.ask(
          question,
          { [found] reply in
            var answer = empty
            answer.result = WebhookEndpoints.response(reply, time)
            _ = found.append(answer)
          })
      else { throw Refusal.webhooksAreBusy }
      webhookQuestions += 1
    }
  }

  /// Requests an image. It counts for its address until it is sent, and each connection has one at a time.
  mutating func ask(
    for tile: MapTile, to request: HTTPRequest, by session: SessionRef, _ shared: SharedState
  ) throws(Refusal) {
    let (found, log, fields, limit) = (found, shared.log, request.head.fields, limits.tileQuestionsPerAddress)
    var question: QuestionReservation?
    if request.rateKey != 0 {
      question = QuestionReservation(ofAddress: request.rateKey, atMost: limit, in: shared.admissions)
      if question == nil { throw Refusal.mapIsBusy(with: "at most \(limit) images at a time from one address") }
    }
    let empty = WorkerAnswer(to: session, from: .map, question)
    guard let tiles = shared.tiles, tileQuestions < limits.tileQuestions,
      tiles.ask({ worker in
        var answer = empty
        let response = PageEndpoints.response(tile, from: &worker, to: fields, log)
        answer.memory = MemoryReservation(response.body.count, of: tiles.memory, for: answer.question)
        answer.result = answer.memory == nil ? .failure(.mapIsBusy()) : .success(response)
        _ = found.append(answer)
      })
    else { throw Refusal.mapIsBusy() }
    tileQuestions += 1
  }

  /// Puts a question to the journal's reader; false at its limit.
  private func put(
    _ question: HistoryQuestion, for asker: Credential, _ empty: WorkerAnswer, _ shared: SharedState
  ) -> Bool {
    guard let reader = shared.history else { return false }
    let owner = MemoryOwner(IdentityKey(asker).hash, asker.role)
    return reader.ask(for: asker.role) { [limits, found] access in
      var answer = empty
      answer.take(question, by: owner, from: access, in: reader.memory, limits)
      _ = found.append(answer)
    }
  }

  /// Takes what threads have answered, and charges the addresses that asked.
  mutating func take(
    _ admissions: Admissions, now: Int64
  ) -> [(session: SessionRef, answer: HubAnswer)] {
    guard areAwaited else { return [] }
    var answers: [WorkerAnswer] = []
    found.drain(into: &answers)
    return answers.map { answer in
      switch answer.worker {
      case .history: historyQuestions -= 1
      case .webhooks: webhookQuestions -= 1
      case .map: tileQuestions -= 1
      }
      answer.charge(admissions, now: now)
      return (answer.session, .made(answer.result, memory: answer.memory))
    }
  }
}
