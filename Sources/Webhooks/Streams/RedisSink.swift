// A publisher to Redis Streams, also of Valkey: batches of events by one script each.
//
// With ids of one's own XADD would refuse duplicates, but ids of a stream must ascend, and those of several hubs, or of
// a hub with a new journal, would not. So the server gives the ids, and a hash beside the stream has for each hub the
// journal position of the newest event: others are skipped. The script is atomic, and keeps the order.
import HubBackplane
import HubBytes
import HubMessages

final class RedisSink: StreamSink {
  private let endpoint: StreamEndpoint
  /// This stream's field in the hash of the newest positions.
  private let field: String
  private var connection: RedisConnection
  private var underWay: [JournalPosition] = []
  private var ticket: UInt64 = 0
  private var events: [SinkEvent] = []
  /// The ticket of unanswered positions, and their number; 0 for none.
  private var positionTicket: UInt64 = 0
  private var sentPositions = 0

  /// KEYS: stream, hash of the newest positions. ARGV: field, length, then of each event its position, id, source, type
  /// and data. Returns how many were added.
  private static let script = """
    local newest = redis.call('HGET', KEYS[2], ARGV[1]) or ''
    local added = 0
    for i = 3, #ARGV, 5 do
      if ARGV[i] > newest then
        redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'id', ARGV[i + 1], 'source', ARGV[i + 2],
          'type', ARGV[i + 3], 'data', ARGV[i + 4])
        newest = ARGV[i]
        redis.call('HSET', KEYS[2], ARGV[1], newest)
        added = added + 1
      end
    end
    return added
    """

  /// KEYS: stream. ARGV: length, then of each position its source and data.
  private static let positionScript = """
    for i = 2, #ARGV, 2 do
      redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'source', ARGV[i], 'data', ARGV[i + 1])
    end
    return 0
    """

  /// `epoch`: that of the ids.
  init(_ endpoint: StreamEndpoint, epoch: String) {
    self.endpoint = endpoint
    field = "\(epoch) \(endpoint.name)"
    let role = RedisRole(
      user: endpoint.credentials.user, password: endpoint.credentials.password,
      scripts: [Self.script, Self.positionScript])
    connection = RedisConnection(role, seed: 0)
  }

  var mode: StreamQueue.Mode { .batches(delay: 0) }
  var isConnectedOnDemand: Bool { false }
  var isReady: Bool { connection.phase == .ready }
  var owesAnswer: Bool { positionTicket != 0 }

  func opened(_ now: Moment) { connection.opened(now: now.uptime) }

  func closed(_ reason: String) -> Bool {
    connection.lost(.closed(reason), now: 0)
    _ = connection.takeEvents()
    underWay = []
    if positionTicket != 0 { events.append(.positionsRefused(sentPositions)) }
    positionTicket = 0
    return false
  }

  func received(_ bytes: UnsafeRawBufferPointer, _ now: Moment) {
    _ = unsafe connection.received(bytes, now: now.uptime)
    for event in connection.takeEvents() {
      switch event {
      case .ready: events.append(.ready)
      case .reply(positionTicket, let value): takePositions(value)
      case .reply(_, let value): take(value)
      case .unknown, .message: break
      case .lost(let fault): events.append(.failed("\(fault)"))
      }
    }
  }

  private func take(_ reply: RESPValue) {
    let positions = underWay
    underWay = []
    switch reply {
    case .number(let added) where 0...Int64(positions.count) ~= added:
      events.append(.stored(positions, repeats: positions.count - Int(added)))
    case .number(let added): events.append(.failed("\(added) of \(positions.count) events added"))
    case .error(let text):
      // Another server may accept it: the connection is made anew, perhaps to that one.
      if ["READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "MOVED"].contains(where: { text.hasPrefix($0) }) {
        events.append(.failed(text))
      } else {
        events.append(.refused(positions, reason: text, retryAfterSeconds: nil))
      }
    case .status, .bulk, .null, .array:
      events.append(.refused(positions, reason: "an answer that is not the script's", retryAfterSeconds: nil))
    }
  }

  func send(_ messages: [StreamMessage], _ now: Moment) {
    underWay = messages.map(\.position)
    ticket += 1
    var arguments = [Array(field.utf8), Array("\(endpoint.maximumLength)".utf8)]
    for message in messages {
      arguments.append(Self.sortable(message.position))
      for text in [message.id, message.source, message.kind] { arguments.append(Array(text.utf8)) }
      arguments.append(message.payload)
    }
    let keys = ["events", "progress"].map { Array("\(endpoint.prefix):\($0)".utf8) }
    if !connection.submit(.script(0, keys: keys, arguments: arguments), ticket: ticket, now: now.uptime) {
      events.append(.failed("it does not take what is sent"))
    }
  }

  var takesPositions: Bool { isReady && positionTicket == 0 }

  func send(_ positions: inout PositionTable, _ now: Moment) -> Int {
    var arguments = [Array("\(endpoint.maximumLength)".utf8)]
    let count = positions.takeAll { driver, message in
      arguments.append(Array("driver.\(driver)".utf8))
      arguments.append(message.array())
    }
    ticket += 1
    (positionTicket, sentPositions) = (ticket, count)
    let keys = [Array("\(endpoint.prefix):positions".utf8)]
    if !connection.submit(.script(1, keys: keys, arguments: arguments), ticket: ticket, now: now.uptime) {
      positionTicket = 0
      events.append(.positionsRefused(count))
    }
    return count
  }

  private func takePositions(_ reply: RESPValue) {
    if case .error = reply { events.append(.positionsRefused(sentPositions)) }
    positionTicket = 0
  }

  /// A journal position as a text that sorts like it.
  static func sortable(_ position: JournalPosition) -> [UInt8] {
    let (group, record) = ("\(position.group)", "\(position.record)")
    let zeros = { String(repeating: "0", count: $0) }
    return Array((zeros(20 - group.utf8.count) + group + zeros(10 - record.utf8.count) + record).utf8)
  }

  func takeOutput(into buffer: inout ByteBuffer) { connection.takeOutput(into: &buffer) }

  func takeEvents() -> [SinkEvent] {
    defer { events.removeAll() }
    return events
  }
}
