// A client as an app has it, without its thread and its socket: a test moves time, and says what the hub says.
import HubBytes
import HubMessages
import HubWebSocket
import Synchronization
import Testing

@testable import HubClientCore
@testable import LocationHubClient

final class EngineStage {
  typealias Work = @Sendable (HubEngine, Moment) -> Void

  /// What the engine wants done on its thread.
  private final class Posts: Sendable {
    private let list = Mutex<[Work]>([])

    func add(_ work: @escaping Work) { list.withLock { $0.append(work) } }
    func take() -> Work? { list.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
  }

  let session: ClientSession
  let engine: HubEngine
  let connection = LatestSource<ConnectionState>(.idle)
  private(set) var now = Moment(uptime: 1_000_000_000, timestamp: Timestamp(milliseconds: 1_763_680_000_000))
  /// What the hub got, on all connections.
  private(set) var messages: [ClientEnvelope] = []
  /// The tokens of all upgrades.
  private(set) var tokens: [String?] = []
  private let posts = Posts()
  private let reader = MessageReader()
  private var bridge = MessageBridge()
  private var replies: UInt64 = 0

  init(_ source: TokenSource = .development(.driver, "D1"), files: (any FixFiles)? = nil) throws {
    var options = HubOptions()
    (options.seed, options.codec) = (1, .json)
    var configuration = try options.configuration("ws://127.0.0.1:1", source)
    let broker = TokenBroker(source)
    if source.development == nil { configuration.tokens = { broker.ask($0) } }
    session = ClientSession(configuration)
    let driver = try files.map { files in
      DriverPart(
        try FixQueue(files), backlog: LatestSource(Backlog()), sampling: SamplingController(.standard))
    }
    let posts = posts
    engine = HubEngine(session, tokens: broker, connection: connection, driver: driver) { posts.add($0) }
  }

  /// Does something, and whatever follows from it: a turn.
  func turn(_ work: (HubEngine, Moment) -> Void = { _, _ in }) throws {
    work(engine, now)
    engine.reconcile(now)
    var buffer = ByteBuffer()
    let step = session.flush(now, into: &buffer)
    for action in bridge.take(buffer) { try take(action) }
    switch step {
    case .none: break
    case .connect:
      bridge = MessageBridge()
      session.transportConnected(now)
      try turn()
    case .disconnect, .abort: try end()
    }
  }

  private func take(_ action: BridgeAction) throws {
    switch action {
    case .open(_, let authorization): tokens.append(authorization.map { String($0.dropFirst("Bearer ".count)) })
    case .text(let text):
      var bytes = Array(text.utf8)
      messages.append(
        try bytes.withUnsafeMutableBytes {
          try reader.read(UnsafeRawBufferPointer($0), time: .unixMilliseconds, isValidUTF8: true)
        })
    case .binary, .close, .refuse: break
    }
  }

  /// Does what the engine's tasks want done: waits for one at least.
  func takePost() async throws {
    while true {
      if let work = posts.take() { return try turn(work) }
      await Task.yield()
    }
  }

  /// Lets so many seconds pass, or time until something is due.
  func pass(_ seconds: Double? = nil) throws {
    let due = [session.deadline, engine.deadline].compactMap(\.self).min()
    now.uptime = try seconds.map { now.uptime + nanoseconds($0) } ?? max(now.uptime, #require(due))
    session.timeReached(now)
    engine.timeReached(now)
    try turn()
  }

  // MARK: The hub

  /// Grants the upgrade that was asked for, and greets.
  func open(as role: HubMessages.Role = .driver) throws {
    #expect(session.state == .handshaking)
    try hear(bridge.opened(subprotocol: "locationhub.v1.json"))
    try say(
      .connected(
        Connected(
          sessionID: InlineText("s1")!, role: role, id: "D1", heartbeatInterval: 30, serverTime: now.timestamp,
          limits: .init(maxMessageBytes: 262_144, maxBatch: 500, rate: 1_000_000), sampling: nil)))
    #expect(connection.current.isLive == (role == .driver))
  }

  func say(_ reply: Reply) throws {
    replies += 1
    var payload = ByteBuffer()
    JSONWriter.write(reply, timestamp: now.timestamp, messageID: replies, time: .unixMilliseconds, into: &payload)
    try hear(bridge.received(text: String(decoding: payload.array(), as: UTF8.self)))
  }

  private func hear(_ bytes: [UInt8]) throws {
    var bytes = bytes
    let now = now
    bytes.withUnsafeMutableBytes { bytes in
      session.received(bytes, now: now, reader: reader) { envelope in
        if case .reply(.connected(let greeting)) = envelope.message {
          engine.opened(greeting, now)
        } else {
          engine.received(envelope, now)
        }
      }
    }
    try turn()
  }

  /// TCP ends.
  func end() throws { try turn { $0.closed(session.transportEnded($1)) } }
}

extension EngineStage {
  var state: ConnectionState { connection.current }
  var isConnecting: Bool { if case .connecting = state { true } else { false } }

  /// What comes of something, where it has come.
  final class Outcome<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)

    var now: Value? { value.withLock { $0 } }
    func set(_ new: Value) { value.withLock { $0 = new } }
  }
}
