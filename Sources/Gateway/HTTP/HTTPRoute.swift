// One endpoint of HTTP: its path, and what may be done there. The table of all is Routes.swift.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTiles

/// What comes of a request.
enum Outcome {
  /// `room`: what the journal's reader has taken for it.
  case respond(Response, room: MemoryReservation? = nil)
  /// The hub is asked, and what it says becomes the answer (HubAnswer.swift).
  case ask([HubInput], Awaited = .hub)
  /// A question that may come over the socket as well (Asker.swift).
  case query(QueryRequest, Awaited = .hub)
  /// The reader of the journal is asked, or the thread of the webhooks.
  case consult(BesideQuestion)
  /// The thread that reads images of the map is asked, by anybody: an image in a page brings no credential.
  case image(MapTile)
  case upgrade(Upgrade)
  /// Events are sent from now on, of channels that the hub was asked about.
  case stream(EventStream)
  /// The counters of all loops are the answer.
  case metrics
}

/// A request that is complete, for its handler.
struct HTTPCall {
  let request: HTTPRequest
  /// What the path has where the route has `{id}`.
  let parameters: [String]
  let context: HTTPContext

  var time: TimeFormat { request.time }
  var query: Query { request.head.query }

  /// The caller's credential; checked already, unless the endpoint is open.
  func caller() throws(Refusal) -> Credential { try request.caller(by: context.credentials) }

  /// The path's parameter as an id of a driver, trip or fence.
  func id(of kind: StaticString) throws(Refusal) -> Identifier {
    guard let id = Identifier(parameters[0]) else {
      throw Refusal(.badMessage, "a \(kind) id is 1-64 of A-Z a-z 0-9 . _ -")
    }
    return id
  }

  /// The header `Idempotency-Key`, by which a repeated request is known; nil where there is none.
  func idempotencyKey() throws(Refusal) -> MessageID? {
    let words: StaticString = "Idempotency-Key is one text of 1–64 bytes"
    switch request.head.fields.single("idempotency-key") {
    case .absent: return nil
    case .repeated: throw Refusal(.badMessage, "\(words)")
    case .value(let value):
      guard let text = String(validating: value, as: UTF8.self), let key = MessageID(text) else {
        throw Refusal(.badMessage, "\(words)")
      }
      return key
    }
  }

  /// The body as a JSON object, for claims and the like, of which two readers must not come to think differently.
  func object(atMost bytes: Int) throws(Refusal) -> [String: JSONValue] {
    guard request.body.count <= bytes else { throw Refusal(.tooLarge, "the body has more than \(bytes) bytes") }
    guard let members = JSONValue(parsing: request.body.array())?.members else {
      throw Refusal(.badJSON, "the body must be a JSON object in UTF-8, with no name twice")
    }
    return members
  }

  /// Who does what an audited endpoint is for, and from where; nil for an endpoint that is not audited.
  var auditSource: AuditSource? {
    request.audit.map { request.auditSource($0, trusted: context.configuration.trustedProxies) }
  }

  /// The body, read into a value.
  func read<Value>(
    _ body: (MessageReader, UnsafeRawBufferPointer) throws(MessageError) -> Value
  ) throws(Refusal) -> Value {
    do throws(MessageError) {
      return try unsafe request.body.withBytes { (bytes) throws(MessageError) in
        try unsafe body(context.settings.reader, bytes)
      }
    } catch {
      request.charge(positions: error.checkedPositions)
      throw Refusal(error)
    }
  }
}

struct HTTPRoute: Sendable {
  typealias Handler = @Sendable (HTTPCall) throws(Refusal) -> Outcome

  /// Who may make a request.
  enum Access: Sendable {
    /// Everybody; the handler looks for itself who asks, and at the query.
    case open
    /// Who has a credential; what of it is for whom, the handler or the hub says.
    case known
    /// Who has a credential of this role; others are told what stands there.
    case only(HubMessages.Role, otherwise: StaticString)
  }

  /// What is done at a method. That of `GET` is done for `HEAD`, too, unless it is a stream.
  struct Action: Sendable {
    let method: Method
    let access: Access
    /// The parameters that a query may have.
    let parameters: [StaticString]
    /// From this one on they may come several times.
    let firstRepeatable: Int
    /// As what its requests are written down.
    var audit: AuditAction?
    let handler: Handler

    static func on(
      _ method: Method, for access: Access = .known, as audit: AuditAction? = nil,
      parameters: [StaticString] = [], repeatable: [StaticString] = [],
      _ handler: @escaping Handler
    ) -> Action {
      let single = parameters + HTTPRoute.commonParameters
      return Action(
        method: method, access: access, parameters: single + repeatable, firstRepeatable: single.count, audit: audit,
        handler: handler)
    }

    /// Whether a body is read at its full size.
    var takesBody: Bool {
      switch method {
      case .post, .put, .patch: true
      case .get, .head, .delete, .options: false
      }
    }
  }

  /// What each query may have.
  static let commonParameters: [StaticString] = ["time", "access_token", "role", "id"]

  /// Between its slashes, with `{id}` for what may be anything.
  let path: [String]
  /// The admin port has it.
  let isForOperators: Bool
  /// Pages of all origins may read it.
  let isForAllOrigins: Bool
  /// For phone apps: their way to bring a credential is taken, too, and their parameters are their own.
  let isForPhones: Bool
  /// The handler looks at the method itself.
  private let takesAnyMethod: Bool
  /// Its answer has no end, and so no head alone.
  private let isStream: Bool
  private let actions: [Action]
  /// The `Allow` field of a 405 (RFC 9110 §10.2.1).
  let allowedMethods: String
  /// What the times of its requests count for; nil for what has no answer of its own: a socket's and a stream's time is
  /// not a request's. Found once: it takes a comparison with each family's name.
  let family: HTTPFamily?

  init(
    _ path: String, isForOperators: Bool = false, isForAllOrigins: Bool = false, isForPhones: Bool = false,
    takesAnyMethod: Bool = false, isStream: Bool = false,
    _ actions: Action...
  ) {
    self.path = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
    self.isForAllOrigins = isForAllOrigins
    self.isForOperators = isForOperators
    self.isForPhones = isForPhones
    self.takesAnyMethod = takesAnyMethod
    self.isStream = isStream
    self.actions = actions
    let hasHead = !takesAnyMethod && !isStream
    allowedMethods = actions.map { $0.method == .get && hasHead ? "GET, HEAD" : "\($0.method.name)" }
      .joined(separator: ", ")
    family =
      if isStream || takesAnyMethod { nil } else if isForPhones { .phones } else if isForOperators { .operators } else {
        HTTPFamily(path: self.path)
      }
  }

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
    takesAnyMethod ? actions.first : actions.first { $0.method == (method == .head && !isStream ? .get : method) }
  }
}
