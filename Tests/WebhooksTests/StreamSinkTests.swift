// Batches to Redis and over HTTP: bytes in, bytes out. And positions, of which the newest of each driver counts.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import HubTokens
import Testing

@testable import HubWebhooks

private let now = Moment(uptime: 0, timestamp: Timestamp(milliseconds: 1_764_000_000_000))

extension StreamSink {
  func say(_ text: String) -> (output: String, events: [SinkEvent]) {
    Array(text.utf8).withUnsafeBytes { received($0, now) }
    return (taken(), takeEvents())
  }

  func taken() -> String {
    var output = ByteBuffer()
    takeOutput(into: &output)
    return String(decoding: output.array(), as: UTF8.self)
  }
}

func position(_ driver: String, _ number: UInt64 = 1) -> PublishedPosition {
  let time = Timestamp(milliseconds: 1_764_000_000_000)
  return PublishedPosition(
    channel: .fleet, number: number, timestamp: time,
    location: DriverLocation(
      driverID: Identifier(driver)!, tripID: nil, coordinate: Coordinate(latitude: 1, longitude: 2)!, heading: nil,
      speed: nil, accuracy: 5, confidence: .high, timestamp: time, age: 0, after: 0))
}

@Suite struct RedisSinkTests {
  private func sink(_ credentials: StreamCredentials = StreamCredentials()) -> RedisSink {
    var endpoint = StreamEndpoint(
      name: "orders", url: StreamURL("redis://127.0.0.1")!, filter: EventFilter(channels: [.all])!)
    endpoint.credentials = credentials
    endpoint.maximumLength = 5000
    let sink = RedisSink(endpoint, epoch: "e1")
    sink.opened(now)
    return sink
  }

  private func ready() -> RedisSink {
    let sink = sink()
    #expect(sink.say("$3\r\nabc\r\n$3\r\ndef\r\n").events == [.ready])
    return sink
  }

  @Test("It greets with its credentials and scripts, and is ready when they are there")
  func greeting() {
    let sink = sink(StreamCredentials(user: "hub", password: "p"))
    let text = sink.taken()
    #expect(text.hasPrefix("*3\r\n$4\r\nAUTH\r\n$3\r\nhub\r\n$1\r\np\r\n*3\r\n$6\r\nSCRIPT\r\n"))
    #expect(!sink.isReady && sink.say("+OK\r\n$3\r\nabc\r\n").events == [])
    #expect(sink.say("$3\r\ndef\r\n").events == [.ready] && sink.isReady)
  }

  @Test("A batch is one script, whose answer says how many were new")
  func batch() {
    let sink = ready()
    let messages = [streamMessage(5, trip: 1), streamMessage(6, trip: 2)]
    sink.send(messages, now)
    let text = sink.taken()
    let keys = "$18\r\nlocationhub:events\r\n$20\r\nlocationhub:progress"
    #expect(text.contains("EVALSHA\r\n$3\r\nabc\r\n$1\r\n2\r\n\(keys)"))
    #expect(text.contains("\r\ne1 orders\r\n$4\r\n5000\r\n$30\r\n000000000000000000050000000000\r\n"))
    #expect(text.contains("\r\nevt_e1_6_0\r\n$7\r\ntrip.T2\r\n$24\r\nnotification.fence_enter\r\n"))
    #expect(sink.say(":1\r\n").events == [.stored(messages.map(\.position), repeats: 1)])
  }

  @Test("A number that no script can answer ends the connection", arguments: ["2", "-1", "-9223372036854775808"])
  func wrongNumber(text: String) {
    let sink = ready()
    sink.send([streamMessage(5)], now)
    #expect(sink.say(":\(text)\r\n").events == [.failed("\(text) of 1 events added")])
    #expect(!sink.closed(""))
  }

  @Test("An error refuses the batch, or ends a connection to a server that can't write")
  func errors() {
    let sink = ready()
    sink.send([streamMessage(5)], now)
    let reason = "OOM command not allowed"
    #expect(
      sink.say("-\(reason)\r\n").events
        == [.refused([streamMessage(5).position], reason: reason, retryAfterSeconds: nil)])
    sink.send([streamMessage(5)], now)
    #expect(sink.say("-READONLY replica\r\n").events == [.failed("READONLY replica")])
    #expect(!sink.closed("") && !sink.isReady)
    sink.opened(now)
    guard case .failed? = sink.say("-LOADING\r\n").events.first else {
      Issue.record("it continues")
      return
    }
  }

  @Test("Positions go by a script of their own, one at a time, beside events")
  func positions() {
    let sink = ready()
    var table = PositionTable()
    table.put(position("D.1"))
    sink.send([streamMessage(5)], now)
    #expect(sink.takesPositions && sink.send(&table, now) == 1 && !sink.takesPositions)
    #expect(sink.taken().contains("locationhub:positions\r\n$4\r\n5000\r\n$12\r\ndriver.D%2E1\r\n"))
    #expect(
      sink.say(":1\r\n-ERR x\r\n").events
        == [.stored([streamMessage(5).position], repeats: 0), .positionsRefused(1)])
    #expect(sink.takesPositions)
  }

  @Test("Journal positions sort as texts")
  func sortable() {
    let positions = [(1, 9), (1, 10), (9, 0), (10, 0), (UInt64.max, UInt32.max)] as [(UInt64, UInt32)]
    let texts = positions.map {
      String(decoding: RedisSink.sortable(JournalPosition(group: $0.0, record: $0.1)), as: UTF8.self)
    }
    #expect(texts == texts.sorted() && Set(texts.map(\.count)) == [30])
  }
}

@Suite struct BatchSinkTests {
  private let secret = WebhookSecret(bytes: Array(1...32))!

  private func sink() throws -> BatchSink {
    var endpoint = StreamEndpoint(
      name: "lake", url: StreamURL("http://127.0.0.1:8080/in?k=1")!, filter: EventFilter(channels: [.all])!)
    endpoint.signer = try WebhookSigner(secrets: [secret])
    let sink = BatchSink(endpoint, userAgent: "hub/1")
    sink.opened(now)
    return sink
  }

  private let messages = [streamMessage(5, trip: 1), streamMessage(6, trip: 2)]

  @Test("A batch is a signed POST of lines, each with its event's id")
  func request() throws {
    let sink = try sink()
    sink.send(messages, now)
    #expect(!sink.isReady)
    let parts = sink.taken().split(separator: "\r\n\r\n", maxSplits: 1).map(String.init)
    let lines = parts[1].split(separator: "\n").map(String.init)
    #expect(lines.count == 2 && parts[1].hasSuffix("}\n"))
    #expect(lines[0] == "{\"id\":\"evt_e1_5_0\"," + String(decoding: messages[0].payload.dropFirst(), as: UTF8.self))
    let signature = try WebhookSigner(secrets: [secret]).signatures(
      id: "batch_e1_5_0_2", timestamp: now.timestamp, body: Array(parts[1].utf8))
    #expect(parts[0].hasPrefix("POST /in?k=1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: hub/1\r\n"))
    for field in [
      "Content-Type: application/x-ndjson", "Content-Length: \(parts[1].utf8.count)", "webhook-id: batch_e1_5_0_2",
      "webhook-timestamp: 1764000000", "webhook-signature: \(signature)",
    ] { #expect(parts[0].contains("\r\n" + field)) }
  }

  @Test("2xx is stored; 410 ends it; whatever else is refused, with the receiver's wait")
  func answers() throws {
    let positions = messages.map(\.position)
    for (status, event) in [
      (200, SinkEvent.stored(positions, repeats: 0)), (410, .gone),
      (302, .refused(positions, reason: "status 302", retryAfterSeconds: nil)),
      (503, .refused(positions, reason: "status 503", retryAfterSeconds: 9)),
    ] {
      let sink = try sink()
      sink.send(messages, now)
      let wait = status == 503 ? "retry-after: 9\r\n" : ""
      #expect(sink.say("HTTP/1.1 \(status) X\r\n\(wait)content-length: 2\r\n\r\n").events == [event])
      #expect(!sink.isReady, "its body is missing")
      #expect(sink.say("ok").events == [] && sink.isReady)
    }
  }

  @Test("A connection that ends: after use it is no fault, with a batch under way the batch is refused")
  func closing() throws {
    let sink = try sink()
    #expect(!sink.closed("refused") && sink.takeEvents() == [])
    sink.opened(now)
    sink.send(messages, now)
    #expect(!sink.closed("reset"))
    #expect(sink.takeEvents() == [.refused(messages.map(\.position), reason: "reset", retryAfterSeconds: nil)])
    sink.opened(now)
    sink.send(messages, now)
    _ = sink.say("HTTP/1.1 204 X\r\n\r\n")
    #expect(sink.isReady)
    sink.send(messages, now)
    #expect(sink.closed("idle") && sink.takeEvents() == [], "not heard: it is sent again at once")
    sink.opened(now)
    sink.send(messages, now)
    #expect(sink.say("HTTP/1.1 200 X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").events.last == .finished)
    sink.opened(now)
    sink.send(messages, now)
    guard case .failed? = sink.say("SMTP\r\n\r\n").events.first else {
      Issue.record("it continues")
      return
    }
  }

  @Test("An answer may end with its connection, whether it stores or refuses; one without a status is a fault")
  func endsWithConnection() throws {
    let sink = try sink()
    for status in [200, 500] {
      sink.opened(now)
      sink.send(messages, now)
      #expect(sink.say("HTTP/1.1 \(status) X\r\n\r\nso far").events.count == 1 && !sink.isReady)
      #expect(sink.closed("it closed") && sink.takeEvents() == [])
    }
    sink.opened(now)
    #expect(!sink.closed("refused"), "that is of another connection")
    sink.opened(now)
    sink.send(messages, now)
    _ = sink.say("HTTP/1.1 2")
    #expect(!sink.closed("it closed") && sink.takeEvents().count == 1)
  }

  @Test("Positions are a request of their own, and are not sent again")
  func positions() throws {
    let sink = try sink()
    var table = PositionTable()
    table.put(position("D1"))
    table.put(position("D2"))
    #expect(sink.takesPositions && sink.send(&table, now) == 2 && !sink.takesPositions && table.isEmpty)
    let text = sink.taken()
    #expect(text.contains("webhook-id: positions_1764000000000_1\r\n") && text.contains("\"driverId\":\"D2\""))
    #expect(sink.say("HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n").events == [.positionsRefused(2)])
  }
}

@Suite struct PositionTableTests {
  @Test("The newest position of a driver counts, others are left out, and there is a limit")
  func latestWins() {
    var table = PositionTable()
    for number in 1...3 as ClosedRange<UInt64> { table.put(position("D1", number)) }
    var found: [String] = []
    let count = table.takeAll { driver, message in
      found += [driver, String(decoding: message.array(), as: UTF8.self)]
    }
    #expect(count == 1)
    #expect(found[0] == "D1" && found[1].contains("\"messageId\":\"p3\"") && table.leftOut == 2)
    for driver in 0..<PositionTable.maximumCount + 5 { table.put(position("D\(driver)")) }
    #expect(table.leftOut == 7)
    table.clear()
    #expect(table.isEmpty && table.leftOut == 7 + UInt64(PositionTable.maximumCount))
  }
}
