// Moves and changes of trips that are not here: each goes to the hub that has the trip, and the answer comes back.
//
//     ledger: where is the trip? ──another hub──→ sent there ──answer→ the session has it
//         │ nowhere
//         ├ `requested`: it begins at the hub of the driver that it is for, if that is another's, and else here: who
//         │   claims the beginning first says where, so that a request which comes to two hubs at once begins one trip
//         └ in every other case it is handled here
//
// So a trip that a back end requests for a driver lives at the driver's hub, where its fixes come, whichever hub was
// asked. Requests for one trip keep their order: while
// one is on the way, the next ones wait. What has no answer in time is sent once more: a hub takes a move that it has
// had before for a repetition, and answers as it did. While the ledger cannot be asked, requests are handled here: a
// hub alone must go on.
import HubBackplane
import HubBytes
import HubCore
import HubMessages

/// The requests that are on the way.
struct Forwarding {
  struct Pending {
    var request: TripRequest
    /// Where it was sent; nil while the ledger is asked.
    var peer: Int?
  }

  private(set) var pending = PendingQuestions<Pending>()
  /// Those of each trip, in their order; the first one is on the way.
  private var queues: [Identifier: [UInt64]] = [:]
  let context: ClusterContext

  init(_ context: ClusterContext) { self.context = context }

  /// Gives its token where it is the first of its trip: it can go.
  mutating func insert(_ request: TripRequest) -> UInt64? {
    let token = pending.insert(Pending(request: request))
    queues[request.tripID, default: []].append(token)
    return queues[request.tripID]?.count == 1 ? token : nil
  }

  /// It is put once more; false where that was done often enough.
  mutating func repeats(_ token: UInt64, atMost attempts: Int) -> Bool {
    pending[token]?.peer = nil
    return pending.repeats(token, atMost: attempts)
  }

  /// A request is done. Gives it, and the token of the next of its trip, which can go.
  private mutating func remove(_ token: UInt64) -> (request: TripRequest, next: UInt64?)? {
    guard let request = pending.finish(token)?.request else { return nil }
    queues[request.tripID]?.removeAll { $0 == token }
    if queues[request.tripID]?.isEmpty == true { queues[request.tripID] = nil }
    return (request, queues[request.tripID]?.first)
  }

  /// All requests for a trip are done. Gives them in their order.
  mutating func finishAll(of trip: Identifier) -> [TripRequest] {
    (queues.removeValue(forKey: trip) ?? []).compactMap { pending.finish($0)?.request }
  }

}

extension Forwarding {
  /// A session here asks for something that only the hub of a trip can do.
  mutating func forward(_ request: TripRequest) {
    if context.isAlone { return context.inputs.append(.cluster(.tripRequestHere(request))) }
    guard pending.count < context.limits.pending else { return refuse(request, .overloaded) }
    if let token = insert(request) { begin(token, request.tripID) }
  }

  private mutating func begin(_ token: UInt64, _ trip: Identifier) {
    pending.wait(token, until: context.now.uptime + context.limits.answerTime)
    look(for: .trip(trip), token)
  }

  private mutating func look(for channel: Channel, _ token: UInt64) {
    guard let key = channel.ledgerKey else { preconditionFailure("trips and drivers have owners") }
    let isOfDriver = if case .driver = channel { true } else { false }
    context.questions.append((.owner(key: key), .owner(for: token, isOfDriver: isOfDriver)))
  }

  mutating func take(owner answer: LedgerAnswer, of token: UInt64, isOfDriver: Bool) {
    guard let asked = pending[token], asked.peer == nil, !isAskedAgain(answer) else { return }
    if case .owner(let name?) = answer, name != context.identity.name {
      if let index = context.member(name) {
        return isOfDriver ? claimBeginning(of: asked.request.tripID, at: name, token) : send(token, to: index)
      }
      // A driver's hub that is gone has no say in where a trip begins; the trip's own has.
      if !isOfDriver { return refuse(token, .unreachable) }
    }
    guard case .owner(let owner) = answer, let beginning = asked.request.beginning, isOfDriver || owner == nil else {
      return handleHere(asked.request.tripID)
    }
    if !isOfDriver, let driver = beginning.driverID { return look(for: .driver(driver), token) }
    claimBeginning(of: beginning.tripID, at: context.identity.name, token)
  }

  /// An answer that did not come, of a ledger that can be asked, is waited for no longer than one of a hub.
  private func isAskedAgain(_ answer: LedgerAnswer) -> Bool { answer == .unknown && !context.isAlone }

  /// Claims for a hub that a trip begins there. (The trip itself is claimed by that hub, when it has begun.)
  private mutating func claimBeginning(of trip: Identifier, at name: String, _ token: UInt64) {
    context.questions.append(
      (.claim(key: "i:\(trip)", by: name, known: 0, takes: false), .beginning(of: token, at: name)))
  }

  mutating func take(beginning answer: LedgerAnswer, of token: UInt64, at hub: String) {
    guard let asked = pending[token], asked.peer == nil, !isAskedAgain(answer) else { return }
    var name = hub
    if case .held(let other, _) = answer { name = other }
    if name != context.identity.name {
      guard let index = context.member(name) else { return refuse(token, .unreachable) }
      return send(token, to: index)
    }
    handleHere(asked.request.tripID)
  }

  private mutating func handleHere(_ trip: Identifier) {
    for request in finishAll(of: trip) { context.inputs.append(.cluster(.tripRequestHere(request))) }
  }

  private mutating func send(_ token: UInt64, to index: Int) {
    guard let request = pending[token]?.request else { return }
    pending[token]?.peer = index
    context.counters.forwarded += 1
    context.peers[index].append(.tripRequest) { $0.append(request, token: token, at: context.time) }
  }

  private mutating func refuse(_ request: TripRequest, _ error: ErrorReply) {
    context.counters.refusals += 1
    var refusal = error
    refusal.replyTo = request.messageID
    context.inputs.append(.cluster(.replied(request.session, .error(refusal))))
  }

  private mutating func refuse(_ token: UInt64, _ error: ErrorReply) {
    if let request = finish(token) { refuse(request, error) }
  }

  /// A request is done, and the next of its trip can go.
  private mutating func finish(_ token: UInt64) -> TripRequest? {
    guard let (request, next) = remove(token) else { return nil }
    if let next { begin(next, request.tripID) }
    return request
  }

  mutating func retry() {
    while let token = pending.nextOverdue(now: context.now.uptime) {
      guard let trip = pending[token]?.request.tripID else { continue }
      if repeats(token, atMost: context.limits.attempts) {
        begin(token, trip)
      } else {
        refuse(token, .unreachable)
      }
    }
  }

  mutating func take(replied reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let token = try reader.varint()
    guard case .reply(let reply)? = try reader.message(&context.peers[index].reader) else { throw .message }
    let isNew = try reader.isAtEnd ? false : reader.byte() != 0
    guard pending[token]?.peer == index, let request = finish(token) else { return }
    if case .result(let reply) = reply, case .trip(let report) = reply.result {
      context.inputs.append(.cluster(.tripShown(request.session, report, isNew: isNew)))
    } else {
      context.inputs.append(.cluster(.replied(request.session, reply)))
    }
  }

  // MARK: At the hub that has the trip

  mutating func take(tripRequest reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let token = try reader.varint()
    var request = try reader.tripRequest()
    guard let session = context.session(for: index, token, .trip(request.tripID)) else {
      var refusal = ErrorReply.overloaded
      refusal.replyTo = request.messageID
      return reply(index, token, .error(refusal))
    }
    request.session = session
    context.inputs.append(HubInput(request))
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

extension ErrorReply {
  static let overloaded = ErrorReply(
    code: .rateLimited, message: "the hub that has this channel has too much to do; subscribe again", retryAfter: 2)
  static let unreachable = ErrorReply(
    code: .rateLimited, message: "the hub that has this channel cannot be reached now; subscribe again", retryAfter: 2)
}
