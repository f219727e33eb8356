// Listeners and outgoing connections.

import CHubLinux
import Glibc
public import HubSystem

extension EventLoop {
  /// Listens on `address` and returns it with the actual port (port 0: the kernel chooses).
  ///
  /// `reusePort` lets several loops (and processes of the same user, see `PortLock`) listen on one address; the kernel
  /// spreads connections over them. `::` accepts IPv4 too. Several calls listen on several addresses: `acceptedOn`
  /// gives the index. Where `isPaced` is false `acceptsPerSecond` does not apply, and `unpacedConnections` go beyond
  /// `maximumConnections`. With `tls` its connections use TLS: `accepted` comes before the handshake, `received` has
  /// plaintext.
  public func listen(
    _ address: SocketAddress, reusePort: Bool = false, backlog: Int32 = 4096, isPaced: Bool = true,
    tls: TLSServer? = nil
  ) throws(SystemError) -> SocketAddress {
    let (socket, bound) = try sockets.listener(address, reusePort: reusePort, backlog: backlog, limits: limits)
    try watch(listener: socket, isPaced: isPaced, tls: tls)
    return bound
  }

  /// Listens on a socket that another process has opened. `isPaced` and `tls` as for an address.
  public func listen(
    on inherited: InheritedListener, isPaced: Bool = true, tls: TLSServer? = nil
  ) throws(SystemError) {
    try watch(listener: try sockets.listener(inherited.duplicate(), limits: limits), isPaced: isPaced, tls: tls)
  }

  private func watch(listener socket: Int32, isPaced: Bool, tls: TLSServer?) throws(SystemError) {
    // Made now, so that a read buffer that is too small for TLS is found at the start.
    if tls != nil { _ = unsafe self.tls.buffers(limits) }
    do throws(SystemError) {
      try poller.add(socket, token: Token.listeners + UInt64(listeners.count), .readable)
    } catch {
      sockets.close(socket)
      throw error
    }
    listeners.append(Listener(descriptor: socket, tls: tls, isWatched: true, isPaced: isPaced))
  }

  /// Closes all listeners; connections stay. This resets connections in the kernel's backlog, but for those of an
  /// inherited listener.
  public func stopListening() {
    for listener in listeners {
      poller.remove(listener.descriptor)
      sockets.close(listener.descriptor)
    }
    listeners.removeAll()
    acceptRetryAt = nil
  }

  /// Begins a connection; `connected` or `closed` gives the outcome, never before this returns. Sends are allowed at
  /// once and wait for it. `local` chooses the source address (port 0: any). With `tls` the connection uses TLS with
  /// that peer, and is connected when the handshake is done.
  ///
  /// Throws only where no socket could be made: no descriptors, `maximumConnections` reached (EMFILE), or `local` is no
  /// address of this machine.
  public func connect(
    _ address: SocketAddress, from local: SocketAddress? = nil, tls peer: TLSPeer? = nil
  ) throws(SystemError) -> ConnectionID {
    guard counters.connections < limits.maximumConnections else { throw SystemError(call: "connect", errno: EMFILE) }
    let (descriptor, number) = try sockets.connecting(to: address, from: local, limits: limits)
    let id = try adopt(descriptor, state: .connecting, interest: .writable)
    counters.connects += 1
    if let peer { unsafe secure(id, TLSStream(peer, tls.buffers(limits))) }
    if number != 0 { unsafe doom(id, slab.pointer(id.slot), .connectFailed(errno: number)) }
    return id
  }

  func acceptWaiting(_ index: Int, _ delegate: (any EventLoopDelegate)?) {
    for _ in 0..<limits.acceptsPerTurn {
      // A callback may have stopped listening.
      guard index < listeners.count else { return }
      guard !listeners[index].isPaced || mayAccept() else { return waitForPace() }
      switch sockets.accept(listeners[index].descriptor) {
      case .none: return
      case .lost: counters.acceptErrors += 1
      case .exhausted:
        counters.acceptErrors += 1
        pauseAccepting()
        return
      case .connection(let descriptor, let peer):
        acceptedOn = index
        if listeners[index].isPaced { acceptPace -= 1 }
        welcome(descriptor, peer, listeners[index], delegate)
      }
    }
  }

  private func welcome(
    _ descriptor: Int32, _ peer: SocketAddress, _ listener: Listener, _ delegate: (any EventLoopDelegate)?
  ) {
    let reserve = listener.isPaced ? 0 : EventLoopLimits.unpacedConnections
    guard counters.connections < limits.maximumConnections + reserve else {
      counters.refused += 1
      sockets.close(descriptor, reset: true)
      return
    }
    do throws(SystemError) {
      let id = try adopt(descriptor, state: .open, interest: .readable)
      counters.accepted += 1
      if let server = listener.tls {
        server.ticketKeys.look(at: now)
        unsafe secure(id, TLSStream(server, tls.buffers(limits)))
      }
      delegate?.accepted(id, from: peer)
    } catch {
      counters.acceptErrors += 1
    }
  }

  /// Adds a socket to the slab and epoll; closes it when epoll has no room.
  private func adopt(
    _ descriptor: Int32, state: Connection.State, interest: Interest
  ) throws(SystemError) -> ConnectionID {
    let id = slab.insert(descriptor: descriptor, state: state)
    do throws(SystemError) {
      try poller.add(descriptor, token: Token.connection(id), interest)
    } catch {
      sockets.close(descriptor)
      slab.remove(id.slot)
      throw error
    }
    unsafe slab.pointer(id.slot).pointee.interest = interest
    counters.connections += 1
    return id
  }

  // MARK: Pace

  /// Whether `acceptsPerSecond` allows another one: a bucket that fills in a second (RFC 3290 §A.1).
  private func mayAccept() -> Bool {
    guard limits.acceptsPerSecond > 0 else { return true }
    let rate = Double(limits.acceptsPerSecond)
    let passed = Double(now.uptimeNanoseconds - acceptPaceAt) / 1e9
    acceptPaceAt = now.uptimeNanoseconds
    acceptPace = min(rate, acceptPace + passed * rate)
    return acceptPace >= 0.999_999  // sums of fractions
  }

  /// Pauses the paced listeners until the bucket has a token again; new connections wait in the backlog.
  private func waitForPace() {
    counters.acceptWaits += 1
    for index in listeners.indices where listeners[index].isWatched && listeners[index].isPaced {
      setWatched(index, false)
    }
    // At least 10 ms, so that listeners do not pause and resume for each connection.
    let wait = max(10_000_000, Int64((1 - acceptPace) / Double(limits.acceptsPerSecond) * 1e9))
    acceptRetryAt = now.uptimeNanoseconds + wait
  }

  // MARK: Shortage

  /// Pauses all listeners when descriptors or memory have run out: level-triggered, they would be reported in each
  /// turn, and the loop would spin. New connections wait in the backlog.
  private func pauseAccepting() {
    counters.acceptPauses += 1
    for index in listeners.indices where listeners[index].isWatched { setWatched(index, false) }
    acceptRetryAt = now.uptimeNanoseconds + Int64(limits.acceptRetryMilliseconds) * 1_000_000
  }

  func resumeAccepting() {
    acceptRetryAt = nil
    for index in listeners.indices where !listeners[index].isWatched { setWatched(index, true) }
  }

  private func setWatched(_ index: Int, _ isWatched: Bool) {
    do throws(SystemError) {
      let interest: Interest = isWatched ? .readable : []
      try poller.modify(listeners[index].descriptor, token: Token.listeners + UInt64(index), interest)
      listeners[index].isWatched = isWatched
    } catch {
      // The kernel lacks memory: nothing changed. Try again later.
      counters.acceptErrors += 1
      acceptRetryAt = now.uptimeNanoseconds + Int64(limits.acceptRetryMilliseconds) * 1_000_000
    }
  }
}
