// TLS between the sockets and the loop. Connections without it pay one check of a flag for each read and each flush.
//
// Reading: one recv, all records opened, one `received`. Writing: a turn's output of a connection goes into records of
// up to 16 KiB, each with one send. A record is sealed only when nothing waits before it, so at most one of them is
// beyond conflation; until the kernel has taken it (and during the handshake) the connection is blocked like any other
// with a full kernel buffer, with an outbox.

import CHubLinux
import Glibc
import HubBytes
import HubSystem

extension EventLoop {
  @inline(__always)
  var tls: TLSTable {
    _read { yield unsafe state.pointee.tls }
    _modify { yield unsafe &state.pointee.tls }
  }

  /// Gives a new connection its stream.
  func secure(_ id: ConnectionID, _ stream: consuming TLSStream) {
    tls.insert(stream, at: id.slot)
    unsafe slab.pointer(id.slot).pointee.flags.insert(.isTLS)
  }

  /// The verified certificate of a connection's peer; nil where there is none. Reading it takes some microseconds.
  public func peerCertificate(_ id: ConnectionID) -> PeerCertificate? {
    guard let connection = unsafe slab.live(id), unsafe connection.pointee.flags.contains(.isTLS) else { return nil }
    return unsafe tls.pointer(id.slot).pointee.peerCertificate
  }

  /// Starts TLS on an open outgoing connection, for protocols that begin in plain text. `connected` comes again when
  /// the handshake is done; sends before then wait for it, and earlier plain-text input must not be trusted any more.
  ///
  /// - Precondition: everything that was sent has left.
  public func beginTLS(_ id: ConnectionID, _ peer: TLSPeer) {
    guard let connection = unsafe slab.live(id), unsafe connection.pointee.state == .open else { return }
    precondition(unsafe connection.pointee.outbox == nil && !connection.pointee.flags.contains(.isTLS))
    unsafe secure(id, TLSStream(peer, tls.buffers(limits)))
    unsafe connection.pointee.state = .connecting
    unsafe startHandshake(id, connection)
  }

  /// A client's TCP is connected: begins its handshake. `connected` comes when that is done.
  func startHandshake(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
    let stream = unsafe tls.pointer(id.slot)
    if let failure = unsafe stream.pointee.start() { return unsafe doom(id, connection, .tlsFailed(failure)) }
    if let cause = unsafe emit(id, connection, stream) { return unsafe doom(id, connection, cause) }
    unsafe watch(id, connection)
  }

  // MARK: Reading

  /// Counts a step of a handshake, which costs a hundred times as much as a message; false past the limit of a turn.
  /// The bytes then stay in the kernel, which reports them again in the next turn.
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
    let stream = unsafe tls.pointer(id.slot)
    guard unsafe stream.pointee.isSecured || mayShakeHands() else { return }
    let buffers = unsafe tls.buffers(limits)
    switch unsafe sockets.receive(connection.pointee.descriptor, into: buffers.pointee.input) {
    case .moved(let count):
      counters.reads += 1
      counters.bytesRead += UInt64(count)
      unsafe buffers.pointee.offer(count)
      unsafe opened(id, connection, stream, delegate)
    case .ended:
      let failure: TLSFailure = unsafe stream.pointee.isSecured ? .truncated : .handshakeCut
      // A peer that closes before its first byte has not failed at TLS.
      unsafe doom(id, connection, stream.pointee.hasBegun ? .tlsFailed(failure) : .peerClosed)
    case .wouldBlock: break
    case .failed(let number): unsafe doom(id, connection, cause(of: number))
    }
  }

  /// Opens what was read, and delivers the result. The resulting output leaves before the first callback, because a
  /// callback may write to other connections through the same buffers.
  private func opened(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ stream: UnsafeMutablePointer<TLSStream>,
    _ delegate: (any EventLoopDelegate)?
  ) {
    let wasSecured = unsafe stream.pointee.isSecured
    if !wasSecured { spend(bytes: EventLoopLimits.tlsHandshakeBytes) }
    let (count, records, end) = unsafe stream.pointee.open(into: readBuffer, now: now.uptimeNanoseconds)
    if records > 1 { spend(bytes: (records - 1) * EventLoopLimits.tlsRecordBytes) }
    let isNew = unsafe !wasSecured && stream.pointee.isSecured
    let isClient = unsafe stream.pointee.isClient
    if isNew { unsafe handshakeDone(id, connection, stream) }
    var broken = unsafe emit(id, connection, stream)
    if case .failed(let failure) = end { broken = .tlsFailed(failure) }
    if isNew {
      unsafe watch(id, connection)
      if isClient, unsafe slab.live(id) != nil { delegate?.connected(id) }
    }
    if count > 0, let connection = unsafe slab.live(id), unsafe connection.pointee.state == .open {
      unsafe delegate?.received(id, UnsafeMutableRawBufferPointer(rebasing: readBuffer[..<count]))
    }
    guard let connection = unsafe slab.live(id) else { return }
    if let broken { return unsafe doom(id, connection, broken) }
    // While closing, the rest is still sent to a peer that has finished, as over plain TCP.
    guard end == .closed, unsafe connection.pointee.state == .open else { return }
    if unsafe tls.pointer(id.slot).pointee.sealGoodbye() { _ = unsafe emit(id, connection, tls.pointer(id.slot)) }
    unsafe doom(id, connection, .peerClosed)
  }

  private func handshakeDone(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ stream: UnsafeMutablePointer<TLSStream>
  ) {
    counters.tlsHandshakes += 1
    if unsafe stream.pointee.isResumed { counters.tlsHandshakesResumed += 1 }
    if unsafe connection.pointee.state == .connecting { unsafe connection.pointee.state = .open }
    unsafe noteWritable(id.slot, connection)
  }

  // MARK: Writing

  /// Sends OpenSSL's output; what the kernel does not take waits in the stream, and blocks the connection. Gives the
  /// cause where the connection is unusable. Blocking may end the connection, and its stream with it.
  private func emit(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ stream: UnsafeMutablePointer<TLSStream>
  ) -> CloseCause? {
    let buffers = unsafe tls.buffers(limits)
    let count = unsafe buffers.pointee.output.count
    guard count > 0 else { return nil }
    defer { unsafe buffers.pointee.output.removeAll(keepingAtMost: 4 * TLSBuffers.recordBytes) }
    var sent = 0
    if unsafe stream.pointee.unsent.isEmpty {
      switch unsafe buffers.pointee.output.withBytes({ unsafe sockets.send(connection.pointee.descriptor, $0) }) {
      case .moved(let count):
        noteWritten(count)
        sent = count
      case .wouldBlock, .ended: break
      case .failed(let number): return cause(of: number)
      }
    }
    guard sent < count else { return nil }
    unsafe buffers.pointee.output.withBytes {
      unsafe stream.pointee.unsent.append(UnsafeRawBufferPointer(rebasing: $0[sent...]))
    }
    let unsent = unsafe stream.pointee.unsent.count
    guard unsent <= limits.tlsUnsentBytes else { return .tlsFailed(.unreadAnswers) }
    // Last, because epoll may refuse it, which dooms the connection and ends the stream.
    if unsafe connection.pointee.outbox == nil {
      unsafe block(id, connection)
    } else {
      unsafe watch(id, connection)
    }
    if let outbox = unsafe connection.pointee.outbox { account(outbox, sealedBytes: unsent) }
    return nil
  }

  /// Sends waiting records; true when none is left. Dooms the connection where that fails.
  func sendUnsentRecords(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) -> Bool {
    let stream = unsafe tls.pointer(id.slot)
    let count = unsafe stream.pointee.unsent.count
    guard count > 0 else { return true }
    switch unsafe stream.pointee.unsent.withBytes({ unsafe sockets.send(connection.pointee.descriptor, $0) }) {
    case .moved(let sent):
      noteWritten(sent)
      if let outbox = unsafe connection.pointee.outbox { account(outbox, sealedBytes: count - sent) }
      if sent == count {
        unsafe stream.pointee.unsent.removeAll(keepingAtMost: 0)
      } else {
        unsafe stream.pointee.unsent.removeFirst(sent)
      }
      return sent == count
    case .wouldBlock, .ended: return false
    case .failed(let number):
      unsafe doom(id, connection, cause(of: number))
      return false
    }
  }

  /// Seals ranges of the arena and sends them as far as the kernel takes records; the rest goes into an outbox.
  func sealSegments(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, from first: Int32) {
    let stream = unsafe tls.pointer(id.slot)
    guard unsafe stream.pointee.isSecured else { return unsafe stash(id, connection, from: first) }
    let buffers = unsafe tls.buffers(limits)
    var index = first
    var skip = 0
    // A record that does not leave at once gives the connection an outbox, which ends the loop.
    while index >= 0, unsafe connection.pointee.outbox == nil {
      // The pointers into the arena are used before withBytes returns, and nothing in it touches the arena.
      let (sealed, failure) = unsafe arena.withBytes { bytes in
        let count = unsafe gatherSegments(in: bytes, from: index, skipping: skip, into: pieces).0.count
        return unsafe stream.pointee.seal(buffers.pointee.gather(pieces, count: count))
      }
      if let cause = unsafe failure.map(CloseCause.tlsFailed) ?? emit(id, connection, stream) {
        return unsafe doom(id, connection, cause)
      }
      advance(&index, &skip, by: sealed)
      if unsafe connection.pointee.state == .doomed { return }
    }
    unsafe stash(id, connection, from: index, skipping: skip)
  }

  /// Seals and sends frames from the outbox until it is empty or the kernel takes no more.
  func sealOutbox(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
    guard let outbox = unsafe connection.pointee.outbox, unsafe sendUnsentRecords(id, connection) else { return }
    let stream = unsafe tls.pointer(id.slot)
    // Before the handshake is done nothing can be sealed, so that room in the kernel is of no use.
    guard unsafe stream.pointee.isSecured else { return unsafe watch(id, connection) }
    let buffers = unsafe tls.buffers(limits)
    while !outbox.isEmpty {
      let before = outbox.cost
      var failure: TLSFailure?
      _ = unsafe outbox.send(pieces) { count, _ in
        let sealed = unsafe stream.pointee.seal(buffers.pointee.gather(pieces, count: count))
        failure = sealed.failure
        return failure == nil ? .moved(sealed.count) : .wouldBlock
      }
      account(outbox, since: before)
      if let cause = unsafe failure.map(CloseCause.tlsFailed) ?? emit(id, connection, stream) {
        return unsafe doom(id, connection, cause)
      }
      if unsafe connection.pointee.state == .doomed || !stream.pointee.unsent.isEmpty { return }
    }
    unsafe unblock(id, connection)
  }

  /// Whether records wait for the kernel: then the connection stays blocked even if its outbox is empty.
  @inline(__always)
  func hasUnsentRecords(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) -> Bool {
    unsafe connection.pointee.flags.contains(.isTLS) && !tls.pointer(id.slot).pointee.unsent.isEmpty
  }

  /// Whether room in the kernel would be of use: an outbox can't be sealed before the handshake is done, and epoll
  /// would report the room again and again.
  func waitsForRoom(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) -> Bool {
    guard unsafe connection.pointee.flags.contains(.isTLS) else { return unsafe connection.pointee.outbox != nil }
    let stream = unsafe tls.pointer(id.slot)
    return unsafe !stream.pointee.unsent.isEmpty || stream.pointee.isSecured && connection.pointee.outbox != nil
  }

  // MARK: The end

  /// Sends close_notify before FIN; false while it waits for the kernel, and then `finishSending` is called again.
  func sayGoodbye(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) -> Bool {
    let stream = unsafe tls.pointer(id.slot)
    guard unsafe stream.pointee.sealGoodbye() else { return true }
    if let cause = unsafe emit(id, connection, stream) {
      unsafe doom(id, connection, cause)
      return false
    }
    // The caller has checked that nothing else waits.
    return unsafe connection.pointee.outbox == nil
  }

  /// The connection has ended: removes its stream.
  func dropStream(_ id: ConnectionID, _ cause: CloseCause) {
    let stream = unsafe tls.pointer(id.slot)
    if unsafe stream.pointee.isHandshaking { counters.tlsHandshakesFailed += 1 }
    // Phones often end connections without close_notify.
    if case .tlsFailed(let failure) = cause, unsafe stream.pointee.isSecured, failure != .truncated {
      counters.tlsFailures += 1
    }
    tls.remove(id.slot)
  }
}
