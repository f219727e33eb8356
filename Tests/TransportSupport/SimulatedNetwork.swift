// A network without a kernel, for one event loop: what it sends and what it is sent arrives when a test says so, in the
// pieces that the test chooses, or not at all; and accepting, connecting and watching fail when the test says so.
import Glibc
package import HubSystem
package import HubTransport

/// The network of one loop. The far ends of its connections are used by hand.
package final class SimulatedNetwork: Network {
  private final class Listener {
    var waiting: [(socket: SimulatedSocket, address: SocketAddress)] = []
    var watch: (token: UInt64, interest: Interest)?
  }

  private enum Socket {
    case listener(Listener)
    case connection(SimulatedSocket)
  }

  /// By number.
  private var sockets: [Socket?] = []
  /// What the next calls of accept come to, before those who wait.
  package var acceptOutcomes: [Accepted] = []
  /// What the next calls that watch something fail with.
  package var watchErrors: [Int32] = []
  /// Calls of `connect` fail at once with this; 0 for none.
  package var connectError: Int32 = 0
  /// The far ends of connections that the loop has begun.
  package private(set) var dialled: [SimulatedSocket] = []
  /// Where they go.
  package private(set) var addresses: [SocketAddress] = []
  /// Bytes that either end of a new connection may have unread.
  package var window = 1 << 20

  package init() {}

  /// Somebody connects to the first listener; nil where there is none. Gives the far end.
  package func connectToListener(from address: SocketAddress = .loopback(port: 2)) -> SimulatedSocket? {
    for case .listener(let listener)? in sockets {
      let (near, far) = SimulatedSocket.pair(window: window)
      listener.waiting.append((near, address))
      return far
    }
    return nil
  }

  private func insert(_ socket: Socket) -> Int32 {
    let index = sockets.firstIndex { $0 == nil } ?? sockets.count
    if index == sockets.count { sockets.append(socket) } else { sockets[index] = socket }
    return Int32(index)
  }

  /// How many sockets the loop has, listeners among them.
  package var count: Int { sockets.count { $0 != nil } }

  private func connection(_ number: Int32) -> SimulatedSocket {
    guard case .connection(let socket)? = sockets[Int(number)] else { preconditionFailure("no connection \(number)") }
    return socket
  }

  // MARK: Network

  package func listen(_ address: SocketAddress) throws(SystemError) -> (socket: Int32, SocketAddress) {
    (insert(.listener(Listener())), address.with(port: address.port == 0 ? 1 : address.port))
  }

  package func accept(_ number: Int32) -> Accepted {
    if !acceptOutcomes.isEmpty { return acceptOutcomes.removeFirst() }
    guard case .listener(let listener)? = sockets[Int(number)], !listener.waiting.isEmpty else { return .none }
    let newcomer = listener.waiting.removeFirst()
    return .connection(insert(.connection(newcomer.socket)), newcomer.address)
  }

  package func connect(to address: SocketAddress) throws(SystemError) -> (descriptor: Int32, errno: Int32) {
    let (near, far) = SimulatedSocket.pair(window: window)
    dialled.append(far)
    addresses.append(address)
    return (insert(.connection(near)), connectError)
  }

  package func takeError(_ number: Int32) -> Int32 { connection(number).takeError() }

  package func receive(_ number: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
    connection(number).receive(into: buffer)
  }

  package func send(_ number: Int32, _ bytes: UnsafeRawBufferPointer) -> Transfer { connection(number).send(bytes) }

  package func finish(_ number: Int32) -> Bool { connection(number).finish() }

  package func close(_ number: Int32, reset: Bool) {
    switch sockets[Int(number)] {
    case .listener(let listener)?: for newcomer in listener.waiting { newcomer.socket.close(reset: true) }
    case .connection(let socket)?: socket.close(reset: reset)
    case nil: preconditionFailure("socket \(number) is closed already")
    }
    sockets[Int(number)] = nil
  }

  package func watch(_ number: Int32, token: UInt64, for interest: Interest) throws(SystemError) {
    if !watchErrors.isEmpty { throw SystemError(call: "epoll_ctl", errno: watchErrors.removeFirst()) }
    switch sockets[Int(number)] {
    case .listener(let listener)?: listener.watch = (token, interest)
    case .connection(let socket)?: socket.watch = (token, interest)
    case nil: preconditionFailure("socket \(number) is closed")
    }
  }

  package func ready(limit: Int) -> [Readiness] {
    var ready: [Readiness] = []
    for case let socket? in sockets where ready.count < limit {
      switch socket {
      case .listener(let listener):
        guard let watch = listener.watch, watch.interest.contains(.readable) else { continue }
        if listener.waiting.isEmpty && acceptOutcomes.isEmpty { continue }
        ready.append(Readiness(token: watch.token, .readable, isBroken: false))
      case .connection(let socket): if let readiness = socket.readiness { ready.append(readiness) }
      }
    }
    return ready
  }
}
