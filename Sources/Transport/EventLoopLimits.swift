// All limits of a loop, with what happens at each. No peer can make a loop use more than these.

/// Limits of one event loop.
public struct EventLoopLimits: Sendable, Hashable {
  /// The cost of an unsent frame besides its bytes: its entry, and its key.
  public static let frameOverheadBytes = 64

  /// Open connections, accepted and outgoing. At it a new one is accepted and closed at once (counted as `refused`), so
  /// that its client fails fast and tries elsewhere instead of waiting in the kernel's backlog; `connect` throws
  /// EMFILE.
  public var maximumConnections = 100_000
  /// Connections beyond `maximumConnections` that listeners without a pace may still accept, so that operators get in
  /// during a flood.
  public static let unpacedConnections = 16

  /// Bytes read from one socket in one turn, and the size of the loop's only read buffer. 64 KiB holds some 300 fixes
  /// and fits the second-level cache; more would only let a busy peer delay others.
  public var readBufferBytes = 64 * 1024

  /// Bytes read from all sockets in one turn, and other work (`spend`); the last read may exceed it. Other ready
  /// sockets come first in the next turn, after the output so far.
  public var readBytesPerTurn = 1 << 30

  /// Ready sockets handled in one turn; the others are first in the next one.
  public var eventsPerTurn = 1024

  /// Sends to several connections without TLS go in one system call where the kernel allows that (SendRing.swift).
  public var sendsTogether = false

  /// Microseconds for which a loop under load lets its sockets gather before it polls them again (TurnPace.swift); 0
  /// for never. A loop with little to do never waits.
  public var turnPaceMicroseconds = 0

  /// A loop is under load from `pacedFrom` ready sockets a second on, and remains so down to `pacedAbove`. They are
  /// counted over `paceWindow` nanoseconds, or over a sleep that is longer.
  static let pacedFrom = 4000.0
  static let pacedAbove = 2000.0
  static let paceWindow: Int64 = 10_000_000
  /// No pause follows a turn that took longer than so many pauses.
  static let backlogPaces: Int64 = 2

  /// Timers of connections that fire in one turn; the others do in the next ones. Sessions that came together are
  /// silent together: a ping to each of thousands would make a turn of many milliseconds.
  public var timersPerTurn = 16

  /// Connections accepted from one listener in one turn, so that a flood of new ones does not delay existing ones. The
  /// rest waits in the kernel's backlog.
  public var acceptsPerTurn = 128

  /// Connections accepted in a second, and at once after a quiet second; 0 for any number. At it the listeners pause
  /// for at least 10 ms, and new connections wait in the kernel's backlog (counted as `acceptWaits`): none is refused,
  /// and existing ones keep the processor.
  public var acceptsPerSecond = 0

  /// Unsent bytes that the loop keeps for one blocked connection, counting `frameOverheadBytes` for each frame; their
  /// memory may be up to four times that (see Outbox.swift). A frame that finds nothing unsent may be larger. Past it
  /// the frame is dropped, `overflowed` is called once, and sends are dropped until `dropPending`.
  public var outboxBytesPerConnection = 1024 * 1024

  /// Unsent bytes that the loop keeps for all its blocked connections, counted as for `outboxBytesPerConnection`. Past
  /// it a connection with at least half as many as any other overflows, or the one that needs more; one that is
  /// closing ends instead.
  public var outboxBytesTotal = 256 * 1024 * 1024

  /// Queued sends at which they are written without waiting for the end of the turn: 24 bytes each.
  public var segmentsPerTurn = 128 * 1024

  /// Memory of the arena that is kept between turns; a larger turn frees the rest.
  public var arenaKeepBytes = 1024 * 1024

  /// Unsent bytes in the kernel at which a connection counts as blocked (TCP_NOTSENT_LOWAT, tcp(7)). What waits in the
  /// kernel cannot be replaced by something newer; what waits here can. 0 leaves it to the kernel (megabytes).
  public var kernelUnsentBytes: Int32 = 64 * 1024

  /// SO_SNDBUF of each connection; 0 lets the kernel tune it.
  public var kernelSendBufferBytes: Int32 = 0

  /// Steps of TLS handshakes in one turn, each up to a millisecond of RSA. The next connection's bytes stay in the
  /// kernel until the next turn (counted as `tlsHandshakesDeferred`), so that new connections do not delay existing
  /// ones.
  public var tlsHandshakesPerTurn = 16
  /// Bytes that such a step counts as towards `readBytesPerTurn`: it takes as long as reading some 50 messages.
  static let tlsHandshakeBytes = 8 * 1024

  /// Bytes that a server reads of a handshake: a ClientHello of `clientHelloBytes` and a chain of certificates. Past it
  /// the handshake fails (counted as `tlsHandshakesFailed`). OpenSSL keeps what is incomplete of them, which
  /// `outboxBytesTotal` does not count.
  public var tlsHandshakeReadBytes = EventLoopLimits.clientHelloBytes + EventLoopLimits.clientChainBytes

  /// TLS key updates (RFC 8446 §4.6.3) and renegotiations, which are refused, of one connection without data in
  /// between. Past it the connection ends: each costs an answer, and no honest peer needs so many.
  public var tlsKeyUpdates = 32

  /// Opening a TLS record takes 2 µs whatever is in it, so a client's records need `tlsRecordShare` bytes on average.
  /// What is missing adds up, less `tlsForgivenBytesPerSecond`; past `tlsMissingBytes` the connection ends. If each
  /// message has a record of its own (a ping is 20 bytes), little or nothing is missing, and a head or body may come in
  /// 500 records of a byte.
  static let tlsRecordShare = 32
  static let tlsMissingBytes = 16 * 1024
  static let tlsForgivenBytesPerSecond = 1024
  /// Bytes that each record of a read but the first counts as towards `readBytesPerTurn`.
  static let tlsRecordBytes = 128

  /// Bytes of TLS records that wait for the kernel: one record, and TLS's answers to a peer. Past it the connection
  /// ends.
  public var tlsUnsentBytes = 64 * 1024

  /// How long `close` may take, from the call to the peer's own close, before the connection is aborted. Where the
  /// owner sets a timer for sending the rest: how long the peer's close may take after that.
  public var closeMilliseconds = 5000

  /// How long all listeners pause after the process or system ran out of descriptors or memory.
  public var acceptRetryMilliseconds = 200

  public init() {}

  func validate() {
    precondition(maximumConnections > 0 && maximumConnections < Int(ConnectionSlab.noSlot) - Self.unpacedConnections)
    precondition(
      readBufferBytes >= 512 && readBytesPerTurn > 0 && eventsPerTurn > 0 && acceptsPerTurn > 0 && timersPerTurn > 0
        && segmentsPerTurn > 0)
    precondition(acceptsPerSecond >= 0 && turnPaceMicroseconds >= 0)
    precondition(outboxBytesPerConnection > 0 && outboxBytesPerConnection <= 1 << 30)
    precondition(outboxBytesTotal >= outboxBytesPerConnection && arenaKeepBytes >= 0)
    precondition(kernelUnsentBytes >= 0 && kernelSendBufferBytes >= 0)
    precondition(tlsHandshakesPerTurn > 0 && tlsKeyUpdates >= 0 && tlsUnsentBytes >= 2 * TLSBuffers.recordBytes)
    precondition(tlsHandshakeReadBytes > 0)
    precondition(closeMilliseconds >= 0 && acceptRetryMilliseconds >= 0)
  }
}

extension EventLoopLimits {
  /// Bytes of a ClientHello, which has up to 2,000. OpenSSL would make room for 131,396 where a peer announces so many
  /// (RFC 8446 §4, §4.1.2). Past it the handshake fails at once.
  static let clientHelloBytes = 16 * 1024
  /// Bytes of a client's certificates, and how many may be between its own and an authority. Past either it is refused.
  static let clientChainBytes = 16 * 1024
  static let clientChainLength: Int32 = 4
}

extension TicketKeys {
  /// Keys of session tickets kept for opening only. There are more only where the operator reloads more often than
  /// every 90 minutes: past it the oldest goes, and its tickets cost a full handshake.
  static let maximumRetired = 8
}
