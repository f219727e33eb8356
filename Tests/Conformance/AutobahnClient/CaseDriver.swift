// One connection after the other, each an echo of what the suite sends, on the event loop that the client library uses.

import HubBytes
import HubSystem
import HubTransport
import HubWebSocket

enum SuiteError: Error, CustomStringConvertible {
  case noURL
  case noCount(String)
  case noReports

  var description: String {
    switch self {
    case .noURL: "say where the suite's server is: autobahn-client ws://127.0.0.1:PORT"
    case .noCount(let text): "the suite did not say how many cases it has, but: \(text)"
    case .noReports: "the suite did not end the connection that asks for its reports"
    }
  }
}

final class CaseDriver: EventLoopDelegate {
  /// The suite's own limit for its longest cases is 100 s.
  private static let patience: Int64 = 300_000_000_000
  /// For the server to end TCP after both have sent Close (RFC 6455 §7.1.1).
  private static let closingPatience: Int64 = 2_000_000_000

  private static let limits = ClientSocketLimits(
    headBytes: 8192, frames: FrameLimits(messageBytes: 16 << 20, fragments: 65_537),
    inflate: InflateLimits(messageBytes: 16 << 20, ratio: 2000), pongs: 16)

  private static let offer: DeflateParameters = {
    var offer = DeflateParameters()
    offer.clientMaxWindowBits = .unspecified
    return offer
  }()

  private let loop: EventLoop
  private let address: SocketAddress
  private var random = SystemRandomNumberGenerator()
  private var connection = ConnectionID.none
  private var socket: ClientSocket?
  private var target = ""
  private var echoes = false
  private var isRunning = false
  private var isTimedOut = false
  /// The last text of a connection that does not echo.
  private var text = ""

  init(_ address: SocketAddress) throws {
    self.address = address
    var limits = EventLoopLimits()
    limits.outboxBytesPerConnection = 128 << 20
    loop = try EventLoop(limits: limits)
    loop.delegate = self
  }

  func runAll(agent: String) throws {
    try run("/getCaseCount", echoes: false)
    guard let count = Int(text) else { throw SuiteError.noCount(text) }
    for number in 1...max(count, 1) where count > 0 {
      try run("/runCase?case=\(number)&agent=\(agent)", echoes: true)
    }
    try run("/updateReports?agent=\(agent)", echoes: false)
    if isTimedOut { throw SuiteError.noReports }
  }

  /// One connection, from its beginning to its end, however that comes.
  private func run(_ target: String, echoes: Bool) throws {
    self.target = target
    self.echoes = echoes
    text = ""
    isRunning = true
    isTimedOut = false
    connection = try loop.connect(address)
    loop.setTimer(connection, at: loop.now.uptimeNanoseconds + Self.patience)
    while isRunning { loop.runTurn() }
    socket = nil
  }

  func connected(_ id: ConnectionID) {
    socket = ClientSocket(ClientHandshake(nonce: (random.next(), random.next()), compression: Self.offer))
    let start = loop.arena.count
    socket?.writeRequest(host: "\(address)", target: target, into: &loop.arena)
    loop.send(start..<loop.arena.count, to: id)
  }

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    var offset = 0
    do throws(ClientSocketError) {
      while let event = try socket?.next(in: bytes, at: &offset, limits: Self.limits) {
        // Pings that stood before it are answered before it is.
        writeControlFrames()
        switch event {
        case .opened: break
        case .message(let kind, let payload): if echoes { echo(kind, payload) } else { note(payload) }
        case .close: loop.setTimer(id, at: loop.now.uptimeNanoseconds + Self.closingPatience)
        }
      }
      writeControlFrames()
    } catch {
      writeControlFrames()
      switch error {
      case .notHTTP, .handshake: loop.abort(id)
      case .frame: loop.close(id)
      }
    }
  }

  private func note(_ payload: UnsafeRawBufferPointer) { text = String(decoding: payload, as: UTF8.self) }

  private func echo(_ kind: MessageKind, _ message: UnsafeRawBufferPointer) {
    guard socket?.maySend == true else { return }
    let start = loop.arena.count
    let payload = FrameWriter.begin(as: .client, in: &loop.arena)
    loop.arena.append(message)
    socket?.finish(kind, payloadAt: payload, compressedBytes: 0, mask: .random(using: &random), in: &loop.arena)
    loop.send(start..<loop.arena.count, to: connection)
  }

  private func writeControlFrames() {
    guard socket?.hasControlFrames == true else { return }
    let start = loop.arena.count
    socket?.writeControlFrames(into: &loop.arena, using: &random)
    loop.send(start..<loop.arena.count, to: connection)
  }

  func timerFired(_ id: ConnectionID) {
    isTimedOut = true
    loop.abort(id)
  }

  func closed(_ id: ConnectionID, _ cause: CloseCause) { isRunning = false }
  func overflowed(_ id: ConnectionID) { loop.abort(id) }
}
