// The HTTP side of a connection, until it becomes a WebSocket or ends: bytes in, requests out, one at a time and in
// order (RFC 9112 §9.3.2), and what the one that is being answered waits for. It knows nothing of sockets and hub.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport
import HubWebSocket

/// A trip that the hub is asked for.
struct PendingTrip {
  let id: Identifier
  /// Whether trips that the hub has forgotten may be shown, too: they have no people of their own any more.
  let showsForgotten: Bool
  /// Nil for the trip itself.
  let track: TrackRequest?
  /// It is shown because it was moved, which stands whether or not it can be shown here.
  var isMoved = false
}

/// What a request waits for, with what its answer needs.
enum Awaited {
  /// The hub's word.
  case hub
  /// A trip of the hub, to be shown, or its track; one that the hub has forgotten may be in the journal.
  case trip(PendingTrip)
  /// A page of fences, each with the whole of its shape.
  case wholeFences
  /// Trips of the hub, and what is missing to a whole page out of the journal where a query is given.
  case trips(inJournal: TripListQuery?)
  /// The reader of the journal.
  case history
  /// The counters of all loops.
  case metrics
  /// The hub's word on each channel of a stream.
  case channels(EventStream)
  /// The trip as it stands after a move.
  case move(of: Identifier)
  /// A driver as it stands after its status was set.
  case statusSet(of: Identifier)
  /// What a phone app is to be told.
  case phone(PhoneFormat)
  /// The reply to a message that was posted.
  case message(MessageID)
  /// The next page of all vehicles.
  case vehicles(VehicleFeed)
}

final class Exchange {
  enum State {
    case reading(Reading)
    /// As many requests were handled as one turn may: reading goes on in a later one.
    case stalled(Reading)
    /// Nothing further is read until the answer is there.
    case waiting(HTTPRequest, for: Awaited)
    /// A long answer goes out piece by piece, each when the peer has taken the one before.
    case sending(LongBody)
    /// A driver's upgrade waits for the hub's word.
    case admitting(HTTPRequest, Upgrade)
    /// The connection became a WebSocket, or it ends.
    case over
  }

  enum Reading {
    case head(RequestParser)
    case body(HTTPRequest, BodyReader)
  }

  struct LongBody {
    var rest: ArraySlice<UInt8>
    /// The room that it takes, where it is the journal's.
    let room: MemoryReservation?
    let keepsConnection: Bool
    /// Where its pieces are compressed, and sent as chunks.
    var compression: Gzip.Progress?
  }

  var state = State.reading(.head(RequestParser()))
  /// Bytes that were not handled yet.
  var input = ByteBuffer()
  /// When the connection is closed unless a request is complete, or its answer taken, by then (uptime, ns).
  var deadline: Int64
  let connection: ConnectionID
  var peer: HTTPPeer
  /// The peer's address has too many connections: this one is here only to be told.
  var isOverAddressLimit = false
  /// The turn in which requests were handled last, how many, and the bytes of their answers.
  private var turn: UInt64 = 0
  var handled = 0
  var answeredBytes = 0
  private var hasAnswered = false

  init(_ connection: ConnectionID, from peer: HTTPPeer, deadline: Int64) {
    self.connection = connection
    self.peer = peer
    self.deadline = deadline
  }

  var slot: Int { Int(connection.slot) }

  /// Nothing was read that has not been answered.
  var isIdle: Bool { if case .reading(.head) = state { input.isEmpty } else { false } }

  /// The request whose answer is due.
  var waiting: HTTPRequest? { if case .waiting(let request, _) = state { request } else { nil } }

  /// An answer is due, or on its way.
  var isAnswering: Bool { if case .sending = state { true } else { waiting != nil } }

  /// Whether a drain ends it at once: it had an answer, and asks for nothing. One that is new was let in by this server
  /// and has its answer from it.
  var mayBeDismissed: Bool { hasAnswered && !isAnswering }

  /// It goes on when the peer has read the answers, in a later turn.
  var isStalled: Bool {
    switch state {
    case .stalled, .sending: true
    case .reading, .waiting, .admitting, .over: false
    }
  }

  /// The upgrade that the hub is asked about.
  var upgrade: Upgrade? { if case .admitting(_, let upgrade) = state { upgrade } else { nil } }

  /// Bytes that are kept of requests that are not complete.
  var keptBytes: Int {
    switch state {
    case .reading(.body(let request, _)), .stalled(.body(let request, _)): input.count + request.body.count
    case .reading(.head), .stalled(.head), .waiting, .sending, .admitting, .over: input.count
    }
  }

  // MARK: Reading

  /// The next head; nil while it is not complete, or a body is being read.
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

  /// Reads the request's body from now on.
  func beginBody(of request: HTTPRequest, limits: HTTPLimits) throws(HTTPError) {
    state = .reading(.body(request, try BodyReader(request.head.framing, limits: limits)))
  }

  /// The request whose body is being read, once all of it is there.
  func readBody() throws(HTTPError) -> HTTPRequest? {
    guard case .reading(.body(let request, var reader)) = state else { return nil }
    let progress = try unsafe input.withBytes { (bytes) throws(HTTPError) in
      try unsafe reader.read(bytes, into: &request.body)
    }
    input.removeFirst(progress.consumed)
    state = .reading(progress.isComplete ? .head(RequestParser()) : .body(request, reader))
    return progress.isComplete ? request : nil
  }

  /// Gives up what came of a request that is not complete; false where an answer is due.
  func dropInput() -> Bool {
    switch state {
    case .reading, .stalled:
      input.removeAll()
      state = .reading(.head(RequestParser()))
      return true
    case .waiting, .sending, .admitting, .over: return false
    }
  }

  /// It is the turn of a thread that reads files, and not the peer's, until so late (uptime, ns).
  func awaitReader(_ request: HTTPRequest, until deadline: Int64) {
    state = .waiting(request, for: .history)
    self.deadline = deadline
  }

  /// Who should have answered has not: a thread that reads files, or the hub.
  func waitedTooLong(_ limits: Limits) -> Refusal {
    if case .waiting(_, for: .history) = state { .notReadInTime(limits) } else { .notStoredInTime(limits) }
  }

  // MARK: Answering

  /// Writes the answer, a long one as far as its first piece: it is made whole, but an outbox would not take it so.
  ///
  /// - Parameter request: nil where it could not be read.
  func write(
    _ response: Response, to request: HTTPRequest?, keepsConnection: Bool, room: MemoryReservation?, pieceBytes: Int,
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
        rest: response.body[...], room: room, keepsConnection: keepsConnection,
        compression: gzip.map { _ in Gzip.Progress() }))
    writePiece(atMost: pieceBytes, gzip, into: &buffer)
  }

  /// Whether a long answer is being compressed.
  var isCompressing: Bool { if case .sending(let body) = state { body.compression != nil } else { false } }

  /// Writes the next piece of a long answer. `gzip`: for one that is compressed.
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
    state = keepsConnection ? .reading(.head(RequestParser())) : .over
  }

  // MARK: Turns

  /// A long answer waits for its next piece by itself.
  func stall() { if case .reading(let reading) = state { state = .stalled(reading) } }

  func resume() { if case .stalled(let reading) = state { state = .reading(reading) } }

  /// Whether another request may be handled in this turn. Some answers are long (1,000 drivers: 250 KiB), so their
  /// bytes count too: what one turn makes for a peer that reads nothing stays within its outbox.
  func mayAdvance(in turn: UInt64, _ limits: borrowing Limits) -> Bool {
    enter(turn: turn)
    guard handled < limits.requestsPerTurn else { return false }
    return answeredBytes < limits.answerBytesPerTurn
  }

  /// Counts for a turn from here on.
  func enter(turn: UInt64) {
    guard turn != self.turn else { return }
    self.turn = turn
    handled = 0
    answeredBytes = 0
  }
}
