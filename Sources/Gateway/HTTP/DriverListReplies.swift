// Lists of many drivers, which take several turns of a loop to write.
//
// 1,000 drivers with 8 tags each are 750 KB of JSON: 0.5 to 1 ms to write, and two to four to compress. Unfinished
// lists take turns, each writing a part of a turn's limit (`Limits.reportsPerTurn`), so that a long one delays a short
// one by a turn or two. A short one is sent at once if none is unfinished.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubTransport

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

  /// Whether all drivers are written, or more bytes than the limit, so that the answer is refused.
  fileprivate func isDone(limit: Int) -> Bool { writer.isDone || plainBytes > limit }

  fileprivate var left: Int { writer.left }

  /// The answer to a request, when it is complete.
  func response(largest: Int) -> Result<Response, Refusal> {
    if body.count > largest { return .failure(Refusal(.tooLarge, HubAnswer.tooLarge)) }
    return .success(Response(.ok, contentType: "application/json", body: body))
  }

  /// Writes up to `drivers` more drivers at the arena's end, which is in cache. Gives their number. `keepPart` moves
  /// them to the answer, after compression if any.
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

struct DriverListReplies {
  private let limits: Limits
  private var lists: [DriverListReply] = []
  /// The turn in which drivers were last written, and their number.
  private var turn: UInt64 = 0
  private var written = 0

  init(_ limits: Limits) { self.limits = limits }

  var isEmpty: Bool { lists.isEmpty }
  /// Lists that are being written.
  var count: Int { lists.count }

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
    let cost = max(1, list.drivers.count) * DriverListReplies.weight(isCompressed: isCompressed)
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
    let weight = DriverListReplies.weight(isCompressed: reply.isCompressed)
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
}
