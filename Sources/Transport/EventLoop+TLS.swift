// TLS between the sockets and the loop: what is different for a connection that has it. The others pay one look at a
// flag for each read and each flush.
//
// Reading: one recv, all records opened, one `received`. Writing: what a turn has for a connection goes into records of
// up to 16 KiB, each with one send. A record is sealed only when nothing waits before it, so at most one of them is
// ever out of reach of conflation; until the kernel has taken it (and while the handshake lasts) the connection is
// blocked like any other whose kernel buffer is full, with an outbox.

import CHubLinux
import Glibc
import HubBytes

extension EventLoop {
  @inline(__always)
  var tls: TLSTable {
    _read { yield state.pointee.tls }
    _modify { yield &state.pointee.tls }
  }

  /// Gives a new connection its stream.
  func secure(_ id: ConnectionID, _ stream: consuming TLSStream) {
    tls.insert(stream, at: id.slot)
    slab.pointer(id.slot).pointee.flags.insert(.isTLS)
  }

  /// A client's TCP stands: its handshake begins. `connected` comes when that is done.
  func startHandshake(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
    let stream = tls.pointer(id.slot)
    if let failure = stream.pointee.start() { return doom(id, connection, .tlsFailed(failure)) }
    if let cause = emit(id, connection, stream) { return doom(id, connection, cause) }
    watch(id, connection)
  }

  // MARK: Reading

  /// A handshake costs a hundred times what a message does. Past the limit of a turn the bytes stay in the kernel,
  /// which reports them again in the next.
  private func mayShakeHands() -> Bool {
    if tls.handshakeTurn != counters.turns {
      tls.handshakeTurn = counters.turns
      tls.handshakesInTurn = 0
    }
    guard tls.handshakesInTurn < limits.tlsHandshakesPerTurn else {
      counters.tlsHandshakesDeferred += 1
      return false
    }
    tls.handshakesInTurn += 1
    return true
  }

  func readSecured(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ delegate: (any EventLoopDelegate)?
  ) {
    let stream = tls.pointer(id.slot)
    guard stream.pointee.isSecured || mayShakeHands() else { return }
    let room = tls.room(limits)
    switch sockets.receive(connection.pointee.descriptor, into: room.pointee.input) {
    case .moved(let count):
      counters.reads += 1
      counters.bytesRead += UInt64(count)
      room.pointee.offer(count)
      opened(id, connection, stream, delegate)
    case .ended:
      let failure: TLSFailure = stream.pointee.isSecured ? .truncated : .handshakeCut
      // A peer that never said a word just closed.
      doom(id, connection, stream.pointee.hasBegun ? .tlsFailed(failure) : .peerClosed)
    case .wouldBlock: break
    case .failed(let number): doom(id, connection, cause(of: number))
    }
  }

  /// Opens what was read, and tells what comes of it. What is to be sent for it leaves before the first callback,
  /// because a callback may write to other connections by way of the same room.
  private func opened(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ stream: UnsafeMutablePointer<TLSStream>,
    _ delegate: (any EventLoopDelegate)?
  ) {
    let wasSecured = stream.pointee.isSecured
    let (count, end) = stream.pointee.open(into: readBuffer)
    let isNew = !wasSecured && stream.pointee.isSecured
    let isClient = stream.pointee.isClient
    if isNew { handshakeDone(id, connection, stream) }
    var broken = emit(id, connection, stream)
    if case .failed(let failure) = end { broken = .tlsFailed(failure) }
    if isNew {
      watch(id, connection)
      if isClient, slab.live(id) != nil { delegate?.connected(id) }
    }
    if count > 0, let connection = slab.live(id), connection.pointee.state == .open {
      delegate?.received(id, UnsafeMutableRawBufferPointer(rebasing: readBuffer[..<count]))
    }
    guard let connection = slab.live(id) else { return }
    if let broken { return doom(id, connection, broken) }
    // While closing, the rest still goes out to a peer that has finished, as it does over plain TCP.
    guard end == .closed, connection.pointee.state == .open else { return }
    if tls.pointer(id.slot).pointee.sealGoodbye() { _ = emit(id, connection, tls.pointer(id.slot)) }
    doom(id, connection, .peerClosed)
  }

  private func handshakeDone(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ stream: UnsafeMutablePointer<TLSStream>
  ) {
    counters.tlsHandshakes += 1
    if stream.pointee.isResumed { counters.tlsHandshakesResumed += 1 }
    if connection.pointee.state == .connecting { connection.pointee.state = .open }
    noteWritable(id.slot, connection)
  }

  // MARK: Writing

  /// Sends what OpenSSL wrote; what the kernel does not take waits in the stream, and blocks the connection. Gives the
  /// cause of a connection that is beyond use. The stream may be gone afterwards: see its last line.
  private func emit(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ stream: UnsafeMutablePointer<TLSStream>
  ) -> CloseCause? {
    let room = tls.room(limits)
    let count = room.pointee.output.count
    guard count > 0 else { return nil }
    defer { room.pointee.output.removeAll(keepingAtMost: 4 * TLSRoom.recordBytes) }
    var sent = 0
    if stream.pointee.unsent.isEmpty {
      switch room.pointee.output.withBytes({ sockets.send(connection.pointee.descriptor, $0) }) {
      case .moved(let count):
        noteWritten(count)
        sent = count
      case .wouldBlock, .ended: break
      case .failed(let number): return cause(of: number)
      }
    }
    guard sent < count else { return nil }
    room.pointee.output.withBytes { stream.pointee.unsent.append(UnsafeRawBufferPointer(rebasing: $0[sent...])) }
    counters.outboxBytes += count - sent
    guard stream.pointee.unsent.count <= limits.tlsUnsentBytes else { return .tlsFailed(.unreadAnswers) }
    // Last, because epoll may refuse it, which dooms the connection and ends the stream.
    if connection.pointee.outbox == nil { _ = block(id, connection) } else { watch(id, connection) }
    return nil
  }

  /// Sends the records that wait; true when none is left. Dooms the connection where that fails.
  func sendUnsentRecords(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) -> Bool {
    let stream = tls.pointer(id.slot)
    let count = stream.pointee.unsent.count
    guard count > 0 else { return true }
    switch stream.pointee.unsent.withBytes({ sockets.send(connection.pointee.descriptor, $0) }) {
    case .moved(let sent):
      noteWritten(sent)
      counters.outboxBytes -= sent
      if sent == count {
        stream.pointee.unsent.removeAll(keepingAtMost: 0)
      } else {
        stream.pointee.unsent.removeFirst(sent)
      }
      return sent == count
    case .wouldBlock, .ended: return false
    case .failed(let number):
      doom(id, connection, cause(of: number))
      return false
    }
  }

  /// The like of `writeSegments`.
  func sealSegments(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, from first: Int32) {
    let stream = tls.pointer(id.slot)
    guard stream.pointee.isSecured else { return stash(id, connection, from: first) }
    let room = tls.room(limits)
    var index = first
    var skip = 0
    // What does not leave at once blocks the connection.
    while index >= 0, connection.pointee.outbox == nil {
      // The pointers into the arena are used before withBytes returns, and nothing in it touches the arena.
      let (sealed, failure) = arena.withBytes { bytes in
        let count = gatherSegments(in: bytes, from: index, skipping: skip).count
        return stream.pointee.seal(room.pointee.gather(pieces, count: count))
      }
      if let cause = failure.map(CloseCause.tlsFailed) ?? emit(id, connection, stream) {
        return doom(id, connection, cause)
      }
      advance(&index, &skip, by: sealed)
      if connection.pointee.state == .doomed { return }
    }
    stash(id, connection, from: index, skipping: skip)
  }

  /// The like of `writeOutbox`.
  func sealOutbox(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
    guard let outbox = connection.pointee.outbox, sendUnsentRecords(id, connection) else { return }
    let stream = tls.pointer(id.slot)
    // Before the handshake is done the kernel's room is of no use.
    guard stream.pointee.isSecured else { return watch(id, connection) }
    let room = tls.room(limits)
    while !outbox.isEmpty {
      let before = outbox.cost
      var failure: TLSFailure?
      _ = outbox.send(pieces) { count, _ in
        let sealed = stream.pointee.seal(room.pointee.gather(pieces, count: count))
        failure = sealed.failure
        return failure == nil ? .moved(sealed.count) : .wouldBlock
      }
      counters.outboxBytes += outbox.cost - before
      if let cause = failure.map(CloseCause.tlsFailed) ?? emit(id, connection, stream) {
        return doom(id, connection, cause)
      }
      if connection.pointee.state == .doomed || !stream.pointee.unsent.isEmpty { return }
    }
    unblock(id, connection)
  }

  /// Whether records wait for the kernel: then the connection stays blocked though its outbox may be empty.
  @inline(__always)
  func hasUnsentRecords(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) -> Bool {
    connection.pointee.flags.contains(.isTLS) && !tls.pointer(id.slot).pointee.unsent.isEmpty
  }

  /// Whether there would be something to do if the kernel took more: nothing of an outbox can be sealed before the
  /// handshake is done, and epoll would report the room again and again.
  func waitsForRoom(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) -> Bool {
    guard connection.pointee.flags.contains(.isTLS) else { return connection.pointee.outbox != nil }
    let stream = tls.pointer(id.slot)
    return !stream.pointee.unsent.isEmpty || stream.pointee.isSecured && connection.pointee.outbox != nil
  }

  // MARK: The end

  /// Says goodbye before FIN; false while it waits for the kernel, and then `finishSending` comes again.
  func hasSaidGoodbye(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) -> Bool {
    let stream = tls.pointer(id.slot)
    guard stream.pointee.sealGoodbye() else { return true }
    if let cause = emit(id, connection, stream) {
      doom(id, connection, cause)
      return false
    }
    // Who calls this has seen that nothing else waits.
    return connection.pointee.outbox == nil
  }

  /// The connection is over: its stream goes.
  func dropStream(_ id: ConnectionID, _ cause: CloseCause) {
    let stream = tls.pointer(id.slot)
    if stream.pointee.isHandshaking { counters.tlsHandshakesFailed += 1 }
    // Being cut off without a goodbye is what phones do.
    if case .tlsFailed(let failure) = cause, stream.pointee.isSecured, failure != .truncated {
      counters.tlsFailures += 1
    }
    counters.outboxBytes -= stream.pointee.unsent.count
    tls.remove(id.slot)
  }
}
