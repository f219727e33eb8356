// Questions over the socket and HTTP: who asks, with which rights, and the hub's input for it.
import HubCore
import HubMessages

/// The asking identity, and where the answer goes.
struct Asker {
  /// A session, or a request's connection.
  let session: SessionRef
  let credential: Credential
  /// The id of the asking message; nil for a request.
  let replyTo: MessageID?

  /// The hub's input for the question; throws where the asker has no right to it.
  func input(for question: QueryRequest, maximumLimit: Int) throws(ErrorReply) -> HubInput {
    if credential.isShare, case .drivers = question { throw refusal("a share opens its trip, and nothing else") }
    switch question {
    case .driver(let id):
      guard credential.role == .ops || credential.role == .driver && credential.id == id else {
        throw refusal("only ops and the driver itself may see this")
      }
      return .query(session, .driver(id), replyTo: replyTo)
    case .trip(let id):
      guard let grant = credential.grant(for: .trip(id)) else {
        throw refusal("your credential does not open this trip")
      }
      return .trips(
        session, .show(TripQuery(id: id, actor: credential.actor, grant: grant)), replyTo: replyTo)
    case .drivers(let search):
      do throws(ErrorReply) {
        let audience = try search.audience(for: credential.role, maximumLimit: maximumLimit)
        return .query(session, .drivers(search, audience, by: credential.actor), replyTo: replyTo)
      } catch {
        throw ErrorReply(code: error.code, message: error.message, replyTo: replyTo)
      }
    }
  }

  private func refusal(_ message: String) -> ErrorReply {
    ErrorReply(code: .forbidden, message: message, replyTo: replyTo)
  }
}
