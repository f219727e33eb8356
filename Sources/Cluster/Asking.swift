// Questions that any hub may answer: drivers near a coordinate or within an area, a driver or a trip that is not here,
// pages of lists (Listing.swift). All hubs are asked, and their answers are merged.
//
//     a session asks → each hub that is heard, and this one → looks in its own index → merged here → the session
//
// So the answer is that of one hub with all drivers, with present positions: nothing is copied between hubs in advance,
// and a driver that nobody looks for costs nothing. The price is a search at each hub for each question. A hub that
// does not answer in time, or is too busy, is left out, and counted; a silent one is not asked.
import HubBackplane
import HubBytes
import HubCore
import HubMessages

/// Unanswered questions.
struct Asking {
  struct Pending {
    let question: FleetQuestion
    /// The hubs that have not answered.
    var waitsFor: Set<Int>
    /// Not every hub is asked, or known, or had room for the question.
    var isIncomplete = false
    /// The ledger is asked who has a trip that no hub knows.
    var asksOwner = false
    var found = Found()
  }

  private(set) var pending = PendingQuestions<Pending>()
  /// Questions that wait until the other hubs are known.
  private var starting: [FleetQuestion] = []
  /// The deadlines of lists, which wait longer for answers.
  private var listDeadlines = TimedQueue<UInt64>()
  let context: ClusterContext

  init(_ context: ClusterContext) { self.context = context }

  var count: Int { pending.count + starting.count }

  mutating func insert(
    _ question: FleetQuestion, to hubs: Set<Int>, isIncomplete: Bool = false, at now: Int64, _ limits: ClusterLimits
  ) -> UInt64 {
    let token = pending.insert(Pending(question: question, waitsFor: hubs, isIncomplete: isIncomplete))
    switch question.request {
    case .query: pending.wait(token, until: now + limits.questionTime)
    case .drivers, .trips: listDeadlines.append(token, at: now + limits.listTime)
    }
    return token
  }

  mutating func nextOverdue(now: Int64) -> Pending? {
    while let token = pending.nextOverdue(now: now) ?? listDeadlines.next(now: now) {
      if let overdue = pending.finish(token) { return overdue }
    }
    return nil
  }
}

extension Asking.Pending {
  /// No further answer changes the result.
  fileprivate var isDone: Bool {
    switch question.request {
    case .query(.drivers), .drivers, .trips: waitsFor.isEmpty || found.refusal != nil
    case .query(.driver): waitsFor.isEmpty || found.driver?.isOnline == true
    case .query(.trip): waitsFor.isEmpty || found.trip != nil
    }
  }

  /// Some hub may know more.
  var lacksAnswers: Bool { isIncomplete || asksOwner || !waitsFor.isEmpty }

  /// The ledger's key of a trip that no asked hub knows: its hub may have left the cluster. Nil for other questions,
  /// and where the asker has no right to the trip.
  fileprivate var ownerKey: String? {
    guard case .query(.trip(let id)) = question.request, found.refusal?.code == .unknownTrip, found.trip == nil,
      !lacksAnswers
    else { return nil }
    return Channel.trip(id).ledgerKey
  }

  /// The merged answer for the session.
  fileprivate var outcome: ClusterInput { .answered(question, answer) }

  private var answer: FleetAnswer {
    switch question.request {
    case .query(.driver):
      if found.driver == nil, lacksAnswers { return .refused(.cannotAsk) }
      return .result(found.driver.map { .driver($0) })
    case .query(.trip):
      // Every hub but the trip's own refuses as if there were no such trip.
      if let trip = found.trip { return .result(.trip(trip)) }
      return .refused(lacksAnswers ? .cannotAsk : found.refusal ?? .cannotAsk)
    case .query(.drivers), .drivers, .trips: break
    }
    if let refusal = found.refusal { return .refused(refusal) }
    switch question.request {
    case .drivers(let query): return .result(.drivers(found.page.drivers(of: query)))
    case .trips(let query): return .trips(found.page.trips(of: query))
    case .query: return .result(.drivers(found.drivers))
    }
  }
}

/// The answers so far.
struct Found {
  enum Answer {
    case nothing
    case result(QueryResult)
    case page(HubPage)
    case refused(ErrorReply)
  }

  /// The nearest of all, each once, up to the limit.
  fileprivate(set) var drivers = DriverList(drivers: [])
  fileprivate(set) var driver: DriverReport?
  fileprivate(set) var trip: TripReport?
  fileprivate(set) var page = FleetPage()
  fileprivate(set) var refusal: ErrorReply?
}

extension Asking.Pending {
  fileprivate mutating func merge(_ answer: Found.Answer, isOwn: Bool) {
    switch answer {
    case .nothing: break
    case .result(.drivers(let list)):
      if case .query(.drivers(let search)) = question.request { found.merge(list, search, for: question.audience) }
    case .result(.driver(let report)):
      if found.driver.map({ report.isNewer(than: $0) }) ?? true { found.driver = report }
    case .result(.trip(let report)): found.trip = report
    case .page(let page): found.page.merge(page)
    // A busy hub is left out as one that does not answer; offers ask all hubs again later.
    case .refused(let error) where !isOwn && error.code == .rateLimited && question.maySkipHubs: isIncomplete = true
    // This hub's refusal has priority: it may have known a trip that is forgotten.
    case .refused(let error): if isOwn || found.refusal == nil { found.refusal = error }
    }
  }
}

extension FleetQuestion {
  /// Whether a part of the hubs is asked where some are busy.
  fileprivate var maySkipHubs: Bool { if case .query = request { !session.isNobody } else { false } }
}

extension Found {
  /// Takes a hub's drivers among those of the others. One that has changed hubs is known to both. O(n log n) of the
  /// drivers of both.
  fileprivate mutating func merge(_ list: DriverList, _ search: DriverSearch, for audience: Audience) {
    var known: [Identifier: Int] = [:]
    for (index, report) in drivers.drivers.enumerated() { known[report.driverID] = index }
    for report in list.drivers {
      guard let index = known[report.driverID] else {
        drivers.drivers.append(report)
        continue
      }
      if report.isNewer(than: drivers.drivers[index]) { drivers.drivers[index] = report }
    }
    // Bounded, so that the sum cannot overflow, whatever hubs answer.
    drivers.more += min(list.more, Int(UInt32.max))
    let excess = drivers.drivers.count - search.limit(for: audience)
    guard excess > 0 else { return }
    drivers.sort()
    drivers.drivers.removeLast(excess)
    if case .nearby = search.area { return }
    drivers.more += excess
  }
}

extension ErrorReply {
  fileprivate static let cannotAsk = ErrorReply(
    code: .rateLimited, message: "the hubs of this cluster cannot answer now; ask again", retryAfter: 2)
}

extension DriverReport {
  /// Whether it is newer than another hub's report of the driver: the hub with its session knows it best.
  fileprivate func isNewer(than other: DriverReport) -> Bool {
    if (isOnline == true) != (other.isOnline == true) { return isOnline == true }
    return position?.age ?? .infinity < other.position?.age ?? .infinity
  }
}

extension Asking {
  /// A session here asks.
  mutating func ask(_ question: FleetQuestion) {
    guard count < context.limits.pending else {
      context.counters.refusals += 1
      return context.inputs.append(.cluster(.answered(question, .refused(.cannotAsk))))
    }
    if context.isStarting {
      starting.append(question)
    } else {
      put(question)
    }
  }

  /// Puts a question to all hubs.
  private mutating func put(_ question: FleetQuestion) {
    let others = context.audible
    let token = insert(
      question, to: Set(others).union([Ask.ownHub]), isIncomplete: !context.hearsAll, at: context.now.uptime,
      context.limits)
    if !others.isEmpty { context.counters.questions += 1 }
    for index in others {
      let asked = question.asked(of: context.peers[index].name)
      switch asked.request {
      case .query(let request):
        context.peers[index].append(.question) { $0.append(request, asked, token: token, at: context.time) }
      case .drivers(let query): context.peers[index].append(.list) { $0.append(query, token: token) }
      case .trips(let query): context.peers[index].append(.list) { $0.append(query, token: token) }
      }
    }
    _ = put(question.asked(of: context.identity.name), of: Ask.ownHub, token)
  }

  /// Puts a question to this hub, for a peer or for the hub's own session; false where a peer asks too much at once.
  private func put(_ question: FleetQuestion, of peer: Int, _ token: UInt64) -> Bool {
    guard let session = context.session(for: peer, token) else { return false }
    var own = question
    own.session = session
    context.inputs.append(HubInput(own))
    return true
  }

  mutating func receive(question reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let token = try reader.varint()
    receive(asked: try reader.question(.nobody), token, from: index)
  }

  /// A peer asks.
  mutating func receive(asked question: FleetQuestion, _ token: UInt64, from index: Int) {
    if !put(question, of: index, token) { reply(index, .refused(.cannotAsk), token) }
  }

  /// This hub has answered.
  mutating func listed(_ page: HubPage, by session: SessionRef) {
    guard let (ask, isCurrent) = context.asker(session), isCurrent else { return }
    var page = page
    page.hub = context.identity.name
    reply(ask.peer, .page(page), ask.token)
  }

  mutating func found(_ result: QueryResult?, by session: SessionRef) {
    guard let (ask, isCurrent) = context.asker(session), isCurrent else { return }
    reply(ask.peer, result.map { .result($0) } ?? .nothing, ask.token)
  }

  /// Answers the asker, a peer or this hub itself.
  mutating func reply(_ peer: Int, _ answer: Found.Answer, _ token: UInt64) {
    guard peer != Ask.ownHub else { return receive(answer: answer, of: token, from: peer) }
    if case .page(let page) = answer {
      let most = context.limits.listedBytes
      return context.peers[peer].append(.listed) { $0.append(page, token: token, atMost: most, at: context.time) }
    }
    let message: Reply? =
      switch answer {
      case .nothing, .page: nil
      case .result(let result): .result(ResultReply(replyTo: ClusterOutput.unsolicited, result: result))
      case .refused(let error): .error(error)
      }
    context.peers[peer].append(.found) { bytes in
      bytes.append(varint: token)
      if let message { bytes.append(message, at: context.time) }
    }
  }

  mutating func receive(found reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let token = try reader.varint()
    guard !reader.isAtEnd else { return receive(answer: .nothing, of: token, from: index) }
    switch try reader.message(&context.peers[index].reader) {
    case .reply(.result(let reply))?: receive(answer: .result(reply.result), of: token, from: index)
    case .reply(.error(let error))?: receive(answer: .refused(error), of: token, from: index)
    case .reply, .publication, .unknown, nil: throw .message
    }
  }

  /// A hub has answered.
  mutating func receive(answer: Found.Answer, of token: UInt64, from hub: Int) {
    guard pending[token]?.waitsFor.remove(hub) != nil else { return }
    pending[token]?.merge(answer, isOwn: hub == Ask.ownHub)
    guard pending[token]?.isDone == true else { return }
    if !context.isAlone, let key = pending[token]?.ownerKey {
      pending[token]?.asksOwner = true
      return context.questions.append((.owner(key: key), .question(token)))
    }
    if let done = pending.finish(token) { finish(done) }
  }

  /// Handles the ledger's answer about a trip that no asked hub knows.
  mutating func handle(owner answer: LedgerAnswer, of token: UInt64) {
    guard pending[token]?.asksOwner == true else { return }
    // An owner that is a member has answered itself, or will answer the next question.
    if case .owner(let owner) = answer {
      pending[token]?.asksOwner = owner.map { $0 != context.identity.name && context.member($0) == nil } ?? false
    }
    if let done = pending.finish(token) { finish(done) }
  }

  private func finish(_ done: Pending, isLate: Bool = false) {
    if isLate || done.isIncomplete { context.counters.questionsIncomplete += 1 }
    context.inputs.append(.cluster(done.outcome))
  }

  /// Puts waiting questions, and answers those that have waited too long.
  mutating func endOverdue() {
    if !context.isStarting, !starting.isEmpty {
      let waiting = starting
      starting = []
      for question in waiting { put(question) }
    }
    while let overdue = nextOverdue(now: context.now.uptime) { finish(overdue, isLate: true) }
  }
}
