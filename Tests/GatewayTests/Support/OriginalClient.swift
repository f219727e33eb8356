// The original design's client as far as connections go, which apps in the field have: a close frame makes it open a
// new connection at once and another one by its timer, on every code but 1000; a connection that fails without one only
// sets the timer. It never closes a connection itself, sends on the one that it opened last, and gives up after five
// tries.
import HubBytes
import HubSystem
import HubTransport
import HubWebSocket

@testable import HubGateway

/// One driver, over real sockets, with its timers on a clock that is moved by hand.
final class OriginalClient: EventLoopDelegate {
  private final class Socket {
    let id: ConnectionID
    var head: [UInt8] = []
    var frames = FrameReader(role: .client)
    var isOpen = false

    init(_ id: ConnectionID) { self.id = id }
  }

  static let maximumTries = 5

  let clock: HandClock
  /// Versions differ in whether an open connection sets the count of tries back.
  let resetsTries: Bool
  /// Nil where nobody listens.
  var address: SocketAddress?
  private(set) var tries = 0
  private(set) var hasGivenUp = false
  /// The codes that connections were closed with, and the HTTP statuses they were refused with.
  private(set) var codes: [UInt16] = []
  /// Messages of the hub on the connection that was opened last.
  private(set) var messages: [String] = []
  private(set) var opened = 0
  private let loop: EventLoop
  private var sockets: [Socket] = []
  private var current = ConnectionID.none
  /// When connections are to be opened (uptime, ns).
  private var timers: [Int64] = []

  init(_ hub: HandDrivenHub, resetsTries: Bool) throws {
    clock = hub.clock
    address = hub.address
    self.resetsTries = resetsTries
    let clock = hub.clock
    loop = try EventLoop(clock: { clock.reading })
    loop.delegate = self
    open()
  }

  var openSockets: Int { sockets.count { $0.isOpen } }

  /// Lets what is on its way arrive, and opens connections whose time has come.
  func turn() {
    loop.runTurn(timeoutMilliseconds: 0)
    let now = clock.reading.uptimeNanoseconds
    let due = timers.count { $0 <= now }
    timers.removeAll { $0 <= now }
    for _ in 0..<due { open() }
  }

  /// Sends on the connection that was opened last.
  func send(_ text: String) {
    messages = []
    write(HandDrivenPeer.frame(text), to: current)
  }

  private func write(_ bytes: [UInt8], to id: ConnectionID) {
    let start = loop.arena.count
    loop.arena.append(bytes)
    loop.send(start..<loop.arena.count, to: id)
  }

  private func open() {
    opened += 1
    guard let address else { return failed() }
    do {
      current = try loop.connect(address)
    } catch {
      return failed()
    }
    sockets.append(Socket(current))
    write(
      Array(
        """
        GET /v1/ws?role=driver&id=d1 HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n
        """.utf8), to: current)
  }

  private func countTry() -> Bool {
    guard tries < OriginalClient.maximumTries else {
      hasGivenUp = true
      return false
    }
    tries += 1
    timers.append(clock.reading.uptimeNanoseconds + 1_000_000_000 << Int64(tries - 1))
    return true
  }

  private func failed() { _ = countTry() }

  private func closed(with code: UInt16) {
    codes.append(code)
    if code != 1000, countTry() { open() }
  }

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard let socket = sockets.first(where: { $0.id == id }) else { return }
    if socket.isOpen { return read(socket, bytes) }
    socket.head += bytes
    let text = String(decoding: socket.head, as: UTF8.self)
    guard let end = text.firstRange(of: "\r\n\r\n") else { return }
    guard text.hasPrefix("HTTP/1.1 101") else {
      codes.append(UInt16(text.prefix(12).suffix(3)) ?? 0)
      drop(socket)
      return failed()
    }
    socket.isOpen = true
    if resetsTries { tries = 0 }
    socket.head.removeFirst(text.utf8.distance(from: text.startIndex, to: end.upperBound))
    socket.head.withUnsafeMutableBytes { read(socket, $0) }
  }

  private func read(_ socket: Socket, _ bytes: UnsafeMutableRawBufferPointer) {
    var code: UInt16?
    var offset = 0
    do {
      while let event = try socket.frames.next(in: bytes, at: &offset, limits: FrameLimits(messageBytes: 1 << 20)) {
        switch event {
        case .message(_, let payload, _):
          if socket.id == current { messages.append(String(decoding: payload, as: UTF8.self)) }
        case .ping: write(HandDrivenPeer.pong(), to: socket.id)
        case .pong: break
        case .close(let received, reason: _): code = received?.rawValue ?? 1005
        }
      }
    } catch {
      code = 1002
    }
    guard let code else { return }
    drop(socket)
    closed(with: code)
  }

  private func drop(_ socket: Socket) {
    sockets.removeAll { $0 === socket }
    loop.abort(socket.id)
  }

  func closed(_ id: ConnectionID, _ cause: CloseCause) {
    guard let index = sockets.firstIndex(where: { $0.id == id }) else { return }
    sockets.remove(at: index)
    failed()
  }

  func connected(_ id: ConnectionID) {}
  func overflowed(_ id: ConnectionID) {}
}
