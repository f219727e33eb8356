// One loop's counters: plain integers of its thread; a copy goes to the metrics board once a second, and on request.
import HubBytes
import HubMessages
import HubTransport

struct LoopCounters: Sendable {
  // Present numbers.
  var connections = 0
  /// Open sessions by `Role.rawValue`.
  var sessions = [Int](repeating: 0, count: Role.allCases.count)
  /// Open sessions by `Carrier.rawValue`.
  var sessionsByCarrier = [Int](repeating: 0, count: Carrier.allCases.count)
  /// Unfinished answers, and questions to the journal's past.
  var pendingReplies = 0
  var historyQuestions = 0

  // Since the start.
  var sessionsOpened: UInt64 = 0
  var handshakesRefused: UInt64 = 0
  var requests: UInt64 = 0
  var badRequests: UInt64 = 0
  var requestTimeouts: UInt64 = 0
  /// Requests that the journal's reader refused for want of room.
  var historyRefused: UInt64 = 0
  /// Refusals because the journal's queue was full, and because unsent answers filled its memory.
  var historyFull: UInt64 = 0
  var answersFull: UInt64 = 0
  /// Credentials of requests that were checked.
  var credentialChecks: UInt64 = 0
  var originsRefused: UInt64 = 0
  /// Times that the loop did not turn for more than a second.
  var stalls: UInt64 = 0
  /// By `LimitHit.rawValue`.
  private(set) var limitHits = [UInt64](repeating: 0, count: LimitHit.allCases.count)
  var messagesIn: UInt64 = 0
  /// Answers written over several turns, and queries refused because too many were unfinished.
  var answersContinued: UInt64 = 0
  var queriesRefused: UInt64 = 0
  /// Open binary sessions.
  var binarySessions = 0
  /// Sessions that negotiated compression.
  var compressedSessionsOpened: UInt64 = 0
  var protocolErrors: UInt64 = 0
  var ratePauses: UInt64 = 0
  /// Times that a session waited because a turn's work was used up (`Limits.unitsPerPoll`).
  var turnWaits: UInt64 = 0
  /// `error` messages and HTTP error bodies by `ErrorCode.rawValue`.
  var errors = [UInt64](repeating: 0, count: ErrorCode.allCases.count)
  /// Close frames sent first, by code.
  private(set) var closesSent: [UInt16: UInt64] = [:]
  private(set) var responses: [UInt16: UInt64] = [:]
  /// By `AckOrigin.Kind.rawValue`, and by `HTTPFamily.rawValue`.
  var ackTimes = [BoundedTimes](repeating: BoundedTimes(), count: AckOrigin.Kind.allCases.count)
  var requestTimes = [BoundedTimes](repeating: BoundedTimes(), count: HTTPFamily.allCases.count)
  var fanOut = FanOutCounters()
  var transport = EventLoopCounters()

  mutating func sessionOpened(_ role: Role, _ carrier: Carrier, _ form: MessageForm, isCompressed: Bool) {
    sessions[Int(role.rawValue)] += 1
    sessionsByCarrier[Int(carrier.rawValue)] += 1
    sessionsOpened += 1
    if form == .binary { binarySessions += 1 }
    if isCompressed { compressedSessionsOpened += 1 }
  }

  mutating func sessionEnded(_ role: Role, _ carrier: Carrier, _ form: MessageForm) {
    sessions[Int(role.rawValue)] -= 1
    sessionsByCarrier[Int(carrier.rawValue)] -= 1
    if form == .binary { binarySessions -= 1 }
  }

  /// These with the counters of the loop's parts.
  func with(
    _ transport: EventLoopCounters, _ fanOut: FanOutCounters, pending: (replies: Int, questions: Int)
  ) -> LoopCounters {
    var all = self
    all.transport = transport
    all.fanOut = fanOut
    (all.pendingReplies, all.historyQuestions) = pending
    return all
  }

  mutating func count(_ limit: LimitHit) { limitHits[Int(limit.rawValue)] += 1 }
  func hits(_ limit: LimitHit) -> UInt64 { limitHits[Int(limit.rawValue)] }
  mutating func count(close code: UInt16) { closesSent[code, default: 0] += 1 }
  mutating func count(status code: UInt16) { responses[code, default: 0] += 1 }
}
