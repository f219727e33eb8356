// Answers on their way to the socket, in pieces where they are long, and the time that a connection has behind them.
import HubBytes
import HubHTTP
import HubRuntime
import HubTransport

struct Responder {
  private let loop: EventLoop
  private let settings: HTTPSettings

  init(_ loop: EventLoop, _ settings: HTTPSettings) {
    self.loop = loop
    self.settings = settings
  }

  private var limits: Limits { settings.configuration.limits }
  private var now: Int64 { loop.now.uptimeNanoseconds }

  /// `request`: nil where it could not be read. `room`: what the journal's reader has taken for the answer.
  func respond(
    _ response: Response, to request: HTTPRequest?, _ exchange: Exchange, room: MemoryReservation? = nil
  ) {
    // From the signal on, so that a client finds another hub before this one closes the connection (RFC 9112 §9.6).
    let isServing = settings.shared.lifecycle.phase(at: now) == .serving
    var response = response
    response.fields += settings.corsFields(request?.origin ?? .noOrigin)
    exchange.enter(turn: loop.turn)  // the hub's answer may come in another one than the request
    send(exchange) {
      exchange.write(
        response, to: request, keepsConnection: request?.keepsConnection == true && isServing, room: room,
        pieceBytes: limits.answerPieceBytes, into: &$0)
    }
  }

  /// The next piece of a long answer.
  func sendPiece(_ exchange: Exchange) {
    send(exchange) { exchange.writePiece(atMost: limits.answerPieceBytes, into: &$0) }
  }

  private func send(_ exchange: Exchange, _ write: (inout ByteBuffer) -> Void) {
    exchange.answeredBytes += loop.send(to: exchange.connection, write)
    switch exchange.state {
    case .reading, .stalled, .waiting, .sending, .admitting: extend(exchange)
    case .over:
      loop.close(exchange.connection)
      loop.setTimer(exchange.connection, at: now + nanoseconds(limits.closingSeconds))
    }
  }

  /// Gives the connection the time that it has for the next request, or the next piece.
  func extend(_ exchange: Exchange) {
    exchange.deadline = now + nanoseconds(limits.keepAliveSeconds)
    loop.setTimer(exchange.connection, at: exchange.deadline)
  }
}

extension EventLoop {
  /// Sends what is written at the arena's end; gives how many bytes it is.
  @discardableResult
  func send(to connection: ConnectionID, _ write: (inout ByteBuffer) -> Void) -> Int {
    let start = arena.count
    write(&arena)
    send(start..<arena.count, to: connection)
    return arena.count - start
  }
}
