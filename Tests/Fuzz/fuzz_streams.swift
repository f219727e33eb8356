// modules: HubBytes HubGeo HubMessages HubHTTP HubCore HubTokens HubSystem HubTransport HubJournal
// modules: HubBackplane HubRuntime HubWebhooks
// libraries: ssl crypto
// libFuzzer entry for what a stream's server sends: NATS, Redis, or a collector over HTTP (run.sh in this folder builds
// and runs it).
//
// Input: one byte, the offsets at which the rest is cut, then what the server sends. The byte says how many,
// which kind of server it is, and whether it has greeted before. Checked beyond not crashing: cuts change neither
// NATS's operations nor its error; a connection answers no event that it was not given, and none twice; the queue and
// the figures go along.

import HubBytes
import HubGeo
import HubMessages
import HubTokens

@testable import HubWebhooks

private func read(_ pieces: [ArraySlice<UInt8>]) -> ([NATSOperation], NATSError?) {
  var reader = NATSReader()
  var operations: [NATSOperation] = []
  for piece in pieces {
    do throws(NATSError) {
      try withCopy(piece) { (bytes) throws(NATSError) in try reader.read(bytes, into: &operations) }
    } catch { return (operations, error) }
  }
  return (operations, nil)
}

private func message(_ group: UInt64) -> StreamMessage {
  let body = HubMessages.Notification(
    kind: .fenceEnter, title: "t", body: "b", driverID: nil, leg: nil, sequence: 1)
  guard let id = Identifier("T\(group)"),
    let message = StreamMessage(
      Publication(
        channel: .trip(id), number: 1, timestamp: Timestamp(milliseconds: 0), body: .notification(body)),
      JournalPosition(group: group, record: 0), epoch: "e")
  else { preconditionFailure("both are right") }
  return message
}

private func position(_ number: UInt64) -> PublishedPosition {
  let time = Timestamp(milliseconds: 0)
  guard let id = Identifier("D\(number)"), let coordinate = Coordinate(latitude: 1, longitude: 2) else {
    preconditionFailure("both are right")
  }
  return PublishedPosition(
    channel: .fleet, number: number, timestamp: time,
    location: DriverLocation(
      driverID: id, tripID: nil, coordinate: coordinate, heading: nil, speed: nil, accuracy: 5, confidence: .high,
      timestamp: time, age: 0, after: 0))
}

/// A stream at work, without its socket: what it was given, and what the server may still say of that.
private struct World {
  let sink: any StreamSink
  let isSecure: Bool
  var queue: StreamQueue
  var figures = StreamFigures(name: "f")
  var underWay: Set<JournalPosition> = []
  var next: UInt64 = 1
  var now = Moment(uptime: 0, timestamp: Timestamp(milliseconds: 0))
  var isOver = false

  init(_ sink: any StreamSink, isSecure: Bool) {
    self.sink = sink
    self.isSecure = isSecure
    figures.positionsSent = 0
    queue = StreamQueue(
      sink.mode, giveUpAfterSeconds: 20, from: DeliveryProgress(cursor: JournalPosition(group: 1, record: 0)))
    sink.opened(now)
  }

  mutating func hear(_ piece: ArraySlice<UInt8>) {
    guard !isOver else { return }
    send()
    withCopy(piece) { sink.received($0, now) }
    takeEvents()
    now.uptime += 1_000_000_000
    now.timestamp.milliseconds += 1000
  }

  private mutating func send() {
    guard sink.isReady else { return }
    for _ in 0..<2 where queue.hasRoom {
      queue.append(message(next), published: now.timestamp, now)
      next += 1
    }
    let due = queue.takeDue(now)
    if !due.isEmpty {
      for message in due { precondition(underWay.insert(message.position).inserted, "sent once at a time") }
      sink.send(due, now)
      takeEvents()
    }
    if !isOver, sink.takesPositions {
      var table = PositionTable()
      for number in 1...3 as ClosedRange<UInt64> { table.put(position(number)) }
      figures.positionsSent = (figures.positionsSent ?? 0) + UInt64(sink.send(&table, now))
      takeEvents()
    }
  }

  private mutating func answered(_ positions: [JournalPosition]) {
    for position in positions { precondition(underWay.remove(position) != nil, "answered once") }
  }

  private mutating func takeEvents() {
    for event in sink.takeEvents() {
      figures.count(event)
      switch event {
      case .stored(let positions, let repeats):
        precondition(0...positions.count ~= repeats)
        answered(positions)
        queue.stored(positions)
      case .refused(let positions, _, let wait):
        answered(positions)
        _ = queue.refused(positions, retryAfterSeconds: wait, now, unit: 0.5)
      case .impossible(let position, _):
        answered([position])
        precondition(queue.giveUp(position) != nil, "it was given")
      case .plainTextEnds:
        precondition(isSecure, "it was asked for")
        sink.secured()
      case .gone, .failed, .finished: end()
      case .ready, .positionsRefused: break
      }
    }
    precondition(isOver || queue.underWay == underWay.count)
    var output = ByteBuffer()
    sink.takeOutput(into: &output)
  }

  /// The connection is over: its last words are heard, and the rest is lost.
  mutating func end() {
    guard !isOver else { return }
    isOver = true
    _ = sink.closed("over")
    takeEvents()
    queue.lost()
    precondition(queue.underWay == 0)
  }
}

private func world(_ text: String) -> World {
  guard let url = StreamURL(text), let filter = EventFilter(channels: [.all]),
    let secret = WebhookSecret(bytes: Array(1...32)), let signer = try? WebhookSigner(secrets: [secret])
  else { preconditionFailure("all are right") }
  var endpoint = StreamEndpoint(name: "f", url: url, filter: filter)
  endpoint.signer = signer
  let sink: any StreamSink =
    switch url.kind {
    case .nats: NATSConnection(endpoint, inbox: "q")
    case .redis: RedisSink(endpoint, epoch: "e")
    case .batches: BatchSink(endpoint, userAgent: "f")
    }
  return World(sink, isSecure: url.isSecure)
}

/// What has a server of each kind take events, so that what follows is its answers.
private let greetings = [
  ("nats://127.0.0.1", "INFO {\"headers\":true,\"max_payload\":400}\r\nPONG\r\n"),
  ("tls://127.0.0.1", "INFO {\"headers\":true,\"tls_required\":true}\r\n"),
  ("redis://127.0.0.1", "$3\r\nabc\r\n$3\r\ndef\r\n"), ("http://127.0.0.1/", ""),
]

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
  guard count >= 1 else { return 0 }
  let data = [UInt8](UnsafeBufferPointer(start: start, count: count))
  let input = CutInput(data)
  let (whole, cut) = (read([input.whole]), read(input.pieces))
  precondition(whole == cut, "cuts change nothing")
  let (url, greeting) = greetings[Int(data[0] >> 4) & 3]
  var world = world(url)
  if data[0] & 8 != 0, !greeting.isEmpty { world.hear(Array(greeting.utf8)[...]) }
  for piece in input.pieces { world.hear(piece) }
  world.end()
  return 0
}
