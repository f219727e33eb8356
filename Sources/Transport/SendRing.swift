// The sends of a turn in one system call, by io_uring(7). A send is nearly all that a delivery costs, and many in one
// call cost a fifth less than one by one (figures: loadtest/NOTES.md, "Sends of a turn"). The kernel makes them one
// after the other within the call, as `send` would, so nothing is under way afterwards. A loop calls `send` for each
// connection, with the same results, where there is no ring: the kernel is older than 5.18, or something forbids it (a
// container's filter of system calls, kernel.io_uring_disabled).
//
// Closing a ring interrupts the threads that used it, as a signal would: the sleep of a loop there may end early.

import CHubLinux
import Glibc
import HubBytes
import HubSystem
import Synchronization

/// An io_uring for one loop's sends.
@safe
struct SendRing: ~Copyable {
  /// A send: what a connection has in this turn, or as much of it as fits into `pieceCount` pieces.
  struct Entry {
    let connection: ConnectionID
    /// The first segment, the one behind the send (−1: none), and the send's length in bytes.
    let first: Int32
    let next: Int32
    let length: Int
  }

  /// The most sends in one call. For each the ring has 64 bytes, 32 for its result, and 168 for its pieces.
  static let capacity = 256
  /// With fewer sends in a turn the ring was no faster.
  static let worthwhileFrom = 8
  static let pieceCount = 7

  // Unsafe island: the kernel's memory is mapped as long as this value lives, and its indices are masked; messages and
  // pieces are used at indices below `capacity`. The kernel reads them, and what they point to, only within `submit`.
  let ring: Descriptor
  private let queues: UnsafeMutableRawBufferPointer
  private let requests: UnsafeMutableBufferPointer<io_uring_sqe>
  private let requestTail: UnsafeMutablePointer<Atomic<UInt32>>
  private let resultHead: UnsafeMutablePointer<Atomic<UInt32>>
  private let resultTail: UnsafeMutablePointer<Atomic<UInt32>>
  private let results: UnsafeMutableBufferPointer<io_uring_cqe>
  private let messages: UnsafeMutableBufferPointer<msghdr>
  private let pieces: UnsafeMutableBufferPointer<iovec>

  private var entries = TurnList<Entry>()
  /// How many entries the kernel took, and how many are handled.
  private var taken = 0
  private var handled = 0

  // From linux/io_uring.h; older versions of it lack the first.
  private static let submitAll: UInt32 = 1 << 7
  private static let offsetOfQueues: off_t = 0
  private static let offsetOfRequests: off_t = 0x1000_0000
  private static let waitsForResults: UInt32 = 1

  /// Nil where the kernel gives none.
  init?() {
    var parameters = io_uring_params()
    parameters.flags = Self.submitAll
    let number = unsafe hub_io_uring_setup(UInt32(Self.capacity), &parameters)
    guard number >= 0 else { return nil }
    let ring = Descriptor(owning: number)
    let (requestCount, resultCount) = (Int(parameters.sq_entries), Int(parameters.cq_entries))
    let (asked, answered) = (parameters.sq_off, parameters.cq_off)
    let queueBytes = max(
      Int(asked.array) + requestCount * MemoryLayout<UInt32>.stride,
      Int(answered.cqes) + resultCount * MemoryLayout<io_uring_cqe>.stride)
    guard let queues = unsafe Self.map(ring, Self.offsetOfQueues, bytes: queueBytes) else { return nil }
    let requestBytes = requestCount * MemoryLayout<io_uring_sqe>.stride
    guard let requests = unsafe Self.map(ring, Self.offsetOfRequests, bytes: requestBytes) else {
      unsafe munmap(queues.baseAddress, queues.count)
      return nil
    }
    let base = queues.baseAddress!
    // The n-th request is always in the n-th place.
    let order = unsafe (base + Int(asked.array)).assumingMemoryBound(to: UInt32.self)
    for index in 0..<requestCount { unsafe order[index] = UInt32(index) }
    unsafe self.queues = queues
    unsafe self.requests = requests.assumingMemoryBound(to: io_uring_sqe.self)
    unsafe requestTail = (base + Int(asked.tail)).assumingMemoryBound(to: Atomic<UInt32>.self)
    unsafe resultHead = (base + Int(answered.head)).assumingMemoryBound(to: Atomic<UInt32>.self)
    unsafe resultTail = (base + Int(answered.tail)).assumingMemoryBound(to: Atomic<UInt32>.self)
    unsafe results = UnsafeMutableBufferPointer(
      start: (base + Int(answered.cqes)).assumingMemoryBound(to: io_uring_cqe.self), count: resultCount)
    unsafe messages = .allocate(capacity: Self.capacity)
    unsafe messages.initialize(repeating: msghdr())
    unsafe pieces = .allocate(capacity: Self.capacity * Self.pieceCount)
    unsafe pieces.initialize(repeating: iovec())
    self.ring = ring
  }

  private static func map(_ ring: borrowing Descriptor, _ offset: off_t, bytes: Int) -> UnsafeMutableRawBufferPointer? {
    let address = unsafe mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring.raw, offset)
    guard let address = unsafe address, unsafe address != MAP_FAILED else { return nil }
    return unsafe UnsafeMutableRawBufferPointer(start: address, count: bytes)
  }

  deinit {
    unsafe munmap(requests.baseAddress, requests.count * MemoryLayout<io_uring_sqe>.stride)
    unsafe munmap(queues.baseAddress, queues.count)
    unsafe messages.deallocate()
    unsafe pieces.deallocate()
  }

  /// Queues a connection's send of the pieces that `gather` notes; true if the ring is full, so that `submit` has to
  /// follow. The memory of the pieces must not change before `submit`.
  @inline(__always)
  mutating func queue(
    _ connection: ConnectionID, _ descriptor: Int32, from first: Int32,
    _ gather: (UnsafeMutableBufferPointer<iovec>) -> (Gathering, next: Int32)
  ) -> Bool {
    let index = entries.count
    precondition(index < Self.capacity)
    let pieces = unsafe UnsafeMutableBufferPointer(
      start: pieces.baseAddress! + index * Self.pieceCount, count: Self.pieceCount)
    let (gathered, next) = unsafe gather(pieces)
    var request = io_uring_sqe()
    request.fd = descriptor
    request.user_data = UInt64(index)
    // Without MSG_DONTWAIT the kernel would wait for room, and read the arena when it has other bytes.
    request.msg_flags = UInt32(MSG_NOSIGNAL | MSG_DONTWAIT)
    if gathered.count == 1 {
      request.opcode = UInt8(IORING_OP_SEND.rawValue)
      unsafe request.addr = UInt64(UInt(bitPattern: pieces[0].iov_base))
      unsafe request.len = UInt32(pieces[0].iov_len)
    } else {
      unsafe messages[index].msg_iov = pieces.baseAddress
      unsafe messages[index].msg_iovlen = gathered.count
      request.opcode = UInt8(IORING_OP_SENDMSG.rawValue)
      unsafe request.addr = UInt64(UInt(bitPattern: messages.baseAddress! + index))
      request.len = 1
    }
    let place = unsafe Int(requestTail.pointee.load(ordering: .relaxed)) + index
    unsafe requests[place & (requests.count - 1)] = request
    entries.append(Entry(connection: connection, first: first, next: next, length: gathered.bytes))
    return entries.count == Self.capacity
  }

  /// Makes the sends, unless they are too few; false where none was made. `takeResult` then gives the result of each.
  mutating func submit() -> Bool {
    (taken, handled) = (0, 0)
    if entries.count < Self.worthwhileFrom { return false }
    let first = unsafe requestTail.pointee.load(ordering: .relaxed)
    unsafe requestTail.pointee.store(first &+ UInt32(entries.count), ordering: .releasing)
    while taken < entries.count {
      let count = hub_io_uring_enter(ring.raw, UInt32(entries.count - taken), 0, 0)
      if count > 0 { taken += Int(count) } else if count == 0 || errno != EINTR { break }
    }
    // Short of memory, the kernel takes fewer. The others are withdrawn, since they are then made one by one; it reads
    // this number in a call only.
    unsafe requestTail.pointee.store(first &+ UInt32(taken), ordering: .releasing)
    return taken > 0
  }

  /// The next send with its result; nil instead of a result for one that was not made. Nil after the last one, and the
  /// ring is empty again.
  mutating func takeResult() -> (Entry, Transfer?)? {
    guard handled < entries.count else {
      entries.removeAll()
      return nil
    }
    defer { handled += 1 }
    guard handled < taken else { return (entries[handled], nil) }
    let head = unsafe resultHead.pointee.load(ordering: .relaxed)
    while unsafe resultTail.pointee.load(ordering: .acquiring) == head {
      // With MSG_DONTWAIT a send has its result at once; if one had not, an older one would be read in its place.
      let outcome = hub_io_uring_enter(ring.raw, 0, 1, Self.waitsForResults)
      precondition(outcome >= 0 || errno == EINTR, "io_uring_enter failed on the loop's own ring")
    }
    let result = unsafe results[Int(head) & (results.count - 1)]
    unsafe resultHead.pointee.store(head &+ 1, ordering: .releasing)
    let entry = entries[Int(result.user_data)]
    let moved = result.res
    if moved >= 0 { return (entry, .moved(Int(moved))) }
    return (entry, moved == -EINTR ? nil : SocketCalls.unsent(-moved))
  }
}
