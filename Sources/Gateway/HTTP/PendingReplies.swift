// Answers that take several turns of a loop: lists of many drivers that are written, pages of metrics that wait for
// other loops' counters, and questions to the journal's reader. Each kind has its limit.
//
// 1,000 drivers with 8 tags each are 750 KB of JSON: 0.5 to 1 ms to write, and two to four to compress. Unfinished
// lists take turns, each writing a part of a turn's limit (`Limits.reportsPerTurn`), so that a long one delays a short
// one by a turn or two. A short one is sent at once if none is unfinished.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubSystem
import HubTiles
import HubTokens
import HubTransport
import HubWebhooks

/// A list of drivers while it is written. The answer to a message is sent when it is complete; other messages of the
/// session may come before it.
final class DriverListReply {
  let asker: Asker
  let form: MessageForm
  fileprivate let identity: IdentityKey
  /// `body` is compressed with the shared compressor. (A session with its own context compresses the whole message when
  /// it is sent, since other messages may come before.)
  let isCompressed: Bool
  private var writer: DriverListWriter
  /// What is written so far: a response's body, or the middle of a message.
  private(set) var body: [UInt8] = []
  /// Its bytes before compression.
  private(set) var plainBytes = 0
  /// The expected number of parts, if all have as many drivers as the first.
  private var parts = 1.0

  init(_ list: DriverList, to asker: Asker, _ form: MessageForm, isCompressed: Bool) {
    self.asker = asker
    self.form = form
    identity = IdentityKey(asker.credential)
    self.isCompressed = isCompressed
    writer = DriverListWriter(list, form: form)
  }

  /// All is written, or more than the limit.
  fileprivate func isDone(limit: Int) -> Bool { writer.isDone || plainBytes > limit }

  fileprivate var left: Int { writer.left }

  /// The answer to a request, when it is complete.
  func response(largest: Int) -> Result<Response, Refusal> {
    if body.count > largest { return .failure(Refusal(.tooLarge, HubAnswer.tooLarge)) }
    return .success(Response(.ok, contentType: "application/json", body: body))
  }

  /// Writes so many more drivers at the arena's end, memory that is in cache. Gives their number. `keepPart` moves them
  /// from there, after compression if any.
  fileprivate func writePart(atMost drivers: Int, into arena: inout ByteBuffer) -> Int {
    let start = arena.count
    let all = writer.left
    let written = writer.write(atMost: drivers, into: &arena)
    if plainBytes == 0 { parts = Double(all) / Double(max(1, written)) }
    plainBytes += arena.count - start
    return written
  }

  /// Moves the arena's bytes from `start` to the answer.
  fileprivate func keepPart(from start: Int, in arena: inout ByteBuffer, largest: Int) {
    if body.isEmpty {
      // All parts will most likely be as long as this: without reserving, the answer would be copied as it grows.
      body.reserveCapacity(min(Int(Double(arena.count - start) * parts) + 1024, largest + 1024))
      if asker.replyTo == nil { body.append(UInt8(ascii: "{")) }
    }
    unsafe arena.withBytes { unsafe body.append(contentsOf: $0[start...]) }
    arena.truncate(to: start)
    if asker.replyTo == nil, writer.isDone { body.append(UInt8(ascii: "}")) }
  }
}

/// The answer of a worker thread to a waiting request: the journal's reader, the webhooks' thread or the map's.
struct WorkerAnswer: Sendable {
  let session: SessionRef
  fileprivate let isImage: Bool
  /// Counts for who asked, until the answer is sent; nil for an image of the map on loopback.
  fileprivate let question: QuestionReservation?
  /// The key of the address that is charged for the records that were read, and their number; 0 for none.
  private let rateKey: UInt64
  var records = 0
  var result = Result<Response, Refusal>.failure(.journalIsBusy)
  var memory: MemoryReservation?

  init(to session: SessionRef, isImage: Bool = false, _ question: QuestionReservation?, rateKey: UInt64 = 0) {
    (self.session, self.isImage, self.question, self.rateKey) = (session, isImage, question, rateKey)
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
  private var lists: [DriverListReply] = []
  /// The turn in which drivers were last written, and their number.
  private var turn: UInt64 = 0
  private var written = 0
  private var pages: [AwaitedCounters] = []
  /// The next check (uptime, ns).
  private(set) var nextMetricsLook = Int64.max
  /// Answers of waiting requests whose tokens are still to be signed.
  private var unsigned: ArraySlice<(session: SessionRef, answer: HubAnswer)> = []
  /// Questions for the hub's next turn: each answer is as much work as one turn may have.
  private var postponed: [HubInput] = []
  /// What worker threads have found, and how many questions, and images of the map, they have not answered.
  private let found: Mailbox<WorkerAnswer>
  private var historyQuestions = 0
  private var tileQuestions = 0

  init(_ limits: Limits, waking waker: Waker) {
    self.limits = limits
    found = Mailbox(capacity: limits.historyQuestions + limits.tileQuestions, waking: waker)
  }

  /// Puts a request's questions to the hub. A page of a feed waits for the next turn: at once, all of them would be
  /// written in this one.
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

  // MARK: Lists of drivers

  /// Whether there is nothing to continue in the next turn.
  var isEmpty: Bool { lists.isEmpty && unsigned.isEmpty && postponed.isEmpty }
  /// Lists that are being written, and questions to the journal's past.
  var counts: (replies: Int, questions: Int) { (lists.count, historyQuestions) }

  /// Throws at the limit: a client that asks faster than its answers are written would pile them up.
  func admitQuery(_ asker: Asker, _ counters: inout LoopCounters) throws(ErrorReply) {
    if lists.isEmpty { return }
    let (role, identity) = (asker.credential.role, IdentityKey(asker.credential))
    var refusal = ErrorReply(
      code: .rateLimited, message: "too many queries are under way", replyTo: asker.replyTo, retryAfter: 1)
    if lists.count(where: { $0.asker.session == asker.session }) >= limits.hub.queriesPerSession {
      refusal.message = "a session has at most \(limits.hub.queriesPerSession) queries under way"
    } else if lists.count(where: { $0.identity == identity }) >= limits.hub.queriesPerIdentity[role] {
      counters.count(.queriesPerIdentity)
      refusal.message = role.queriesLimit(limits.hub.queriesPerIdentity)
      refusal.isOwnLimit = true
    } else if lists.count < role.share(of: limits.hub.queries) {
      return
    } else {
      counters.answersFull += 1
    }
    counters.queriesRefused += 1
    throw refusal
  }

  /// The weight of a driver: compressing takes some three times as long as writing.
  private static func weight(isCompressed: Bool) -> Int { isCompressed ? 4 : 1 }

  /// The number of drivers that may still be written in a turn.
  private func room(in turn: UInt64) -> Int {
    self.turn == turn ? limits.reportsPerTurn - written : limits.reportsPerTurn
  }

  private mutating func spend(_ drivers: Int, in turn: UInt64) {
    if self.turn != turn { written = 0 }
    self.turn = turn
    written += drivers
  }

  /// Whether a list fits this turn and none is before it. Then it counts as written.
  mutating func mayWriteAtOnce(_ list: DriverList, isCompressed: Bool, in turn: UInt64) -> Bool {
    let cost = max(1, list.drivers.count) * PendingReplies.weight(isCompressed: isCompressed)
    guard lists.isEmpty, cost <= room(in: turn) else { return false }
    spend(cost, in: turn)
    return true
  }

  mutating func append(_ reply: DriverListReply) { lists.append(reply) }

  /// The next list and its budget; nil where there is none, or the turn's budget is used up. All lists get a part in
  /// turn.
  mutating func next(in turn: UInt64) -> (reply: DriverListReply, share: Int)? {
    let room = room(in: turn)
    guard room > 0, !lists.isEmpty else { return nil }
    let reply = lists.removeFirst()
    return (reply, lists.isEmpty ? room : min(room, max(1, limits.reportsPerTurn / 4)))
  }

  /// Writes a part of a list; false where more is left.
  mutating func write(
    _ reply: DriverListReply, share: Int, _ loop: EventLoop, _ fanOut: inout FanOut, _ counters: inout LoopCounters
  ) -> Bool {
    let weight = PendingReplies.weight(isCompressed: reply.isCompressed)
    if reply.plainBytes == 0, reply.left > share / weight { counters.answersContinued += 1 }
    let start = loop.arena.count
    let drivers = reply.writePart(atMost: max(1, share / weight), into: &loop.arena)
    spend(max(1, drivers) * weight, in: loop.turn)
    if reply.isCompressed { fanOut.compress(partAt: start, isLast: false) }
    reply.keepPart(from: start, in: &loop.arena, largest: limits.largestAnswer)
    if reply.isDone(limit: limits.largestAnswer) { return true }
    append(reply)
    return false
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

  // MARK: Worker threads

  /// Puts a question to the journal's reader or the webhooks' thread, answered through `takeAnswers`. `rateKey`: that
  /// of the address, which pays for what is read, unless ops ask.
  mutating func consult(
    _ question: WorkerQuestion, for asker: Asker, at rateKey: UInt64, _ shared: SharedState,
    _ counters: inout LoopCounters
  ) throws(Refusal) {
    let role = asker.credential.role
    guard let reservation = QuestionReservation(of: asker.credential, in: shared.admissions) else {
      counters.historyRefused += 1
      throw Refusal(
        .rateLimited, role.queriesLimit(limits.hub.queriesPerIdentity), status: .tooManyRequests, retryAfter: 1,
        counting: { $0.count(.queriesPerIdentity) })
    }
    let hasRoom = historyQuestions < role.share(of: limits.historyQuestions)
    let answer = WorkerAnswer(to: asker.session, reservation, rateKey: role == .ops ? 0 : rateKey)
    guard hasRoom, put(question, for: asker.credential, answer, shared) else {
      counters.historyRefused += 1
      counters.historyFull += 1
      if case .webhooks = question { throw Refusal.webhooksAreBusy }
      throw Refusal.journalIsBusy
    }
    historyQuestions += 1
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
    let empty = WorkerAnswer(to: session, isImage: true, question)
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

  /// False at the thread's limit. There is room for its answer: a loop asks no more than its mailbox holds.
  private func put(
    _ question: WorkerQuestion, for asker: Credential, _ answer: WorkerAnswer, _ shared: SharedState
  ) -> Bool {
    let (limits, found) = (limits, found)
    switch question {
    case .history(let question):
      guard let reader = shared.history else { return false }
      let owner = MemoryOwner(IdentityKey(asker).hash, asker.role)
      return reader.ask(for: asker.role) { access in
        var answer = answer
        answer.take(question, by: owner, from: access, in: reader.memory, limits)
        _ = found.append(answer)
      }
    case .webhooks(let question, let time):
      return shared.webhooks?.ask(question) { reply in
        var answer = answer
        answer.result = WebhookEndpoints.response(reply, time)
        _ = found.append(answer)
      } ?? false
    }
  }

  /// Whether `takeAnswers` may have something. Called each turn.
  func expectsAnswers(now: Int64) -> Bool {
    historyQuestions + tileQuestions > 0 || now >= nextMetricsLook || !unsigned.isEmpty
  }

  /// Takes the answers of worker threads, and the pages of metrics that are due.
  mutating func takeAnswers(
    _ settings: HTTPSettings, _ counters: inout LoopCounters, now: Int64
  ) -> [(session: SessionRef, answer: HubAnswer)] {
    var answers = now >= nextMetricsLook ? takePages(settings, &counters, now: now) : []
    guard historyQuestions + tileQuestions > 0 else { return answers }
    var found: [WorkerAnswer] = []
    self.found.drain(into: &found)
    for answer in found {
      if answer.isImage { tileQuestions -= 1 } else { historyQuestions -= 1 }
      answer.charge(settings.shared.admissions, now: now)
      answers.append((answer.session, .made(answer.result, memory: answer.memory)))
    }
    return answers
  }
}
