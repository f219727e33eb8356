// The callers that wait for an answer of the hub, and how they get it.
import HubMessages

extension HubEngine {
  /// The identity of a waiting caller, by which its question is withdrawn.
  typealias Asker = ObjectIdentifier

  enum Request {
    case ack(Asker?, (Result<Void, HubError>) -> Void)
    case result(Asker?, (Result<QueryResult, HubError>) -> Void)
    /// A driver's move, which its queue keeps until it is answered, even if its caller does not wait any more.
    case move((Result<Void, HubError>) -> Void)

    func acked() {
      switch self {
      case .ack(_, let answer), .move(let answer): answer(.success(()))
      case .result: fail(.anotherAnswer)
      }
    }

    func answered(_ result: QueryResult) {
      switch self {
      case .result(_, let answer): answer(.success(result))
      case .ack, .move: fail(.anotherAnswer)
      }
    }

    /// The hub has refused it, or has answered something else.
    func fail(_ error: HubError) {
      switch self {
      case .ack(_, let answer), .move(let answer): answer(.failure(error))
      case .result(_, let answer): answer(.failure(error))
      }
    }

    /// The client has ended before the hub's answer.
    func end(_ error: HubError, keepsMoves: Bool) {
      switch self {
      case .move where keepsMoves: fail(.stoppedBeforeAnswer)
      case .ack, .result, .move: fail(error)
      }
    }

    func isOf(_ asked: Asker) -> Bool {
      switch self {
      case .ack(let asker, _), .result(let asker, _): asker == asked
      case .move: false
      }
    }
  }
}
