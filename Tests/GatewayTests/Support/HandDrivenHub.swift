// One loop of a hub with its sessions, and clients of it, on the test's own thread: real sockets, and clocks that are
// moved by hand. So what depends on time holds however slow the machine is, or the sanitizer makes it.
import Bytes
import Messages
import Testing
import Transport
import WebSocket

@testable import Gateway

/// Both clocks.
final class HandClock {
  var reading = ClockReading(uptimeNanoseconds: 1_000_000_000_000, unixMilliseconds: 1_763_680_000_000)

  func advance(milliseconds: Int64) {
    reading.uptimeNanoseconds += milliseconds * 1_000_000
    reading.unixMilliseconds += milliseconds
  }
}

final class HandDrivenHub {
  let clock: HandClock
  let loop: EventLoop
  let address: SocketAddress
  private let sessions: SessionLoopDelegate

  init(clock: HandClock, _ change: (inout ServerConfiguration) -> Void) throws {
    self.clock = clock
    var configuration = ServerConfiguration()
    configuration.logLevel = .error
    change(&configuration)
    loop = try EventLoop(clock: { clock.reading })
    address = try loop.listen(try #require(SocketAddress(host: "127.0.0.1", port: 0)))
    sessions = SessionLoopDelegate(
      SessionLoop(
        index: 0, loop: loop, hub: HubPort(hub: HubLife().makeHub(configuration, now: loop.now)),
        shared: SharedState(configuration: configuration), configuration: configuration))
    loop.delegate = sessions
  }

  var counters: LoopCounters { sessions.counters }
}

/// A session whose bytes a test makes by hand: any part of a frame, at any time.
final class HandDrivenPeer: EventLoopDelegate {
  /// Messages of the hub, and the code of its close frame.
  private(set) var messages: [String] = []
  private(set) var closeCode: CloseCode?
  private(set) var isOpen = false
  private let hub: HandDrivenHub
  private let loop: EventLoop
  private var id = ConnectionID.none
  private var head = ByteBuffer()
  private var frames = FrameReader(role: .client)

  /// A rider's session that is open.
  init(_ hub: HandDrivenHub) throws {
    self.hub = hub
    let clock = hub.clock
    loop = try EventLoop(clock: { clock.reading })
    loop.delegate = self
    id = try loop.connect(hub.address)
    send(
      Array(
        """
        GET /v1/ws?role=rider&id=r1 HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\nConnection: Upgrade\r
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n
        """.utf8))
    let deadline = ClockReading.read().uptimeNanoseconds + 20_000_000_000
    while messages.isEmpty, ClockReading.read().uptimeNanoseconds < deadline { turn() }
    try #require(messages.first?.contains("\"connected\"") == true)
    messages = []
  }

  func send(_ bytes: some Collection<UInt8>) {
    let start = loop.arena.count
    loop.arena.append(Array(bytes))
    loop.send(start..<loop.arena.count, to: id)
  }

  /// Lets everything that is on its way arrive: over the loopback that is there as soon as it is written.
  func turn() {
    for _ in 0..<4 {
      loop.runTurn(timeoutMilliseconds: 0)
      hub.loop.runTurn(timeoutMilliseconds: 0)
    }
    loop.runTurn(timeoutMilliseconds: 0)
  }

  /// A text message in one masked frame (RFC 6455 §5.2).
  static func frame(_ text: String) -> [UInt8] {
    var buffer = ByteBuffer()
    Array(text.utf8).withUnsafeBytes {
      FrameWriter.write(.text, $0, mask: MaskKey(0x3D21_FA37), into: &buffer)  // of RFC 6455 §5.7
    }
    return buffer.withBytes { [UInt8]($0) }
  }

  /// A ping, whose answer has the text.
  static func ping(_ text: String) -> String {
    #"{"type":"ping","payload":{"text":"\#(text)"},"timestamp":1763680000000,"messageId":"p"}"#
  }

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    guard !isOpen else { return read(bytes) }
    head.append(UnsafeRawBufferPointer(bytes))
    let text = head.withBytes { String(decoding: $0, as: UTF8.self) }
    guard let end = text.firstRange(of: "\r\n\r\n") else { return }
    isOpen = text.hasPrefix("HTTP/1.1 101")
    head.removeFirst(text.utf8.distance(from: text.startIndex, to: end.upperBound))
    head.withMutableBytes { read($0) }
  }

  private func read(_ bytes: UnsafeMutableRawBufferPointer) {
    var offset = 0
    do {
      while let event = try frames.next(in: bytes, at: &offset, limits: FrameLimits(messageBytes: 1 << 20)) {
        switch event {
        case .message(_, let payload, isCompressed: _): messages.append(String(decoding: payload, as: UTF8.self))
        case .ping, .pong: break  // an answer would come within the frame that a test has begun
        case .close(let code, reason: _): closeCode = code
        }
      }
    } catch {
      Issue.record("the hub broke the protocol: \(error)")
    }
  }

  func accepted(_ id: ConnectionID, from peer: SocketAddress) {}
  func connected(_ id: ConnectionID) {}
  func drained(_ id: ConnectionID) {}
  func overflowed(_ id: ConnectionID) {}
  func closed(_ id: ConnectionID, _ cause: CloseCause) { isOpen = false }
  func timerFired(_ id: ConnectionID) {}
  func woken() {}
  func loopTimerFired() {}
  func turnEnding() {}
  func turnEnded() {}
}
