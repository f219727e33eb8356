// A hub made of bytes: reads what a session sends, and writes what the tests want it to get, without a socket.
import HubBytes
import HubGeo
import HubHTTP
import HubMessages
import HubWebSocket
import Testing

@testable import HubClientCore

/// One client and the other end of its connection; time stands still until a test moves it.
final class Stage {
  let session: ClientSession
  private(set) var uptime: Int64 = 1_000_000_000
  private let reader = MessageReader()
  private var serverFrames = FrameReader(role: .server)
  private var replies: UInt64 = 0
  /// Largest piece of what the hub says that arrives at once.
  var piece = Int.max
  /// What the application saw.
  var delivered: [ServerMessage] = []
  /// What the hub got on this connection.
  var messages: [ClientEnvelope] = []
  /// What the hub charges for each of them.
  var units: [Int] = []
  var closeCodes: [CloseCode?] = []
  var pongs: [[UInt8]] = []
  var request = ""

  init(seed: UInt64 = 1, token: String? = nil, configure: (inout ClientConfiguration) -> Void = { _ in }) throws {
    var configuration = ClientConfiguration(url: try HubURL("ws://127.0.0.1:8080?role=driver&id=D1"), token: token)
    configuration.seed = seed
    configure(&configuration)
    session = ClientSession(configuration)
  }

  var now: Moment { Moment(uptime: uptime, timestamp: Timestamp(milliseconds: 1_763_680_000_000 + uptime / 1_000_000)) }

  func advance(seconds: Double) { uptime += Int64(seconds * 1e9) }

  /// Moves time to the session's deadline and calls it.
  func reachDeadline() throws {
    uptime = max(uptime, try #require(session.deadline))
    session.timeReached(now)
  }

  // MARK: The client's side

  /// Flushes once, and reads what was written.
  @discardableResult
  func flush(mayWrite: Bool = true) throws -> ClientSession.Step {
    var buffer = ByteBuffer()
    let wasUpgrading = session.phase.connection?.socket.wantsRequest == true
    let step = session.flush(now, mayWrite: mayWrite, into: &buffer)
    if wasUpgrading {
      request = String(decoding: buffer.array(), as: UTF8.self)
    } else {
      try read(&buffer)
    }
    return step
  }

  private func read(_ buffer: inout ByteBuffer) throws {
    try buffer.withMutableBytes { bytes in
      var offset = 0
      while let event = try serverFrames.next(in: bytes, at: &offset, limits: FrameLimits()) {
        switch event {
        case .message(let kind, let payload, isCompressed: _):
          messages.append(
            kind == .binary
              ? try BinaryReader.read(payload, tripBefore: nil)
              : try reader.read(payload, time: .unixMilliseconds, isValidUTF8: true))
          units.append(WorkUnits.of(messages[messages.count - 1].message, bytes: payload.count))
        case .ping: break
        case .pong(let payload): pongs.append([UInt8](payload))
        case .close(let code, reason: _): closeCodes.append(code)
        }
      }
    }
  }

  // MARK: The hub's side

  /// Lets the client start and connect, up to `connected`.
  func open(
    rate: Double = 10, heartbeat: Double = 30, role: HubMessages.Role = .driver, maxBatch: Int = 500
  ) throws {
    if session.state == .idle { session.start(now: now) }
    if case .waiting = session.state { try reachDeadline() }
    #expect(try flush() == .connect)
    session.transportConnected(now)
    try flush()
    try answerUpgrade()
    say(connected(rate: rate, heartbeat: heartbeat, role: role, maxBatch: maxBatch))
    #expect(session.state == .open)
    try flush()
  }

  /// The 101, and `greeting` in the same read.
  func answerUpgrade(with greeting: Reply? = nil, compression: DeflatePolicy? = nil) throws {
    messages = []
    units = []
    serverFrames = FrameReader(role: .server)
    var buffer = ByteBuffer()
    buffer.append(utf8: request)
    var parser = RequestParser()
    guard case .request(let head, consumed: _) = try buffer.withBytes({ try parser.parse($0) }) else {
      Issue.record("not a whole request: \(request)")
      return
    }
    let spoken: [StaticString] = [session.configuration.codec.name]
    let handshake = try ServerHandshake(head, subprotocols: spoken, compression: compression)
    var answer = ByteBuffer()
    handshake.write(into: &answer, subprotocols: spoken)
    if let greeting {
      var payload = ByteBuffer()
      JSONWriter.write(greeting, timestamp: now.timestamp, messageID: 1, time: .unixMilliseconds, into: &payload)
      payload.withBytes { FrameWriter.write(.text, $0, into: &answer) }
    }
    send(answer.array())
  }

  func connected(
    rate: Double = 10, heartbeat: Double = 30, role: HubMessages.Role = .driver, maxBatch: Int = 500
  ) -> Reply {
    .connected(
      Connected(
        sessionID: InlineText("s1")!, role: role, id: Identifier("D1")!, heartbeatInterval: heartbeat,
        serverTime: now.timestamp, limits: .init(maxMessageBytes: 262_144, maxBatch: maxBatch, rate: rate),
        sampling: .init(interval: 4, minDistance: 10)))
  }

  func say(_ reply: Reply) {
    replies += 1
    var payload = ByteBuffer()
    switch session.configuration.codec {
    case .json:
      JSONWriter.write(reply, timestamp: now.timestamp, messageID: replies, time: .unixMilliseconds, into: &payload)
      frame(.text, payload.array())
    case .binary:
      BinaryWriter.write(
        reply, timestamp: now.timestamp, messageID: replies, naming: (1, ImpliedNames()), into: &payload)
      frame(.binary, payload.array())
    }
  }

  func say(_ publication: Publication) {
    var payload = ByteBuffer()
    switch session.configuration.codec {
    case .json:
      JSONWriter.write(publication, time: .unixMilliseconds, into: &payload)
      frame(.text, payload.array())
    case .binary:
      BinaryWriter.write(publication, handle: 1, names: ImpliedNames(), into: &payload)
      frame(.binary, payload.array())
    }
  }

  func sayClose(_ code: UInt16) {
    var buffer = ByteBuffer()
    FrameWriter.writeClose(CloseCode(code), into: &buffer)
    send(buffer.array())
  }

  func frame(_ opcode: Opcode, _ payload: [UInt8]) {
    var buffer = ByteBuffer()
    payload.withUnsafeBytes { FrameWriter.write(opcode, $0, into: &buffer) }
    send(buffer.array())
  }

  /// Bytes to the client, in pieces.
  func send(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      var part = Array(rest.prefix(piece))
      rest = rest.dropFirst(piece)
      part.withUnsafeMutableBytes {
        session.received($0, now: now, reader: reader) { self.delivered.append($0.message) }
      }
    }
  }

  /// TCP breaks, and the client is let in again.
  func breakAndReopen(rate: Double = 10) throws {
    _ = session.transportEnded(now)
    try open(rate: rate)
  }
}

extension Stage {
  /// The ids of what the hub got.
  var ids: [MessageID] { messages.map(\.messageID) }

  func ack(_ id: MessageID) { say(.ack(Ack(replyTo: id))) }

  /// Answers the newest ping.
  func answerPing(storedThrough: Int64?) throws {
    let ping = try #require(
      messages.last {
        if case .ping = $0.message { true } else { false }
      })
    say(
      .pong(
        Pong(
          replyTo: ping.messageID, ping: Ping(), serverTime: now.timestamp,
          storedThrough: storedThrough.map { Timestamp(milliseconds: Stage.start + $0) })))
  }

  /// When the times of fixes begin: none may be before 2000.
  static let start: Int64 = 1_763_680_000_000

  static func fix(_ milliseconds: Int64) -> Fix {
    Fix(
      coordinate: Coordinate(latitude: 37.5, longitude: -122.25)!,
      timestamp: Timestamp(milliseconds: start + milliseconds),
      accuracy: 5)
  }

  static func move(_ status: TripStatus, trip: String = "T1") -> TripStatusReport {
    TripStatusReport(tripID: Identifier(trip)!, status: status, timestamp: Timestamp(milliseconds: start + 1))
  }

  /// `route`: as long as a test wants the event to be.
  static func event(_ sequence: UInt64, route: String? = nil) -> Publication {
    var update = TripUpdate(
      tripID: Identifier("T1")!, status: .accepted, previousStatus: nil, driverID: nil,
      timestamp: Timestamp(milliseconds: 5), location: nil, sequence: sequence)
    update.route = route
    return Publication(
      channel: .trip(Identifier("T1")!), number: sequence, timestamp: Timestamp(milliseconds: 5),
      body: .tripUpdate(update))
  }

  static func position(after: UInt64) -> Publication {
    Publication(
      channel: .trip(Identifier("T1")!), number: 1000, timestamp: Timestamp(milliseconds: 5),
      body: .driverLocation(
        DriverLocation(
          driverID: Identifier("D1")!, tripID: nil, coordinate: Coordinate(latitude: 1, longitude: 2)!, heading: nil,
          speed: nil, accuracy: 5, confidence: .high, timestamp: Timestamp(milliseconds: 5), age: 0, after: after)))
  }

  /// Timestamps of all fixes that the hub got, in order, batches flattened.
  var fixTimes: [Int64] {
    messages.flatMap { envelope -> [Int64] in
      switch envelope.message {
      case .locationUpdate(let update): [update.fix.timestamp.milliseconds - Stage.start]
      case .locationBatch(let batch):
        batch.fixes.compactMap {
          if case .success(let fix) = $0 { fix.timestamp.milliseconds - Stage.start } else { nil }
        }
      case .driverStatus, .tripStatus, .tripChange, .offerDecline, .subscribe, .unsubscribe, .ping, .refresh, .query: []
      }
    }
  }

  /// Sequences of the events that the application saw.
  var sequences: [UInt64] {
    delivered.compactMap {
      if case .publication(let publication) = $0, case .tripUpdate(let update) = publication.body {
        update.sequence
      } else {
        nil
      }
    }
  }

  /// How many questions the hub got.
  var queries: Int { messages.count { if case .query = $0.message { true } else { false } } }

  /// Resume points of the subscribes that the hub got.
  var subscribes: [Subscribe] {
    messages.compactMap { if case .subscribe(let request) = $0.message { request } else { nil } }
  }

  func answerSubscribe(sequence: UInt64, epoch: String = "e1", recovered: Bool = false) throws {
    let request = try #require(
      messages.last {
        if case .subscribe = $0.message { true } else { false }
      })
    say(
      .subscribed(
        Subscribed(
          replyTo: request.messageID, channel: .trip(Identifier("T1")!), sequence: sequence,
          epoch: InlineText(epoch)!, recovered: recovered, snapshot: nil)))
  }
}
