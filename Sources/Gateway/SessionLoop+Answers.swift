// Answers over HTTP: what the hub said, as a response, and its bytes on their way.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport

extension SessionLoop {
  // MARK: Answers of the hub

  /// A reply of the hub: to the session, or to the request that stands for it.
  mutating func answer(_ slot: Int, _ reply: Reply) {
    guard let exchange = sessions[slot].exchange, exchange.isWaiting else { return send(reply, to: slot) }
    switch reply {
    case .ack(let ack):
      finish(slot, exchange, Response(.ok, contentType: "application/json", body: QueryBody.batch(ack.batch)))
    case .error(let error): finish(slot, exchange, error)
    case .connected, .subscribed, .unsubscribed, .pong, .sampling, .result: break
    }
  }

  mutating func finish(_ slot: Int, _ exchange: Exchange, _ error: ErrorReply) {
    finish(
      slot, exchange, error.isOwnLimit ? .tooManyRequests : error.code.status, error.code, error.message,
      retryAfter: error.retryAfter.map { Int($0.rounded(.up)) })
  }

  mutating func finish(
    _ slot: Int, _ exchange: Exchange, _ status: Status, _ code: ErrorCode, _ message: String, retryAfter: Int? = nil
  ) {
    exchange.isWaiting = false
    respond(slot, exchange, status, code, message, retryAfter: retryAfter)
    advance(slot, exchange)
    settleIncomplete(slot)
  }

  mutating func finish(_ slot: Int, _ exchange: Exchange, _ response: Response) {
    exchange.isWaiting = false
    respond(slot, exchange, response)
    advance(slot, exchange)
    settleIncomplete(slot)
  }

  // MARK: Responses

  mutating func respond(_ slot: Int, _ exchange: Exchange, _ status: Status, text: StaticString) {
    let body = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    respond(slot, exchange, Response(status, contentType: "text/plain; charset=utf-8", body: Array(body)))
  }

  mutating func respond(
    _ slot: Int, _ exchange: Exchange, _ status: Status, _ code: ErrorCode, _ message: String, retryAfter: Int? = nil,
    fields: [OutgoingField] = []
  ) {
    counters.errors[Int(code.rawValue)] += 1
    var body = ByteBuffer()
    JSONWriter.writeError(code, message: message, into: &body)
    let response = Response(status, contentType: "application/json", body: body.array(), fields: fields)
    respond(slot, exchange, retryAfter.map(response.retryAfter(seconds:)) ?? response)
  }

  mutating func respond(_ slot: Int, _ exchange: Exchange, _ response: Response) {
    let connection = sessions[slot].connection
    let start = loop.arena.count
    // From the signal on, so that a client finds another hub before this one closes the connection (RFC 9112 §9.6).
    if shared.lifecycle.phase(at: now.uptime) != .serving { exchange.keepsAlive = false }
    var response = response
    response.fields += corsFields(exchange)
    let long = longBody(response, exchange)
    response.write(
      into: &loop.arena, keepsAlive: exchange.keepsAlive, toHead: exchange.isHead || long != nil)
    loop.send(start..<loop.arena.count, to: connection)
    exchange.body.removeAll(keepingAtMost: 0)  // a kept connection keeps no request
    exchange.enter(turn: loop.turn)  // the hub's answer may come in another one than the request
    exchange.answeredBytes += loop.arena.count - start
    counters.count(status: response.status.code)
    if let long { return beginLongBody(slot, exchange, long) }
    exchange.room = nil
    conclude(slot, exchange)
  }

  /// A whole answer was handed over.
  private mutating func conclude(_ slot: Int, _ exchange: Exchange) {
    let connection = sessions[slot].connection
    if exchange.keepsAlive {
      exchange.deadline = now.uptime + nanoseconds(limits.keepAliveSeconds)
      loop.setTimer(connection, at: exchange.deadline)
    } else {
      sessions[slot].phase = .closing
      loop.close(connection)
      loop.setTimer(connection, at: now.uptime + nanoseconds(limits.closingSeconds))
    }
  }

  // MARK: Long bodies

  /// The body that goes out piece by piece: one is made whole, but an outbox would not take it so.
  private func longBody(_ response: Response, _ exchange: Exchange) -> [UInt8]? {
    guard case .bytes(let bytes) = response.body, bytes.count > limits.answerPieceBytes, !exchange.isHead else {
      return nil
    }
    return bytes
  }

  private mutating func beginLongBody(_ slot: Int, _ exchange: Exchange, _ bytes: [UInt8]) {
    exchange.unsent = bytes[...]
    exchange.isWaiting = true
    sendPiece(slot, exchange)
  }

  /// The next piece of a long answer; the one after it follows in a later turn, when the peer has taken this one.
  mutating func sendPiece(_ slot: Int, _ exchange: Exchange) {
    guard let unsent = exchange.unsent else { return }
    let connection = sessions[slot].connection
    let piece = unsent.prefix(limits.answerPieceBytes)
    let start = loop.arena.count
    piece.withUnsafeBytes { loop.arena.append($0) }
    loop.send(start..<loop.arena.count, to: connection)
    exchange.answeredBytes += piece.count
    requestsDone += 1  // as much work as another one
    let rest = unsent.dropFirst(piece.count)
    guard rest.isEmpty else {
      exchange.unsent = rest
      exchange.deadline = now.uptime + nanoseconds(limits.keepAliveSeconds)  // for the next piece
      loop.setTimer(connection, at: exchange.deadline)
      return stall(slot, exchange)
    }
    exchange.unsent = nil
    exchange.room = nil
    exchange.isWaiting = false
    conclude(slot, exchange)
  }
}
