// What tests of tokens ask a hub with a journal.
import HubBytes
import HubMessages
import Testing

@testable import HubCore

extension DurableBench {
  static let asker = SessionRef(outlet: 0, slot: 90, generation: 1)

  func source(_ action: AuditAction, _ actor: String? = "backend") -> AuditSource {
    AuditSource(action, by: actor.map { Actor(role: .ops, id: id($0)) }, from: InlineText("192.0.2.1")!)
  }

  /// What is answered to a question, once it is stored, and what other outlets were sent before.
  func ask(
    _ question: CredentialQuestion, _ action: AuditAction = .issueTokens, stores: Bool = true
  ) -> (answer: CredentialAnswer?, changes: [RevocationChange]) {
    var outputs = turn([.credentials(Self.asker, question, source(action))])
    if stores { outputs += store() }
    var found: (answer: CredentialAnswer?, changes: [RevocationChange]) = (nil, [])
    for output in outputs {
      if case .credentials(_, let answer) = output { found.answer = answer }
      if case .revoked(let change) = output { found.changes.append(change) }
    }
    return found
  }

  func family(_ name: String, of subject: String = "R1") -> TokenFamily {
    TokenFamily(
      id: InlineText(name)!, subject: id(subject), role: .rider, claims: Array("{}".utf8), created: now.timestamp)
  }

  @discardableResult
  func begin(_ name: String, of subject: String = "R1") -> [RevocationChange] {
    let (answer, changes) = ask(.begin(family(name, of: subject)))
    guard case .family(let made, isNew: true)? = answer else {
      Issue.record("\(String(describing: answer))")
      return []
    }
    #expect(made.serial == 1)
    return changes
  }

  func refresh(
    _ name: String, _ serial: UInt64, of subject: String = "R1", stores: Bool = true
  ) -> CredentialAnswer? {
    ask(.refresh(family: InlineText(name)!, subject: id(subject), serial: serial), .refreshTokens, stores: stores)
      .answer
  }

  func revocations() -> [RevokedName] { hub.allRevocations().map(\.name) }
}

extension CredentialAnswer? {
  var serial: UInt64? { if case .family(let family, _)? = self { family.serial } else { nil } }
  var refusal: ErrorCode? { if case .refused(let error)? = self { error.code } else { nil } }
}
