// Passes events of sockets to the sessions, and applies the sessions' steps to sockets.
import HubBytes
import HubClientCore
import HubMessages
import HubSystem
public import HubTransport

extension ClientLoop: EventLoopDelegate {
  private func owner(_ id: ConnectionID) -> Int? {
    guard Int(id.slot) < owners.count else { return nil }
    let index = Int(owners[Int(id.slot)])
    return index >= 0 && clients[index].connection == id ? index : nil
  }

  /// Starts the client's handshake.
  public func connected(_ id: ConnectionID) {
    guard let index = owner(id) else { return }
    clients[index].session.transportConnected(now)
    mark(index)
  }

  /// Gives the input to the client's state machine, and its messages to the application.
  public func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard let index = owner(id) else { return }
    let client = ClientID(index: index)
    let session = clients[index].session
    // Read once, so that a callback may change it.
    let delegate = self.delegate
    unsafe session.received(bytes, now: now, reader: reader) { text in
      unsafe delegate?.receivedRaw(client, text) ?? false
    } deliver: { envelope in
      if case .reply(.connected(let greeting)) = envelope.message {
        preferLastAddress(index)
        mark(index)
        delegate?.opened(client, greeting)
      } else {
        delegate?.received(client, envelope)
      }
    }
    if session.needsFlush || session.state != .open { mark(index) }
  }

  /// The client may write again: it is flushed at the end of this turn.
  public func drained(_ id: ConnectionID) {
    if let index = owner(id) { mark(index) }
  }

  /// Cannot happen: a session writes only while its connection is not blocked, and never more than fits an outbox.
  public func overflowed(_ id: ConnectionID) { loop.abort(id, reset: true) }

  /// Tries the next of the hub's addresses where connecting failed; else ends the connection in the client's state
  /// machine.
  public func closed(_ id: ConnectionID, _ cause: CloseCause) {
    guard let index = owner(id) else { return }
    owners[Int(id.slot)] = -1
    clients[index].connection = .none
    switch cause {
    case .connectFailed(let errno):
      if clients[index].untried > 0 { return connectNext(index) }
      ended(index, .connectFailed(errno: errno))
    // A missing close_notify does not matter: WebSocket has a Close frame of its own.
    case .tlsFailed(.truncated), .peerClosed, .peerReset, .failed, .closedByUs: ended(index)
    case .tlsFailed(let failure): ended(index, .tlsFailed("\(failure)", isCertificate: failure.isCertificate))
    }
  }

  func ended(_ index: Int, _ failure: TransportFailure? = nil) {
    let disconnection = clients[index].session.transportEnded(now, failure: failure)
    mark(index)
    delegate?.closed(ClientID(index: index), disconnection)
  }

  // MARK: Time

  /// The client's next deadline while it has a connection: a ping, an answer that is overdue, its rate.
  public func timerFired(_ id: ConnectionID) {
    guard let index = owner(id) else { return }
    timeReached(index)
  }

  private func timeReached(_ index: Int) {
    clients[index].session.timeReached(now)
    mark(index)
    delegate?.timeReached(ClientID(index: index))
  }

  /// The earliest deadline of a client without a connection, of `schedule` or of `scheduleTick`.
  public func loopTimerFired() {
    let uptime = now.uptime
    while let entry = deadlines.take(at: uptime) {
      let index = Int(entry.client)
      switch Kind(rawValue: entry.kind) {
      case .session:
        guard clients[index].deadline == entry.time else { continue }
        clients[index].deadline = nil
        timeReached(index)
      case .application:
        guard clients[index].due == entry.time else { continue }
        clients[index].due = nil
        delegate?.due(ClientID(index: index))
      case nil: preconditionFailure("only kinds are put into the heap")
      }
    }
    if let time = tickAt, time <= uptime {
      tickAt = nil
      delegate?.tick()
    }
    armLoopTimer()
  }

  /// Takes looked-up addresses, and passes the call on to the application.
  public func woken() {
    takeAddresses()
    delegate?.woken()
  }

  // MARK: The end of a turn

  /// Flushes each marked client once, into the turn's output.
  public func turnEnding() { flushMarked() }

  /// Output of clients that the turn's last callbacks have marked is sent in the next turn, which begins at once.
  public func turnEnded() {
    if !marked.isEmpty { loop.waker.wake() }
  }

  private func flushMarked() {
    var next = 0
    while next < marked.count {
      let index = Int(marked[next])
      next += 1
      clients[index].isMarked = false
      flush(index)
    }
    marked.removeAll(keepingCapacity: true)
    for index in unfinished { mark(Int(index)) }
    unfinished.removeAll(keepingCapacity: true)
    armLoopTimer()
  }

  private func flush(_ index: Int) {
    let session = clients[index].session
    let connection = clients[index].connection
    let start = loop.arena.count
    let step = session.flush(now, mayWrite: !loop.isBlocked(connection), into: &loop.arena)
    let end = loop.arena.count
    loop.send(start..<end, to: connection)
    switch step {
    case .none: break
    case .connect: return connect(index)
    case .disconnect, .abort:
      guard connection != .none else {
        // The address is not known yet: there is nothing to abort.
        clients[index].awaitedLookup = nil
        return ended(index)
      }
      if step == .abort { loop.abort(connection) } else { loop.close(connection) }
    }
    // The session stopped at `flushBytes`, not at its rate: the rest is written in the next turn.
    if end - start >= session.configuration.limits.flushBytes { unfinished.append(Int32(index)) }
    arm(index)
  }

  func arm(_ index: Int) {
    let deadline = clients[index].session.deadline
    if clients[index].connection != .none {
      loop.setTimer(clients[index].connection, at: deadline)
    } else if clients[index].deadline != deadline {
      clients[index].deadline = deadline
      if let deadline {
        deadlines.insert(.init(time: deadline, client: UInt32(index), kind: Kind.session.rawValue))
      }
    }
  }
}
