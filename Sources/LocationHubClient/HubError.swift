// All errors in one type, with whether a retry helps.
import HubClientCore
public import HubMessages

/// An error of the hub, of the connection to it, or of how the client is used.
public struct HubError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kind of error.
  public enum Code: Sendable, Equatable {
    /// The hub's own code (protocol/README.md, "Error codes").
    case hub(ErrorCode)
    /// The URL is not a hub's.
    case badURL
    /// A value is outside what the protocol allows.
    case badValue
    /// There is no connection: no network, no answer, TLS refused, broken.
    case unreachable
    /// The hub does not accept the token, or the token source gave none.
    case token
    /// A limit is reached: moves in the driver's queue, unanswered questions, readers of feeds, or calls for the
    /// client's thread.
    case full
    /// The queue's files cannot be used, or a move in them was lost.
    case storage
    /// Another session of the driver took over.
    case replaced
    /// The server is no hub of this protocol, or it refused the connection permanently.
    case refused
    /// `stop()` was called. Of a driver's move: the client ended before the hub's answer, for whatever reason, and
    /// keeps the move.
    case stopped
    /// The task that asked was cancelled.
    case cancelled
  }

  /// Whether the same call, or the same connection, may succeed later.
  public enum Retry: Sendable, Equatable {
    /// It would fail again.
    case never
    /// After so many seconds; nil leaves the time to the caller.
    case later(after: Double?)
    /// With another token.
    case withNewToken
  }

  /// The kind of error.
  public let code: Code
  /// Whether a retry helps. The client's own retries are in `ConnectionState`.
  public let retry: Retry
  /// For developers, in English; it may change.
  public let explanation: String

  /// An error of the app's own, for a `TokenSource` to throw: with `retry` as `.never` the client stops.
  public init(_ code: Code, _ explanation: String, retry: Retry = .never) {
    self.code = code
    self.retry = retry
    self.explanation = explanation
  }

  /// The `explanation`.
  public var description: String { explanation }
}

extension HubError {
  static let stopped = HubError(.stopped, "the client was stopped")
  static let stoppedBeforeAnswer = HubError(
    .stopped, "the client has ended; the move is kept, and goes out when it starts again")
  static let lost = HubError(
    .storage, "the move is lost: the queue is another driver's now, or its file was damaged (Backlog.damage)")
  static let farBehind = HubError(
    .full, "more calls wait for the client's thread than it takes", retry: .later(after: nil))
  static let anotherAnswer = HubError(.refused, "the hub has answered something else")
  static let cancelled = HubError(.cancelled, "the task was cancelled")

  /// An answer of the hub.
  init(_ error: ErrorReply) {
    let retry: Retry =
      switch error.code.facts.retry {
      case .never, .changed: .never
      case .later, .once: .later(after: error.retryAfter)
      case .withNewToken: .withNewToken
      }
    self.init(.hub(error.code), error.message, retry: retry)
  }

  /// Why a connection ended; nil where `stop()` was called.
  init?(_ disconnection: Disconnection) {
    let text = "\(disconnection.cause)"
    switch disconnection.next {
    case .retry(let after): self.init(.unreachable, text, retry: .later(after: after))
    case .ended(let end):
      switch end {
      case .closedByUs: return nil
      case .needsToken: self.init(.token, text, retry: .withNewToken)
      case .replaced: self.init(.replaced, text)
      case .closedByHub, .badMessages, .protocolError, .refused: self.init(.refused, text)
      }
    }
  }

  init(_ error: HubURLError) { self.init(.badURL, "\(error)") }
}
