// Revoked tokens, which all hubs of a cluster refuse: each sends its own back ends' revocations to the others, and all
// that it knows to a hub that is new, returns, or has missed something, and to all when a hub has left, whose last ones
// may have reached some of them alone. The hub merges them (HubCore/Credentials/Credentials+Shared.swift): repetitions
// change nothing.
//
//     record      revocation…
//     revocation  "s", "j", "f" or "u" · name (length, bytes) · until (varint: ms since 1970 and one more; 0 for ever)
import HubBytes
import HubCore
import HubMessages

/// The peers that get all revocations, a page in each turn.
struct Revoking {
  /// Peers that get them now, and those that get them next.
  var receivers: Set<Int> = []
  var waiting: Set<Int> = []
  /// The hub was asked for the page from `next` on.
  var isAsked = false
  /// When it may be asked again, where it has refused (uptime, ns).
  private var asksAt = Int64.min
  var next = 0
  let context: ClusterContext

  init(_ context: ClusterContext) { self.context = context }
}

extension Revoking {
  /// Begins to send a peer all revocations, and the key that signs tokens here: it is new, or may have missed some.
  mutating func announce(to index: Int) {
    waiting.insert(index)
    let signature = context.identity.tokenKey.signature
    context.peers[index].append(.tokenKey) { bytes in bytes.append(run: { $0.append(signature) }) }
  }

  mutating func receive(tokenKey signature: ArraySlice<UInt8>, of index: Int) {
    guard context.peers[index].tokenKey != Array(signature) else { return }
    context.peers[index].tokenKey = Array(signature)
    if !context.identity.tokenKey.isSame(Array(signature)) {
      context.notices.append(.tokenKeyDiffers(context.peers[index].name))
    }
  }

  /// Asks the hub for the next page, if a peer waits for it.
  mutating func askForPage() {
    guard context.phase == .member, !isAsked, context.now.uptime >= asksAt else { return }
    if receivers.isEmpty {
      if waiting.isEmpty { return }
      (receivers, waiting, next) = (waiting, [], 0)
    }
    // The pages must not fill a peer's queue: past its limit everything in it would be dropped and sent again.
    let most = context.limits.waitingControlBytes / 4
    let slow = receivers.filter { context.peers[$0].controlBytes > most }
    if slow.count == receivers.count { return }
    // Slow peers get all pages later, so that the others need not wait for them.
    receivers.subtract(slow)
    waiting.formUnion(slow)
    isAsked = true
    let question = CredentialQuestion.revocations(from: next, limit: context.limits.revocationsPerRecord)
    context.inputs.append(.credentials(SessionRef(outlet: context.outlet, slot: 0, generation: 0), question, nil))
  }

  /// The hub's page; where it has none now it is asked again after a while.
  mutating func send(page answer: CredentialAnswer) {
    guard case .revocations(let page, let next) = answer else {
      if case .refused = answer { (isAsked, asksAt) = (false, context.now.uptime + context.limits.answerTime) }
      return
    }
    isAsked = false
    for index in receivers { append(page, to: index) }
    self.next = next ?? 0
    if next == nil { receivers = [] }
  }

  /// Revocations of this hub's back ends. (In a cluster they end only by time, which all hubs see.)
  mutating func announce(_ change: RevocationChange) {
    if change.isOfPeers { return }
    for index in context.peers.indices where context.peers[index].isMember { append(change.added, to: index) }
  }

  private mutating func append(_ revocations: [Revocation], to index: Int) {
    if revocations.isEmpty { return }
    context.peers[index].append(.revoked) { bytes in
      for revocation in revocations {
        let (kind, name) =
          switch revocation.name {
          case .subject(let id): (UInt8(ascii: "s"), id.text)
          case .tokenID(let id): (UInt8(ascii: revocation.cause == .backEnd ? "j" : "f"), id)
          case .families(let id): (UInt8(ascii: "u"), id.text)
          }
        bytes.append(kind)
        bytes.append(utf8Run: "\(name)")
        bytes.append(varint: revocation.until.map { UInt64(max(0, $0.milliseconds)) + 1 } ?? 0)
      }
    }
  }

  /// Revocations of another hub.
  mutating func receive(revoked reader: inout ClusterFrameReader) throws(ClusterFrameError) {
    var found: [Revocation] = []
    while !reader.isAtEnd { found.append(try reader.revocation()) }
    let session = SessionRef(outlet: context.outlet, slot: 0, generation: 0)
    context.inputs.append(.credentials(session, .extend(found, isOfPeers: true), nil))
  }
}

extension ClusterFrameReader {
  fileprivate mutating func revocation() throws(ClusterFrameError) -> Revocation {
    let kind = try byte()
    let text = String(decoding: try run(), as: UTF8.self)
    let end = try varint()
    let name: RevokedName
    switch kind {
    case UInt8(ascii: "s"), UInt8(ascii: "u"):
      guard let id = Identifier(text) else { throw .message }
      name = kind == UInt8(ascii: "s") ? .subject(id) : .families(of: id)
    case UInt8(ascii: "j"), UInt8(ascii: "f"):
      guard let id = InlineText(text), !id.isEmpty else { throw .message }
      name = .tokenID(id)
    default: throw .message
    }
    guard end == 0 || end - 1 <= UInt64(Timestamp.accepted.upperBound.milliseconds) else { throw .message }
    return Revocation(
      name, until: end == 0 ? nil : Timestamp(milliseconds: Int64(end - 1)),
      cause: kind == UInt8(ascii: "f") ? .endedElsewhere : .backEnd)
  }
}
