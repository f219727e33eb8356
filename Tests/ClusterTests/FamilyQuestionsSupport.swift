// What tests of tokens and sessions ask hubs of a simulated cluster.
import HubBytes
import HubCore
import HubMessages
import Testing

@testable import HubCluster

extension ClusterWorld {
  /// Hubs that sign tokens, each with the key of this number.
  convenience init(_ names: [String], tokenKeys: [String: UInt8]) {
    self.init(
      names,
      tokenKey: { name in
        guard let key = tokenKeys[name] else { return TokenKeyProof() }
        return TokenKeyProof(signature: [key]) { $0 == [key] }
      })
  }

  func family(of subject: String, at name: String) -> TokenFamily {
    TokenFamily(
      id: TokenFamily.id(InlineText("word\(nextSlot())")!, at: name), subject: id(subject), role: .rider,
      claims: Array("{}".utf8), created: now.timestamp)
  }

  func begin(of subject: String, at name: String) -> InlineText {
    let family = family(of: subject, at: name)
    if ask(.begin(family), at: name).serial != 1 { Issue.record("no family began") }
    return family.id
  }

  /// Puts a question; gives the slot that it is answered at.
  func put(_ question: CredentialQuestion, at name: String) -> UInt32 {
    let slot = nextSlot()
    let source = AuditSource(.refreshTokens, by: nil, from: InlineText("192.0.2.1")!)
    self[name].inputs.append(.credentials(session(slot), question, source))
    return slot
  }

  func answer(_ slot: UInt32, at name: String) -> CredentialAnswer? {
    self[name].credentials.last { $0.session.slot == slot }?.answer
  }

  /// Waits for the answer, for up to 4 s.
  func ask(_ question: CredentialQuestion, at name: String) -> CredentialAnswer? {
    let slot = put(question, at: name)
    for _ in 0..<400 where answer(slot, at: name) == nil { step() }
    return answer(slot, at: name)
  }

  func ask(_ family: InlineText, _ serial: UInt64, at name: String) -> CredentialAnswer? {
    ask(.refresh(family: family, subject: id("r1"), serial: serial), at: name)
  }

  func list(_ subject: String, at name: String) -> (ids: [InlineText], isComplete: Bool) {
    guard case .families(let families, let isComplete)? = ask(.families(of: id(subject)), at: name) else {
      return ([], false)
    }
    return (families.map(\.id), isComplete)
  }

  func sessions(_ name: String, at hub: String) -> ([Role: Int], Bool) {
    let answer = ask(.sessions(of: id(name)), at: hub)
    guard case .sessions(let counts, let isComplete)? = answer else { return ([:], false) }
    return (counts, isComplete)
  }
}

extension CredentialAnswer? {
  var family: TokenFamily? { if case .family(let family, _)? = self { family } else { nil } }
  var isNew: Bool { if case .family(_, isNew: true)? = self { true } else { false } }
  var serial: UInt64? { family?.serial }
  var refusal: ErrorCode? { if case .refused(let error)? = self { error.code } else { nil } }
  var ended: Int? { if case .ended(let count, _)? = self { count } else { nil } }
}
