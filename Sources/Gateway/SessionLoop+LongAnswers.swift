// Answers to queries that list many drivers: put in order and written over several turns, in which others have theirs.
//
// 1,000 drivers with 8 tags each are 750 KB of JSON: half a millisecond to a whole one to write, and two to four to
// compress. Those under way have their turn one after the other, a part of what a turn may write each
// (`Limits.reportsPerTurn`), so that a long one holds up a short one no longer than a turn or two. What is short and
// finds nothing under way goes out at once.
//
// On a socket the message goes out whole when it is done, and what else the session is told meanwhile before it.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport
import HubWebSocket

/// An answer that is being written.
final class LongAnswer {
  let session: SessionRef
  /// Who has asked; nil for nobody who is still there.
  let identity: IdentityKey?
  /// The message that asked; nil for a request.
  let replyTo: MessageID?
  /// `body` is compressed, with what all sessions share. (One that has a context compresses the whole message when it
  /// is sent: what else is sent to it comes before.)
  let isCompressed: Bool
  var writer: DriverListWriter
  /// What is written of it: a response's body, or what stands between the ends of a message.
  var body: [UInt8] = []
  /// Bytes of the same before compression.
  var plainBytes = 0

  init(
    _ session: SessionRef, _ asker: Credential?, _ list: DriverList, _ form: MessageForm, replyTo: MessageID?,
    isCompressed: Bool
  ) {
    self.session = session
    identity = asker.map { IdentityKey($0) }
    self.replyTo = replyTo
    self.isCompressed = isCompressed
    writer = DriverListWriter(list, form: form)
  }
}

/// The answers that a loop is writing.
struct AnswersUnderWay {
  /// What a driver counts: to compress it takes some three times as long as to write it.
  static func weight(isCompressed: Bool) -> Int { isCompressed ? 4 : 1 }

  private var queue: [LongAnswer] = []
  /// The turn in which drivers were written last, and how many.
  private var turn: UInt64 = 0
  private var written = 0

  var isEmpty: Bool { queue.isEmpty }
  var count: Int { queue.count }

  func count(of session: SessionRef) -> Int { queue.count { $0.session == session } }
  func count(of identity: IdentityKey) -> Int { queue.count { $0.identity == identity } }

  /// How many drivers may still be written in a turn.
  func room(in turn: UInt64, of limit: Int) -> Int { self.turn == turn ? limit - written : limit }

  mutating func spend(_ drivers: Int, in turn: UInt64) {
    if self.turn != turn { written = 0 }
    self.turn = turn
    written += drivers
  }

  mutating func append(_ answer: LongAnswer) { queue.append(answer) }

  /// The one whose turn it is, which there must be.
  mutating func removeFirst() -> LongAnswer { queue.removeFirst() }
}

extension SessionLoop {
  /// Why a query may not be put; nil where it may. A client that asks faster than its answers are written would pile
  /// them up.
  mutating func refusalOfQuery(_ slot: Int, _ asker: Credential) -> ErrorReply? {
    if answers.isEmpty { return nil }
    var refusal = ErrorReply(code: .rateLimited, message: "too many queries are under way", retryAfter: 1)
    if answers.count(of: reference(sessions[slot].connection)) >= limits.hub.queriesPerSession {
      refusal.message = "a session has at most \(limits.hub.queriesPerSession) queries under way"
    } else if answers.count(of: IdentityKey(asker)) >= limits.hub.queriesPerIdentity[asker.role] {
      counters.count(.queriesPerIdentity)
      refusal.message = asker.role.queriesLimit(limits.hub.queriesPerIdentity)
      refusal.isOwnLimit = true
    } else if answers.count < asker.role.share(of: limits.hub.queries) {
      return nil
    } else {
      counters.answersFull += 1
    }
    counters.queriesRefused += 1
    return refusal
  }

  /// Whether the answer is short enough for this turn, and none is before it. Then it counts as written.
  mutating func mayWriteAtOnce(_ list: DriverList, isCompressed: Bool) -> Bool {
    let cost = max(1, list.drivers.count) * AnswersUnderWay.weight(isCompressed: isCompressed)
    guard answers.isEmpty, cost <= answers.room(in: loop.turn, of: limits.reportsPerTurn) else { return false }
    answers.spend(cost, in: loop.turn)
    return true
  }

  mutating func writeOverTurns(_ slot: Int, _ list: DriverList, _ replyTo: MessageID?) {
    let session = reference(sessions[slot].connection)
    guard let replyTo else {
      guard let exchange = sessions[slot].exchange, exchange.isWaiting else { return }
      return answers.append(
        LongAnswer(
          session, requester(exchange), list, .json(exchange.time), replyTo: nil, isCompressed: false))
    }
    guard sessions[slot].phase == .open else { return }
    answers.append(
      LongAnswer(
        session, sessions[slot].credential, list, sessions[slot].form, replyTo: replyTo,
        isCompressed: sessions[slot].encoding.isCompressed))
  }

  /// Goes on with what is under way, until the turn's share of it is gone.
  mutating func writeAnswers() {
    var room = answers.room(in: loop.turn, of: limits.reportsPerTurn)
    // All that were there before have had a part when the first has its next one.
    while room > 0, !answers.isEmpty {
      let answer = answers.removeFirst()
      let share = answers.isEmpty ? room : min(room, max(1, limits.reportsPerTurn / 4))
      if !write(answer, share: share) { answers.append(answer) }
      fanOut.flushIfLarge()
      room = answers.room(in: loop.turn, of: limits.reportsPerTurn)
    }
  }

  /// Writes a part of an answer; true where it is done, or nobody waits for it any more.
  private mutating func write(_ answer: LongAnswer, share: Int) -> Bool {
    guard let slot = slot(of: answer.session) else { return true }
    let exchange = sessions[slot].exchange
    guard answer.replyTo == nil ? exchange?.isWaiting == true : sessions[slot].phase == .open else { return true }
    writePart(of: answer, share: share)
    let isTooLarge = answer.plainBytes > limits.largestAnswer
    guard answer.writer.isDone || isTooLarge else { return false }
    if let replyTo = answer.replyTo {
      if isTooLarge { refuse(slot, replyTo, .tooLarge, Self.tooLargeAnswer) } else { send(answer, replyTo, to: slot) }
    } else if let exchange {
      finish(slot, exchange, answer)
    }
    return true
  }

  private mutating func writePart(of answer: LongAnswer, share: Int) {
    let weight = AnswersUnderWay.weight(isCompressed: answer.isCompressed)
    let isFirst = answer.plainBytes == 0
    if isFirst, answer.writer.left > share / weight { counters.answersContinued += 1 }
    // At the arena's end, which all that is written passes by: its memory is there and warm.
    let start = loop.arena.count
    let all = answer.writer.left
    let drivers = answer.writer.write(atMost: max(1, share / weight), into: &loop.arena)
    answers.spend(max(1, drivers) * weight, in: loop.turn)
    answer.plainBytes += loop.arena.count - start
    if answer.isCompressed { fanOut.compress(partAt: start, isLast: false) }
    if isFirst {
      // All will most likely be as long as these: else what is there is copied again and again as it grows.
      let expected = (loop.arena.count - start) * all / max(1, drivers) + 1024
      answer.body.reserveCapacity(min(expected, limits.largestAnswer + 1024))
      if answer.replyTo == nil { answer.body.append(UInt8(ascii: "{")) }
    }
    loop.arena.withBytes { answer.body.append(contentsOf: $0[start...]) }
    loop.arena.truncate(to: start)
  }

  // MARK: Sending

  private mutating func finish(_ slot: Int, _ exchange: Exchange, _ answer: LongAnswer) {
    answer.body.append(UInt8(ascii: "}"))
    guard answer.body.count <= limits.largestAnswer else {
      return finish(slot, exchange, .contentTooLarge, .tooLarge, Self.tooLargeAnswer)
    }
    finish(slot, exchange, Response(.ok, contentType: "application/json", body: answer.body))
  }

  /// As `send(_: Reply, to:)` does it with a reply that is written at once.
  private mutating func send(_ answer: LongAnswer, _ replyTo: MessageID, to slot: Int) {
    let replyNumber = fanOut.nextReplyNumber()
    let payload = FrameWriter.begin(as: .server, in: &loop.arena)
    let form = sessions[slot].form
    switch form {
    case .json: JSONWriter.writeResultHead(replyTo: replyTo, into: &loop.arena)
    case .binary:
      BinaryWriter.writeResultHead(
        replyTo: replyTo, timestamp: now.timestamp, messageID: replyNumber, into: &loop.arena)
    }
    var plainBytes = answer.plainBytes + loop.arena.count - payload
    if answer.isCompressed { fanOut.compress(partAt: payload, isLast: false) }
    loop.arena.append(answer.body)
    let end = loop.arena.count
    if case .json(let time) = form {
      JSONWriter.writeEnd(timestamp: now.timestamp, messageID: replyNumber, time: time, into: &loop.arena)
    }
    plainBytes += loop.arena.count - end
    guard plainBytes + FrameWriter.headerLength(payload: plainBytes, isMasked: false) <= limits.largestAnswer else {
      return refuse(slot, replyTo, .tooLarge, Self.tooLargeAnswer)
    }
    if answer.isCompressed { fanOut.compress(partAt: end, isLast: true) }
    fanOut.send(
      replyAt: payload, to: sessions[slot].recipient, compressedFrom: answer.isCompressed ? plainBytes : nil)
  }
}
