// What is sent to a NATS server, and the effect of its answers: bytes in, bytes out.
import HubBytes
import HubMessages
import HubTestSupport
import Testing

@testable import HubWebhooks

@Suite struct NATSReaderTests {
  private static let text =
    "INFO {\"max_payload\":1048576}\r\nPING\r\nPONG\r\n+OK\r\n-ERR 'Unknown Protocol Operation'\r\n"
    + "MSG _INBOX.a.1 1 5\r\nhello\r\nMSG a 1 b 0\r\n\r\n"
    + "HMSG _INBOX.a.2 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\nhmsg a 1 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"
  private static let operations: [NATSOperation] = [
    .info(Array("{\"max_payload\":1048576}".utf8)), .ping, .pong, .ok, .error("Unknown Protocol Operation"),
    .message(subject: "_INBOX.a.1", status: nil, payload: Array("hello".utf8)),
    .message(subject: "a", status: nil, payload: []), .message(subject: "_INBOX.a.2", status: 503, payload: []),
    .message(subject: "a", status: nil, payload: Array("hi".utf8)),
  ]

  private func read(_ parts: [ArraySlice<UInt8>]) throws -> [NATSOperation] {
    var reader = NATSReader()
    var found: [NATSOperation] = []
    for part in parts { try part.withUnsafeBytes { try reader.read($0, into: &found) } }
    return found
  }

  @Test("Operations are read whole, split anywhere, and byte by byte")
  func splits() throws {
    let bytes = Array(Self.text.utf8)
    for split in 0...bytes.count { #expect(try read([bytes[..<split], bytes[split...]]) == Self.operations) }
    #expect(try read(bytes.indices.map { bytes[$0...$0] }) == Self.operations)
  }

  @Test(
    "What is no NATS is an error",
    arguments: [
      "HTTP/1.1 400\r\n", "PING\n", "\r\n", "MSG a 1\r\n", "MSG a 1 b c 5\r\n", "MSG a 1 -1\r\n",
      "MSG a 1 9999999999\r\n", "HMSG a 1 5 4\r\nabcd\r\n", "MSG a 1 2\r\nabc\r\n",
    ])
  func refused(text: String) {
    let bytes = Array(text.utf8)
    #expect(throws: NATSError.self) { try read([bytes[...]]) }
  }

  @Test("A line or a payload beyond the limit is an error before it is there")
  func tooLong() {
    let line = [UInt8](repeating: 0x78, count: NATSReader.lineBytes + 1)
    #expect(throws: NATSError.lineTooLong) { try read([line[...]]) }
    let message = Array("MSG a 1 \(NATSReader.payloadBytes + 1)\r\n".utf8)
    #expect(throws: NATSError.payloadTooLong) { try read([message[...]]) }
  }

  @Test("Bytes at random end in operations or an error")
  func random() {
    var random = SplitMix64(seed: 3)
    let alphabet = Array("INFOMSGHPING+OK-ERR 0123\r\n{}\t'".utf8)
    for _ in 0..<2000 {
      let bytes = (0..<Int.random(in: 1...60, using: &random)).map { _ in alphabet.randomElement(using: &random)! }
      _ = try? read([bytes[...]])
    }
  }
}

@Suite struct NATSConnectionTests {
  private let now = Moment(uptime: 0, timestamp: Timestamp(milliseconds: 0))
  private static let info = #"INFO {"server_id":"N","headers":true,"max_payload":1000,"tls_required":false}"# + "\r\n"

  private func connection(
    _ credentials: StreamCredentials = StreamCredentials(), at url: String = "nats://127.0.0.1"
  ) -> NATSConnection {
    var endpoint = StreamEndpoint(
      name: "orders", url: StreamURL(url)!, filter: EventFilter(channels: [.all])!)
    endpoint.credentials = credentials
    return NATSConnection(endpoint, inbox: "q7")
  }

  private func say(_ text: String, to connection: NATSConnection) -> (output: String, events: [SinkEvent]) {
    Array(text.utf8).withUnsafeBytes { connection.received($0, now) }
    var output = ByteBuffer()
    connection.takeOutput(into: &output)
    return (String(decoding: output.array(), as: UTF8.self), connection.takeEvents())
  }

  private func ready() -> NATSConnection {
    let connection = connection()
    connection.opened(now)
    _ = say(Self.info, to: connection)
    _ = say("PONG\r\n", to: connection)
    return connection
  }

  private func send(_ messages: [StreamMessage], _ connection: NATSConnection) -> String {
    connection.send(messages, now)
    return say("", to: connection).output
  }

  private func answer(_ number: Int, _ json: String) -> String {
    "MSG _INBOX.q7.\(number) 1 \(json.utf8.count)\r\n\(json)\r\n"
  }

  @Test("It greets with its credentials and is ready at the PONG; a PING is answered")
  func greeting() {
    let connection = connection(StreamCredentials(user: "hub", password: "a\"b", token: "t"))
    connection.opened(now)
    let greeting = say(Self.info, to: connection)
    #expect(
      greeting.output == #"CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"protocol":1,"#
        + #""lang":"swift","version":"1","name":"locationhub orders","user":"hub","pass":"a\"b","auth_token":"t"}"#
        + "\r\nSUB _INBOX.q7.* 1\r\nPING\r\n")
    #expect(greeting.events.isEmpty && !connection.isReady)
    #expect(say("+OK\r\nPONG\r\n", to: connection).events == [.ready] && connection.isReady)
    #expect(say("PING\r\n", to: connection).output == "PONG\r\n")
    #expect(say(Self.info, to: connection).output == "", "news of the server's cluster")
  }

  @Test("An event is published with its id, and its answer says that it is stored, or was before")
  func publishing() {
    let connection = ready()
    let messages = [streamMessage(5, trip: 1), streamMessage(6, trip: 2)]
    let text = send(messages, connection)
    let body = String(decoding: messages[0].payload, as: UTF8.self)
    #expect(
      text.hasPrefix(
        "HPUB locationhub.trip.T1.notification.fence_enter _INBOX.q7.1 37 \(37 + body.utf8.count)\r\n"
          + "NATS/1.0\r\nNats-Msg-Id: evt_e1_5_0\r\n\r\n\(body)\r\nHPUB locationhub.trip.T2."))
    let ack = #"{"stream":"S","seq":9}"#
    #expect(say(answer(2, ack), to: connection).events == [.stored([messages[1].position], repeats: 0)])
    let again = #"{"stream":"S","seq":9,"duplicate":true}"#
    #expect(say(answer(1, again), to: connection).events == [.stored([messages[0].position], repeats: 1)])
    #expect(say(answer(1, ack), to: connection).events == [], "answered already")
  }

  @Test("Errors of JetStream, no stream for the subject, and what is no answer of JetStream's are refusals")
  func refusals() {
    let connection = ready()
    let messages = (1...4).map { streamMessage($0, trip: $0) }
    _ = send(messages, connection)
    let reasons = [
      answer(1, #"{"error":{"code":400,"err_code":10077,"description":"maximum messages exceeded"},"stream":"S"}"#),
      "HMSG _INBOX.q7.2 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", answer(3, "hello"), answer(4, #"{"stream":"S"}"#),
    ].map { say($0, to: connection).events }
    for (message, events) in zip(messages, reasons) {
      guard case .refused([message.position], let reason, nil)? = events.first, events.count == 1 else {
        Issue.record("\(events)")
        continue
      }
      #expect(!reason.isEmpty)
    }
    #expect("\(reasons[0])".contains("maximum messages exceeded") && "\(reasons[1])".contains("locationhub.>"))
  }

  @Test("A subject that may not be published to is refused, and neither the connection nor others")
  func permissions() {
    let connection = ready()
    let (message, other) = (streamMessage(1), streamMessage(2, trip: 7))
    _ = send([message, other], connection)
    let reason = #"Permissions Violation for Publish to "locationhub.trip.T0.notification.fence_enter""#
    #expect(
      say("-ERR '\(reason)'\r\n", to: connection).events
        == [.refused([message.position], reason: reason, retryAfterSeconds: nil)])
    #expect(say(Self.positionError, to: connection).events == [] && connection.isReady, "none was sent")
    #expect(say("-ERR '\(reason)'\r\n", to: connection).events == [], "reported before")
    let ack = #"{"stream":"S","seq":9}"#
    #expect(say(answer(2, ack), to: connection).events == [.stored([other.position], repeats: 0)])
  }

  private static let positionError =
    #"-ERR 'Permissions Violation for Publish to "locationhub.driver.D1.position"'"# + "\r\n"

  @Test("A server refuses no more positions than it was sent over the connection")
  func refusedPositions() {
    let connection = connection()
    connection.opened(now)
    #expect(say(Self.positionError, to: connection).events == [], "before anything is sent")
    _ = say(Self.info, to: connection)
    _ = say("PONG\r\n", to: connection)
    var table = PositionTable()
    table.put(position("D1"))
    #expect(connection.send(&table, now) == 1)
    var figures = StreamFigures(name: "bus")
    figures.positionsSent = 1
    for events in [say(Self.positionError, to: connection).events, say(Self.positionError, to: connection).events] {
      for event in events { figures.count(event) }
    }
    #expect(figures.positionsSent == 0 && connection.isReady)
  }

  @Test("An event beyond the server's max_payload is impossible, and the next one is sent")
  func tooLarge() {
    let connection = ready()
    let large = streamMessage(1, title: String(repeating: "x", count: 1000))
    connection.send([large, streamMessage(2)], now)
    let (output, events) = say("", to: connection)
    #expect(events == [.impossible(large.position, reason: "the server takes 1000 bytes")])
    #expect(output.contains("evt_e1_2_0") && !output.contains("evt_e1_1_0"))
  }

  @Test(
    "What ends the connection says why",
    arguments: [
      ("-ERR 'Authorization Violation'\r\n", "Authorization Violation"), ("SSH-2.0-x\r\n", "no NATS"),
      ("INFO {\"headers\":false}\r\n", "2.2"), ("INFO {\"headers\":true,\"tls_required\":true}\r\n", "TLS"),
      ("INFO x\r\n", "JSON"), ("PING\r\n", "not INFO"),
    ])
  func failures(text: String, reason: String) {
    let connection = connection()
    connection.opened(now)
    guard case .failed(let found)? = say(text, to: connection).events.first else {
      Issue.record("it continues")
      return
    }
    #expect(found.contains(reason) && !connection.isReady)
  }

  @Test("With TLS nothing is sent in plain text, and nothing of it is believed", arguments: ["required", "available"])
  func secure(word: String) {
    let connection = connection(StreamCredentials(token: "secret"), at: "tls://127.0.0.1")
    connection.opened(now)
    let hello = say("INFO {\"headers\":true,\"tls_\(word)\":true}\r\nPI", to: connection)
    #expect(hello.output == "" && hello.events == [.plainTextEnds])
    connection.secured()
    let greeting = say("", to: connection)
    #expect(greeting.output.contains("\"auth_token\":\"secret\"") && greeting.output.hasSuffix("PING\r\n"))
    #expect(say("PONG\r\n", to: connection).events == [.ready])
  }

  @Test("A server without TLS, and one that continues in plain text, get no credentials")
  func downgraded() {
    let plain = connection(at: "tls://127.0.0.1")
    plain.opened(now)
    let refused = say(Self.info, to: plain)
    #expect(refused.output == "" && refused.events == [.failed("it has no TLS, and it was given as tls://")])
    let injected = connection(at: "tls://127.0.0.1")
    injected.opened(now)
    let said = say("INFO {\"headers\":true,\"tls_required\":true}\r\n+OK\r\n", to: injected)
    #expect(said.output == "" && "\(said.events.last!)".contains("plain text where TLS was to begin"))
    // Who does not read what it is answered would keep TLS from beginning.
    let early = connection(at: "tls://127.0.0.1")
    early.opened(now)
    #expect(say("PING\r\nPING\r\n", to: early).output == "")
  }

  @Test("A connection that is made again begins anew, and old answers mean nothing")
  func again() {
    let connection = ready()
    _ = send([streamMessage(1)], connection)
    #expect(!connection.closed(""))
    connection.opened(now)
    #expect(say(Self.info, to: connection).output.hasPrefix("CONNECT"))
    #expect(say("PONG\r\n", to: connection).events == [.ready])
    #expect(say(answer(1, #"{"stream":"S","seq":1}"#), to: connection).events == [])
  }
}

@Suite struct StreamSettingsTests {
  @Test("A stream's URL has a kind, and the kind's port")
  func urls() throws {
    let nats = try #require(StreamURL("nats://Broker.example"))
    #expect(nats.kind == .nats && nats.url.port == 4222 && !nats.isSecure && "\(nats)" == "nats://broker.example:4222")
    let secure = try #require(StreamURL("tls://broker.example"))
    #expect(secure.kind == .nats && secure.isSecure && "\(secure)" == "tls://broker.example:4222")
    let redis = try #require(StreamURL("rediss://[::1]:7000"))
    #expect(redis.kind == .redis && redis.isSecure && "\(redis)" == "rediss://[::1]:7000")
    let batches = try #require(StreamURL("https://a.example/in?key=1"))
    #expect(batches.kind == .batches && "\(batches)" == "https://a.example")
    for text in ["nats://", "nats://a/b", "redis://u:p@a", "kafka://a", "nats://a:0", "tls://a/b", "redis://a/1"] {
      #expect(StreamURL(text) == nil)
    }
  }

  @Test("A prefix is parts of a subject")
  func prefixes() {
    for text in ["a", "hub-1.eu", "{hub}", "A_9"] { #expect(StreamEndpoint.isPrefix(text)) }
    for text in ["", ".", "a.", "a..b", "a b", "a*", ">", "a\r\n", String(repeating: "a", count: 65)] {
      #expect(!StreamEndpoint.isPrefix(text))
    }
  }

  @Test("A subject has the id of whom it is about as one token")
  func subjects() throws {
    let update = TripUpdate(
      tripID: Identifier("T.1")!, status: .accepted, previousStatus: nil, driverID: nil,
      timestamp: Timestamp(milliseconds: 0), location: nil, sequence: 1)
    func message(_ channel: Channel) -> StreamMessage? {
      let event = Publication(
        channel: channel, number: 1, timestamp: Timestamp(milliseconds: 0), body: .tripUpdate(update))
      return StreamMessage(event, JournalPosition(group: 3, record: 4), epoch: "e")
    }
    #expect(message(.trip(Identifier("T.1")!))?.source == "trip.T%2E1")
    #expect(message(.trips)?.source == "trips.T%2E1")
    let driver = try #require(message(.driver(Identifier("d-_9")!)))
    #expect(driver.source == "driver.d-_9" && driver.kind == "trip_update" && driver.id == "evt_e_3_4")
  }
}
