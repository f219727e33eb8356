// What a hub that is wrong, newer or hostile can say to a client: the vectors of protocol/, whole, and changed at
// random.
import Foundation
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import HubWebSocket
import Testing

@testable import HubClientCore
@testable import LocationHubClient

@Suite struct HostileHubTests {
  private func client(_ codec: Subprotocol, _ role: HubMessages.Role) throws -> EngineClient {
    let client = try EngineClient(codec, role)
    client.read()
    client.start()
    return client
  }

  private struct Line: Decodable {
    var direction: String
    var time: String?
    var hex: String?
  }

  /// What a hub says in protocol/examples.ndjson, or in protocol/binary-vectors.ndjson.
  private static func messages(_ codec: Subprotocol) throws -> [[UInt8]] {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let file = codec == .json ? "examples" : "binary-vectors"
    let text = try String(contentsOf: root.appending(path: "protocol/\(file).ndjson"), encoding: .utf8)
    return try text.split(separator: "\n").compactMap { text in
      let line = try JSONDecoder().decode(Line.self, from: Data(text.utf8))
      guard line.direction == "server", line.time ?? "unix_ms" == "unix_ms" else { return nil }
      if let hex = line.hex { return bytes(hex) }
      return text.range(of: #","message":"#).map { Array(text[$0.upperBound...].dropLast().utf8) }
    }
  }

  private static func bytes(_ hex: String) -> [UInt8] {
    let digits = hex.utf8.map { UInt8($0 < 58 ? $0 - 48 : $0 - 87) }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  @Test("each of the protocol's examples is read by an app's client", arguments: [Subprotocol.json, .binary])
  func examples(codec: Subprotocol) throws {
    for role in [HubMessages.Role.driver, .rider] {
      let client = try client(codec, role)
      let messages = try Self.messages(codec)
      #expect(client.session.state == .open && client.heard == 1 && messages.count > 40)
      for message in messages { client.say(message) }
      #expect(client.session.counters.unreadable == 0 && client.session.state == .open)
      #expect(client.session.counters.messagesIn == UInt64(messages.count) + 1)
      #expect(client.heard > messages.count / 2)
    }
  }

  @Test("an answer of another kind than was asked for ends the question, with an error")
  func otherKind() throws {
    for isQuestion in [true, false] {
      let client = try client(.json, .driver)
      var answer: Result<Void, HubError>?
      if isQuestion {
        client.engine.ask(.trip("T1")) { answer = $0.map { _ in } }
      } else {
        client.engine.report(DriverStatusReport(status: .available, vehicleType: nil, tags: nil)) { answer = $0 }
      }
      client.turn()
      let id = try #require(client.takeWritten().last?.id)
      client.say(
        isQuestion ? "ack" : "result",
        #"{"replyTo":"\#(id)"\#(isQuestion ? "" : #","drivers":[]"#)}"#)
      guard case .failure(let error) = try #require(answer, "it waits for ever") else {
        Issue.record("that was no answer")
        return
      }
      #expect(error == .anotherAnswer)
    }
  }

  @Test("what must be refused of a hub's words is counted and passed over, whatever came before")
  func refused() throws {
    for codec in [Subprotocol.json, .binary] {
      let client = try client(codec, .rider)
      for message in try Self.messages(codec) { client.say(message) }
      let vectors = try RefusalVector.all(of: "client.ndjson").filter {
        $0.reads == "unreadable" && ($0.text == nil) == (codec == .binary)
      }
      #expect(vectors.count > 5)
      for (number, vector) in vectors.enumerated() {
        client.say(vector.bytes)
        #expect(client.session.state == .open, "\(vector)")
        #expect(client.session.counters.unreadable == UInt64(number) + 1, "\(vector)")
      }
    }
  }

  @Test(
    "a hub that takes no batch, or messages too short for one, gets fixes one by one",
    arguments: [
      (262_144, 0), (100, 500), (0, 0),
    ])
  func smallest(bytes: Int, batch: Int) throws {
    let client = try EngineClient(.json, .driver)
    (client.maxMessageBytes, client.maxBatch, client.heartbeat) = (bytes, batch, 0.001)
    client.start()
    // And it is not pinged without end.
    #expect(try #require(client.session.deadline) - client.now.uptime >= 400_000_000)
    for second in 0..<3 {
      let time = Timestamp(milliseconds: client.now.timestamp.milliseconds + Int64(second) * 1000)
      client.engine.driver?.keep(
        Fix(coordinate: Coordinate(latitude: 48, longitude: 11)!, timestamp: time, accuracy: 5), trip: nil, client.now)
    }
    client.sampling.report(DeviceState(isCharging: true))
    client.turn()
    #expect(try client.takeWritten().count { $0.type == "location_update" } == 3)
  }

  @Test("limits below and above their ranges are the nearest within")
  func ranges() {
    var limits = ClientLimits()
    #expect(limits.inRange == limits)
    (limits.messageBytes, limits.handshakeBytes, limits.refusalTextBytes) = (-1, 0, -1)
    #expect(limits.inRange.messageBytes == 0 && limits.inRange.handshakeBytes == 1)
    #expect(limits.inRange.refusalTextBytes == 0)
    (limits.messageBytes, limits.handshakeBytes) = (.max, .max)
    #expect(limits.inRange.messageBytes == Int(Int32.max) && limits.inRange.handshakeBytes == 65_535)
    for number in [0, -1, -.infinity, .nan] as [Double] {
      (limits.firstDelay, limits.longestDelay, limits.shortestHeartbeat) = (number, number, number)
      (limits.pingPart, limits.earlyPingSeconds) = (number, number)
      let inRange = limits.inRange
      #expect(inRange.delay(before: 1) == 0.01 && inRange.delay(before: 9) == 0.01, "\(number)")
      #expect(inRange.shortestHeartbeat == 0.1 && inRange.pingPart == 0.1 && inRange.earlyPingSeconds == 0.1)
    }
  }

  @Test("settings of an app outside their ranges end nothing", arguments: [0, -1, .min, .max])
  func settings(number: Int) throws {
    var limits = ClientLimits()
    (limits.pingsOnTheWay, limits.flushBytes, limits.pongs, limits.unconfirmedFixes) = (number, number, number, number)
    (limits.messageBytes, limits.inflateRatio, limits.inflateFreeBytes) = (max(number, 100_000), number, number)
    (limits.handshakeBytes, limits.refusalTextBytes) = (max(number, 8192), number)
    var power = PowerPolicy.standard
    power.balanced.batch = number
    let client = try EngineClient(.json, .driver, limits: limits, power: power)
    client.start()
    #expect(client.session.state == .open)
    client.engine.driver?.keep(
      Fix(coordinate: Coordinate(latitude: 48, longitude: 11)!, timestamp: client.now.timestamp, accuracy: 5),
      trip: "T1", client.now)
    for _ in 0..<5 { client.pass() }
    #expect(try client.takeWritten().contains { $0.type == "location_update" })
  }

  @Test("of a cell a map keeps as many drivers as a hub shows, and counts the others; numbers of any size end nothing")
  func crowd() {
    var map = AreaMap()
    let place = Coordinate(latitude: 48, longitude: 11)!
    let cells = [GeohashCell("u281z6")!, GeohashCell("u281zd")!]
    map.show(cells)
    func drivers(_ range: Range<Int>) -> [AreaUpdate.Driver] {
      range.map { number in
        AreaUpdate.Driver(
          driverID: Identifier("d\(number)")!, coordinate: place, heading: nil, speed: nil, status: .available,
          timestamp: Timestamp(milliseconds: 1_763_680_000_000))
      }
    }
    map.apply(AreaUpdate(cell: cells[0], tick: 1, isFull: true, drivers: drivers(0..<5001)))
    #expect(map.drivers.count == 5000 && map.more == 1)
    map.apply(AreaUpdate(cell: cells[0], tick: 2, isFull: false, drivers: drivers(4990..<5010)))
    #expect(map.drivers.count == 5000 && map.more == 10)
    for cell in cells { map.apply(AreaUpdate(cell: cell, tick: 3, isFull: false, drivers: [], more: .max)) }
    #expect(map.more == .max)
    map.apply(AreaUpdate(cell: cells[0], tick: 4, isFull: true, drivers: drivers(0..<10)))
    #expect(map.drivers.count == 10)
    map.show((0..<300).map { GeohashCell(bits: UInt64($0), precision: 6)! })
    #expect((0..<300).count { map.shows(GeohashCell(bits: UInt64($0), precision: 6)!) } == 256)
  }

  @Test("a token ends no line of a request")
  func token() throws {
    let request = SideRequest(
      hub: try HubURL("ws://127.0.0.1:1"), method: "POST", target: "/v1", authorization: "Bearer a\r\nX-Other: b",
      body: [], seconds: 1)
    #expect(String(decoding: request.bytes, as: UTF8.self).contains("\r\nAuthorization: Bearer a  X-Other: b\r\n"))
  }

  /// Something of it is changed, cut off, doubled or taken from another message.
  private func mutated(_ message: [UInt8], _ others: [[UInt8]], _ random: inout SplitMix64) -> [UInt8] {
    var bytes = message
    for _ in 0...Int.random(in: 0..<4, using: &random) where !bytes.isEmpty {
      let index = Int.random(in: 0..<bytes.count, using: &random)
      switch Int.random(in: 0..<6, using: &random) {
      case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
      case 1: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      case 2: bytes.removeSubrange(index...)
      case 3: bytes.insert(contentsOf: bytes[index...].prefix(64), at: index)
      case 4: bytes.remove(at: index)
      default:
        let other = others[Int.random(in: 0..<others.count, using: &random)]
        bytes.replaceSubrange(index..., with: other.suffix(Int.random(in: 0...other.count, using: &random)))
      }
    }
    return bytes
  }

  @Test(
    "changed at random, nothing that a hub says, or the bytes of its frames, brings a client down",
    arguments: [Subprotocol.json, .binary])
  func random(codec: Subprotocol) throws {
    var random = SplitMix64(seed: 25)
    let messages = try Self.messages(codec)
    let isBrief = ProcessInfo.processInfo.environment["HUB_TESTS"] == "brief"
    var (ended, heard, unreadable) = (0, 0, UInt64(0))
    for role in [HubMessages.Role.driver, .rider] {
      var client = try client(codec, role)
      for round in 0..<(isBrief ? 500 : 5000) {
        let message = messages[Int.random(in: 0..<messages.count, using: &random)]
        let changed = mutated(message, messages, &random)
        if round % 50 == 0 {
          var frame = ByteBuffer()
          changed.withUnsafeBytes { FrameWriter.write(.binary, $0, into: &frame) }
          client.hear(mutated(frame.array(), messages, &random))
        } else {
          client.say(changed)
        }
        if round % 20 == 0 { client.pass() }
        // After 1002, 1007 or 1009 it does not come again: the app starts it anew.
        guard case .ended = client.session.state else { continue }
        ended += 1
        (heard, unreadable) = (heard + client.heard, unreadable + client.session.counters.unreadable)
        client = try self.client(codec, role)
      }
    }
    #expect(ended > 0, "some broke the frames themselves")
    #expect(heard > ended && unreadable > 0)
  }
}
