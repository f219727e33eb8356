// The memory of the loop that OpenSSL reads records from and writes them to, instead of a socket.
//
// A loop reads a socket once a turn, and OpenSSL takes records out of that; OpenSSL's output is collected here and
// leaves with one send. OpenSSL's own socket BIO would make two system calls for each record it reads (its header, its
// body) and one for each it writes, and by write(2), which raises SIGPIPE. It also makes OpenSSL's part simple: reading
// reports "no more" at the end of the memory, and writing always succeeds, so no write has to be repeated.
//
// Unsafe island: OpenSSL calls the functions below with a BIO whose data points to the loop's buffers. All of it is on
// the loop's thread, within a call of TLSStream's, and the buffers live as long as the loop's last stream (TLSTable
// frees the streams first).

import CHubLinux
import CHubOpenSSL
import Glibc
import HubBytes

/// One loop's buffers for TLS, shared by its connections.
@safe
struct TLSBuffers: ~Copyable {
  /// The largest record (RFC 8446 §5.1): more plaintext than this does not fit into one.
  static let recordBytes = 16 * 1024

  /// Bytes read from a socket; [next, end) are not with OpenSSL yet. Empty between two calls of TLSStream's.
  let input: UnsafeMutableRawBufferPointer
  fileprivate var next = 0
  private(set) var end = 0
  /// OpenSSL's unsent output. Empty between two calls of TLSStream's.
  var output = ByteBuffer()
  /// Where small pieces are joined into a record.
  let plaintext: UnsafeMutableRawBufferPointer
  /// Requests for new keys since the last plaintext, of the connection that is being read; past the limit nothing is
  /// read.
  var keyUpdates = 0
  let keyUpdateLimit: Int
  /// Bytes that a server reads of a handshake.
  let handshakeLimit: Int

  init(inputBytes: Int, keyUpdateLimit: Int, handshakeLimit: Int) {
    self.keyUpdateLimit = keyUpdateLimit
    self.handshakeLimit = handshakeLimit
    unsafe input = .allocate(byteCount: inputBytes, alignment: 64)
    unsafe plaintext = .allocate(byteCount: TLSBuffers.recordBytes, alignment: 64)
  }

  deinit {
    unsafe input.deallocate()
    unsafe plaintext.deallocate()
  }

  /// Offers the first `count` bytes of `input` to OpenSSL.
  mutating func offer(_ count: Int) {
    next = 0
    end = count
  }

  var isInputEmpty: Bool { next == end }
  /// What OpenSSL has not taken yet.
  var offered: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(rebasing: input[next..<end]) }
  var hasTooManyKeyUpdates: Bool { keyUpdates > keyUpdateLimit }

  fileprivate mutating func read(_ target: UnsafeMutableRawPointer, _ count: Int) -> Int {
    let count = min(count, end - next)
    unsafe target.copyMemory(from: input.baseAddress! + next, byteCount: count)
    next += count
    return count
  }

  /// Joins the first bytes of `pieces`, up to one record; gives them in place if they are in one piece already.
  func gather(_ pieces: UnsafeMutableBufferPointer<iovec>, count: Int) -> UnsafeRawBufferPointer {
    if unsafe count == 1 || pieces[0].iov_len >= TLSBuffers.recordBytes {
      return unsafe UnsafeRawBufferPointer(
        start: pieces[0].iov_base, count: min(pieces[0].iov_len, TLSBuffers.recordBytes))
    }
    var filled = 0
    for index in 0..<count where filled < TLSBuffers.recordBytes {
      let length = unsafe min(pieces[index].iov_len, TLSBuffers.recordBytes - filled)
      unsafe (plaintext.baseAddress! + filled).copyMemory(from: pieces[index].iov_base, byteCount: length)
      filled += length
    }
    return unsafe UnsafeRawBufferPointer(rebasing: plaintext[..<filled])
  }

  /// A new BIO over the buffers at `pointer`; nil without memory.
  static func makeBIO(_ pointer: UnsafeMutablePointer<TLSBuffers>) -> OpaquePointer? {
    guard let bio = unsafe BIO_new(method) else { return nil }
    unsafe BIO_set_data(bio, pointer)
    unsafe BIO_set_init(bio, 1)
    return unsafe bio
  }

  // Made once, by the first thread, and only read afterwards.
  nonisolated(unsafe) private static let method: OpaquePointer = {
    guard let method = unsafe BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "buffers of a loop") else {
      preconditionFailure("OpenSSL has no memory for a BIO's method")
    }
    unsafe BIO_meth_set_read(method, readFromBuffers)
    unsafe BIO_meth_set_write(method, writeToBuffers)
    unsafe BIO_meth_set_ctrl(method, controlBuffers)
    return unsafe method
  }()
}

private let retryFlags = BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY

private func buffers(of bio: OpaquePointer) -> UnsafeMutablePointer<TLSBuffers> {
  unsafe BIO_get_data(bio)!.assumingMemoryBound(to: TLSBuffers.self)
}

private let readFromBuffers: @convention(c) (OpaquePointer?, UnsafeMutablePointer<CChar>?, Int32) -> Int32 = {
  guard let bio = unsafe $0, let target = unsafe $1, $2 > 0 else { return 0 }
  let buffers = unsafe buffers(of: bio)
  unsafe BIO_clear_flags(bio, retryFlags)
  guard unsafe !buffers.pointee.isInputEmpty, unsafe !buffers.pointee.hasTooManyKeyUpdates else {
    unsafe BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
    return -1
  }
  return unsafe Int32(buffers.pointee.read(target, Int($2)))
}

private let writeToBuffers: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?, Int32) -> Int32 = {
  guard let bio = unsafe $0, let source = unsafe $1, $2 > 0 else { return 0 }
  unsafe BIO_clear_flags(bio, retryFlags)
  unsafe buffers(of: bio).pointee.output.append(UnsafeRawBufferPointer(start: source, count: Int($2)))
  return $2
}

private let controlBuffers: @convention(c) (OpaquePointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int = {
  _, command, _, _ in
  // Nothing is buffered, so a flush is done at once; 0 means "don't know" to everything else, kernel TLS included.
  command == BIO_CTRL_FLUSH ? 1 : 0
}

/// Counts a peer's requests for new keys, each of which costs an answer: key updates (RFC 8446 §4.6.3), which cost a
/// derivation as well, and renegotiations in TLS 1.2, by the warning that refuses each (RFC 5246 §7.2.2).
let countKeyUpdates:
  @convention(c) (
    Int32, Int32, Int32, UnsafeRawPointer?, Int, OpaquePointer?, UnsafeMutableRawPointer?
  ) -> Void = { isWritten, _, contentType, bytes, count, _, buffers in
    guard count > 0, let bytes = unsafe bytes, let buffers = unsafe buffers else { return }
    let isRequest =
      switch (isWritten, contentType) {
      case (0, SSL3_RT_HANDSHAKE): unsafe Int32(bytes.load(as: UInt8.self)) == SSL3_MT_KEY_UPDATE
      // An alert is two bytes: its level, and its description.
      case (1, SSL3_RT_ALERT): unsafe Int32((bytes + count - 1).load(as: UInt8.self)) == SSL_AD_NO_RENEGOTIATION
      case _: false
      }
    if isRequest { unsafe buffers.assumingMemoryBound(to: TLSBuffers.self).pointee.keyUpdates += 1 }
  }
