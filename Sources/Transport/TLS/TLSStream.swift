// One connection's TLS: ciphertext to plaintext and back, in memory, without a socket. What it takes comes from the loop's
// room, what it gives is put there; EventLoop+TLS.swift stands between it and the socket.
//
// The state of OpenSSL is made when the first bytes come (or a client's TCP stands): a connection that is silent costs no
// more than one without TLS. And a server frees it when the handshake is done, where that was TLS 1.3: see TLSRecords.swift.
// For that it has to know where the handshake ends and data begins, so it hands OpenSSL one record at a time.

import Bytes
import COpenSSL
import Glibc

/// One connection's TLS. Belongs to the loop whose `room` it was made for.
struct TLSStream: ~Copyable {
  enum End: Equatable {
    /// More may come.
    case none
    /// The peer said goodbye (close_notify): everything it sent was opened.
    case closed
    case failed(TLSFailure)
  }

  private enum Origin {
    case server(TLSServer)
    case client(TLSPeer)
  }

  private let origin: Origin
  private let room: UnsafeMutablePointer<TLSRoom>
  /// SSL; owned. Nil before the first bytes, and once `records` has taken over.
  private(set) var ssl: OpaquePointer?
  private var records: TLSRecords?
  private var serverSecret: TLSSecret?
  /// The beginning of a record whose rest is to come; a server's only.
  private var partial = ByteBuffer()
  /// Records that the kernel would not take: they leave before anything else.
  var unsent = ByteBuffer()
  private var keyUpdates = 0
  /// The handshake is done: what is sent may be sealed.
  private(set) var isSecured = false
  private(set) var isResumed = false
  private(set) var hasBegun = false
  /// Nothing more may be asked of OpenSSL (SSL_get_error(3), SSL_ERROR_SSL).
  private var isBroken = false
  private var hasSaidGoodbye = false

  init(_ server: TLSServer, _ room: UnsafeMutablePointer<TLSRoom>) {
    origin = .server(server)
    self.room = room
  }

  init(_ peer: TLSPeer, _ room: UnsafeMutablePointer<TLSRoom>) {
    origin = .client(peer)
    self.room = room
  }

  deinit {
    guard let ssl else { return }
    // See freeSSL, which a deinit can't call.
    SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
    if case .client(let peer) = origin, isSecured, !isBroken { peer.keep(ssl) }
    SSL_free(ssl)
  }

  /// Whether a handshake was begun and has not come to its end.
  var isHandshaking: Bool { hasBegun && !isSecured }
  /// Whether OpenSSL's SSL is not needed any more.
  var hasTakenOver: Bool { records != nil }
  var isClient: Bool { if case .client = origin { true } else { false } }

  // MARK: Handshake

  private mutating func begin() -> Bool {
    hasBegun = true
    let context: TLSContext
    switch origin {
    case .server(let server): context = server.current
    case .client(let peer): context = peer.client.context
    }
    guard let new = SSL_new(context.raw) else { return false }
    ssl = new
    guard let bio = TLSRoom.makeBIO(room) else { return false }
    // One BIO for both ways; SSL_set_bio takes over one reference for both (SSL_set_bio(3)).
    SSL_set_bio(new, bio, bio)
    SSL_ctrl(new, SSL_CTRL_SET_MSG_CALLBACK_ARG, 0, room)
    switch origin {
    case .server: SSL_set_accept_state(new)
    case .client(let peer):
      SSL_set_connect_state(new)
      return peer.prepare(new)
    }
    return true
  }

  /// A client's first words, into the room's output.
  mutating func start() -> TLSFailure? {
    guard begin() else { return fail(.takingError()) }
    let outcome = SSL_do_handshake(ssl)
    guard outcome <= 0, SSL_get_error(ssl, outcome) != SSL_ERROR_WANT_READ else { return nil }
    room.pointee.output.removeAll()
    return fail(failure())
  }

  private mutating func fail(_ failure: TLSFailure) -> TLSFailure {
    ERR_clear_error()
    isBroken = true
    return failure
  }

  /// What OpenSSL has just failed for.
  private func failure() -> TLSFailure {
    // A certificate that was refused has two reasons; this one says why.
    let result = SSL_get_verify_result(ssl)
    if isClient, !isSecured, result != X509_V_OK { return .certificate(result) }
    return .takingError()
  }

  // MARK: Opening

  /// The longest record of any version, with its header (RFC 5246 §6.2.3; TLS 1.3's is shorter).
  static let longestRecord = TLSRecords.headerBytes + TLSRoom.recordBytes + 2048

  /// Opens the first `count` bytes of the room's input into `buffer`, and gives how much that was. Bytes may have come even
  /// where the end is not `none`; an alert or an answer may be in the room's output, and is to be sent or thrown away before
  /// another stream uses the room.
  ///
  /// `buffer` must have room for the input and `longestRecord`.
  mutating func open(_ count: Int, into buffer: UnsafeMutableRawBufferPointer) -> (count: Int, end: End) {
    guard !isBroken else { return (0, .failed(.internal)) }
    if !hasBegun, !begin() { return (0, .failed(fail(.takingError()))) }
    let input = UnsafeRawBufferPointer(rebasing: room.pointee.input[..<count])
    room.pointee.keyUpdates = keyUpdates
    var filled = 0
    let end = isClient ? feed(input, buffer, &filled) : openRecords(input, buffer, &filled)
    keyUpdates = room.pointee.keyUpdates
    return (filled, end)
  }

  /// Takes the input apart into records.
  private mutating func openRecords(
    _ input: UnsafeRawBufferPointer, _ buffer: UnsafeMutableRawBufferPointer, _ filled: inout Int
  ) -> End {
    var rest = input
    func take(_ count: Int) -> UnsafeRawBufferPointer {
      let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(count))
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
      return piece
    }
    if !partial.isEmpty {
      // Twice where the header was not whole.
      while case let missing = partial.withBytes({ Self.length(of: $0) - $0.count }), missing > 0 {
        if rest.isEmpty { return .none }
        partial.append(take(missing))
      }
      var whole = ByteBuffer()
      swap(&whole, &partial)
      let end = whole.withBytes { openRecord($0, buffer, &filled) }
      if end != .none { return end }
    }
    while !rest.isEmpty {
      let length = Self.length(of: rest)
      guard length <= rest.count else {
        partial.append(rest)
        return .none
      }
      let end = openRecord(take(length), buffer, &filled)
      if end != .none { return end }
    }
    return .none
  }

  /// How long the record is that these bytes begin, with its header; at least a header. Bytes that begin none are all that
  /// can be said about them at once: the whole of them, which will be refused.
  static func length(of bytes: UnsafeRawBufferPointer) -> Int {
    // A content type of TLS (20 change_cipher_spec … 24 heartbeat) and its major version 3 (RFC 5246 §6.2.1).
    guard (20...24).contains(bytes[0]), bytes.count < 2 || bytes[1] == 3 else { return bytes.count }
    guard bytes.count >= TLSRecords.headerBytes else { return TLSRecords.headerBytes }
    let length = TLSRecords.headerBytes + (Int(bytes[3]) << 8 | Int(bytes[4]))
    return length <= longestRecord ? length : bytes.count
  }

  private mutating func openRecord(
    _ record: UnsafeRawBufferPointer, _ buffer: UnsafeMutableRawBufferPointer, _ filled: inout Int
  ) -> End {
    if records != nil { return openOwn(record, buffer, &filled) }
    let outputBefore = room.pointee.output.count
    let wasSecured = isSecured
    room.pointee.clientSecret = nil
    room.pointee.serverSecret = nil
    let end = feed(record, buffer, &filled)
    if let secret = room.pointee.serverSecret, !isSecured { serverSecret = secret }
    if !wasSecured, isSecured, end == .none { takeOver(outputBefore: outputBefore) }
    room.pointee.clientSecret = nil
    room.pointee.serverSecret = nil
    return end
  }

  /// Lets OpenSSL read these bytes, all of them.
  private mutating func feed(
    _ bytes: UnsafeRawBufferPointer, _ buffer: UnsafeMutableRawBufferPointer, _ filled: inout Int
  ) -> End {
    room.pointee.offer(bytes)
    defer { room.pointee.withdraw() }
    repeat {
      var count = 0
      let outcome = SSL_read_ex(ssl, buffer.baseAddress! + filled, buffer.count - filled, &count)
      if outcome == 1 {
        filled += count
        room.pointee.keyUpdates = 0
        precondition(filled < buffer.count, "a record has become larger by being opened")
        continue
      }
      switch SSL_get_error(ssl, outcome) {
      case SSL_ERROR_WANT_READ where room.pointee.hasTooManyKeyUpdates: return .failed(fail(.tooManyKeyUpdates))
      case SSL_ERROR_WANT_READ: room.pointee.withdraw()
      case SSL_ERROR_ZERO_RETURN:
        noteSecured()
        return .closed
      case _: return .failed(fail(failure()))
      }
    } while !room.pointee.isInputEmpty || SSL_pending(ssl) > 0
    noteSecured()
    return .none
  }

  private mutating func noteSecured() {
    guard !isSecured, SSL_is_init_finished(ssl) == 1 else { return }
    isSecured = true
    isResumed = SSL_session_reused(ssl) == 1
  }

  // MARK: Without OpenSSL's SSL

  /// The handshake is done with the record that was fed last, and what the server wrote since then (a session ticket) is all
  /// that it has sealed with its traffic secret.
  private mutating func takeOver(outputBefore: Int) {
    guard SSL_version(ssl) == TLS1_3_VERSION, let serverSecret, let clientSecret = room.pointee.clientSecret,
      let cipher = TLSCipher(number: SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(ssl))),
      let sent = room.pointee.output.withBytes({ Self.countRecords($0[outputBefore...]) })
    else { return }
    records = TLSRecords(
      cipher, reading: TLSDirection(cipher, clientSecret, sequence: 0),
      writing: TLSDirection(cipher, serverSecret, sequence: sent))
    self.serverSecret = nil
    freeSSL()
  }

  /// How many protected records these bytes are; nil if they are something else.
  private static func countRecords(_ bytes: Slice<UnsafeRawBufferPointer>) -> UInt64? {
    var rest = UnsafeRawBufferPointer(rebasing: bytes)
    var count: UInt64 = 0
    while !rest.isEmpty {
      let length = Self.length(of: rest)
      guard rest[0] == TLSRecords.Content.applicationData.rawValue, length <= rest.count else { return nil }
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(length))
      count += 1
    }
    return count
  }

  private mutating func freeSSL() {
    guard let ssl else { return }
    // OpenSSL marks a session as not to be resumed when its connection was cut off. That is when clients come back.
    SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
    SSL_free(ssl)
    self.ssl = nil
  }

  private mutating func openOwn(
    _ record: UnsafeRawBufferPointer, _ buffer: UnsafeMutableRawBufferPointer, _ filled: inout Int
  ) -> End {
    let target = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
    switch records!.open(record, &room.pointee.ciphers, into: target) {
    case .data(let count):
      filled += count
      if count > 0 { room.pointee.keyUpdates = 0 }
      return .none
    case .keyUpdate(let isRequested):
      room.pointee.keyUpdates += 1
      if room.pointee.hasTooManyKeyUpdates { return .failed(fail(.tooManyKeyUpdates)) }
      if isRequested { records!.sealKeyUpdate(&room.pointee.ciphers, into: &room.pointee.output) }
      return .none
    case .nothing: return .none
    case .goodbye: return .closed
    case .alert(let description): return .failed(fail(.alert(description)))
    case .fault(let description):
      records!.sealAlert(description, &room.pointee.ciphers, into: &room.pointee.output)
      return .failed(fail(.fault(description)))
    }
  }

  // MARK: Sealing

  /// Seals bytes, as many as one record takes at most, into the room's output: all of them, or none and the reason.
  mutating func seal(_ bytes: UnsafeRawBufferPointer) -> (count: Int, failure: TLSFailure?) {
    precondition(isSecured && bytes.count > 0 && bytes.count <= TLSRoom.recordBytes)
    guard !isBroken else { return (0, .internal) }
    if records != nil {
      records!.sealData(
        bytes, newKeyAfter: room.pointee.recordsPerKey, &room.pointee.ciphers, into: &room.pointee.output)
      return (bytes.count, nil)
    }
    var count = 0
    let outcome = SSL_write_ex(ssl, bytes.baseAddress!, bytes.count, &count)
    if outcome == 1, count == bytes.count { return (count, nil) }
    room.pointee.output.removeAll()
    return (0, fail(failure()))
  }

  /// Says goodbye (RFC 8446 §6.1), once and where it can be said; true if there is something to send.
  mutating func sealGoodbye() -> Bool {
    guard isSecured, !isBroken, !hasSaidGoodbye else { return false }
    hasSaidGoodbye = true
    if records != nil {
      records!.sealAlert(0, &room.pointee.ciphers, into: &room.pointee.output)
      return true
    }
    // Gives 0 when said and 1 when the peer has said it, too; its own failure is an end as well.
    _ = SSL_shutdown(ssl)
    ERR_clear_error()
    return true
  }
}
