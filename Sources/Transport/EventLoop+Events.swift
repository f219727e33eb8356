// Handling of descriptors that epoll reports, and reading.

import CHubLinux
import Glibc
import HubBytes
import HubSystem

/// The tokens of epoll: a connection's slot and generation, or one of the loop's own.
enum Token {
  static let waker: UInt64 = 0xFFFF_FFFF_0000_0001
  static let signals: UInt64 = 0xFFFF_FFFF_0000_0002
  /// Plus the listener's index.
  static let listeners: UInt64 = 0xFFFF_FFFF_0001_0000

  static func connection(_ id: ConnectionID) -> UInt64 { UInt64(id.slot) << 32 | UInt64(id.generation) }
}

extension EventLoop {
  func handle(_ readiness: Readiness, _ delegate: (any EventLoopDelegate)?) {
    let slot = UInt32(truncatingIfNeeded: readiness.token >> 32)
    guard slot != ConnectionSlab.noSlot else {
      switch readiness.token {
      case Token.waker: waker.reset()
      case Token.signals: signals?.deliver()
      case let token: acceptWaiting(Int(token - Token.listeners), delegate)
      }
      return
    }
    // A report may be stale: an event handled before it in this turn may have ended its connection.
    let id = ConnectionID(slot: slot, generation: UInt32(truncatingIfNeeded: readiness.token))
    guard let connection = unsafe slab.live(id) else { return }
    switch unsafe connection.pointee.state {
    case .connecting:
      if unsafe !connection.pointee.flags.contains(.isTLS) {
        unsafe finishConnecting(id, connection, delegate)
      } else if unsafe !tls.pointer(id.slot).pointee.hasBegun {
        unsafe finishConnectingTCP(id, connection)
      } else {
        unsafe handleHandshake(id, connection, readiness, delegate)
      }
    case .open:
      if readiness.isWritable { unsafe noteWritable(id.slot, connection) }
      if unsafe connection.pointee.flags.contains(.isReadingPaused) {
        // Nothing may be delivered now, and a broken connection would be reported endlessly.
        if readiness.isBroken { unsafe doom(id, connection, brokenCause(connection)) }
      } else if readiness.isReadable || readiness.isBroken {
        if unsafe connection.pointee.flags.contains(.isTLS) {
          unsafe readSecured(id, connection, delegate)
        } else {
          unsafe read(id, connection, delegate)
        }
      }
    case .closing, .lingering:
      if readiness.isWritable { unsafe noteWritable(id.slot, connection) }
      if readiness.isReadable || readiness.isBroken { unsafe readAndDiscard(id, connection, readiness) }
    case .free, .doomed:
      break
    }
  }

  /// Reads once. The kernel gives unread bytes before the end or the error, so a broken connection loses none of them.
  @inline(__always)
  private func read(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ delegate: (any EventLoopDelegate)?
  ) {
    switch unsafe sockets.receive(connection.pointee.descriptor, into: readBuffer) {
    case .moved(let count):
      counters.reads += 1
      counters.bytesRead += UInt64(count)
      unsafe delegate?.received(id, UnsafeMutableRawBufferPointer(rebasing: readBuffer[..<count]))
    case .ended: unsafe doom(id, connection, .peerClosed)
    case .wouldBlock: break
    case .failed(let number): unsafe doom(id, connection, cause(of: number))
    }
  }

  /// Discards input while closing; unread bytes would make the kernel reset the connection.
  private func readAndDiscard(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ readiness: Readiness
  ) {
    switch unsafe sockets.receive(connection.pointee.descriptor, into: readBuffer) {
    case .moved(let count): counters.bytesRead += UInt64(count)
    case .wouldBlock: if readiness.isBroken { unsafe doom(id, connection, .closedByUs) }
    case .failed: unsafe doom(id, connection, .closedByUs)
    case .ended:
      // A peer that half-closed may still read. Once all is sent there is nothing to wait for.
      if unsafe connection.pointee.state == .lingering || readiness.isBroken {
        unsafe doom(id, connection, .closedByUs)
      } else {
        unsafe connection.pointee.flags.insert(.peerHasFinished)
        unsafe watch(id, connection)
      }
    }
  }

  private func finishConnecting(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ delegate: (any EventLoopDelegate)?
  ) {
    let number = unsafe sockets.takeError(connection.pointee.descriptor)
    guard number == 0 else {
      unsafe doom(id, connection, .connectFailed(errno: number))
      return
    }
    unsafe connection.pointee.state = .open
    unsafe noteWritable(id.slot, connection)
    unsafe watch(id, connection)
    delegate?.connected(id)
  }

  private func finishConnectingTCP(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
    let number = unsafe sockets.takeError(connection.pointee.descriptor)
    if number == 0 {
      unsafe startHandshake(id, connection)
    } else {
      unsafe doom(id, connection, .connectFailed(errno: number))
    }
  }

  private func handleHandshake(
    _ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>, _ readiness: Readiness,
    _ delegate: (any EventLoopDelegate)?
  ) {
    if readiness.isWritable {
      if unsafe sendUnsentRecords(id, connection) { unsafe watch(id, connection) }
      // That may have ended the connection.
      guard unsafe slab.live(id) != nil else { return }
    }
    if readiness.isReadable || readiness.isBroken { unsafe readSecured(id, connection, delegate) }
  }

  func noteWritable(_ slot: UInt32, _ connection: UnsafeMutablePointer<Connection>) {
    unsafe connection.pointee.flags.insert(.isWritable)
    unsafe markDirty(slot, connection)
  }

  private func brokenCause(_ connection: UnsafeMutablePointer<Connection>) -> CloseCause {
    let number = unsafe sockets.takeError(connection.pointee.descriptor)
    return number == 0 ? .peerClosed : cause(of: number)
  }

  func cause(of number: Int32) -> CloseCause {
    number == ECONNRESET || number == EPIPE ? .peerReset : .failed(errno: number)
  }

  /// Updates the events that epoll watches, if changed.
  func watch(_ id: ConnectionID, _ connection: UnsafeMutablePointer<Connection>) {
    var wanted: Interest = []
    let flags = unsafe connection.pointee.flags
    let isBlocked = unsafe waitsForRoom(id, connection)
    switch unsafe connection.pointee.state {
    case .connecting:
      wanted = .writable
      if flags.contains(.isTLS), unsafe tls.pointer(id.slot).pointee.hasBegun {
        wanted = isBlocked ? [.readable, .writable] : .readable
      }
    case .open:
      if !flags.contains(.isReadingPaused) { wanted.insert(.readable) }
      if isBlocked { wanted.insert(.writable) }
    case .closing, .lingering:
      if !flags.contains(.peerHasFinished) { wanted.insert(.readable) }
      if isBlocked { wanted.insert(.writable) }
    case .free, .doomed: return
    }
    guard unsafe wanted != connection.pointee.interest else { return }
    do throws(SystemError) {
      try unsafe poller.modify(connection.pointee.descriptor, token: Token.connection(id), wanted)
      unsafe connection.pointee.interest = wanted
    } catch {
      unsafe doom(id, connection, .failed(errno: error.errno))
    }
  }

  /// Stops reading: input stays in the kernel, whose window closes. A peer's FIN is noticed when reading resumes.
  public func pauseReading(_ id: ConnectionID) {
    guard let connection = unsafe slab.live(id) else { return }
    unsafe connection.pointee.flags.insert(.isReadingPaused)
    unsafe watch(id, connection)
  }

  /// Ends `pauseReading`.
  public func resumeReading(_ id: ConnectionID) {
    guard let connection = unsafe slab.live(id) else { return }
    unsafe connection.pointee.flags.remove(.isReadingPaused)
    unsafe watch(id, connection)
  }
}
