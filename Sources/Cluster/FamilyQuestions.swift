// Questions about families of refresh tokens, each of which is kept by the hub that made it: only that hub decides what
// was used before, so a token is valid once at any hub. And one about open sessions, which each hub counts.
//
//     POST /v1/tokens/refresh → the hub whose name the family has ──answer→ signed here
//     POST /v1/tokens         → by a key: the hub that was asked first, as the ledger has it ──answer→ signed here
//     GET, DELETE /v1/tokens  → all hubs, this one too ──answers→ put together here
//     GET /v1/sessions        → all members, this one too ──answers→ added up here
//
// A hub that does not answer in time is asked again, since a hub repeats its answer to a refresh token for 10 s; in the
// end it is reported as missing: `incomplete`, or a refusal. Revocations take effect anyway: a hub that was not reached
// gets them when it returns (Revoking.swift). A delayed question must not use up a token after such a refusal: so each
// has the time when the asked hub was last heard, by that hub's clock, and one that is too old is ignored
// (`ClusterLimits.questionAge`). Differences of clocks do not matter.
//
//     question  token (varint) · clock (varint: ms) · "r", "l", "e", "s" or "b" · sub · of "r": family, serial
//               (varint); of "b": the family as the hub that is asked begins it
//     answer    token (varint) · "f" families… · "n" a new family · "e" count (varint) · "s" roles, each with its count
//               (varint) · or "x" and an error
import HubBackplane
import HubBytes
import HubCore
import HubMessages

/// Unanswered questions.
struct FamilyQuestions {
  struct Pending {
    let request: CredentialRequest
    /// The hubs that have not answered (`Ask.ownHub` for this hub, `Ask.ledger` for the ledger).
    var waitsFor: Set<Int>
    /// A hub could not be asked, or did not answer.
    var isIncomplete = false
    var families: [TokenFamily] = []
    /// The family began with this question.
    var isNew = false
    var ended = 0
    var sessions: [Role: Int] = [:]
    var refusal: ErrorReply?
  }

  var pending = PendingQuestions<Pending>()
  let context: ClusterContext

  init(_ context: ClusterContext) { self.context = context }
}

extension FamilyQuestions.Pending {
  fileprivate mutating func merge(_ answer: CredentialAnswer?) {
    switch answer {
    case .family(let family, let isNew)?: (families, self.isNew) = ([family], isNew)
    case .families(let found, _)?: families += found
    case .ended(let count, _)?: ended += count
    case .sessions(let counts, _)?: sessions.merge(counts, uniquingKeysWith: +)
    case .refused(let error)?: refusal = error
    case .revoked?, .revocations?, .unrevoked?, nil: isIncomplete = true
    }
  }

  /// The merged answer, with missing hubs marked.
  fileprivate var answer: CredentialAnswer {
    let isWhole = !isIncomplete && waitsFor.isEmpty
    switch request.question {
    case .refresh, .begin:
      if let refusal { return .refused(refusal) }
      return families.first.map { .family($0, isNew: isNew) } ?? .refused(.familyNotReached)
    case .end:
      if let refusal { return .refused(refusal) }
      return .ended(ended, isComplete: isWhole)
    case .sessions: return .sessions(sessions, isComplete: isWhole && refusal == nil)
    case .families, .revoke, .revocations, .unrevoke, .extend:
      let newestFirst = families.sorted { ($0.rotated, $0.id.description) > ($1.rotated, $1.id.description) }
      return .families(newestFirst, isComplete: isWhole && refusal == nil)
    }
  }
}

extension ErrorReply {
  fileprivate static let familyNotReached = ErrorReply(
    code: .rateLimited, message: "the hub that makes these tokens cannot be reached now; send it again",
    retryAfter: 2)
}

extension FamilyQuestions {
  /// A question here about families, or sessions, that this hub does not have, or not alone.
  mutating func ask(_ request: CredentialRequest) {
    guard let hubs = hubs(for: request.question) else { return handleHere(request) }
    guard pending.count < context.limits.pending, !hubs.isEmpty else {
      context.counters.refusals += 1
      return context.inputs.append(.cluster(.credentials(request, .refused(.familyNotReached))))
    }
    let question = FamilyQuestions.Pending(request: request, waitsFor: hubs, isIncomplete: !context.knowsMembers)
    put(pending.insert(question), isFirst: true)
  }

  /// Whom to ask; nil for this hub alone.
  private func hubs(for question: CredentialQuestion) -> Set<Int>? {
    switch question {
    case .begin where context.phase == .superseded: return []  // other hubs would not know of the family
    case .begin: return context.isAlone ? nil : [Ask.ledger]
    case .refresh(let family, _, _):
      guard let name = TokenFamily.hub(of: family), name != context.identity.name else { return nil }
      return Set(context.knownPeer(name).map { [$0] } ?? [])
    // The sessions of a hub that has left have ended.
    case .sessions: return Set(context.peers.indices.filter { context.peers[$0].isMember }).union([Ask.ownHub])
    case .families, .end, .revoke, .revocations, .unrevoke, .extend:
      return Set(context.peers.indices).union([Ask.ownHub])
    }
  }

  private func handleHere(_ request: CredentialRequest) {
    context.inputs.append(.cluster(.credentials(request, nil)))
  }

  /// Asks those that have not answered. In a fixed order, so that runs are deterministic.
  private mutating func put(_ token: UInt64, isFirst: Bool) {
    guard let question = pending[token]?.request.question, let hubs = pending[token]?.waitsFor else { return }
    pending.wait(token, until: context.now.uptime + context.limits.answerTime)
    for hub in hubs.sorted() {
      switch hub {
      case Ask.ownHub: if isFirst { _ = put(question, of: Ask.ownHub, token) }
      case Ask.ledger: claim(question, token)
      case _: send(question, token, to: hub)
      }
    }
  }

  /// Claims for this hub the right to make the tokens of a key.
  private func claim(_ question: CredentialQuestion, _ token: UInt64) {
    guard case .begin(let family, _) = question else { return }
    context.questions.append(
      (.claim(key: "k:\(family.word)", by: context.identity.name, known: 0, seizes: false), .tokens(of: token)))
  }

  /// The ledger's answer: which hub makes the tokens of a key.
  mutating func handle(claim answer: LedgerAnswer, of token: UInt64) {
    guard let asked = pending[token], asked.waitsFor == [Ask.ledger] else { return }
    // A missing answer of a reachable ledger is waited for no longer than a hub's.
    if answer == .unknown, !context.isAlone { return }
    guard case .held(let name, _) = answer, name != context.identity.name else {
      _ = pending.finish(token)
      return handleHere(asked.request)
    }
    guard let index = context.knownPeer(name) else {
      return context.isStarting ? () : receive(answer: nil, of: token, from: Ask.ledger)
    }
    pending[token]?.waitsFor = [index]
    send(asked.request.question, token, to: index)
  }

  private mutating func send(_ question: CredentialQuestion, _ token: UInt64, to index: Int) {
    guard context.phase == .member, context.peers[index].isMember, !context.peers[index].isSilent else {
      return receive(answer: nil, of: token, from: index)
    }
    var question = question
    if case .begin(let family, _) = question {
      question = .begin(family.begun(at: context.peers[index].name), isKeyed: true)
    }
    context.counters.forwarded += 1
    let clock = UInt64(max(0, context.peers[index].clock))
    context.peers[index].append(.familyQuestion) { bytes in
      bytes.append(varint: token)
      bytes.append(varint: clock)
      bytes.append(question)
    }
  }

  mutating func retry() {
    while let token = pending.nextOverdue(now: context.now.uptime) {
      if pending.repeats(token, atMost: context.limits.attempts) {
        put(token, isFirst: false)
      } else if let question = pending.finish(token) {
        answer(question)
      }
    }
  }

  /// A hub has answered, or with nil cannot be asked.
  private mutating func receive(answer: CredentialAnswer?, of token: UInt64, from hub: Int) {
    guard pending[token]?.waitsFor.remove(hub) != nil else { return }
    pending[token]?.merge(answer)
    if pending[token]?.waitsFor.isEmpty == true, let done = pending.finish(token) { self.answer(done) }
  }

  private mutating func answer(_ question: FamilyQuestions.Pending) {
    if case .refused = question.answer { context.counters.refusals += 1 }
    context.inputs.append(.cluster(.credentials(question.request, question.answer)))
  }

  mutating func receive(families reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let token = try reader.varint()
    let answer = try reader.familyAnswer(&context.peers[index].reader)
    receive(answer: answer, of: token, from: index)
  }

  // MARK: At a hub that is asked

  private mutating func put(_ question: CredentialQuestion, of peer: Int, _ token: UInt64) -> Bool {
    if case .sessions(let id) = question {
      reply(peer, .sessions(context.openSessions(id), isComplete: true), token)
      return true
    }
    guard let session = context.session(for: peer, token) else { return false }
    context.inputs.append(.credentials(session, question, nil))
    return true
  }

  mutating func receive(familyQuestion reader: inout ClusterFrameReader, from index: Int) throws(ClusterFrameError) {
    let (token, clock) = (try reader.varint(), try reader.varint())
    let question = try reader.familyQuestion()
    guard context.time.milliseconds - Int64(clamping: clock) <= context.limits.questionAge else { return }
    if !put(question, of: index, token) { reply(index, .refused(.overloaded), token) }
  }

  /// This hub has answered.
  mutating func found(_ answer: CredentialAnswer, by session: SessionRef) {
    guard let (ask, isCurrent) = context.asker(session), isCurrent else { return }
    reply(ask.peer, answer, ask.token)
  }

  /// Answers the asker, a peer or this hub itself.
  private mutating func reply(_ peer: Int, _ answer: CredentialAnswer, _ token: UInt64) {
    guard peer != Ask.ownHub else { return receive(answer: answer, of: token, from: peer) }
    context.peers[peer].append(.families) { bytes in
      bytes.append(varint: token)
      bytes.append(answer, at: context.time)
    }
  }
}

extension ByteBuffer {
  fileprivate mutating func append(_ question: CredentialQuestion) {
    switch question {
    case .refresh(let family, let subject, let serial):
      append(UInt8(ascii: "r"))
      append(utf8Run: "\(subject)")
      append(utf8Run: "\(family)")
      append(varint: serial)
    case .families(let subject):
      append(UInt8(ascii: "l"))
      append(utf8Run: "\(subject)")
    case .end(let subject):
      append(UInt8(ascii: "e"))
      append(utf8Run: "\(subject)")
    case .sessions(let id):
      append(UInt8(ascii: "s"))
      append(utf8Run: "\(id)")
    case .begin(let family, _):
      append(UInt8(ascii: "b"))
      append(utf8Run: "\(family.subject)")
      append(run: { TokenFamilyBytes.append(family, to: &$0) })
    case .revoke, .revocations, .unrevoke, .extend: preconditionFailure("every hub answers it itself")
    }
  }

  fileprivate mutating func append(_ answer: CredentialAnswer, at time: Timestamp) {
    switch answer {
    case .family(let family, let isNew): append(families: [family], UInt8(ascii: isNew ? "n" : "f"))
    case .families(let families, _): append(families: families)
    case .sessions(let counts, _):
      append(UInt8(ascii: "s"))
      for role in Role.allCases {
        guard let count = counts[role], count > 0 else { continue }
        append(role.rawValue)
        append(varint: UInt64(count))
      }
    case .ended(let count, _):
      append(UInt8(ascii: "e"))
      append(varint: UInt64(count))
    case .refused(let error):
      append(UInt8(ascii: "x"))
      append(.error(error), at: time)
    case .revoked, .revocations, .unrevoked: preconditionFailure("the answer to what no hub asks another")
    }
  }

  private mutating func append(families: [TokenFamily], _ kind: UInt8 = UInt8(ascii: "f")) {
    append(kind)
    for family in families { append(run: { TokenFamilyBytes.append(family, to: &$0) }) }
  }
}

extension ClusterFrameReader {
  fileprivate mutating func familyQuestion() throws(ClusterFrameError) -> CredentialQuestion {
    let (kind, subject) = (try byte(), try identifier())
    switch kind {
    case UInt8(ascii: "r"):
      guard let family = InlineText(String(decoding: try run(), as: UTF8.self)) else { throw .message }
      return .refresh(family: family, subject: subject, serial: try varint())
    case UInt8(ascii: "l"): return .families(of: subject)
    case UInt8(ascii: "e"): return .end(of: subject)
    case UInt8(ascii: "s"): return .sessions(of: subject)
    case UInt8(ascii: "b"):
      guard let family = TokenFamilyBytes.family(try run()), family.subject == subject else { throw .message }
      return .begin(family, isKeyed: true)
    default: throw .message
    }
  }

  fileprivate mutating func familyAnswer(_ reader: inout BinaryServerReader) throws(ClusterFrameError)
    -> CredentialAnswer
  {
    switch try byte() {
    case UInt8(ascii: "f"):
      var families: [TokenFamily] = []
      while !isAtEnd {
        guard let family = TokenFamilyBytes.family(try run()) else { throw .message }
        families.append(family)
      }
      return .families(families, isComplete: true)
    case UInt8(ascii: "n"):
      guard let family = TokenFamilyBytes.family(try run()) else { throw .message }
      return .family(family, isNew: true)
    case UInt8(ascii: "s"):
      var counts: [Role: Int] = [:]
      while !isAtEnd {
        guard let role = Role(rawValue: try byte()) else { throw .message }
        counts[role] = Int(UInt32(clamping: try varint()))
      }
      return .sessions(counts, isComplete: true)
    case UInt8(ascii: "e"): return .ended(Int(UInt32(clamping: try varint())))
    case UInt8(ascii: "x"):
      guard case .reply(.error(let error))? = try message(&reader) else { throw .message }
      return .refused(error)
    default: throw .message
    }
  }
}
