// Requests for a trip that is not here, or for a driver: each goes to the hub that has it, and the answer comes back.
//
//     locatingReceiver: which hub has the trip? ──another hub──→ sent there ──answer→ the session has it
//         │ none
//         ├ `requested` for a driver ─→ locatingDriver: which hub has the driver? The trip begins there, or else here
//         ├ `requested` for nobody: it begins here
//         │     └─→ claimingStart: both are claimed for that hub, and the first claim decides, so that a request at two
//         │         hubs at once begins one trip
//         └ in every other case it is handled here
//
// So a trip that a back end requests for a driver lives at the driver's hub, where its fixes come, whichever hub was
// asked. Requests for one trip keep their order: while one is on the way, the next ones wait. What has no answer in
// time is sent once more: a hub takes what it has had before for a repetition, and answers as it did; a change, a
// driver's status or a notification without an id gets one for that. (What it would not recognise is sent once.) What
// has none then is refused, and all that wait behind it; and the hub that has the trip refuses what comes later than
// that (`ClusterLimits.requestAge`, by its own clock).
// While the ledger cannot be asked, what begins here is handled here, for a hub alone must keep working; what is for a
// trip or driver that it does not have is refused, since another hub may have it.
import HubBackplane
import HubBytes
import HubCore
import HubMessages

/// What the ledger is asked for a request, one after the other.
enum RequestStage: Equatable {
  /// Which hub has its trip or driver.
  case locatingReceiver
  /// No hub has the trip: which one has its driver.
  case locatingDriver(Identifier)
  /// No hub has the trip: claimed for the one that is to begin it. (That one claims the trip itself.)
  case claimingStart(of: Identifier, at: String)
}

/// The unanswered requests.
struct Forwarding {
  struct Pending {
    var request: TripRequest
    /// Where it was sent; nil while the ledger is asked.
    var peer: Int?
    /// When it became the first in its queue (uptime, ns).
    var began: Int64?
  }

  /// What an answer of the ledger leads to.
  private enum Step {
    case ask(RequestStage)
    case send(to: Int)
    /// All requests for its trip or driver are handled here.
    case handleAllHere(seizesDriver: Bool = false)
    /// All of them are handled here, as far as they can be without the ledger.
    case handleAllAlone
    /// Only the first one is handled here: it may begin the trip, which is claimed before the next one goes.
    case handleFirstHere
    case refuse
    /// The ledger is asked again in time, or once the other hubs are known.
    case wait
  }

  private(set) var pending = PendingQuestions<Pending>()
  /// By trip or driver, in order; the first one is on its way.
  private var queues: [Channel: [UInt64]] = [:]
  /// How many fixes the pending requests carry.
  private var fixes = 0
  private var beginnings = RecentBeginnings()
  let context: ClusterContext

  init(_ context: ClusterContext) { self.context = context }

  /// Gives its token where nothing for the same trip or driver is on the way: it can go.
  mutating func insert(_ request: TripRequest) -> UInt64? {
    let token = pending.insert(Pending(request: request))
    fixes += request.fixCount
    queues[request.receiver, default: []].append(token)
    return queues[request.receiver]?.count == 1 ? token : nil
  }

  /// All requests for a trip or a driver are done. Gives them in their order.
  mutating func finishAll(for receiver: Channel) -> [TripRequest] {
    let requests = (queues.removeValue(forKey: receiver) ?? []).compactMap { pending.finish($0)?.request }
    fixes -= requests.reduce(0) { $0 + $1.fixCount }
    return requests
  }
}

extension Forwarding {
  /// A session here asks for something that only the hub of a trip can do.
  mutating func forward(_ request: TripRequest) {
    // Other hubs do not hear this one any more: they would not know of what began here.
    if context.phase == .superseded { return refuse(request, .unreachable) }
    if context.isAlone { return handleAlone(request) }
    // A phone's message without a position: there is nothing to forward.
    if case .batch(let input, _) = request, input.batch.fixes.isEmpty {
      let none = Ack.Batch(accepted: 0, duplicates: 0, rejected: [])
      return answer(request, .ack(Ack(replyTo: request.messageID, batch: none)))
    }
    let limits = context.limits
    // Posts take at most half of the room, so that those for a hub that has just died leave some to other requests.
    guard pending.count < (request.fixCount > 0 ? limits.pending / 2 : limits.pending),
      fixes + request.fixCount <= limits.pendingFixes, hasRoom(behind: queues[request.receiver] ?? [], request.actor)
    else { return refuse(request, .overloaded) }
    if let token = insert(request) { begin(token) }
  }

  /// Whether the queue of a trip or driver takes another request of `actor`'s. Whether a rider or driver has any right
  /// there only the hub at the other end knows, so each has a part of the room.
  private func hasRoom(behind queue: [UInt64], _ actor: Actor) -> Bool {
    let limits = context.limits
    guard queue.count < limits.pendingPerReceiver else { return false }
    guard actor.role != .ops, queue.count >= limits.pendingPerSender else { return true }
    return queue.count { pending[$0]?.request.actor == actor } < limits.pendingPerSender
  }

  private mutating func begin(_ token: UInt64) {
    pending.wait(token, until: context.now.uptime + context.limits.answerTime)
    if pending[token]?.began == nil { pending[token]?.began = context.now.uptime }
    ask(.locatingReceiver, for: token)
  }

  /// The other hubs are known now: sends postponed requests.
  mutating func membersAreKnown() {
    for token in queues.values.compactMap(\.first).sorted() where pending[token]?.peer == nil {
      ask(.locatingReceiver, for: token)
    }
  }

  private func ask(_ stage: RequestStage, for token: UInt64) {
    guard let request = pending[token]?.request else { return }
    let question: LedgerQuestion? =
      switch stage {
      case .locatingReceiver: request.receiver.ledgerKey.map { .owner(key: $0) }
      case .locatingDriver(let driver): Channel.driver(driver).ledgerKey.map { .owner(key: $0) }
      case .claimingStart(let trip, let hub): .claim(key: "i:\(trip)", by: hub, known: 0, seizes: false)
      }
    guard let question else { preconditionFailure("trips and drivers have owners") }
    context.questions.append((question, .request(token, stage)))
  }

  mutating func handle(answer: LedgerAnswer, to stage: RequestStage, of token: UInt64) {
    guard let asked = pending[token], asked.peer == nil else { return }
    switch nextStep(after: stage, answer, asked.request) {
    case .ask(let next): ask(next, for: token)
    case .send(let index): send(token, to: index)
    case .handleAllHere(let seizesDriver):
      if seizesDriver, case .batch(var input, let driver) = asked.request {
        input.seizesDriver = true
        pending[token]?.request = .batch(input, of: driver)
      }
      for request in finishAll(for: asked.request.receiver) { handleHere(request) }
    case .handleAllAlone: for request in finishAll(for: asked.request.receiver) { handleAlone(request) }
    case .handleFirstHere: if let request = finish(token) { handleHere(request) }
    case .refuse: refuse(token, .unreachable)
    case .wait: break
    }
  }

  private func handleHere(_ request: TripRequest) { context.inputs.append(.cluster(.tripRequestHere(request))) }

  /// Handles a request without the ledger. One that follows a beginning may come before the hub has begun the trip.
  private mutating func handleAlone(_ request: TripRequest) {
    let (now, limits) = (context.now.uptime, context.limits)
    if request.beginning != nil { beginnings.insert(request.receiver, at: now, limits) }
    switch request {
    case .begin, .batch, .offer: handleHere(request)
    case .move(let input) where input.report.status == .requested: handleHere(request)
    case _ where beginnings.contains(request.receiver, at: now, limits): handleHere(request)
    case .move, .change, .alter, .decline, .status, .offers, .shares, .notify: refuse(request, .unknownWhere)
    }
  }

  /// What follows from an answer of the ledger; it changes nothing.
  private func nextStep(after stage: RequestStage, _ answer: LedgerAnswer, _ request: TripRequest) -> Step {
    // A missing answer of a reachable ledger is waited for no longer than a hub's.
    if answer == .unknown, !context.isAlone { return .wait }
    let own = context.identity.name
    switch stage {
    case .locatingReceiver:
      guard case .owner(let owner) = answer else { return .handleAllAlone }
      if let owner { return step(to: owner, for: request) }
      guard let beginning = request.beginning else { return .handleFirstHere }
      if let driver = beginning.driverID { return .ask(.locatingDriver(driver)) }
      return .ask(.claimingStart(of: beginning.tripID, at: own))
    case .locatingDriver:
      guard case .owner(let owner) = answer, let trip = request.beginning?.tripID else { return .handleAllAlone }
      guard let owner, owner != own else { return .ask(.claimingStart(of: trip, at: own)) }
      if context.member(owner) != nil { return .ask(.claimingStart(of: trip, at: owner)) }
      // A driver's hub that is gone does not decide where a trip begins.
      return context.isStarting ? .wait : .ask(.claimingStart(of: trip, at: own))
    case .claimingStart(_, let hub):
      if case .held(let other, _) = answer { return step(to: other, for: request) }
      return step(to: hub, for: request)
    }
  }

  /// A request is for the hub of that name.
  private func step(to name: String, for request: TripRequest) -> Step {
    if name == context.identity.name { return .handleAllHere() }
    if let index = context.member(name) { return .send(to: index) }
    if context.isStarting { return .wait }
    // A phone that posts does not wait for a hub that is gone.
    guard case .batch = request, context.phase == .member, context.knowsMembers else { return .refuse }
    return .handleAllHere(seizesDriver: true)
  }

  private mutating func send(_ token: UInt64, to index: Int) {
    guard let asked = pending[token] else { return }
    pending[token]?.peer = index
    context.counters.forwarded += 1
    let sent = withKey(asked.request, token)
    let clock = clock(of: context.peers[index], at: asked.began ?? context.now.uptime)
    context.peers[index].append(.tripRequest) { $0.append(sent, token: token, clock: clock, at: context.time) }
  }

  /// A peer's clock when a request began, or when the peer was last heard before (ms since 1970); 0 where it never was.
  private func clock(of peer: Peer, at time: Int64) -> UInt64 {
    UInt64(max(0, peer.clock - max(0, peer.heard - time) / 1_000_000))
  }

  /// A request as it is sent: one without an id gets a unique one, so that it is done once however often it is sent.
  private func withKey(_ request: TripRequest, _ token: UInt64) -> TripRequest {
    let numbers = [context.incarnation, token].map { String($0, radix: 36) }.joined(separator: ".")
    guard let key = MessageID("\(context.identity.name).\(numbers)") else { preconditionFailure("60 bytes at most") }
    switch request {
    case .alter(let session, let change, let actor, key: nil): return .alter(session, change, by: actor, key: key)
    case .status(let session, _, let report, let driver, isKeyed: false):
      return .status(session, key, report, of: driver, isKeyed: true)
    case .notify(let session, var post) where post.messageID == nil:
      post.messageID = key
      return .notify(session, post)
    case .move, .change, .begin, .alter, .decline, .status, .batch, .offers, .shares, .offer, .notify: return request
    }
  }

  private mutating func refuse(_ request: TripRequest, _ error: ErrorReply) {
    context.counters.refusals += 1
    answer(request, .error(error))
  }

  private func answer(_ request: TripRequest, _ reply: Reply) {
    let session = request.session
    var reply = reply.replying(to: request.messageID)
    if case .batch(let input, _) = request { reply.explain(input.batch) }
    let output: HubOutput =
      if case .notify = request, case .error(let error) = reply {
        .notified(session, .refused(error))
      } else {
        .reply(session, reply)
      }
    context.inputs.append(.cluster(.replied(session, output)))
  }

  private mutating func refuse(_ token: UInt64, _ error: ErrorReply) {
    if let request = finish(token) { refuse(request, error) }
  }

  /// A request is done, and the next of its trip can go.
  private mutating func finish(_ token: UInt64) -> TripRequest? {
    guard let request = pending.finish(token)?.request else { return nil }
    fixes -= request.fixCount
    queues[request.receiver]?.removeAll { $0 == token }
    if queues[request.receiver]?.isEmpty == true { queues[request.receiver] = nil }
    if let next = queues[request.receiver]?.first { begin(next) }
    return request
  }

  mutating func retry() {
    while let token = pending.nextOverdue(now: context.now.uptime) {
      guard let asked = pending[token] else { continue }
      if !pending.repeats(token, atMost: context.limits.attempts) {
        // Those behind it would each wait as long for the same hub, one after the other.
        for request in finishAll(for: asked.request.receiver) { refuse(request, .unreachable) }
      } else if asked.peer != nil, !asked.request.isRecognised {
        pending.wait(token, until: context.now.uptime + context.limits.answerTime)
      } else {
        pending[token]?.peer = nil
        begin(token)
      }
    }
  }

  mutating func receive(replied reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let token = try reader.varint()
    guard case .reply(let reply)? = try reader.message(&context.peers[index].reader) else { throw .message }
    let isNew = try reader.isAtEnd ? false : reader.byte() != 0
    let wasRepeated = pending.wasRepeated(token)
    guard pending[token]?.peer == index, let request = finish(token) else { return }
    if wasRepeated, case .shares(let session, _, .end, _) = request, case .error(let error) = reply,
      error.code == .notFound
    {
      // It was ended, and the first answer was lost.
      context.inputs.append(.cluster(.replied(session, .trips(session, .unshared, replyTo: nil))))
    } else if case .result(let reply) = reply, case .trip(let report) = reply.result {
      let output = HubOutput.trips(request.session, .trip(report, isNew: isNew), replyTo: nil)
      context.inputs.append(.cluster(.replied(request.session, output)))
    } else {
      answer(request, reply)
    }
  }

  // MARK: At the hub that has the trip

  mutating func receive(tripRequest reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let (token, clock) = (try reader.varint(), try reader.varint())
    var request = try reader.tripRequest(at: context.now)
    guard !isLate(request, began: clock),
      let session = context.session(for: index, token, Subscribe(channel: request.receiver))
    else {
      var refusal = ErrorReply.overloaded
      refusal.replyTo = request.messageID
      return reply(index, token, .error(refusal))
    }
    request.session = session
    context.inputs.append(HubInput(request))
  }

  /// Whether it comes so late that its sender has been refused. Fixes are never late: they count as of their own times.
  private func isLate(_ request: TripRequest, began clock: UInt64) -> Bool {
    if case .batch = request { return false }
    return clock > 0 && context.time.milliseconds - Int64(clamping: clock) > context.limits.requestAge
  }

  /// The hub has shown the offers of a trip; nil where it has ended them.
  func shown(_ session: SessionRef, _ report: OffersReport?, isNew: Bool = false) {
    answer(session, isNew) { bytes in
      bytes.append(UInt8(ascii: report == nil ? "e" : "o"))
      if let report { bytes.append(run: { report.append(to: &$0) }) }
    }
  }

  /// The hub has answered a question about a trip's shares.
  func shown(_ session: SessionRef, shares answer: TripAnswer) {
    self.answer(session, false) { bytes in
      bytes.append(UInt8(ascii: "s"))
      bytes.append(run: { answer.append(to: &$0) })
    }
  }

  /// The hub has published a notification.
  func notified(_ session: SessionRef, _ sequence: UInt64, isNew: Bool) {
    answer(session, isNew) { bytes in
      bytes.append(UInt8(ascii: "n"))
      bytes.append(varint: sequence)
    }
  }

  private func answer(_ session: SessionRef, _ isNew: Bool, _ body: (inout ByteBuffer) -> Void) {
    guard let (ask, isCurrent) = context.asker(session), isCurrent else { return }
    context.peers[ask.peer].append(.answered) { bytes in
      bytes.append(varint: ask.token)
      bytes.append(UInt8(isNew ? 1 : 0))
      body(&bytes)
    }
  }

  /// The hub that has the trip or driver has answered an HTTP request.
  mutating func receive(answered reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let (token, isNew, kind) = (try reader.varint(), try reader.byte() != 0, try reader.byte())
    guard let asked = pending[token], asked.peer == index else { return }
    let session = asked.request.session
    let output: HubOutput
    switch (kind, asked.request) {
    case (UInt8(ascii: "e"), .offers): output = .trips(session, .offersStopped, replyTo: nil)
    case (UInt8(ascii: "o"), .offers):
      guard let report = OffersReport(try reader.run()) else { throw .message }
      output = .trips(session, .offers(report, isNew: isNew), replyTo: nil)
    case (UInt8(ascii: "s"), .shares):
      guard let answer = TripAnswer(shares: try reader.run()) else { throw .message }
      output = .trips(session, answer, replyTo: nil)
    case (UInt8(ascii: "n"), .notify(_, let post)):
      output = .notified(session, .published(post.channel, sequence: try reader.varint(), isNew: isNew))
    default: throw .message
    }
    _ = finish(token)
    context.inputs.append(.cluster(.replied(session, output)))
  }

  /// The hub has answered a peer's request. `isNew`: the trip has begun with it.
  func reply(_ index: Int, _ token: UInt64, _ reply: Reply, isNew: Bool = false) {
    context.peers[index].append(.replied) { bytes in
      bytes.append(varint: token)
      bytes.append(reply, at: context.time)
      if isNew { bytes.append(1) }
    }
  }
}
