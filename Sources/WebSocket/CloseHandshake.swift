// The closing handshake (RFC 6455 §5.5.1, §7.1) as a state machine of one connection. The caller has the timeouts.
//
// The server ends TCP first, so that it and not the client keeps the port in TIME_WAIT (RFC 6455 §7.1.1).

/// The state of the closing handshake.
public enum ClosingState: Sendable, Equatable {
  case open
  /// Our Close is sent, the peer's is awaited. Its messages still count (RFC 6455 §5.5.1); we send no more.
  case awaitingClose(sent: CloseCode)
  /// Both have sent Close, and the server is to end TCP. Only a client is in this state.
  case awaitingServer(CloseCode)
  /// TCP ends, or has ended. The code is the connection's (RFC 6455 §7.1.5).
  case closed(CloseCode)
}

/// What an event in the closing handshake requires.
public enum ClosingAction: Sendable, Equatable {
  case nothing
  /// Send a Close frame; no code means an empty one. Send nothing behind it.
  case sendClose(CloseCode?)
  /// Send a Close frame, and end TCP when it is sent: shut down the sending side, and drop input until the peer has
  /// closed or a second has passed, so that a reset does not overtake the frame (RFC 6455 §7.1.1).
  case sendCloseThenDisconnect(CloseCode?)
  /// End TCP when the queue is sent.
  case disconnect
}

/// The closing handshake of one connection.
public struct CloseHandshake: Sendable {
  public let role: Role
  public private(set) var state = ClosingState.open

  public init(role: Role) { self.role = role }

  /// Whether messages may still be sent: nothing follows a Close frame (RFC 6455 §5.5.1).
  public var maySend: Bool { state == .open }

  /// This end wants to close (RFC 6455 §7.1.2). Has no effect once closing has begun.
  public mutating func start(_ code: CloseCode) -> ClosingAction {
    precondition(code.isValidOnWire)
    guard state == .open else { return .nothing }
    state = .awaitingClose(sent: code)
    return .sendClose(code)
  }

  /// The peer's Close frame was received (`FrameEvent.close`).
  public mutating func received(_ code: CloseCode?) -> ClosingAction {
    switch state {
    case .open:
      // RFC 6455 §5.5.1: answered with a Close of the same code. The reason is not echoed.
      return end(with: code ?? .noStatus, .sendClose(code), .sendCloseThenDisconnect(code))
    case .awaitingClose:
      // RFC 6455 §7.1.5: the connection's code is the peer's, unless this end has failed.
      return end(with: code ?? .noStatus, .nothing, .disconnect)
    case .awaitingServer, .closed:
      return .nothing
    }
  }

  /// The peer broke the protocol (RFC 6455 §7.1.7). The reader drops the rest, so no answer is awaited.
  public mutating func failed(_ error: FrameError) -> ClosingAction {
    switch state {
    case .open:
      state = .closed(error.closeCode)
      return .sendCloseThenDisconnect(error.closeCode)
    case .awaitingClose:
      state = .closed(error.closeCode)
      return .disconnect
    case .awaitingServer, .closed:
      return .nothing
    }
  }

  /// TCP has ended, or the caller timed out. Gives the connection's code: 1006 without a Close (RFC 6455 §7.1.5).
  public mutating func transportEnded() -> CloseCode {
    switch state {
    case .open, .awaitingClose:
      state = .closed(.abnormal)
      return .abnormal
    case .awaitingServer(let code), .closed(let code):
      state = .closed(code)
      return code
    }
  }

  private mutating func end(
    with code: CloseCode, _ asClient: ClosingAction, _ asServer: ClosingAction
  ) -> ClosingAction {
    switch role {
    case .client:
      state = .awaitingServer(code)
      return asClient
    case .server:
      state = .closed(code)
      return asServer
    }
  }
}
