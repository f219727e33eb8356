// One endpoint of HTTP: its path and methods. The table of all is Routes.swift.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTiles

/// The outcome of a request.
enum Outcome {
  /// Answers with a response. `memory`: what the journal's reader has reserved for it.
  case respond(Response, memory: MemoryReservation? = nil)
  /// Asks the hub, whose output becomes the answer (HubAnswer.swift).
  case ask([HubInput], Awaited = .hub)
  /// A question that the socket has as well (Asker.swift).
  case query(QueryRequest, Awaited = .hub)
  /// Asks the journal's reader, or the webhooks' thread.
  case consult(WorkerQuestion)
  /// Asks the thread that reads images of the map, without a credential, since images in a page have none.
  case image(MapTile)
  case upgrade(Upgrade)
  /// Begins a stream of channels that were checked with the hub.
  case stream(EventStream)
  /// Answers with the counters of all loops.
  case metrics
}

/// A complete request, for its handler.
struct HTTPCall {
  let request: HTTPRequest
  /// The path's values of `{id}`.
  let parameters: [String]
  let context: HTTPContext

  var time: TimeFormat { request.time }
  var query: Query { request.head.query }

  /// The caller's credential, already checked unless the endpoint is open.
  func caller() throws(Refusal) -> Credential { try request.caller(by: context.credentials) }

  /// The path's parameter as an id of a driver, trip or fence.
  func id(of kind: StaticString) throws(Refusal) -> Identifier {
    guard let id = Identifier(parameters[0]) else {
      throw Refusal(.badMessage, "a \(kind) id is 1-64 of A-Z a-z 0-9 . _ -")
    }
    return id
  }

  /// The header `Idempotency-Key`, by which a repetition is recognised; nil where there is none.
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

  /// The body as a JSON object, for claims and the like, which must be unambiguous between readers. `known`: allowed
  /// members, so that a misspelled one is refused, not ignored; nil for any. `shown`: members of answers, which may be
  /// sent back and are ignored.
  func object(
    atMost bytes: Int, of known: [String]?, shown: [String] = []
  ) throws(Refusal) -> [String: JSONValue] {
    guard request.body.count <= bytes else { throw Refusal(.tooLarge, "the body has more than \(bytes) bytes") }
    guard let members = JSONValue(parsing: request.body.array())?.members else {
      throw Refusal(.badJSON, "the body must be a JSON object in UTF-8, with no name twice")
    }
    if let known, let name = members.keys.filter({ !known.contains($0) && !shown.contains($0) }).min() {
      throw Refusal(
        .badMessage, "\(name.prefix(64)): there is no such member; expected \(known.joined(separator: ", "))")
    }
    return members
  }

  /// The caller and its address; nil for an endpoint that is not audited.
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
    /// Everybody; the handler checks the caller and the query itself.
    case open
    /// Callers with a credential; the handler or the hub checks further rights.
    case known
    /// Callers with this role; others get the text.
    case only(HubMessages.Role, otherwise: StaticString)
  }

  /// The handler of a method. That of `GET` also serves `HEAD`, unless it is a stream.
  struct Action: Sendable {
    let method: Method
    let access: Access
    /// The allowed parameters of the query.
    let parameters: [StaticString]
    /// From this index on they may be repeated.
    let firstRepeatable: Int
    /// The action in the audit trail.
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

    /// Whether the full body is read.
    var takesBody: Bool {
      switch method {
      case .post, .put, .patch: true
      case .get, .head, .delete, .options: false
      }
    }
  }

  /// Parameters that every query may have.
  static let commonParameters: [StaticString] = ["time", "access_token", "role", "id"]

  /// Its segments, with `{id}` for any value.
  let path: [String]
  /// It is on the admin port.
  let isForOperators: Bool
  /// Pages of all origins may read it.
  let isForAllOrigins: Bool
  /// For phone apps: their kind of credential is accepted, too, and their parameters are their own.
  let isForPhones: Bool
  /// The handler checks the method itself.
  private let takesAnyMethod: Bool
  /// Its answer has no end, so `HEAD` is not served.
  private let isStream: Bool
  private let actions: [Action]
  /// The `Allow` field of a 405 (RFC 9110 §10.2.1).
  let allowedMethods: String
  /// The family in which its requests' times are counted; nil for a socket and a stream. Computed once, since it
  /// compares with each family's name.
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

  /// The path's values of `{id}`; nil where it does not match.
  func match(_ segments: [String]) -> [String]? {
    guard segments.count == path.count else { return nil }
    var values: [String] = []
    for (part, segment) in zip(path, segments) {
      if part == "{id}", !segment.isEmpty { values.append(segment) } else if part != segment { return nil }
    }
    return values
  }

  func action(for method: Method) -> Action? {
    takesAnyMethod ? actions.first : actions.first { $0.method == (method == .head && !isStream ? .get : method) }
  }
}
