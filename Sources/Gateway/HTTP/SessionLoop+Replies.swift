// Questions that come over the socket and over HTTP alike, and what the hub says to who has asked.
import HubBytes
import HubCore
import HubHTTP
import HubMessages

extension SessionLoop {
  /// `query` of a session.
  mutating func query(_ slot: Int, _ messageID: MessageID, _ question: QueryRequest) {
    do throws(ErrorReply) { try ask(question, for: asker(slot, messageID)) } catch { send(.error(error), to: slot) }
  }

  private func asker(_ slot: Int, _ messageID: MessageID) -> Asker {
    Asker(
      session: reference(sessions[slot].connection), credential: sessions[slot].open.rights.credential,
      replyTo: messageID)
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
    guard case .query(.drivers(var list)?) = answer else { return send(answer, to: slot, session, replyTo) }
    let isCompressed = replyTo != nil && sessions[slot].phase == .open && sessions[slot].open.encoding.isCompressed
    if pending.mayWriteAtOnce(list, isCompressed: isCompressed, in: loop.turn) {
      list.sort()
      send(.query(.drivers(list)), to: slot, session, replyTo)
    } else if let replyTo {
      guard sessions[slot].phase == .open else { return }
      let (asker, form) = (asker(slot, replyTo), sessions[slot].open.form)
      pending.append(DriverListReply(list, to: asker, form, isCompressed: isCompressed))
    } else if let request = sessions[slot].exchange?.waiting, let caller = request.caller {
      let asker = Asker(session: session, credential: caller, replyTo: nil)
      pending.append(DriverListReply(list, to: asker, .json(request.time), isCompressed: false))
    }
  }

  private mutating func send(_ answer: HubAnswer, to slot: Int, _ session: SessionRef, _ replyTo: MessageID?) {
    guard let replyTo else { return answerRequest(of: session, answer) }
    guard let reply = answer.reply(to: replyTo) else { return }
    let before = loop.arena.count
    send(reply, to: slot)
    if case .trips(.trip) = answer { chargeAnswer(slot, bytes: loop.arena.count - before) }
  }

  /// A reply of the hub: to the session, or to the request that stands for it.
  mutating func deliver(_ reply: Reply, to session: SessionRef) {
    guard let slot = slot(of: session) else { return }
    guard sessions[slot].exchange?.isAnswering == true else { return send(reply, to: slot) }
    if let answer = HubAnswer(reply) { answerRequest(of: session, answer) }
  }

  /// Goes on with lists of many drivers, until the turn's share of them is gone.
  mutating func writeLists() {
    while let (reply, share) = pending.next(in: loop.turn) {
      let (session, replyTo) = (reply.asker.session, reply.asker.replyTo)
      guard let slot = slot(of: session),
        replyTo == nil ? sessions[slot].exchange?.waiting != nil : sessions[slot].phase == .open
      else { continue }
      let start = loop.arena.count
      pending.write(reply, share: share, in: loop.turn, into: &loop.arena, &counters)
      if reply.isCompressed { fanOut.compress(partAt: start, isLast: false) }
      reply.keepPart(from: start, in: &loop.arena, largest: limits.largestAnswer)
      if !reply.isDone(limit: limits.largestAnswer) {
        pending.append(reply)
      } else if let replyTo {
        let isSent = fanOut.send(
          reply, replyTo, to: sessions[slot].recipient, now: now.timestamp, through: loop,
          largest: limits.largestAnswer)
        if !isSent { refuse(slot, replyTo, .tooLarge, HubAnswer.tooLarge) }
      } else {
        answerRequest(of: session, .made(reply.response(largest: limits.largestAnswer)))
      }
      fanOut.flushIfLarge()
    }
  }
}
