// One end of a connection of the simulated network: what is on its way to it, what has arrived, and how the other end
// has ended. The end that no loop has is used by hand.
import Glibc
package import HubTransport

/// One end of a connection. Bytes come in order, then the other end's FIN or RST.
package final class SimulatedSocket {
  /// How a direction ends, behind its bytes.
  package enum Ending { case finished, reset }

  /// The other end; nil once it has gone.
  package private(set) weak var peer: SimulatedSocket?
  /// What the other end has sent and this one has not read; the first `arrivedCount` bytes have arrived.
  private var incoming: [UInt8] = []
  private var arrivedCount = 0
  /// How the other end has ended; it arrives behind all bytes.
  private var ending: Ending?
  private var hasEnded = false
  /// This end has sent FIN.
  private var isFinished = false
  package private(set) var isClosed = false
  /// Bytes that the other end may have sent without this one reading them.
  package var window: Int
  /// The connection that is under way comes to this; 0 where it stands.
  package var connectError: Int32 = 0
  /// By the loop that has this end.
  var watch: (token: UInt64, interest: Interest)?

  private init(window: Int) { self.window = window }

  /// Both ends of a new connection.
  static func pair(window: Int) -> (SimulatedSocket, SimulatedSocket) {
    let (one, other) = (SimulatedSocket(window: window), SimulatedSocket(window: window))
    one.peer = other
    other.peer = one
    return (one, other)
  }

  // MARK: On the way

  /// Bytes that are on their way to this end.
  package var bytesUnderWay: Int { incoming.count - arrivedCount }

  /// Nothing is on its way to this end, nor waits to be read.
  package var isQuiet: Bool { incoming.isEmpty && (ending != nil) == hasEnded }

  /// So many bytes arrive; the other end's FIN or RST does with one more.
  package func arrive(_ count: Int = .max) {
    let room = bytesUnderWay
    arrivedCount += min(count, room)
    if count > room, ending != nil { hasEnded = true }
  }

  /// What is on its way is lost, all but its first bytes.
  package func lose(keeping count: Int) {
    incoming.removeLast(max(0, bytesUnderWay - count))
    ending = nil
  }

  // MARK: Use

  /// As much as the other end has room for.
  package func send(_ bytes: UnsafeRawBufferPointer) -> Transfer {
    guard !isFinished, !isClosed else { return .failed(errno: EPIPE) }
    if hasEnded, ending == .reset { return .failed(errno: ECONNRESET) }
    guard let peer, !peer.isClosed else {
      // Whoever has gone answers with RST.
      ending = .reset
      return .moved(bytes.count)
    }
    let count = min(bytes.count, peer.room)
    guard count > 0 else { return .wouldBlock }
    peer.incoming.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
    return .moved(count)
  }

  private var room: Int { max(0, window - incoming.count) }

  package func receive(into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
    let count = min(arrivedCount, buffer.count)
    guard count > 0 else {
      guard hasEnded else { return .wouldBlock }
      return ending == .reset ? .failed(errno: ECONNRESET) : .ended
    }
    incoming.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    incoming.removeFirst(count)
    arrivedCount -= count
    return .moved(count)
  }

  /// All that has arrived and was not read.
  package func receiveAll() -> [UInt8] {
    let bytes = Array(incoming.prefix(arrivedCount))
    incoming.removeFirst(arrivedCount)
    arrivedCount = 0
    return bytes
  }

  /// How the other end has ended, where that has arrived and all before it was read.
  package var end: Ending? { hasEnded && incoming.isEmpty ? ending : nil }

  func takeError() -> Int32 {
    defer { connectError = 0 }
    return connectError == 0 && hasEnded && ending == .reset ? ECONNRESET : connectError
  }

  /// False where the other end has cut the connection off.
  package func finish() -> Bool {
    if isClosed || hasEnded && ending == .reset { return false }
    isFinished = true
    if let peer, peer.ending == nil { peer.ending = .finished }
    return true
  }

  /// Unread bytes turn it into a reset (RFC 1122 §4.2.2.13), which throws away what is on its way to the other end.
  package func close(reset: Bool = false) {
    guard !isClosed else { return }
    isClosed = true
    watch = nil
    guard let peer, !peer.isClosed else { return }
    if reset || arrivedCount > 0 {
      peer.incoming.removeLast(peer.bytesUnderWay)
      peer.ending = .reset
    } else if peer.ending == nil {
      peer.ending = .finished
    }
  }

  // MARK: What it is ready for

  var readiness: Readiness? {
    guard let watch else { return nil }
    let isReset = hasEnded && ending == .reset
    let isBroken = isReset || hasEnded && isFinished || connectError != 0
    var ready: Interest = []
    if arrivedCount > 0 || hasEnded { ready.insert(.readable) }
    if isReset || (peer.map { $0.isClosed || $0.room > 0 } ?? true) { ready.insert(.writable) }
    ready.formIntersection(watch.interest)
    return ready.isEmpty && !isBroken ? nil : Readiness(token: watch.token, ready, isBroken: isBroken)
  }
}
