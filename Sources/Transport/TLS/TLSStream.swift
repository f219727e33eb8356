// One connection's TLS: ciphertext to plaintext and back, in the loop's buffers, without a socket; EventLoop+TLS.swift
// connects it to the socket.
//
// Unsafe island: a TLSTable owns the buffers and the streams, and frees these first; OpenSSL's state is the stream's.
//
// OpenSSL's state is made with the first bytes (or when a client's TCP is connected): a silent connection costs no more
// than one without TLS.

import CHubOpenSSL
import Glibc
import HubBytes

/// One connection's TLS, for the loop of `buffers`.
@safe
struct TLSStream: ~Copyable {
  enum End: Equatable {
    /// More may come.
    case none
    /// The peer sent close_notify: everything before was opened.
    case closed
    case failed(TLSFailure)
  }

  private enum Origin {
    case server(TLSServer)
    case client(TLSPeer)
  }

  private let origin: Origin
  /// Copied to a local name before it is written to: else the compiler (6.3.1) breaks off under the thread sanitizer.
  private let buffers: UnsafeMutablePointer<TLSBuffers>
  /// SSL; owned.
  private(set) var ssl: OpaquePointer?
  /// The certificates that a server's handshake chooses from; OpenSSL has a pointer to them.
  private var certificates: TLSCertificates?
  /// Records that the kernel did not take: they leave before anything else.
  var unsent = ByteBuffer()
  private var keyUpdates = 0
  private var smallRecords = SmallRecords()
  /// What a server has read of a handshake.
  private var handshakeBytes = 0
  private var hello = HelloLength()
  /// The handshake is done: output may be sealed.
  private(set) var isSecured = false
  private(set) var isResumed = false
  /// OpenSSL must not be called any more (SSL_get_error(3), SSL_ERROR_SSL).
  private var isBroken = false
  private var hasSaidGoodbye = false

  init(_ server: TLSServer, _ buffers: UnsafeMutablePointer<TLSBuffers>) {
    origin = .server(server)
    unsafe self.buffers = buffers
  }

  init(_ peer: TLSPeer, _ buffers: UnsafeMutablePointer<TLSBuffers>) {
    origin = .client(peer)
    unsafe self.buffers = buffers
  }

  deinit {
    guard let ssl = unsafe ssl else { return }
    // OpenSSL marks the session of an aborted connection as not resumable, though that is when clients reconnect.
    unsafe SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
    if case .client(let peer) = origin, isSecured, !isBroken { unsafe peer.keep(ssl) }
    unsafe SSL_free(ssl)
  }

  /// Whether a handshake is in progress.
  var isHandshaking: Bool { unsafe ssl != nil && !isSecured }
  var hasBegun: Bool { unsafe ssl != nil }
  var isClient: Bool { if case .client = origin { true } else { false } }

  /// The peer's certificate; nil before the handshake is done, and where it has none.
  var peerCertificate: PeerCertificate? {
    guard isSecured, let ssl = unsafe ssl else { return nil }
    return unsafe PeerCertificate(ssl)
  }

  // MARK: Handshake

  private mutating func begin() -> Bool {
    let context: TLSContext
    switch origin {
    case .server(let server):
      let current = server.current
      certificates = current
      context = current.first
    case .client(let peer): context = peer.client.context
    }
    guard let new = unsafe SSL_new(context.raw) else { return false }
    unsafe ssl = new
    guard let bio = unsafe TLSBuffers.makeBIO(buffers) else { return false }
    // One BIO for both directions; SSL_set_bio takes one reference for both (SSL_set_bio(3)).
    unsafe SSL_set_bio(new, bio, bio)
    unsafe SSL_ctrl(new, SSL_CTRL_SET_MSG_CALLBACK_ARG, 0, buffers)
    switch origin {
    case .server: unsafe SSL_set_accept_state(new)
    case .client(let peer):
      unsafe SSL_set_connect_state(new)
      return unsafe peer.prepare(new)
    }
    return true
  }

  /// Writes a client's first message into the buffers' output.
  mutating func start() -> TLSFailure? {
    let buffers = unsafe buffers
    guard begin() else { return fail(.takingError()) }
    let outcome = unsafe SSL_do_handshake(ssl)
    guard outcome <= 0, unsafe SSL_get_error(ssl, outcome) != SSL_ERROR_WANT_READ else { return nil }
    unsafe buffers.pointee.output.removeAll()
    return fail(failure())
  }

  private mutating func fail(_ failure: TLSFailure) -> TLSFailure {
    ERR_clear_error()
    isBroken = true
    return failure
  }

  /// The reason of OpenSSL's last failure.
  private func failure() -> TLSFailure {
    // A refused certificate leaves two reasons, of which the result of its verification is the specific one.
    let result = unsafe SSL_get_verify_result(ssl)
    if !isSecured, result != X509_V_OK { return .certificate(result) }
    return .takingError()
  }

  // MARK: Opening

  /// Opens all of the buffers' input into `buffer`, and gives the number of bytes, and of the records that had them.
  /// `now`: the uptime in nanoseconds. Bytes may have come even where the end is not `none`; an alert or an answer may
  /// be in the buffers' output, to be sent or discarded before another stream uses the buffers.
  ///
  /// `buffer` must be larger than the input by a whole record, because the input may complete one that began before.
  mutating func open(
    into buffer: UnsafeMutableRawBufferPointer, now: Int64
  ) -> (count: Int, records: Int, end: End) {
    guard !isBroken else { return (0, 0, .failed(.internal)) }
    if unsafe ssl == nil, !begin() { return (0, 0, .failed(fail(.takingError()))) }
    let buffers = unsafe buffers
    unsafe buffers.pointee.keyUpdates = keyUpdates
    // Discards what a failed connection left unread.
    defer { unsafe buffers.pointee.offer(0) }
    if unsafe !isClient && !isSecured && announcesTooMuch(buffers.pointee.offered) {
      return (0, 0, .failed(fail(.longHandshake)))
    }
    smallRecords.forgive(now: now)
    var filled = 0
    var records = 0
    var end = End.none
    repeat {
      var count = 0
      let outcome = unsafe SSL_read_ex(ssl, buffer.baseAddress! + filled, buffer.count - filled, &count)
      if outcome == 1 {
        filled += count
        records += 1
        unsafe buffers.pointee.keyUpdates = 0
        // Only records of clients are limited: this process has chosen the servers that it connects to.
        if !isClient, smallRecords.areTooMany(records, bytes: filled) { end = .failed(fail(.tooManySmallRecords)) }
        precondition(filled < buffer.count, "a record has become larger by being opened")
        continue
      }
      switch unsafe SSL_get_error(ssl, outcome) {
      case SSL_ERROR_WANT_READ where unsafe buffers.pointee.hasTooManyKeyUpdates:
        end = .failed(fail(.tooManyKeyUpdates))
      case SSL_ERROR_WANT_READ:
        unsafe buffers.pointee.offer(0)
        continue
      case SSL_ERROR_ZERO_RETURN: end = .closed
      case _: end = .failed(fail(failure()))
      }
    } while unsafe end == .none && (!buffers.pointee.isInputEmpty || SSL_pending(ssl) > 0)
    keyUpdates = unsafe buffers.pointee.keyUpdates
    smallRecords.count(records, bytes: filled)
    noteSecured()
    if unsafe !isClient && !isSecured && end == .none && handshakeBytes > buffers.pointee.handshakeLimit {
      end = .failed(fail(.longHandshake))
    }
    return (filled, records, end)
  }

  /// Counts bytes of a client's handshake before OpenSSL gets them; whether they begin a ClientHello that is too long.
  /// It may be the second one (RFC 8446 §4.1.4). With TLS 1.2 there is none, and records look alike when encrypted.
  private mutating func announcesTooMuch(_ bytes: UnsafeRawBufferPointer) -> Bool {
    handshakeBytes += bytes.count
    return unsafe SSL_version(ssl) != TLS1_2_VERSION && hello.isTooLong(bytes)
  }

  private mutating func noteSecured() {
    guard !isSecured, !isBroken, unsafe SSL_is_init_finished(ssl) == 1 else { return }
    isSecured = true
    isResumed = unsafe SSL_session_reused(ssl) == 1
  }

  // MARK: Sealing

  /// Seals bytes, up to the largest record, into the buffers' output: all of them, or none and the reason.
  ///
  /// RFC 8446 §5.5 asks for a new key before 2^24.5 full records of AES-GCM, 360 GiB. OpenSSL does not count the uses
  /// of a key and never changes one by itself (openssl/openssl#23566), and neither does this: a session with a record
  /// each second would take nine months to get there, and ends long before with its token.
  mutating func seal(_ bytes: UnsafeRawBufferPointer) -> (count: Int, failure: TLSFailure?) {
    precondition(isSecured && bytes.count > 0 && bytes.count <= TLSBuffers.recordBytes)
    guard !isBroken else { return (0, .internal) }
    var count = 0
    let outcome = unsafe SSL_write_ex(ssl, bytes.baseAddress!, bytes.count, &count)
    if outcome == 1, count == bytes.count { return (count, nil) }
    let buffers = unsafe buffers
    unsafe buffers.pointee.output.removeAll()
    return (0, fail(failure()))
  }

  /// Seals close_notify (RFC 8446 §6.1), once and if possible; true if there is something to send.
  mutating func sealGoodbye() -> Bool {
    guard isSecured, !isBroken, !hasSaidGoodbye else { return false }
    hasSaidGoodbye = true
    // Gives 0 when sent and 1 when the peer has sent it, too; a failure is an end as well.
    _ = unsafe SSL_shutdown(ssl)
    ERR_clear_error()
    return true
  }
}

/// Finds how long a ClientHello will be, in a client's records before they are encrypted (RFC 8446 §4, §5.1): OpenSSL
/// makes room for all of it as soon as it has these four bytes, which may come in as many pieces and records.
private struct HelloLength {
  /// What there is of a record's header (five bytes) or of a message's (four), and how much of it.
  private var recordHeader: UInt64 = 0
  private var recordHeaderBytes = 0
  private var messageHeader: UInt32 = 0
  private var messageHeaderBytes = 0
  /// Bytes to come of the record and of the message whose header was read.
  private var recordBytes = 0
  private var messageBytes = 0
  private var isHandshake = false

  mutating func isTooLong(_ bytes: UnsafeRawBufferPointer) -> Bool {
    for index in bytes.indices {
      let byte = unsafe bytes[index]
      guard recordBytes > 0 else {
        readRecordHeader(byte)
        continue
      }
      recordBytes -= 1
      if isHandshake, readMessage(byte) { return true }
    }
    return false
  }

  private mutating func readRecordHeader(_ byte: UInt8) {
    recordHeader = recordHeader << 8 | UInt64(byte)
    recordHeaderBytes += 1
    guard recordHeaderBytes == 5 else { return }
    isHandshake = recordHeader >> 32 == UInt64(SSL3_RT_HANDSHAKE)
    recordBytes = Int(recordHeader & 0xFFFF)
    (recordHeader, recordHeaderBytes) = (0, 0)
  }

  private mutating func readMessage(_ byte: UInt8) -> Bool {
    guard messageBytes == 0 else {
      messageBytes -= 1
      return false
    }
    messageHeader = messageHeader << 8 | UInt32(byte)
    messageHeaderBytes += 1
    guard messageHeaderBytes == 4 else { return false }
    messageBytes = Int(messageHeader & 0xFF_FFFF)
    let isHello = Int32(messageHeader >> 24) == SSL3_MT_CLIENT_HELLO
    (messageHeader, messageHeaderBytes) = (0, 0)
    return isHello && messageBytes > EventLoopLimits.clientHelloBytes
  }
}

/// The bytes that one peer's records were short of `EventLoopLimits.tlsRecordShare` each.
private struct SmallRecords {
  private var missing = 0.0
  /// When some of them were last forgiven (uptime, ns).
  private var forgiven: Int64 = 0

  mutating func forgive(now: Int64) {
    let seconds = Double(now - forgiven) / 1e9
    forgiven = now
    missing = max(0, missing - seconds * Double(EventLoopLimits.tlsForgivenBytesPerSecond))
  }

  /// Whether so many more records, with so many bytes together, are past the limit.
  @inline(__always)
  func areTooMany(_ records: Int, bytes: Int) -> Bool {
    let more = records * EventLoopLimits.tlsRecordShare - bytes
    return more > 0 && missing + Double(more) > Double(EventLoopLimits.tlsMissingBytes)
  }

  mutating func count(_ records: Int, bytes: Int) {
    missing = max(0, missing + Double(records * EventLoopLimits.tlsRecordShare - bytes))
  }
}
