// An app's client without its thread and its socket; the far end is a `MessageBridge`, and a hub that says what the
// test says.
import Foundation
import HubBytes
import HubGeo
import HubMessages
import HubWebSocket
import Testing

@testable import HubClientCore
@testable import LocationHubClient

/// A driver's or a rider's client, with feeds that are read.
final class EngineClient {
  let session: ClientSession
  let engine: HubEngine
  let sampling: SamplingController
  let trip = FeedReader<TripEvent>()
  let area = FeedReader<AreaMap>()
  let offers = FeedReader<OfferEvent>()
  /// Whom the hub greets.
  var id: DriverID = "D1"
  /// As what the hub greets it; nil for what it is.
  var greetedRole: HubMessages.Role?
  /// What the hub's clock says when it greets; nil for what the phone's says.
  var hubTime: Timestamp?
  /// What the hub asks of its clients.
  var (heartbeat, maxMessageBytes, maxBatch) = (30.0, 262_144, 500)
  /// Nobody answers: connections fail.
  var isOffline = false
  private let role: HubMessages.Role
  private let codec: Subprotocol
  private var bridge = MessageBridge()
  private let reader = MessageReader()
  var now = Moment(uptime: 1_000_000_000, timestamp: Timestamp(milliseconds: 1_763_680_000_000))
  /// Messages that the app's side of the client got, connections that were made, and what was written in JSON.
  var heard = 0
  var openings = 0
  private var written: [String] = []

  init(
    _ codec: Subprotocol, _ role: HubMessages.Role, _ files: any FixFiles = MemoryFiles(),
    limits: ClientLimits = ClientLimits(), power: PowerPolicy = .standard
  ) throws {
    (self.codec, self.role) = (codec, role)
    sampling = SamplingController(power)
    var options = HubOptions()
    options.limits = limits
    (options.seed, options.codec) = (1, codec)
    let tokens = TokenSource.development(role, "D1")
    session = ClientSession(try options.configuration("ws://127.0.0.1:1", tokens))
    let driver = DriverPart(try FixQueue(files), backlog: LatestSource(Backlog()), sampling: sampling)
    engine = HubEngine(
      session, tokens: TokenBroker(tokens), connection: LatestSource(.idle), driver: role == .driver ? driver : nil,
      post: { _ in })
  }

  /// Reads a trip, an area and offers.
  func read() {
    engine.feeds.add(trip, to: .trip("T1"))
    engine.feeds.add(
      area, to: InlineText("a1")!, showing: .nearby(Coordinate(latitude: 48, longitude: 11)!, radiusMeters: 500))
    engine.offers.add(offers)
  }

  func start() {
    engine.start(now)
    turn()
  }

  func stop() {
    engine.stop(now)
    turn()
    // Nobody answers its Close.
    if session.state == .closing { pass() }
  }

  /// Whatever the client wants of its transport is done; what it writes must be right.
  func turn() {
    engine.reconcile(now)
    var buffer = ByteBuffer()
    let step = session.flush(now, into: &buffer)
    for case .text(let text) in bridge.take(buffer) { written.append(text) }
    switch step {
    case .none: break
    case .connect where isOffline:
      engine.closed(session.transportEnded(now, failure: .connectFailed(errno: ECONNREFUSED)))
      turn()
    case .connect:
      openings += 1
      bridge = MessageBridge()
      session.transportConnected(now)
      turn()
      hear(bridge.opened(subprotocol: "\(codec.name)"))
      say(greeting)
    case .disconnect, .abort:
      engine.closed(session.transportEnded(now))
      pass()
    }
  }

  /// The connection breaks.
  func cut() {
    engine.closed(session.transportEnded(now))
    turn()
  }

  /// Time passes, to whatever is due next.
  func pass() {
    now.uptime = max(now.uptime, [session.deadline, engine.deadline].compactMap(\.self).min() ?? 0)
    timeReached()
  }

  /// So many seconds pass, by the phone's clock, too.
  func pass(seconds: Int64) {
    now.uptime += seconds * 1_000_000_000
    now.timestamp = Timestamp(milliseconds: now.timestamp.milliseconds + seconds * 1000)
    timeReached()
  }

  private func timeReached() {
    session.timeReached(now)
    engine.timeReached(now)
    turn()
  }

  /// When the client says that it has written what it has, since `takeWritten`.
  var timestamps: [Int64] {
    written.compactMap { text in
      let message = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
      return message?["timestamp"] as? Int64
    }
  }

  /// What the client has written in JSON since the last call: type, id and payload.
  func takeWritten() throws -> [(type: String, id: String, payload: [String: Any])] {
    defer { written = [] }
    return try written.map { text in
      let message = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
      return (
        try #require(message["type"] as? String), try #require(message["messageId"] as? String),
        message["payload"] as? [String: Any] ?? [:]
      )
    }
  }

  private var greeting: [UInt8] {
    let greeting = Connected(
      sessionID: InlineText("s1")!, role: greetedRole ?? role, id: id, heartbeatInterval: heartbeat,
      serverTime: hubTime ?? now.timestamp,
      limits: .init(maxMessageBytes: maxMessageBytes, maxBatch: maxBatch, rate: 10), sampling: nil)
    var bytes = ByteBuffer()
    switch codec {
    case .json:
      JSONWriter.write(
        .connected(greeting), timestamp: now.timestamp, messageID: 1, time: .unixMilliseconds, into: &bytes)
    case .binary: BinaryWriter.write(.connected(greeting), timestamp: now.timestamp, messageID: 1, into: &bytes)
    }
    return bytes.array()
  }

  /// A message of the hub, by its type and payload in JSON.
  func say(_ type: String, _ payload: String) {
    say(Array(#"{"type":"\#(type)","payload":\#(payload),"timestamp":1763680000000,"messageId":"r1"}"#.utf8))
  }

  func refuse(_ id: String, _ code: String) {
    say("error", #"{"code":"\#(code)","message":"no","replyTo":"\#(id)"}"#)
  }

  func say(_ message: [UInt8]) {
    var frame = ByteBuffer()
    message.withUnsafeBytes { FrameWriter.write(codec == .binary ? .binary : .text, $0, into: &frame) }
    hear(frame.array())
  }

  /// Bytes come, as TCP has them.
  func hear(_ bytes: [UInt8]) {
    var bytes = bytes
    bytes.withUnsafeMutableBytes { bytes in
      session.received(bytes, now: now, reader: reader) { envelope in
        heard += 1
        if case .reply(.connected(let greeting)) = envelope.message {
          engine.opened(greeting, now)
        } else {
          engine.received(envelope, now)
        }
      }
    }
    turn()
  }
}
