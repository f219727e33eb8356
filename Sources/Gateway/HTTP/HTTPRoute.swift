// One endpoint of HTTP: its path, and what may be done there. The table of all is Routes.swift.
import HubCore
import HubHTTP
import HubMessages
import HubRuntime

/// What comes of a request.
enum Outcome {
  /// `room`: what the journal's reader has taken for it.
  case respond(Response, room: MemoryReservation? = nil)
  /// The hub is asked, and what it says becomes the answer (HubAnswer.swift).
  case ask([HubInput], Awaited = .hub)
  /// A question that may come over the socket as well (Asker.swift).
  case query(QueryRequest, Awaited = .hub)
  /// The reader of the journal is asked.
  case consult(HistoryQuestion)
  case upgrade(Upgrade)
  /// The counters of all loops are the answer.
  case metrics
}

/// A request whose caller is known.
struct HTTPCall {
  let request: HTTPRequest
  let caller: Credential
  /// What the path has where the route has `{id}`.
  let parameters: [String]
  let context: HTTPContext

  var time: TimeFormat { request.time }
  var query: Query { request.head.query }

  /// The path's parameter as an id of a driver, trip or fence.
  func id(of kind: StaticString) throws(Refusal) -> Identifier {
    guard let id = Identifier(parameters[0]) else {
      throw Refusal(.badMessage, "a \(kind) id is 1-64 of A-Z a-z 0-9 . _ -")
    }
    return id
  }
}

struct HTTPRoute: Sendable {
  enum Handler: Sendable {
    /// For everybody; it looks for itself who asks, and at the query.
    case open(@Sendable (HTTPRequest, HTTPContext) throws(Refusal) -> Outcome)
    /// For who has a credential, of this role where one is given; others are told what stands there.
    case known((role: HubMessages.Role, otherwise: StaticString)?, @Sendable (HTTPCall) throws(Refusal) -> Outcome)
  }

  /// What is done at a method. That of `GET` is done for `HEAD`, too.
  struct Action: Sendable {
    let method: Method
    let handler: Handler

    static func open(
      _ method: Method, _ handler: @escaping @Sendable (HTTPRequest, HTTPContext) throws(Refusal) -> Outcome
    ) -> Action { Action(method: method, handler: .open(handler)) }

    static func on(
      _ method: Method, _ handler: @escaping @Sendable (HTTPCall) throws(Refusal) -> Outcome
    ) -> Action { Action(method: method, handler: .known(nil, handler)) }

    /// `otherwise` is what others than this role are told.
    static func on(
      _ method: Method, only role: HubMessages.Role, _ otherwise: StaticString,
      _ handler: @escaping @Sendable (HTTPCall) throws(Refusal) -> Outcome
    ) -> Action { Action(method: method, handler: .known((role, otherwise), handler)) }

    /// Whether a body is read at its full size.
    var takesBody: Bool {
      switch method {
      case .post, .put, .patch: true
      case .get, .head, .delete, .options: false
      }
    }
  }

  /// Between its slashes, with `{id}` for what may be anything.
  private let path: [String]
  /// The parameters that a query may have.
  let parameters: [StaticString]
  /// The admin port has it.
  let isForOperators: Bool
  /// The handler looks at the method itself.
  let takesAnyMethod: Bool
  private let actions: [Action]

  init(
    _ path: String, parameters: [StaticString] = [], isForOperators: Bool = false, takesAnyMethod: Bool = false,
    _ actions: [Action]
  ) {
    self.path = path.split(separator: "/").map(String.init)
    self.parameters = parameters + HTTPRoute.commonParameters
    self.isForOperators = isForOperators
    self.takesAnyMethod = takesAnyMethod
    self.actions = actions
  }

  /// What each query may have.
  static let commonParameters: [StaticString] = ["time", "access_token", "role", "id"]

  /// What stands in the path where the route has `{id}`; nil where it is another's path.
  func match(_ segments: [String]) -> [String]? {
    guard segments.count == path.count else { return nil }
    var values: [String] = []
    for (part, segment) in zip(path, segments) {
      if part == "{id}" { values.append(segment) } else if part != segment { return nil }
    }
    return values
  }

  func action(for method: Method) -> Action? {
    if takesAnyMethod { return actions.first }
    return actions.first { $0.method == (method == .head ? .get : method) }
  }

  /// The `Allow` field of a 405 (RFC 9110 §10.2.1).
  var allowedMethods: String {
    actions.map { $0.method == .get ? "GET, HEAD" : "\($0.method.name)" }.joined(separator: ", ")
  }
}
