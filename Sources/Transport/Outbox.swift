// The unsent bytes of a blocked connection. Only here are outgoing bytes copied: a connection that keeps up is written
// from the loop's arena and has no outbox.
//
// Frames are in sequence in one buffer. A newer frame with the same conflation key removes the older one and goes to
// the end, so a slow reader gets the newest state and never waits behind old ones. The gaps are closed when they are
// larger than the rest, which makes it O(1) a byte, and the buffer at most twice the unsent bytes (its memory up to
// four times, since that doubles).

import CHubLinux
import HubBytes

/// The unsent frames of one connection, in order.
final class Outbox {
  private static let spareBytes = 16 * 1024

  private struct Entry {
    var offset: Int
    var length: UInt32
    var hasBegun: Bool
    var isLive: Bool
    var key: UInt64
  }

  /// The outbox's place in the loop's OutboxRanks.
  struct Place {
    var rank: Int
    var index: Int
  }

  /// Whether a frame was taken.
  enum Outcome { case stored, replacedOlder, refused }

  private var buffer = ByteBuffer()
  private var entries: [Entry] = []
  /// The first entry that is not entirely sent; those before it are dead.
  private var head = 0
  /// The index of each key's entry that may still be replaced.
  private var newest: [UInt64: Int] = [:]
  private(set) var liveBytes = 0
  private(set) var liveCount = 0
  /// The connection that it belongs to.
  var owner = ConnectionID(slot: 0, generation: 0)
  var place: Place?
  /// Bytes of TLS records that are sealed already and leave before its frames.
  var sealedBytes = 0

  init() {}

  var isEmpty: Bool { liveCount == 0 }
  /// Bytes in memory, including replaced frames that were not removed yet.
  var bufferedBytes: Int { buffer.count }
  /// Its cost towards limits.
  var cost: Int { liveBytes + liveCount * EventLoopLimits.frameOverheadBytes }

  /// What the connection holds of the limit of all outboxes: its frames and its sealed records.
  var heldBytes: Int { cost + sealedBytes }

  /// Its cost with a frame of so many bytes more, which replaces an unsent one of its key.
  func cost(with bytes: Int, key: UInt64) -> Int {
    let older = key == 0 ? nil : newest[key].map { Int(entries[$0].length) + EventLoopLimits.frameOverheadBytes }
    return cost + bytes + EventLoopLimits.frameOverheadBytes - (older ?? 0)
  }

  /// Appends a frame, and removes the unsent older one of the same `key` (unless 0). Refuses it, with the older one
  /// removed nonetheless, when `cost` would exceed `limit`.
  func append(_ bytes: UnsafeRawBufferPointer, key: UInt64, limit: Int) -> Outcome {
    var outcome = Outcome.stored
    if key != 0, let older = newest[key] {
      kill(older)
      outcome = .replacedOlder
    }
    guard cost + bytes.count + EventLoopLimits.frameOverheadBytes <= limit else {
      if key != 0 { newest[key] = nil }
      return .refused
    }
    closeGaps()
    if key != 0 { newest[key] = entries.count }
    unsafe store(bytes, key: key, hasBegun: false)
    return outcome
  }

  /// Appends the rest of a partly sent frame, which has to follow in any case: without a limit.
  func appendRest(_ bytes: UnsafeRawBufferPointer) {
    precondition(isEmpty, "only the first frame can be partly sent")
    unsafe store(bytes, key: 0, hasBegun: true)
  }

  private func store(_ bytes: UnsafeRawBufferPointer, key: UInt64, hasBegun: Bool) {
    entries.append(
      Entry(offset: buffer.count, length: UInt32(bytes.count), hasBegun: hasBegun, isLive: true, key: key))
    unsafe buffer.append(bytes)
    liveBytes += bytes.count
    liveCount += 1
  }

  private func kill(_ index: Int) {
    entries[index].isLive = false
    liveBytes -= Int(entries[index].length)
    liveCount -= 1
  }

  /// Points `pieces` to the first unsent bytes, in as few pieces as possible, and calls `body` with the numbers of
  /// pieces and bytes; `body` returns how many of these bytes were sent.
  func send(_ pieces: UnsafeMutableBufferPointer<iovec>, _ body: (Int, Int) -> Transfer) -> (Transfer, asked: Int) {
    // The pointers are used only in `body`, and the buffer does not change before it returns.
    let (transfer, asked) = unsafe buffer.withBytes { bytes in
      var gathered = unsafe Gathering(pieces)
      var index = head
      while index < entries.count {
        let entry = entries[index]
        if entry.isLive, unsafe !gathered.add(bytes.baseAddress! + entry.offset, Int(entry.length)) { break }
        index += 1
      }
      return (body(gathered.count, gathered.bytes), gathered.bytes)
    }
    if case .moved(let count) = transfer { consume(count) }
    return (transfer, asked)
  }

  /// Removes the first `count` unsent bytes.
  private func consume(_ count: Int) {
    var left = count
    while head < entries.count {
      let entry = entries[head]
      if entry.isLive {
        if left == 0 { break }
        if Int(entry.length) > left {
          begin(head, sent: left)
          return
        }
        left -= Int(entry.length)
        forgetKey(of: head)
        kill(head)
      }
      head += 1
    }
    if isEmpty { clear() }
  }

  private func begin(_ index: Int, sent: Int) {
    forgetKey(of: index)
    entries[index].hasBegun = true
    entries[index].offset += sent
    entries[index].length -= UInt32(sent)
    liveBytes -= sent
  }

  /// From its first byte on a frame cannot be replaced any more.
  private func forgetKey(of index: Int) {
    let key = entries[index].key
    if key != 0, newest[key] == index { newest[key] = nil }
  }

  /// Drops all frames except the rest of a partly sent one. Returns how many were dropped.
  func dropUnbegun() -> Int {
    let all = liveCount
    for index in head..<entries.count where entries[index].isLive && !entries[index].hasBegun { kill(index) }
    newest.removeAll()
    if isEmpty { clear() }
    return all - liveCount
  }

  /// Empties it for another connection, and frees memory beyond a small rest.
  func clear() {
    buffer.removeAll(keepingAtMost: Outbox.spareBytes)
    entries.removeAll(keepingCapacity: entries.capacity <= 256)
    newest.removeAll(keepingCapacity: newest.capacity <= 256)
    head = 0
    liveBytes = 0
    liveCount = 0
  }

  private func closeGaps() {
    let dead = buffer.count - liveBytes
    guard dead > max(liveBytes, 4096) || entries.count - liveCount > liveCount + 64 else { return }
    var to = 0
    var count = 0
    // Downwards in place: the target has only dead or moved bytes, since offsets ascend with the entries.
    unsafe buffer.withMutableBytes { bytes in
      for index in head..<entries.count where entries[index].isLive {
        var entry = entries[index]
        let source = unsafe UnsafeRawBufferPointer(rebasing: bytes[entry.offset..<entry.offset + Int(entry.length)])
        unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[to..<to + source.count]).copyMemory(from: source)
        entry.offset = to
        entries[count] = entry
        if entry.key != 0, !entry.hasBegun { newest[entry.key] = count }
        to += source.count
        count += 1
      }
    }
    buffer.truncate(to: to)
    entries.removeLast(entries.count - count)
    head = 0
  }
}

/// Collects memory for one sendmsg; adjacent ranges become one piece. It exists during that call alone, and its caller
/// owns the memory.
@safe
struct Gathering {
  private let pieces: UnsafeMutableBufferPointer<iovec>
  private(set) var count = 0
  private(set) var bytes = 0

  init(_ pieces: UnsafeMutableBufferPointer<iovec>) { unsafe self.pieces = unsafe pieces }

  /// False when there is no room for another piece.
  mutating func add(_ start: UnsafeRawPointer, _ length: Int) -> Bool {
    if count > 0 {
      let last = unsafe pieces[count - 1]
      if unsafe UnsafeRawPointer(last.iov_base) + last.iov_len == start {
        unsafe pieces[count - 1].iov_len += length
        bytes += length
        return true
      }
    }
    guard unsafe count < pieces.count else { return false }
    // sendmsg only reads through this pointer; iovec is mutable for recvmsg.
    unsafe pieces[count] = iovec(iov_base: UnsafeMutableRawPointer(mutating: start), iov_len: length)
    count += 1
    bytes += length
    return true
  }
}
