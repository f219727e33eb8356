// Questions that come over the socket and over HTTP alike, and what the hub says to who has asked.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubTransport
import HubWebSocket

extension SessionLoop {
  /// `query` of a session.
  mutating func query(_ slot: Int, _ messageID: MessageID, _ question: QueryRequest) {
    let credential = sessions[slot].open.rights.credential
    do throws(ErrorReply) {
      try ask(
        question,
        for: Asker(session: reference(sessions[slot].connection), credential: credential, replyTo: messageID))
    } catch {
      send(.error(error), to: slot)
    }
  }

  /// Puts a question to the hub; throws where the asker may not, or not now.
  mutating func ask(_ question: QueryRequest, for asker: Asker) throws(ErrorReply) {
    let input = try asker.input(for: question, maximumLimit: limits.hub.queryHits)
    if case .drivers = question { try pending.admitQuery(asker, &counters) }
    inputs.append(input)
  }

  /// The hub's answer, to the message of a session or to the request that asked.
  mutating func reply(_ answer: HubAnswer, to session: SessionRef, replyTo: MessageID? = nil) {
    guard let slot = slot(of: session) else { return }
    var answer = answer
    if case .query(.drivers(var list)?) = answer {
      let isCompressed = replyTo != nil && sessions[slot].phase == .open && sessions[slot].open.encoding.isCompressed
      guard pending.mayWriteAtOnce(list, isCompressed: isCompressed, in: loop.turn) else {
        return writeOverTurns(list, to: session, slot, replyTo, isCompressed: isCompressed)
      }
      list.sort()
      answer = .query(.drivers(list))
    }
    guard let replyTo else { return answerRequest(slot, answer) }
    guard let reply = answer.reply(to: replyTo) else { return }
    let before = loop.arena.count
    send(reply, to: slot)
    if case .trips(.trip) = answer { chargeAnswer(slot, bytes: loop.arena.count - before) }
  }

  /// A reply of the hub: to the session, or to the request that stands for it.
  mutating func deliver(_ reply: Reply, to session: SessionRef) {
    guard let slot = slot(of: session) else { return }
    guard let exchange = sessions[slot].exchange, exchange.isAnswering else { return send(reply, to: slot) }
    if let answer = HubAnswer(reply) { answerRequest(slot, answer) }
  }

  // MARK: Lists of many drivers

  private mutating func writeOverTurns(
    _ list: DriverList, to session: SessionRef, _ slot: Int, _ replyTo: MessageID?, isCompressed: Bool
  ) {
    let request = sessions[slot].exchange?.waiting
    guard let credential = replyTo == nil ? request?.caller : sessions[slot].credential else { return }
    let form = request.map { .json($0.time) } ?? sessions[slot].open.form
    let asker = Asker(session: session, credential: credential, replyTo: replyTo)
    pending.append(DriverListReply(list, to: asker, form, isCompressed: isCompressed))
  }

  /// Goes on with those under way, until the turn's share of them is gone.
  mutating func writeLists() {
    while let (reply, share) = pending.next(in: loop.turn) {
      if let slot = slot(of: reply.asker.session), isAwaiting(reply, slot) {
        let start = loop.arena.count
        pending.write(reply, share: share, in: loop.turn, into: &loop.arena, &counters)
        if reply.isCompressed { fanOut.compress(partAt: start, isLast: false) }
        reply.keepPart(from: start, in: &loop.arena, largest: limits.largestAnswer)
        if reply.isDone(limit: limits.largestAnswer) { send(reply, to: slot) } else { pending.append(reply) }
      }
      fanOut.flushIfLarge()
    }
  }

  private func isAwaiting(_ reply: DriverListReply, _ slot: Int) -> Bool {
    reply.asker.replyTo == nil ? sessions[slot].exchange?.waiting != nil : sessions[slot].phase == .open
  }

  private mutating func send(_ reply: DriverListReply, to slot: Int) {
    if let replyTo = reply.asker.replyTo {
      let isSent = fanOut.send(
        reply, replyTo, to: sessions[slot].recipient, now: now.timestamp, through: loop, largest: limits.largestAnswer)
      return isSent ? () : refuse(slot, replyTo, .tooLarge, HubAnswer.tooLarge)
    }
    let isTooLarge = reply.body.count > limits.largestAnswer
    answerRequest(
      slot,
      isTooLarge
        ? .failure(Refusal(.tooLarge, HubAnswer.tooLarge))
        : .success(Response(.ok, contentType: "application/json", body: reply.body)))
  }
}
