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

  /// Gives its token where it is the first of its trip: it can go.
  mutating func insert(_ request: TripRequest) -> UInt64? {
    let token = pending.insert(Pending(request: request))
    queues[request.tripID, default: []].append(token)
    return queues[request.tripID]?.count == 1 ? token : nil
  }

  mutating func send(_ token: UInt64, to peer: Int?) { pending[token]?.peer = peer }

  /// It is put once more; false where that was done often enough.
  mutating func repeats(_ token: UInt64, atMost attempts: Int) -> Bool {
    pending[token]?.peer = nil
    return pending.repeats(token, atMost: attempts)
  }

  /// A request is done. Gives it, and the token of the next of its trip, which can go.
  mutating func finish(_ token: UInt64) -> (request: TripRequest, next: UInt64?)? {
    guard let request = pending.finish(token)?.request else { return nil }
    queues[request.tripID]?.removeAll { $0 == token }
    if queues[request.tripID]?.isEmpty == true { queues[request.tripID] = nil }
    return (request, queues[request.tripID]?.first)
  }

  /// All requests for a trip are done. Gives them in their order.
  mutating func finishAll(of trip: Identifier) -> [TripRequest] {
    (queues.removeValue(forKey: trip) ?? []).compactMap { pending.finish($0)?.request }
  }

  mutating func wait(_ token: UInt64, until time: Int64) { pending.wait(token, until: time) }
  mutating func nextOverdue(now: Int64) -> UInt64? { pending.nextOverdue(now: now) }
}

extension ClusterNode {
  /// A session here asks for something that only the hub of a trip can do.
  mutating func forward(_ request: TripRequest) {
    if isAlone { return inputs.append(.cluster(.tripRequestHere(request))) }
    guard forwarding.pending.count < limits.pending else { return refuse(request, .overloaded) }
    if let token = forwarding.insert(request) { begin(token, request.tripID) }
  }

  private mutating func begin(_ token: UInt64, _ trip: Identifier) {
    forwarding.wait(token, until: now.uptime + limits.answerTime)
    look(for: .trip(trip), token)
  }

  private mutating func look(for channel: Channel, _ token: UInt64) {
    guard let key = ClusterNode.ledgerKey(channel) else { preconditionFailure("trips and drivers have owners") }
    let isOfDriver = if case .driver = channel { true } else { false }
    questions.append((.owner(key: key), .place(of: token, isOfDriver: isOfDriver)))
  }

  mutating func take(place answer: LedgerAnswer, of token: UInt64, isOfDriver: Bool) {
    guard let pending = forwarding.pending[token], pending.peer == nil, !isAskedAgain(answer) else { return }
    if case .owner(let name?) = answer, name != identity.name {
      if let index = knownPeer(name), peers[index].isMember {
        return isOfDriver ? claimBeginning(of: pending.request.tripID, at: name, token) : send(token, to: index)
      }
      // A driver's hub that is gone has no say in where a trip begins; the trip's own has.
      if !isOfDriver { return refuse(token, .unreachable) }
    }
    guard case .owner(let owner) = answer, let beginning = pending.request.beginning, isOfDriver || owner == nil else {
      return handleHere(pending.request.tripID)
    }
    if !isOfDriver, let driver = beginning.driverID { return look(for: .driver(driver), token) }
    claimBeginning(of: beginning.tripID, at: identity.name, token)
  }

  /// An answer that did not come, of a ledger that can be asked, is waited for no longer than one of a hub.
  private func isAskedAgain(_ answer: LedgerAnswer) -> Bool { answer == .unknown && !isAlone }

  /// Claims for a hub that a trip begins there. (The trip itself is claimed by that hub, when it has begun.)
  private mutating func claimBeginning(of trip: Identifier, at name: String, _ token: UInt64) {
    questions.append((.claim(key: "i:\(trip)", by: name, known: 0, takes: false), .beginning(of: token, at: name)))
  }

  mutating func take(beginning answer: LedgerAnswer, of token: UInt64, at hub: String) {
    guard let pending = forwarding.pending[token], pending.peer == nil, !isAskedAgain(answer) else { return }
    var name = hub
    if case .held(let other, _) = answer { name = other }
    if name != identity.name {
      guard let index = knownPeer(name), peers[index].isMember else { return refuse(token, .unreachable) }
      return send(token, to: index)
    }
    handleHere(pending.request.tripID)
  }

  private mutating func handleHere(_ trip: Identifier) {
    for request in forwarding.finishAll(of: trip) { inputs.append(.cluster(.tripRequestHere(request))) }
  }

  private mutating func send(_ token: UInt64, to index: Int) {
    guard let request = forwarding.pending[token]?.request else { return }
    forwarding.send(token, to: index)
    counters.forwarded += 1
    let time = now.timestamp
    peers[index].append(.tripRequest, limits) { $0.append(request, token: token, at: time) }
  }

  private mutating func refuse(_ request: TripRequest, _ error: ErrorReply) {
    counters.refusals += 1
    var refusal = error
    refusal.replyTo = request.messageID
    inputs.append(.cluster(.replied(request.session, .error(refusal))))
  }

  private mutating func refuse(_ token: UInt64, _ error: ErrorReply) {
    if let request = finish(token) { refuse(request, error) }
  }

  /// A request is done, and the next of its trip can go.
  private mutating func finish(_ token: UInt64) -> TripRequest? {
    guard let (request, next) = forwarding.finish(token) else { return nil }
    if let next { begin(next, request.tripID) }
    return request
  }

  mutating func retryForwarding() {
    while let token = forwarding.nextOverdue(now: now.uptime) {
      guard let pending = forwarding.pending[token] else { continue }
      if forwarding.repeats(token, atMost: limits.attempts) {
        begin(token, pending.request.tripID)
      } else {
        refuse(token, .unreachable)
      }
    }
  }

  mutating func take(replied reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let token = try reader.varint()
    guard case .reply(let reply)? = try reader.message(&peers[index].reader) else { throw .message }
    let isNew = try reader.isAtEnd ? false : reader.byte() != 0
    guard forwarding.pending[token]?.peer == index, let request = finish(token) else { return }
    if case .result(let reply) = reply, case .trip(let report) = reply.result {
      inputs.append(.cluster(.tripShown(request.session, report, isNew: isNew)))
    } else {
      inputs.append(.cluster(.replied(request.session, reply)))
    }
  }

  // MARK: At the hub that has the trip

  mutating func take(tripRequest reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let token = try reader.varint()
    var request = try reader.tripRequest()
    guard peers[index].asks < limits.asksPerPeer else {
      var refusal = ErrorReply.overloaded
      refusal.replyTo = request.messageID
      return reply(index, token, .error(refusal))
    }
    peers[index].asks += 1
    let session = owning.insert(
      Owning.Ask(
        peer: index, incarnation: peers[index].incarnation, token: token, channel: .trip(request.tripID),
        generation: 0), outlet: outlet)
    request.session = session
    inputs.append(HubInput(request))
  }

  /// The hub has answered a peer's request.
  mutating func answered(_ session: SessionRef, _ reply: Reply) {
    guard let (ask, isCurrent) = asker(session), isCurrent else { return }
    if ask.channel == nil { found(reply, ask) } else { self.reply(ask.peer, ask.token, reply) }
  }

  /// The hub has shown a trip: to who asked for it, or has begun or changed it over HTTP.
  mutating func shown(_ session: SessionRef, _ report: TripReport, isNew: Bool) {
    guard let (ask, isCurrent) = asker(session), isCurrent else { return }
    guard ask.channel != nil else { return found(report, ask) }
    reply(
      ask.peer, ask.token, .result(ResultReply(replyTo: ClusterOutput.unasked, result: .trip(report))), isNew: isNew)
  }

  private mutating func reply(_ index: Int, _ token: UInt64, _ reply: Reply, isNew: Bool = false) {
    let time = now.timestamp
    peers[index].append(.replied, limits) { bytes in
      bytes.append(varint: token)
      bytes.append(reply, at: time)
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
