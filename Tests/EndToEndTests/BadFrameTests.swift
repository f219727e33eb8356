// Frames and connections that break RFC 6455, and handshakes that should not succeed.
import Foundation
import HubGateway
import HubMessages
import Testing

extension EndToEnd {
  @Suite struct BadFrames {}
}

extension EndToEnd.BadFrames {
  @Test("a broken frame is answered as soon as its first bytes are there, and nothing behind it counts")
  func earlyAndLast() throws {
    let hub = try TestHub()
    let peer = try hub.rider("bad")
    try peer.send(bytes: [0xF1])
    #expect(try peer.receiveClose().code == 1002)
    let second = try hub.rider("bad")
    let ping = try Peer.message("ping", [:], id: "late")
    try second.send(bytes: Peer.frame([0xFF]) + Peer.frame(Array(ping.utf8)))
    #expect(try second.receiveClose().before.isEmpty)
  }

  @Test(
    "1009 says which limit was passed and how much it allows, before the rest comes, and the connection ends behind it")
  func tooLarge() throws {
    let hub = try TestHub {
      $0.limits.fragments = 8
      $0.limits.closingSeconds = 600  // nobody waits for the peer's answer
    }
    var fragments = Peer.frame([], isFinal: false)
    for _ in 0..<8 { fragments += Peer.frame([], opcode: 0, isFinal: false) }
    // The head of a frame of a megabyte, and nothing of the frame.
    let head: [UInt8] = [0x81, 0xFF, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0]
    for (bytes, words) in [
      (head, "a message may have up to 262144 bytes"), (head + Array(repeating: 0x20, count: 5000), "262144 bytes"),
      (fragments, "a message may have up to 8 fragments"),
    ] {
      let connection = try hub.connect()
      #expect(try connection.statusOfUpgrade("/v1/ws?role=rider&id=r1") == 101)
      try connection.send(bytes)
      var received: [UInt8] = []
      while true {
        let more = try connection.receive()
        if more.isEmpty { break }
        received += more
      }
      let text = String(decoding: received, as: UTF8.self)
      #expect(text.contains(words) && received.firstRange(of: [0x03, 0xF1]) != nil, "\(text)")
    }
  }

  @Test("too many fragments close with 1009, however small they are")
  func fragments() throws {
    let hub = try TestHub { $0.limits.fragments = 8 }
    let good = try hub.rider("good")
    let ping = Array(try Peer.message("ping", [:], id: "whole").utf8)
    var bytes = Peer.frame([ping[0]], isFinal: false)
    for index in 1..<7 { bytes += Peer.frame([ping[index]], opcode: 0, isFinal: false) }
    try good.send(bytes: bytes + Peer.frame(Array(ping[7...]), opcode: 0))
    #expect(try good.receive("pong").replyTo == "whole", "eight are allowed")
    let bad = try hub.rider("bad")
    bytes = Peer.frame([], isFinal: false)
    for _ in 0..<8 { bytes += Peer.frame([], opcode: 0, isFinal: false) }
    try bad.send(bytes: bytes)
    #expect(try bad.receiveClose().code == 1009)
    try hub.metrics { $0.hits("fragments") == 1 && $0.hits("message_bytes") == 0 }
  }

  @Test("a message of exactly the limit is read")
  func exactlyTheLimit() throws {
    let hub = try TestHub()
    let rider = try hub.rider("r1")
    let ping = try Peer.message("ping", [:], id: "large")
    let padding = String(repeating: " ", count: 262_144 - ping.utf8.count)
    try rider.send(text: padding + ping)
    #expect(try rider.receive("pong").replyTo == "large")
  }

  @Test("a message may come byte by byte, and in any pieces", arguments: loopCounts)
  func pieces(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let rider = try hub.rider("r1")
    let message = try Peer.message("ping", ["text": "größer als ASCII €"], id: "slow")
    let frame = Peer.frame(Array(message.utf8))
    for byte in frame { try rider.send(bytes: [byte]) }
    #expect(try rider.receive("pong").string("text") == "größer als ASCII €")
    let half = message.utf8.count / 2
    let bytes = Array(message.utf8)
    try rider.send(
      bytes: Peer.frame(Array(bytes[..<half]), isFinal: false) + Peer.frame([7], opcode: 9)
        + Peer.frame(Array(bytes[half...]), opcode: 0))
    guard case .pong(let payload) = try rider.next() else {
      Issue.record("a ping between fragments is answered at once")
      return
    }
    #expect(payload == [7])
    #expect(try rider.receive("pong").replyTo == "slow")
  }

  @Test("a socket that is cut in the middle of a frame leaves nothing behind", arguments: loopCounts)
  func cutSockets(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let witness = try Witness(hub)
    for number in 0..<20 {
      let driver = try hub.driver("cut-\(number)")
      try driver.subscribe("driver:cut-\(number)")
      let message = try Peer.message("location_update", Peer.fix(0), id: "cut")
      let frame = Peer.frame(Array(message.utf8))
      try driver.send(bytes: Array(frame[..<(number * frame.count / 20)]))
      if number % 2 == 0 { driver.connection.reset() } else { driver.connection.close() }
      try witness.check()
    }
    try hub.metrics { $0["connections"] == 3 && $0["subscriptions"] == 1 && $0["sessions{role=\"driver\"}"] == 1 }
  }

  @Test("a close frame is answered with the same code, and the hub ends the connection", arguments: loopCounts)
  func closing(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let rider = try hub.rider("r1")
    try rider.send(bytes: Peer.frame([0x03, 0xE8], opcode: 8))
    #expect(try rider.receiveClose().code == 1000)
    try rider.connection.waitForEnd()
    let other = try hub.rider("r2")
    try other.send(bytes: Peer.frame([], opcode: 8))
    guard case .close(nil) = try other.next() else {
      Issue.record("an empty close frame is answered with an empty one")
      return
    }
    try hub.metrics { $0["sessions{role=\"rider\"}"] == 0 }
  }

  // MARK: Handshakes

  struct Handshake: CustomTestStringConvertible {
    var name: String
    var request: UpgradeRequest
    var status: Int

    var testDescription: String { name }
  }

  private static let upgrade = UpgradeRequest("/v1/ws?role=rider&id=r1")
  private static let key = "dGhlIHNhbXBsZSBub25jZQ=="

  static let handshakes: [Handshake] = [
    Handshake(name: "no Upgrade", request: upgrade.with("Upgrade", nil), status: 426),
    Handshake(name: "another Upgrade", request: upgrade.with("Upgrade", "h2c"), status: 426),
    Handshake(name: "no Connection", request: upgrade.with("Connection", nil), status: 400),
    Handshake(name: "another Connection", request: upgrade.with("Connection", "keep-alive"), status: 400),
    Handshake(name: "no version", request: upgrade.with("Sec-WebSocket-Version", nil), status: 400),
    Handshake(name: "version 8", request: upgrade.with("Sec-WebSocket-Version", "8"), status: 426),
    Handshake(name: "no key", request: upgrade.with("Sec-WebSocket-Key", nil), status: 400),
    Handshake(name: "a short key", request: upgrade.with("Sec-WebSocket-Key", "dGhl"), status: 400),
    Handshake(name: "two keys", request: upgrade.adding("Sec-WebSocket-Key", key), status: 400),
    Handshake(name: "two versions", request: upgrade.adding("Sec-WebSocket-Version", "13"), status: 400),
    Handshake(name: "two versions in one", request: upgrade.with("Sec-WebSocket-Version", "13, 8"), status: 426),
    Handshake(name: "broken extensions", request: upgrade.adding("Sec-WebSocket-Extensions", "a;"), status: 400),
    Handshake(name: "no Host", request: upgrade.with("Host", nil), status: 400),
    Handshake(name: "two Hosts", request: upgrade.adding("Host", "127.0.0.1"), status: 400),
    Handshake(name: "POST", request: UpgradeRequest("/v1/ws?role=rider&id=r1", method: "POST"), status: 405),
    Handshake(
      name: "HTTP/1.0", request: UpgradeRequest("/v1/ws?role=rider&id=r1", version: "HTTP/1.0"), status: 400),
    Handshake(
      name: "an unknown time format", request: UpgradeRequest("/v1/ws?role=rider&id=r1&time=noon"), status: 400),
    Handshake(name: "no credential", request: UpgradeRequest("/v1/ws"), status: 401),
    Handshake(name: "half a credential", request: UpgradeRequest("/v1/ws?role=rider"), status: 401),
    Handshake(name: "an unknown role", request: UpgradeRequest("/v1/ws?role=god&id=r1"), status: 401),
    Handshake(name: "an id that is none", request: UpgradeRequest("/v1/ws?role=rider&id=a%2Fb"), status: 401),
  ]

  @Test("each wrong handshake gets its status and a JSON body, and is counted", arguments: loopCounts)
  func refusedHandshakes(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let witness = try Witness(hub)
    for wrong in Self.handshakes {
      let answer = try hub.request(wrong.request.text)
      #expect(answer.status == wrong.status, "\(wrong.name): \(answer.text)")
      #expect(answer.errorCode != nil, "\(wrong.name): \(answer.text)")
      if wrong.status == 426 {
        #expect(answer.fields["sec-websocket-version"] == "13", "RFC 6455 §4.2.2 item 4")
        #expect(answer.fields["upgrade"] == "websocket", "RFC 9110 §15.5.22")
        #expect(answer.fields["connection"]?.hasSuffix(", upgrade") == true, "RFC 9110 §7.8")
      }
      if wrong.status == 405 { #expect(answer.fields["allow"] == "GET", "RFC 9110 §15.5.6") }
      try witness.check()
    }
    // Without Host, or with two, it is a broken request before it is a handshake.
    try hub.metrics {
      $0["handshakes_refused_total"] == Double(Self.handshakes.count - 2) && $0["bad_requests_total"] == 2
        && $0.errors("unauthorized") == 4
    }
  }

  @Test("Upgrade and Connection may come twice: they are lists")
  func repeatedLists() throws {
    let hub = try TestHub()
    let request = Self.upgrade.adding("Upgrade", "websocket").adding("Connection", "keep-alive")
    #expect(try hub.request(request.text).status == 101)
  }

  @Test("messages in one segment with the handshake are read", arguments: loopCounts)
  func behindTheHandshake(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let ping = try Peer.message("ping", [:], id: "p1")
    let connection = try hub.connect()
    try connection.send(Array(Self.upgrade.text.utf8) + Peer.frame(Array(ping.utf8)))
    #expect(try connection.readResponse().status == 101)
    var answer = ""
    while !answer.contains("\"replyTo\":\"p1\"") {
      let bytes = try connection.receive(waitingFor: "the pong")
      guard !bytes.isEmpty else { throw PeerError.ended(waitingFor: "the pong") }
      answer += String(decoding: bytes, as: UTF8.self)
    }
    #expect(answer.contains("\"connected\"") && answer.contains("\"pong\""))
  }

  @Test("without --dev-auth nobody gets in")
  func noDevelopmentCredentials() throws {
    let hub = try TestHub { $0.allowsDevelopmentCredentials = false }
    let answer = try hub.request(Self.upgrade.text)
    #expect(answer.status == 401)
    #expect(answer.errorCode == "unauthorized")
    #expect(try hub.get("/v1/drivers/d1?role=ops&id=o1").status == 401)
    #expect(try hub.get("/healthz").status == 200)
  }

  @Test("the subprotocol is named when it is asked for, and no other")
  func subprotocol() throws {
    let hub = try TestHub()
    let asked = try hub.request(Self.upgrade.with("Sec-WebSocket-Protocol", "other, locationhub.v1.json").text)
    #expect(asked.status == 101)
    #expect(asked.fields["sec-websocket-protocol"] == "locationhub.v1.json")
    let other = try hub.request(Self.upgrade.with("Sec-WebSocket-Protocol", "other").text)
    #expect(other.fields["sec-websocket-protocol"] == nil)
  }
}
