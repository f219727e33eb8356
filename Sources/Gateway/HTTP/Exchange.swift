// The HTTP side of a connection, until it becomes a WebSocket or ends: bytes in, requests out, one at a time and in
// order (RFC 9112 §9.3.2), and what the present answer waits for. It knows nothing of sockets and the hub.
import HubBytes
import HubCore
import HubDeflate
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport
import HubWebSocket

/// A trip to be shown.
struct PendingTrip {
  let id: Identifier
  /// Whether forgotten trips may be shown, too, which have no parties any more.
  let showsForgotten: Bool
  /// Nil for the trip itself.
  let track: TrackRequest?
  /// Whether it is shown after a move, which took effect even if the trip cannot be shown.
  var isMoved = false
}

/// What a request waits for, with what its answer needs.
enum Awaited {
  /// The hub's answer.
  case hub
  /// A trip of the hub, or its track; one that the hub has forgotten may be in the journal.
  case trip(PendingTrip)
  /// A page of fences with their full shapes.
  case fullFences
  /// Trips of the hub; with a query, the rest of a page comes from the journal.
  case trips(inJournal: TripListQuery?)
  /// Another thread: the journal's reader, the webhooks' or the map's.
  case worker
  /// The counters of all loops.
  case metrics
  /// The hub's answer on each channel of a stream.
  case channels(EventStream)
  /// The trip after a move.
  case move(of: Identifier)
  /// A driver after its status was set.
  case statusSet(of: Identifier)
  /// The answer for a phone app.
  case phone(PhoneFormat)
  /// The reply to a message that was posted.
  case message(MessageID)
  /// The next page of all vehicles.
  case vehicles(VehicleFeed)
}

final class Exchange {
  enum State {
    case reading(Reading)
    /// The turn's limit of requests is reached: reading continues in a later one.
    case stalled(Reading)
    /// Nothing further is read until the answer.
    case waiting(HTTPRequest, for: Awaited)
    /// A long answer is sent piece by piece, each when the peer has taken the one before.
    case sending(LongBody)
    /// A driver's upgrade waits for the hub's answer.
    case admitting(HTTPRequest, Upgrade)
    /// The connection became a WebSocket, or is ending.
    case over
  }

  enum Reading {
    case head(RequestParser)
    case body(HTTPRequest, BodyReader)
  }

  struct LongBody {
    var rest: ArraySlice<UInt8>
    /// Its reserved memory; nil where others share the bytes, and where the request has already changed something.
    let memory: MemoryReservation?
    let keepsConnection: Bool
    /// Set where its pieces are compressed and sent as chunks.
    var compression: Gzip.Progress?
  }

  var state = State.reading(.head(RequestParser()))
  /// Bytes that were not handled yet.
  var input = ByteBuffer()
  /// When the connection is closed unless a request is complete, or its answer taken (uptime, ns).
  var deadline: Int64
  /// When a long answer must have been taken (uptime, ns); nil for none.
  private(set) var answerEnd: Int64?
  let connection: ConnectionID
  var peer: HTTPPeer
  /// The peer's address has too many connections: this one only gets a refusal.
  var isOverAddressLimit = false
  /// The turn in which requests were last handled, their number, and the bytes of their answers.
  private var turn: UInt64 = 0
  var handled = 0
  var answeredBytes = 0
  private var hasAnswered = false
  /// Whether the time for the request that is being read has begun: for the first request it begins with the
  /// connection, for others with their first byte.
  private var isTimed = true

  init(_ connection: ConnectionID, from peer: HTTPPeer, deadline: Int64) {
    self.connection = connection
    self.peer = peer
    self.deadline = deadline
  }

  var slot: Int { Int(connection.slot) }

  /// Whether all that was read is answered.
  var isIdle: Bool { if case .reading(.head) = state { input.isEmpty } else { false } }

  /// The request whose answer is due.
  var waiting: HTTPRequest? { if case .waiting(let request, _) = state { request } else { nil } }

  /// The request whose body is being read.
  var reading: HTTPRequest? {
    switch state {
    case .reading(.body(let request, _)), .stalled(.body(let request, _)): request
    case .reading(.head), .stalled(.head), .waiting, .sending, .admitting, .over: nil
    }
  }

  /// An answer is due, or being sent.
  var isAnswering: Bool { if case .sending = state { true } else { waiting != nil } }

  /// Whether a drain ends it at once: it has had an answer, and none is due. A new connection, which this server has
  /// accepted, still gets its first answer.
  var mayBeDismissed: Bool { hasAnswered && !isAnswering }

  /// It continues in a later turn, when the peer has read the answers.
  var continuesLater: Bool {
    switch state {
    case .stalled, .sending: true
    case .reading, .waiting, .admitting, .over: false
    }
  }

  /// Whether the socket may be read, with so many bytes behind a request whose answer is due.
  func mayRead(atMost limit: Int) -> Bool {
    switch state {
    case .reading, .over: true
    case .waiting, .admitting: input.count < limit
    case .stalled, .sending: false
    }
  }

  /// The upgrade that the hub was asked about.
  var upgrade: Upgrade? { if case .admitting(_, let upgrade) = state { upgrade } else { nil } }

  /// Bytes kept of incomplete requests.
  var keptBytes: Int {
    switch state {
    case .reading(.body(let request, _)), .stalled(.body(let request, _)):
      input.count + request.head.byteCount + request.body.count
    case .reading(.head), .stalled(.head), .waiting, .sending, .admitting, .over: input.count
    }
  }

  // MARK: Reading

  /// The next head; nil while it is incomplete, or a body is being read.
  func readHead(limits: HTTPLimits) throws(HTTPError) -> RequestHead? {
    guard case .reading(.head(var parser)) = state else { return nil }
    let parsed = try unsafe input.withBytes { (bytes) throws(HTTPError) in
      try unsafe parser.parse(bytes, limits: limits)
    }
    state = .reading(.head(parser))
    guard case .request(let head, let consumed) = parsed else { return nil }
    input.removeFirst(consumed)
    return head
  }

  /// Begins to read the request's body.
  func beginBody(of request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) {
    state = .reading(.body(request, try BodyReader(request.head.framing, limits: limits)))
  }

  /// The request whose body is complete.
  func readBody() throws(HTTPError) -> HTTPRequest? {
    guard case .reading(.body(let request, var reader)) = state else { return nil }
    let before = request.body.count
    let progress = try unsafe input.withBytes { (bytes) throws(HTTPError) in
      try unsafe reader.read(bytes, into: &request.body)
    }
    input.removeFirst(progress.consumed)
    request.charge(framing: progress.consumed - (request.body.count - before))
    state = .reading(progress.isComplete ? .head(RequestParser()) : .body(request, reader))
    return progress.isComplete ? request : nil
  }

  /// Gives an incomplete request until `end` (uptime, ns) to become complete. False where its time has begun before.
  func beginTime(until end: Int64) -> Bool {
    guard !isTimed else { return false }
    (isTimed, deadline) = (true, end)
    return true
  }

  /// Drops an incomplete request; false where an answer is due.
  func dropInput() -> Bool {
    switch state {
    case .reading, .stalled:
      input.removeAll()
      state = .reading(.head(RequestParser()))
      return true
    case .waiting, .sending, .admitting, .over: return false
    }
  }

  /// Waits for the hub, or for a thread that reads files, until `deadline` (uptime, ns), whenever the request came.
  func awaitAnswer(_ state: State, until deadline: Int64) {
    self.state = state
    self.deadline = deadline
  }

  /// Waits for the next request or piece until `next` (uptime, ns). A long answer has a time for all of it, too:
  /// whoever takes it slowly would keep its memory for long.
  func extend(until next: Int64, now: Int64, _ limits: Limits) {
    deadline = next
    guard case .sending = state else {
      answerEnd = nil
      return
    }
    let end = answerEnd ?? now + nanoseconds(limits.longAnswerSeconds)
    (answerEnd, deadline) = (end, min(deadline, end))
  }

  /// The refusal after a timeout of a thread that reads files, or of the hub.
  func waitedTooLong(_ limits: Limits) -> Refusal {
    if case .waiting(_, for: .worker) = state { .notReadInTime(limits) } else { .notStoredInTime(limits) }
  }

  // MARK: Answering

  /// Writes the answer; of a long one only the first piece: it is complete, but would not fit an outbox.
  ///
  /// - Parameter request: nil where its head could not be read.
  func write(
    _ response: Response, to request: HTTPRequest?, keepsConnection: Bool, memory: MemoryReservation?, pieceBytes: Int,
    _ gzip: Gzip?, into buffer: inout ByteBuffer
  ) {
    hasAnswered = true
    let isHead = request?.head.method == .head
    guard response.body.count > pieceBytes, !isHead else {
      response.write(into: &buffer, keepsAlive: keepsConnection, toHead: isHead)
      return conclude(keepsConnection: keepsConnection)
    }
    response.write(into: &buffer, keepsAlive: keepsConnection, toHead: true, isChunked: gzip != nil)
    state = .sending(
      LongBody(
        rest: response.body[...], memory: memory, keepsConnection: keepsConnection,
        compression: gzip.map { _ in Gzip.Progress() }))
    writePiece(atMost: pieceBytes, gzip, into: &buffer)
  }

  /// Whether a long answer is being compressed.
  var isCompressing: Bool { if case .sending(let body) = state { body.compression != nil } else { false } }

  /// Writes the next piece of a long answer. `gzip`: for a compressed one.
  func writePiece(atMost count: Int, _ gzip: Gzip?, into buffer: inout ByteBuffer) {
    guard case .sending(var body) = state else { return }
    let piece = body.rest.prefix(count)
    body.rest = body.rest.dropFirst(count)
    if let gzip, var progress = body.compression {
      var chunk = ByteBuffer(capacity: count / 2)
      let isLast = body.rest.isEmpty
      unsafe piece.withUnsafeBytes { unsafe gzip.compress($0, of: &progress, isLast: isLast, into: &chunk) }
      unsafe chunk.withBytes { unsafe Response.writeChunk($0, isLast: isLast, into: &buffer) }
      body.compression = progress
    } else {
      unsafe piece.withUnsafeBytes { unsafe buffer.append($0) }
    }
    if body.rest.isEmpty { conclude(keepsConnection: body.keepsConnection) } else { state = .sending(body) }
  }

  private func conclude(keepsConnection: Bool) {
    isTimed = false
    state = keepsConnection ? .reading(.head(RequestParser())) : .over
  }

  // MARK: Turns

  /// Defers reading; a long answer defers its next piece by itself.
  func stall() { if case .reading(let reading) = state { state = .stalled(reading) } }

  func resume() { if case .stalled(let reading) = state { state = .reading(reading) } }

  /// Whether another request may be handled in this turn. Some answers are long (1,000 drivers: 250 KiB), so their
  /// bytes count, too: what one turn writes for a peer that reads nothing stays within its outbox.
  func mayAdvance(in turn: UInt64, _ limits: borrowing Limits) -> Bool {
    enter(turn: turn)
    guard handled < limits.requestsPerTurn else { return false }
    return answeredBytes < limits.answerBytesPerTurn
  }

  /// Begins to count for a turn.
  func enter(turn: UInt64) {
    guard turn != self.turn else { return }
    self.turn = turn
    handled = 0
    answeredBytes = 0
  }
}
