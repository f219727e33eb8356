// The end of a connection and what follows. The table of codes (Messages/Codes.swift) says which close codes and HTTP
// statuses lead to a reconnect.
public import HubHTTP
import HubMessages
public import HubWebSocket

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Why a connection or an attempt ended.
public enum DisconnectCause: Sendable, Equatable {
  /// The hub's host name has no address, or could not be looked up; in the resolver's words.
  case hostNotFound(String)
  /// TCP failed to connect, for instance with ECONNREFUSED.
  case connectFailed(errno: Int32)
  /// TLS failed; in its own words. `isCertificate`: the hub's certificate was refused.
  case tlsFailed(String, isCertificate: Bool)
  /// TCP, the handshake or `connected` took too long.
  case timedOut
  /// The upgrade was refused. `text` is the beginning of the response's body.
  case refused(status: UInt16, retryAfter: Double?, text: String)
  /// The server is no WebSocket server.
  case handshakeFailed(HandshakeError)
  case notHTTP(HTTPError)
  /// The hub sent a Close frame; 1005 where that had no code (RFC 6455 §7.1.5).
  case closed(CloseCode)
  /// TCP ended without a Close frame.
  case lost
  /// The hub was silent for too long.
  case silent
  /// The hub violated RFC 6455.
  case protocolError(FrameError)
  /// `close` was called.
  case closedByUs
}

extension DisconnectCause {
  /// Whether another network may help, since the hub did not decide it.
  var isOfTheNetwork: Bool {
    switch self {
    case .hostNotFound, .connectFailed, .tlsFailed, .timedOut, .handshakeFailed, .notHTTP, .lost, .silent: true
    case .refused, .closed, .protocolError, .closedByUs: false
    }
  }
}

/// A transport's error.
public enum TransportFailure: Error, Sendable, Equatable {
  /// The hub's host name has no address, or could not be looked up; in the resolver's words.
  case hostNotFound(String)
  /// TCP failed to connect, for instance with ECONNREFUSED.
  case connectFailed(errno: Int32)
  /// TLS failed; in its own words. `isCertificate`: the hub's certificate was refused.
  case tlsFailed(String, isCertificate: Bool)
}

extension DisconnectCause {
  init(_ failure: TransportFailure) {
    switch failure {
    case .hostNotFound(let text): self = .hostNotFound(text)
    case .connectFailed(let errno): self = .connectFailed(errno: errno)
    case .tlsFailed(let text, let isCertificate): self = .tlsFailed(text, isCertificate: isCertificate)
    }
  }
}

/// Why a client does not reconnect by itself.
public enum ClientEnd: Sendable, Equatable {
  case closedByUs
  /// Close 1000.
  case closedByHub
  /// HTTP 401 or close 4401, and there is no other token: `start(token:)` with a new one continues.
  case needsToken
  /// Close 4409: another session of this driver took over.
  case replaced
  /// Close 4400: too many of this client's messages were wrong.
  case badMessages
  /// Close 1002, 1003, 1007 or 1009, or the hub violated the protocol.
  case protocolError(CloseCode)
  /// Another final refusal of the upgrade.
  case refused(status: UInt16)
}

/// The end of one connection.
public struct Disconnection: Sendable, Equatable {
  /// What follows the end of a connection.
  public enum Next: Sendable, Equatable {
    /// The client reconnects by itself, after so many seconds.
    case retry(after: Double)
    case ended(ClientEnd)
  }

  public var cause: DisconnectCause
  public var next: Next
  /// Whether the connection had been opened.
  public var wasOpen: Bool

  public init(cause: DisconnectCause, next: Next, wasOpen: Bool) {
    self.cause = cause
    self.next = next
    self.wasOpen = wasOpen
  }
}

/// The reconnect rule of a cause, before delays are drawn.
enum ReconnectRule: Equatable {
  case never(ClientEnd)
  /// The usual back-off.
  case backOff
  /// At random within the spread, if this is the first of consecutive failures.
  case spread
  /// Not before so many seconds.
  case notBefore(Double)
}

extension ReconnectRule {
  init(_ cause: DisconnectCause, limits: ClientLimits) {
    switch cause {
    case .hostNotFound, .connectFailed, .timedOut: self = .backOff
    // What ended one connection has ended others at the same moment, with or without a close code.
    case .lost, .silent: self = .spread
    // A captive portal answers like this, temporarily; a certificate is renewed.
    case .handshakeFailed, .notHTTP, .tlsFailed: self = .backOff
    case .refused(let status, let retryAfter, text: _):
      self = ReconnectRule.refused(status, retryAfter, limits)
    case .protocolError(let error): self = .never(.protocolError(error.closeCode))
    case .closedByUs: self = .never(.closedByUs)
    case .closed(let code): self = ReconnectRule.closed(code, limits)
    }
  }

  /// An unknown code, or none, is from a proxy or a later hub, and may have ended all other connections as well.
  private static func closed(_ code: CloseCode, _ limits: ClientLimits) -> ReconnectRule {
    guard let reason = CloseReason(rawValue: code.rawValue) else { return .spread }
    return switch reason.facts.reconnect {
    case .backOff: .backOff
    case .spread: .spread
    case .afterPause: .notBefore(limits.overRateSeconds)
    case .withNewToken: .never(.needsToken)
    case .never: .never(reason == .replaced ? .replaced : .closedByHub)
    case .afterFix: .never(reason == .tooManyBadMessages ? .badMessages : .protocolError(code))
    }
  }

  private static func refused(_ status: UInt16, _ retryAfter: Double?, _ limits: ClientLimits) -> ReconnectRule {
    // Other statuses are from a proxy: 408 and 425 allow a repetition (RFC 9110 §15.5.9, RFC 8470 §5.2).
    let isFinal = (400..<500).contains(status) && status != 408 && status != 425
    return switch HTTPRefusal.all.first(where: { $0.status == status })?.reconnect ?? (isFinal ? .never : .backOff) {
    case .withNewToken: .never(.needsToken)
    case .never, .afterFix: .never(.refused(status: status))
    case .backOff, .spread, .afterPause: retryAfter.map { .notBefore(min($0, limits.longestRetryAfter)) } ?? .backOff
    }
  }
}

extension DisconnectCause: CustomStringConvertible {
  /// A description for people.
  public var description: String {
    switch self {
    case .hostNotFound(let text): "the host's name has no address: \(text)"
    case .connectFailed(let errno): "cannot connect: \(systemText(errno))"
    case .tlsFailed(let text, isCertificate: _): text
    case .timedOut: "no answer in time"
    case .refused(let status, _, let text): "refused with HTTP \(status)" + (text.isEmpty ? "" : ": \(text)")
    case .handshakeFailed(let error): "no WebSocket server: \(error)"
    case .notHTTP(let error): "no HTTP server: \(error)"
    case .closed(.noStatus): "closed by the hub without a code"
    case .closed(let code):
      "closed by the hub with \(code.rawValue)"
        + (CloseReason(rawValue: code.rawValue).map { " (\($0.text))" } ?? "")
    case .lost: "connection lost"
    case .silent: "the hub was silent for too long"
    case .protocolError(let error): "the hub broke the WebSocket protocol: \(error)"
    case .closedByUs: "closed"
    }
  }
}

/// The C library's text for an error number.
package func systemText(_ number: Int32) -> String {
  // strerror_r writes into this buffer; strerror shares one between threads.
  unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
    guard unsafe strerror_r(number, buffer.baseAddress!, buffer.count) == 0 else { return "error \(number)" }
    return unsafe String(cString: buffer.baseAddress!)
  }
}
