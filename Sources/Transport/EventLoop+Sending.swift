// Sending: a send notes a range of the arena; the flush at the end of the turn writes each connection's ranges with one
// call, or those of many connections (SendRing.swift). Bytes of a blocked connection are copied into an outbox, where
// newer state replaces older.

import CHubLinux
import Glibc
import HubBytes

extension EventLoop {
  /// Whether the kernel allows this process to send to several connections in one system call.
  public static var canSendTogether: Bool { SendRing() != nil }

  /// Sends a range of `arena` to a connection, in order, at the end of this turn. Some 10 ns; no system call, no copy.
  ///
  /// One send is one frame: it is replaced, dropped or sent as a whole. With `conflationKey` 0 it is dropped only by an
  /// overflow. With another key it replaces an unsent older frame of this key when the connection is blocked. Does
  /// nothing for a connection that is closing or gone, and for an empty range.
  public func send(_ range: Range<Int>, to id: ConnectionID, conflationKey: UInt64 = 0) {
    // First, since it may end this connection, or overflow it.
    if segments.count >= limits.segmentsPerTurn { flush() }
    guard let connection = unsafe slab.live(id), !range.isEmpty else { return }
    switch unsafe connection.pointee.state {
    case .connecting, .open: break
    case .closing, .lingering, .free, .doomed: return
    }
    guard unsafe !connection.pointee.flags.contains(.hasOverflowed) else {
      counters.dropped += 1
      return
    }
    precondition(range.lowerBound >= 0 && range.upperBound <= arena.count, "not a range of the arena")
    let index = Int32(truncatingIfNeeded: segments.count)
    segments.append(
      Segment(offset: UInt32(range.lowerBound), length: UInt32(range.count), key: conflationKey, next: -1))
    if unsafe connection.pointee.lastSegment >= 0 {
      unsafe segments[Int(connection.pointee.lastSegment)].next = index
    } else {
      unsafe connection.pointee.firstSegment = index
      unsafe markDirty(id.slot, connection)
    }
    unsafe connection.pointee.lastSegment = index
  }

  /// Writes what was sent so far and empties the arena: for an owner with much output in one turn. Earlier ranges
  /// become invalid. Makes no callback.
  public func flushEarly() {
    flush()
    arena.removeAll(keepingAtMost: limits.arenaKeepBytes)
  }

  /// Whether the kernel's buffer for this connection is full, so that sends wait in its outbox. Also while connecting.
  public func isBlocked(_ id: ConnectionID) -> Bool {
    guard let connection = unsafe slab.live(id) else { return false }
    return unsafe connection.pointee.outbox != nil || connection.pointee.state == .connecting
  }

  /// Bytes in the outbox of a blocked connection; this turn's sends are not in it yet.
  public func pendingBytes(_ id: ConnectionID) -> Int { unsafe slab.live(id)?.pointee.outbox?.liveBytes ?? 0 }

  /// Drops unsent frames, except for the rest of a partly sent one, and lets an overflowed connection be sent to again.
  public func dropPending(_ id: ConnectionID) {
    guard let connection = unsafe slab.live(id) else { return }
    unsafe dropSends(connection)
    unsafe connection.pointee.flags.remove(.hasOverflowed)
    guard let outbox = unsafe connection.pointee.outbox else { return }
    let before = outbox.cost
    counters.dropped += UInt64(outbox.dropUnbegun())
    account(outbox, since: before)
    guard outbox.isEmpty, unsafe !hasUnsentRecords(id, connection) else { return }
    unsafe unblock(id, connection)
    // A closing connection has nothing left to wait for.
    if unsafe connection.pointee.state == .closing { unsafe markDirty(id.slot, connection) }
  }

  /// Drops this turn's sends.
  private func dropSends(_ connection: UnsafeMutablePointer<Connection>) {
    var index = unsafe connection.pointee.firstSegment
    while index >= 0 {
      counters.dropped += 1
      index = segments[Int(index)].next
    }
    unsafe connection.pointee.firstSegment = -1
    unsafe connection.pointee.lastSegment = -1
  }

  @inline(__always)
  func markDirty(_ slot: UInt32, _ connection: UnsafeMutablePointer<Connection>) {
    guard unsafe !connection.pointee.flags.contains(.isDirty) else { return }
    unsafe connection.pointee.flags.insert(.isDirty)
    dirty.append(slot)
  }

  /// Writes this turn's output of each connection. Makes no callback, only notices.
  func flush() {
    guard !dirty.isEmpty else { return }
    let sendsTogether = unsafe dirty.count >= SendRing.worthwhileFrom && state.pointee.sendRing != nil
    for index in 0..<dirty.count {
      let slot = dirty[index]
      let connection = unsafe slab.pointer(slot)
      // The slot may have been freed since, and reused by a connection without output.
      guard unsafe connection.pointee.flags.contains(.isDirty) else { continue }
      unsafe connection.pointee.flags.remove(.isDirty)
      let id = unsafe ConnectionID(slot: slot, generation: connection.pointee.generation)
      unsafe flush(id, connection, together: sendsTogether)
    }
    if sendsTogether { sendQueued() }
    dirty.removeAll()
    segments.removeAll()
  }

  /// `together`: an open connection's sends may be queued in the ring.
  @inline(__always)
  private func flush(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, together: Bool) {
    let isTLS = unsafe connection.pointee.flags.contains(.isTLS)
    if unsafe connection.pointee.outbox != nil, unsafe connection.pointee.flags.contains(.isWritable) {
      if isTLS { unsafe sealOutbox(id, connection) } else { unsafe writeOutbox(id, connection) }
    }
    unsafe connection.pointee.flags.remove(.isWritable)
    let first = unsafe connection.pointee.firstSegment
    unsafe connection.pointee.firstSegment = -1
    unsafe connection.pointee.lastSegment = -1
    switch unsafe connection.pointee.state {
    case .free, .doomed, .lingering: return
    case .connecting: unsafe stash(id, connection, from: first)
    case .open, .closing:
      if unsafe connection.pointee.outbox != nil {
        unsafe stash(id, connection, from: first)
      } else if first >= 0 {
        if isTLS {
          unsafe sealSegments(id, connection, from: first)
        } else if together, unsafe connection.pointee.state == .open {
          unsafe queueSegments(id, connection, from: first)
        } else {
          unsafe writeSegments(id, connection, from: first)
        }
      }
    }
    if unsafe connection.pointee.state == .closing, unsafe connection.pointee.outbox == nil {
      unsafe finishSending(id, connection)
    }
  }

  /// Writes ranges straight from the arena; what the kernel does not take goes into an outbox.
  private func writeSegments(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, from first: Int32) {
    var index = first
    var skip = 0
    while index >= 0 {
      let (transfer, asked, next) = unsafe writeOnce(connection.pointee.descriptor, from: index, skipping: skip)
      if unsafe !finishWrite(id, connection, &index, &skip, transfer, asked, next) { return }
    }
  }

  /// Handles the result of a write of `asked` bytes, up to the segment `next`, and advances over what was written.
  /// False where no other write may follow.
  @inline(__always)
  private func finishWrite(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ index: inout Int32, _ skip: inout Int,
    _ transfer: Transfer, _ asked: Int, _ next: Int32
  ) -> Bool {
    switch transfer {
    case .moved(let count):
      noteWritten(count)
      if count == asked {
        (index, skip) = (next, 0)
        return true
      }
      // A short write means that the buffer is full; another call would only confirm that.
      advance(&index, &skip, by: count)
      unsafe stash(id, connection, from: index, skipping: skip)
    case .wouldBlock, .ended: unsafe stash(id, connection, from: index, skipping: skip)
    case .failed(let number): unsafe doom(id, connection, cause(of: number))
    }
    return false
  }

  /// Queues a connection's ranges in the ring; the arena must not change before `sendQueued`.
  private func queueSegments(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, from first: Int32) {
    let descriptor = unsafe connection.pointee.descriptor
    let isFull = unsafe arena.withBytes { bytes in
      unsafe state.pointee.sendRing!.queue(id, descriptor, from: first) { pieces in
        unsafe gatherSegments(in: bytes, from: first, skipping: 0, into: pieces)
      }
    }
    if isFull { sendQueued() }
  }

  /// Makes the queued sends, and handles the result of each.
  private func sendQueued() {
    if unsafe state.pointee.sendRing!.submit() { counters.sendBatches += 1 }
    while let (entry, transfer) = unsafe state.pointee.sendRing!.takeResult() {
      // It is live: a flush ends only the connection that it writes to, which is in the ring once, and others that have
      // an outbox, which are in no ring.
      guard let connection = unsafe slab.live(entry.connection) else { continue }
      let id = entry.connection
      var (index, skip) = (entry.first, 0)
      if let transfer {
        let (asked, next) = (entry.length, entry.next)
        if unsafe !finishWrite(id, connection, &index, &skip, transfer, asked, next) { continue }
      }
      unsafe writeSegments(id, connection, from: index)
    }
  }

  @inline(__always)
  private func writeOnce(_ descriptor: Int32, from first: Int32, skipping skip: Int) -> (
    Transfer, asked: Int, next: Int32
  ) {
    // The pointers into the arena are used before withBytes returns, and nothing in it touches the arena.
    unsafe arena.withBytes { bytes in
      let segment = segments[Int(first)]
      if segment.next < 0 {
        let start = unsafe bytes.baseAddress! + Int(segment.offset) + skip
        let rest = unsafe UnsafeRawBufferPointer(start: start, count: Int(segment.length) - skip)
        return unsafe (sockets.send(descriptor, rest), rest.count, -1)
      }
      let (gathered, next) = unsafe gatherSegments(in: bytes, from: first, skipping: skip, into: pieces)
      return unsafe (sockets.send(descriptor, pieces.baseAddress!, count: gathered.count), gathered.bytes, next)
    }
  }

  /// Points `pieces` to segments in the arena's bytes; `next` is the first segment for which there was no piece, or −1.
  @inline(__always)
  func gatherSegments(
    in bytes: UnsafeRawBufferPointer, from first: Int32, skipping skip: Int,
    into pieces: UnsafeMutableBufferPointer<iovec>
  ) -> (Gathering, next: Int32) {
    var gathered = unsafe Gathering(pieces)
    var index = first
    var skip = skip
    while index >= 0 {
      let segment = segments[Int(index)]
      let start = unsafe bytes.baseAddress! + Int(segment.offset) + skip
      if unsafe !gathered.add(start, Int(segment.length) - skip) { break }
      skip = 0
      index = segment.next
    }
    return (gathered, index)
  }

  /// Advances over `count` sent bytes: to the first segment that is not entirely sent, and the offset in it.
  func advance(_ index: inout Int32, _ skip: inout Int, by count: Int) {
    var left = count + skip
    while index >= 0 {
      let length = Int(segments[Int(index)].length)
      if left < length { break }
      left -= length
      index = segments[Int(index)].next
    }
    skip = left
  }

  func noteWritten(_ count: Int) {
    counters.writes += 1
    counters.bytesWritten += UInt64(count)
  }

  /// Writes from the outbox until it is empty or the kernel takes no more.
  private func writeOutbox(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
    guard let outbox = unsafe connection.pointee.outbox else { return }
    let descriptor = unsafe connection.pointee.descriptor
    while !outbox.isEmpty {
      let before = outbox.cost
      let (transfer, asked) = unsafe outbox.send(pieces) { count, _ in
        unsafe sockets.send(descriptor, pieces.baseAddress!, count: count)
      }
      account(outbox, since: before)
      switch transfer {
      case .moved(let count):
        noteWritten(count)
        if count < asked { return }
      case .wouldBlock, .ended: return
      case .failed(let number):
        unsafe doom(id, connection, cause(of: number))
        return
      }
    }
    unsafe unblock(id, connection)
  }

  /// Copies unsent bytes into the outbox. The first `skip` bytes of the first segment are on the wire.
  func stash(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, from first: Int32, skipping skip: Int = 0
  ) {
    guard first >= 0 else { return }
    if unsafe connection.pointee.outbox == nil { unsafe block(id, connection) }
    guard let outbox = unsafe connection.pointee.outbox else { return }
    let before = outbox.cost
    // The most that this outbox may hold within the limit of all outboxes.
    var most = before + max(0, limits.outboxBytesTotal - counters.outboxBytes)
    var index = first
    var isFull = unsafe connection.pointee.flags.contains(.hasOverflowed)
    unsafe arena.withBytes { bytes in
      while index >= 0 {
        let segment = segments[Int(index)]
        let start = Int(segment.offset)
        let frame = unsafe UnsafeRawBufferPointer(rebasing: bytes[start..<start + Int(segment.length)])
        if index == first, skip > 0 {
          unsafe outbox.appendRest(UnsafeRawBufferPointer(rebasing: frame[skip...]))
        } else if isFull {
          counters.dropped += 1
        } else {
          let cost = outbox.cost(with: frame.count, key: segment.key)
          // A frame that finds nothing unsent is accepted at any size: it could as well have begun to leave.
          let own = outbox.isEmpty ? .max : limits.outboxBytesPerConnection
          if cost > most, cost <= own { most = before + makeRoom(cost - before, for: outbox, holding: cost) }
          switch unsafe outbox.append(frame, key: segment.key, limit: min(most, own)) {
          case .stored: break
          case .replacedOlder: counters.conflated += 1
          case .refused:
            counters.dropped += 1
            isFull = true
          }
        }
        index = segment.next
      }
    }
    account(outbox, since: before)
    if isFull { unsafe overflow(id, connection, together: most < limits.outboxBytesPerConnection) }
  }

  /// Lets the largest outboxes give way until all together have room for so many bytes more, or until none holds more
  /// than this one, whose frames would cost `cost`. Gives the room.
  private func makeRoom(_ bytes: Int, for outbox: Outbox, holding cost: Int) -> Int {
    while limits.outboxBytesTotal - counters.outboxBytes < bytes, let other = outboxRanks.largest(but: outbox),
      other.heldBytes > cost + outbox.sealedBytes
    { giveWay(other) }
    return max(0, limits.outboxBytesTotal - counters.outboxBytes)
  }

  /// Drops an outbox's frames, and this turn's sends to it, which would follow a gap, and notes an overflow for the
  /// owner. A closing connection, whose last frames those are, ends. One with nothing but the rest of a frame is left:
  /// its owner closes it.
  private func giveWay(_ outbox: Outbox) {
    let id = outbox.owner
    guard let connection = unsafe slab.live(id) else { preconditionFailure("an outbox without a connection is ranked") }
    let before = outbox.cost
    let dropped = unsafe connection.pointee.state == .closing ? 0 : outbox.dropUnbegun()
    account(outbox, since: before)
    unsafe dropSends(connection)
    counters.dropped += UInt64(dropped)
    unsafe overflow(id, connection, together: true)
    if unsafe connection.pointee.state == .closing { return unsafe doom(id, connection, .closedByUs) }
    if dropped == 0 { outboxRanks.remove(outbox) }
  }

  /// Counts a change of an outbox whose cost was `before`, and ranks it anew.
  @inline(__always)
  func account(_ outbox: Outbox, since before: Int) {
    counters.outboxBytes += outbox.cost - before
    outboxRanks.update(outbox)
  }

  /// Counts the sealed records of a blocked connection, and ranks its outbox anew.
  func account(_ outbox: Outbox, sealedBytes: Int) {
    counters.outboxBytes += sealedBytes - outbox.sealedBytes
    outbox.sealedBytes = sealedBytes
    outboxRanks.update(outbox)
  }

  /// `together`: the limit of all connections was reached.
  private func overflow(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, together: Bool) {
    guard unsafe !connection.pointee.flags.contains(.hasOverflowed) else { return }
    unsafe connection.pointee.flags.insert(.hasOverflowed)
    counters.overflowed += 1
    if together { counters.overflowedTogether += 1 }
    note(id, in: &overflowedNotices)
    // With nothing left to send, the outbox is released now and not when the socket becomes writable.
    if let outbox = unsafe connection.pointee.outbox, outbox.isEmpty, unsafe !hasUnsentRecords(id, connection) {
      unsafe releaseOutbox(connection)
      unsafe watch(id, connection)
    }
  }

  /// Gives the connection an outbox. It has none afterwards where epoll refuses the change, which dooms it.
  func block(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
    let outbox = spareOutboxes.popLast() ?? Outbox()
    outbox.owner = id
    unsafe connection.pointee.outbox = outbox
    counters.blockedConnections += 1
    unsafe watch(id, connection)
  }

  func unblock(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
    unsafe releaseOutbox(connection)
    unsafe watch(id, connection)
    if unsafe connection.pointee.state == .open { note(id, in: &drainedNotices) }
  }

  /// Frees the outbox; a few are kept for reuse.
  func releaseOutbox(_ connection: UnsafeMutablePointer<Connection>) {
    guard let outbox = unsafe connection.pointee.outbox else { return }
    unsafe connection.pointee.outbox = nil
    outboxRanks.remove(outbox)
    counters.outboxBytes -= outbox.heldBytes
    counters.blockedConnections -= 1
    outbox.sealedBytes = 0
    outbox.clear()
    if spareOutboxes.count < 64 { spareOutboxes.append(outbox) }
  }
}
