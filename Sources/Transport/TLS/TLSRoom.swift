// Where OpenSSL's records come from and go to: memory of the loop, instead of a socket.
//
// A loop reads a socket once a turn, whatever is in it, and lets OpenSSL take records out of that; what OpenSSL writes
// is collected here and leaves with one send. OpenSSL's own socket BIO would make two system calls for each record it
// reads (its header, its body) and one for each it writes, and by write(2), which raises SIGPIPE. It also makes
// OpenSSL's part simple: reading says "no more" at the end of the memory, and writing always succeeds, so no write has
// to be repeated.
//
// Unsafe island: OpenSSL calls the functions below with a BIO whose data points to the loop's room. All of it is on the
// loop's thread, within a call of TLSStream's, and the room lives as long as the loop's last stream (TLSTable frees the
// streams first).

import CHubOpenSSL
import Glibc
import HubBytes

/// One loop's buffers for TLS; none of it is a connection's.
struct TLSRoom: ~Copyable {
  /// The largest record (RFC 8446 §5.1): more plaintext than this does not fit into one.
  static let recordBytes = 16 * 1024

  /// What was read from a socket; [next, end) is not with OpenSSL yet. Empty between two calls of TLSStream's.
  let input: UnsafeMutableRawBufferPointer
  fileprivate var next = 0
  private(set) var end = 0
  /// What OpenSSL wrote and nobody has sent yet; likewise.
  var output = ByteBuffer()
  /// Where small pieces are put together into a record.
  let plaintext: UnsafeMutableRawBufferPointer
  /// Key updates since the last plaintext, of the connection that is being read; past the limit nothing is read.
  var keyUpdates = 0
  let keyUpdateLimit: Int

  init(inputBytes: Int, keyUpdateLimit: Int) {
    self.keyUpdateLimit = keyUpdateLimit
    input = .allocate(byteCount: inputBytes, alignment: 64)
    plaintext = .allocate(byteCount: TLSRoom.recordBytes, alignment: 64)
  }

  deinit {
    input.deallocate()
    plaintext.deallocate()
  }

  /// Offers the first `count` bytes of `input` to OpenSSL.
  mutating func offer(_ count: Int) {
    next = 0
    end = count
  }

  var isInputEmpty: Bool { next == end }
  var hasTooManyKeyUpdates: Bool { keyUpdates > keyUpdateLimit }

  fileprivate mutating func read(_ target: UnsafeMutableRawPointer, _ count: Int) -> Int {
    let count = min(count, end - next)
    target.copyMemory(from: input.baseAddress! + next, byteCount: count)
    next += count
    return count
  }

  /// Copies the first bytes of `pieces` together, as many as one record takes; gives them where they lie if they are in
  /// one piece already.
  func gather(_ pieces: UnsafeMutableBufferPointer<iovec>, count: Int) -> UnsafeRawBufferPointer {
    if count == 1 || pieces[0].iov_len >= TLSRoom.recordBytes {
      return UnsafeRawBufferPointer(start: pieces[0].iov_base, count: min(pieces[0].iov_len, TLSRoom.recordBytes))
    }
    var filled = 0
    for index in 0..<count where filled < TLSRoom.recordBytes {
      let length = min(pieces[index].iov_len, TLSRoom.recordBytes - filled)
      (plaintext.baseAddress! + filled).copyMemory(from: pieces[index].iov_base, byteCount: length)
      filled += length
    }
    return UnsafeRawBufferPointer(rebasing: plaintext[..<filled])
  }

  /// A new BIO over the room at `pointer`; nil for want of memory.
  static func makeBIO(_ pointer: UnsafeMutablePointer<TLSRoom>) -> OpaquePointer? {
    guard let bio = BIO_new(method) else { return nil }
    BIO_set_data(bio, pointer)
    BIO_set_init(bio, 1)
    return bio
  }

  // Made once, by whichever thread comes first, and only read afterwards.
  nonisolated(unsafe) private static let method: OpaquePointer = {
    guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "room of a loop") else {
      preconditionFailure("OpenSSL has no memory for a BIO's method")
    }
    BIO_meth_set_read(method, readFromRoom)
    BIO_meth_set_write(method, writeToRoom)
    BIO_meth_set_ctrl(method, controlRoom)
    return method
  }()
}

private let retryFlags = BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY

private func room(of bio: OpaquePointer) -> UnsafeMutablePointer<TLSRoom> {
  BIO_get_data(bio)!.assumingMemoryBound(to: TLSRoom.self)
}

private let readFromRoom: @convention(c) (OpaquePointer?, UnsafeMutablePointer<CChar>?, Int32) -> Int32 = {
  guard let bio = $0, let target = $1, $2 > 0 else { return 0 }
  let room = room(of: bio)
  BIO_clear_flags(bio, retryFlags)
  guard !room.pointee.isInputEmpty, !room.pointee.hasTooManyKeyUpdates else {
    BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
    return -1
  }
  return Int32(room.pointee.read(target, Int($2)))
}

private let writeToRoom: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?, Int32) -> Int32 = {
  guard let bio = $0, let source = $1, $2 > 0 else { return 0 }
  BIO_clear_flags(bio, retryFlags)
  room(of: bio).pointee.output.append(UnsafeRawBufferPointer(start: source, count: Int($2)))
  return $2
}

private let controlRoom: @convention(c) (OpaquePointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int = {
  _, command, _, _ in
  // Nothing is held back, so a flush is done at once; 0 means "don't know" to everything else, kernel TLS among it.
  command == BIO_CTRL_FLUSH ? 1 : 0
}

/// Counts the key updates that come (RFC 8446 §4.6.3), each of which costs a derivation of keys and an answer.
let countKeyUpdates:
  @convention(c) (
    Int32, Int32, Int32, UnsafeRawPointer?, Int, OpaquePointer?, UnsafeMutableRawPointer?
  ) -> Void = { isWritten, _, contentType, bytes, count, _, room in
    guard isWritten == 0, contentType == SSL3_RT_HANDSHAKE, count > 0, let bytes, let room,
      Int32(bytes.load(as: UInt8.self)) == SSL3_MT_KEY_UPDATE
    else { return }
    room.assumingMemoryBound(to: TLSRoom.self).pointee.keyUpdates += 1
  }
