// One loop of a hub with its sessions, and clients of it, on the test's own thread: real sockets, and clocks that are
// moved by hand. So what depends on time holds however slow the machine is, or the sanitizer makes it.
import HubBytes
import HubCore
import HubDeflate
import HubGeo
import HubMessages
import HubRuntime
import HubSystem
import HubTransport
import HubWebSocket
import Testing

@testable import HubGateway

/// The uptime and the wall clock, moved by hand.
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
  let sessions: SessionLoopDelegate
  private let idle: [EventLoop]
  private let shared: SharedState

  /// `idleLoops`: so many more that share the hub, and are never given a turn.
  init(clock: HandClock, idleLoops: Int = 0, _ change: (inout ServerConfiguration) -> Void) throws {
    self.clock = clock
    var configuration = ServerConfiguration()
    configuration.logLevel = .error
    configuration.loops = 1 + idleLoops
    change(&configuration)
    loop = try EventLoop(clock: { clock.reading })
    address = try loop.listen(try #require(SocketAddress(host: "127.0.0.1", port: 0)), tls: configuration.tls)
    idle = try (0..<idleLoops).map { _ in try EventLoop(clock: { clock.reading }) }
    shared = SharedState(configuration: configuration)
    sessions = SessionLoopDelegate(
      SessionLoop(
        index: 0, loop: loop, hub: HandDrivenHub.port(configuration, loop, idle, shared), shared: shared,
        configuration: configuration))
    loop.delegate = sessions
  }

  private static func port(
    _ configuration: ServerConfiguration, _ loop: EventLoop, _ idle: [EventLoop], _ shared: SharedState
  ) -> HubPort {
    let incarnation = Incarnation()
    var hub = incarnation.makeHub(configuration, now: loop.now)
    // Nobody writes it: what is to be stored waits.
    if let journal = shared.journal {
      hub.attachJournal(limit: journal.recordLimit, startsEpoch: true, epoch: incarnation.epoch)
    }
    if idle.isEmpty { return HubPort(hub: hub, journal: shared.journal) }
    let moment = Moment(loop.now)
    let capacity = configuration.limits.mailboxMessages
    return HubPort(
      SharedHub(
        hub, outlets: ([loop] + idle).map { Outlet(to: $0, capacity: capacity) }, inboxCapacity: capacity,
        lifecycle: shared.lifecycle, metrics: shared.metrics.hub, now: moment),
      loop: 0)
  }

  var counters: LoopCounters { sessions.counters }
  var pendingReplies: Int { sessions.sessions.pointee.pending.counts.replies }

  /// The slots of open sessions.
  var openSlots: [Int] {
    (0..<sessions.sessions.pointee.sessions.endIndex).filter {
      sessions.sessions.pointee.sessions[$0].phase == .open
    }
  }

  /// What SIGTERM brings about: sessions are closed (1001), and new ones are refused.
  func drain() {
    shared.lifecycle.requestStop(at: clock.reading.uptimeNanoseconds)
    clock.advance(milliseconds: 1000)
    for _ in 0..<4 { loop.runTurn(timeoutMilliseconds: 0) }
  }

  /// What kill -9 brings about: all sockets are closed without a word.
  func kill() {
    loop.stopListening()
    for slot in openSlots { loop.abort(sessions.sessions.pointee.sessions[slot].connection, reset: true) }
    loop.runTurn(timeoutMilliseconds: 0)
  }

  /// Gives the hub drivers without connections, some metres apart, and a turn that takes them in. The first is the
  /// nearest to 52.5 N, 13.4 E.
  func addDrivers(_ count: Int, tags: [String] = []) throws {
    let moment = sessions.sessions.pointee.now
    let message = try #require(MessageID("m"))
    let tags = try tags.map { try #require(InlineText($0)) }
    for number in 0..<count {
      let session = SessionRef(outlet: 0, slot: UInt32(1 << 20 + number), generation: 1)
      let place = Coordinate(clampingLatitude: 52.5 + Double(number) * 1e-5, wrappingLongitude: 13.4)
      let fix = Fix(coordinate: place, timestamp: moment.timestamp, accuracy: 5)
      sessions.sessions.pointee.inputs.append(
        .driverConnecting(session, try #require(Identifier("driver-\(number * 7919 % count)"))))
      sessions.sessions.pointee.inputs.append(
        .driverStatus(session, message, DriverStatusReport(status: .available, vehicleType: nil, tags: tags)))
      sessions.sessions.pointee.inputs.append(
        .fix(
          FixInput(
            session: session, messageID: message, sent: moment.timestamp, received: moment,
            update: LocationUpdate(fix: fix), tripIsGranted: false)))
    }
    for _ in 0..<4 { loop.runTurn(timeoutMilliseconds: 0) }
  }

  /// Starts the thread that reads images of the map: until then none of them is answered.
  func startTiles() throws { try shared.tiles?.start() }

  /// Turns until something holds, for at most a minute: a turn does nothing where the kernel or another thread is late.
  /// `limit`: at most so many turns, for what takes no more of them.
  func turn(atMost limit: Int = .max, until isThere: () -> Bool) throws {
    let end = ClockReading.read().uptimeNanoseconds + 60_000_000_000
    var left = limit
    while !isThere(), left > 0, ClockReading.read().uptimeNanoseconds < end {
      loop.runTurn(timeoutMilliseconds: 0)
      left -= 1
    }
    try #require(isThere())
  }
}

/// A session whose bytes a test makes by hand: any part of a frame, at any time.
final class HandDrivenPeer: EventLoopDelegate {
  /// Messages of the hub (as text), how many of them were compressed, its WebSocket pings, and the code of its close
  /// frame.
  private(set) var messages: [String] = []
  private(set) var compressedMessages = 0
  private(set) var pings = 0
  private(set) var closeCode: CloseCode?
  private(set) var isOpen = false
  private let hub: HandDrivenHub
  private let loop: EventLoop
  private var id = ConnectionID.none
  private var head = ByteBuffer()
  private var frames: FrameReader
  private let compression = MessageCompression.shared()

  /// A session that is open, by a token or by development's word.
  init(
    _ hub: HandDrivenHub, role: String = "rider", id name: String = "r1", token: String? = nil,
    isCompressed: Bool = false
  ) throws {
    self.hub = hub
    frames = FrameReader(role: .client, allowsCompression: isCompressed)
    let clock = hub.clock
    loop = try EventLoop(clock: { clock.reading })
    loop.delegate = self
    id = try loop.connect(hub.address)
    let offer =
      isCompressed
      ? "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n" : ""
    send(
      Array(
        """
        GET /v1/ws?\(token.map { "access_token=\($0)" } ?? "role=\(role)&id=\(name)") HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r
        \(offer)Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n
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

  /// A turn of its own: what was sent leaves, what has come is read.
  func ownTurn() { loop.runTurn(timeoutMilliseconds: 0) }

  /// Breaks the connection.
  func abort() {
    loop.abort(id)
    ownTurn()
  }

  /// A text message in one masked frame (RFC 6455 §5.2).
  static func frame(_ text: String) -> [UInt8] {
    var buffer = ByteBuffer()
    Array(text.utf8).withUnsafeBytes {
      FrameWriter.write(.text, $0, mask: MaskKey(0x3D21_FA37), into: &buffer)  // of RFC 6455 §5.7
    }
    return buffer.withBytes { [UInt8]($0) }
  }

  /// A compressed text message in one masked frame (RFC 7692), behind so many empty blocks of 5 bytes.
  static func compressedFrame(_ text: String, emptyBlocks: Int = 0) -> [UInt8] {
    var deflater = Deflater(windowBits: 15, level: 9, memoryLevel: 8, takesContextOver: false)
    var payload = ByteBuffer()
    for _ in 0..<emptyBlocks { payload.append([0x00, 0x00, 0x00, 0xFF, 0xFF]) }
    var buffer = ByteBuffer()
    Array(text.utf8).withUnsafeBytes { deflater.compress($0, into: &payload) }
    payload.withBytes { FrameWriter.write(.text, $0, isCompressed: true, mask: MaskKey(0x3D21_FA37), into: &buffer) }
    return buffer.withBytes { [UInt8]($0) }
  }

  /// An empty pong, as WebSocket has it.
  static func pong() -> [UInt8] {
    var buffer = ByteBuffer()
    FrameWriter.write(.pong, UnsafeRawBufferPointer(start: nil, count: 0), mask: MaskKey(0x3D21_FA37), into: &buffer)
    return buffer.withBytes { [UInt8]($0) }
  }

  /// A message `ping`, whose answer has the text, and so many bytes that nobody reads.
  static func ping(_ text: String, unread bytes: Int = 0) -> String {
    let unread = bytes > 0 ? #","unread":"\#(String(repeating: "y", count: bytes))""# : ""
    return #"{"type":"ping","payload":{"text":"\#(text)"},"timestamp":1763680000000,"messageId":"p"\#(unread)}"#
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
        case .message(_, let payload, isCompressed: false): messages.append(String(decoding: payload, as: UTF8.self))
        case .message(let kind, let payload, isCompressed: true):
          compressedMessages += 1
          let limits = InflateLimits(messageBytes: 1 << 20, ratio: 1000, freeBytes: 1 << 20)
          messages.append(String(decoding: try compression.inflate(payload, kind, limits: limits), as: UTF8.self))
        case .ping: pings += 1  // an answer would come within the frame that a test has begun
        case .pong: break
        case .close(let code, reason: _): closeCode = code
        }
      }
    } catch {
      Issue.record("the hub broke the protocol: \(error)")
    }
  }

  func connected(_ id: ConnectionID) {}
  func overflowed(_ id: ConnectionID) {}
  func closed(_ id: ConnectionID, _ cause: CloseCause) { isOpen = false }
}
