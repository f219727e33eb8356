// The vectors of protocol/refused against a hub: each is answered as it says, is counted, and harms nobody else.
import Foundation
import HubGateway
import HubMessages
import HubTestSupport
import Testing

extension EndToEnd {
  @Suite struct Refusals {}
}

extension EndToEnd.Refusals {
  @Test(
    "each message gets its error, which names the member at fault, and the session continues",
    arguments: ["json.ndjson", "binary.ndjson"], loopCounts)
  func messages(file: String, loops: Int) throws {
    let vectors = try RefusalVector.all(of: file)
    let hub = try TestHub(loops: loops)
    let tokens = try TokenHub(loops: loops)
    let witness = try Witness(hub)
    var expected: [String: Double] = [:]
    for vector in vectors {
      let stage = RefusalStage(vector.token == nil ? hub : tokens.hub, vector, isBinary: file == "binary.ndjson")
      for step in vector.given ?? [] { try stage.play(step) }
      let peer = try stage.peer(vector.role, vector.id)
      if vector.text != nil {
        try peer.send(bytes: Peer.frame(vector.bytes))
      } else {
        try peer.send(binary: vector.bytes)
      }
      let error = try peer.receive("error")
      #expect(error.code == vector.code, "\(vector): \(error.text)")
      #expect(error.replyTo == vector.replyTo, "\(vector): \(error.text)")
      let says = try #require(error.string("message"))
      #expect(vector.isSaid(in: says) && !says.isEmpty, "\(vector): \(error.text)")
      #expect(try peer.settle().isEmpty, "\(vector): the session continues")
      try stage.end()
      if vector.token == nil {
        expected[try #require(vector.code), default: 0] += 1
        try witness.check()
      }
    }
    try hub.metrics { metrics in expected.allSatisfy { metrics.errors($0.key) == $0.value } }
  }

  @Test("there are vectors of every error that a message alone causes")
  func complete() throws {
    let codes = try ["json.ndjson", "binary.ndjson", "http.ndjson"].flatMap {
      try RefusalVector.all(of: $0).compactMap(\.code)
    }
    // These three say how the hub is, not what is wrong with a message.
    let others: Set = ["storage_full", "shutting_down", "internal"]
    #expect(Set(codes).union(others) == Set(ErrorCode.allCases.map { "\($0.name)" }))
  }

  @Test("each frame gets its close code, is counted, and harms nobody else", arguments: loopCounts)
  func frames(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let witness = try Witness(hub)
    var closes: [UInt16: Double] = [:]
    let vectors = try RefusalVector.all(of: "frames.ndjson")
    for vector in vectors {
      let role = try #require(Role.allCases.first { "\($0.name)" == vector.role ?? "rider" })
      let peer = try hub.join(role, "bad", isBinary: vector.form == "binary")
      // The hub may close before it has read all of it, and is right to.
      do { try peer.send(bytes: vector.bytes) } catch PeerError.system("send", _) {}
      let (code, before) = try peer.receiveClose()
      #expect(code == vector.close && vector.isSaid(in: peer.closeReason), "\(vector): \(peer.closeReason)")
      #expect(before.count == (vector.close == 4400 ? 11 : 0) && before.allSatisfy { $0.type == "error" }, "\(vector)")
      closes[try #require(code), default: 0] += 1
      try witness.check()
    }
    try hub.metrics { metrics in
      closes.allSatisfy { metrics.closes($0.key) == $0.value }
        && metrics["protocol_errors_total"] == Double(vectors.filter { ![1003, 4400].contains($0.close) }.count)
        && metrics.hits("message_bytes") == 2 && metrics.hits("fragments") == 1
    }
  }

  @Test("each request gets its status and code, and a message that helps", arguments: loopCounts)
  func requests(loops: Int) throws {
    let hub = try TestHub(loops: loops)
    let tokens = try TokenHub(loops: loops)
    for vector in try RefusalVector.all(of: "http.ndjson") {
      let target = vector.tokens == true ? tokens.hub : hub
      for step in vector.given ?? [] {
        let answer = try target.request(try request(step.request, body: step.body))
        #expect((200...299).contains(answer.status), "\(vector): \(answer.text)")
      }
      let answer = try target.request(try request(vector.request, vector.fields ?? [:], body: vector.body))
      #expect(answer.status == vector.status && answer.errorCode == vector.code, "\(vector): \(answer.text)")
      #expect(vector.isSaid(in: answer.errorMessage ?? ""), "\(vector): \(answer.text)")
    }
  }

  /// A request as text; `line` without its version.
  private func request(_ line: String?, _ fields: [String: String] = [:], body: Pieces?) throws -> String {
    var text = "\(try #require(line)) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    for (name, value) in fields { text += "\(name): \(value)\r\n" }
    if let body { text += "Content-Length: \(body.whole.utf8.count)\r\n" }
    return text + "\r\n" + (body?.whole ?? "")
  }
}

/// The sessions that a vector needs, each opened when it is first spoken of.
private final class RefusalStage {
  private let hub: TestHub
  private let vector: RefusalVector
  private let isBinary: Bool
  private var peers: [String: Peer] = [:]

  init(_ hub: TestHub, _ vector: RefusalVector, isBinary: Bool) {
    self.hub = hub
    self.vector = vector
    self.isBinary = isBinary
  }

  func peer(_ role: String?, _ id: String?) throws -> Peer {
    let role = role ?? "driver"
    let id = id ?? (role == "driver" ? "driver-12" : role == "rider" ? "rider-3" : "ops-1")
    if let known = peers["\(role) \(id)"] { return known }
    let query = vector.token.map { "access_token=\($0)" } ?? "role=\(role)&id=\(id)"
    let peer = try Peer(port: hub.port, query: query, time: vector.time, isBinary: isBinary)
    peers["\(role) \(id)"] = peer
    _ = try peer.receive("connected")
    return peer
  }

  /// Sends what comes before the vector, all of which is taken.
  func play(_ step: RefusalVector.Step) throws {
    let peer = try peer(step.role ?? vector.role, step.id ?? vector.id)
    let text = try #require(step.text).whole
    for number in 1...(step.times ?? 1) {
      try peer.send(bytes: Peer.frame(Array(text.replacing("#", with: "\(number)").utf8)))
    }
    let errors = try peer.settle().filter { $0.type == "error" }
    #expect(errors.isEmpty, "\(vector): \(errors.map(\.text))")
  }

  /// Ends the sessions in order, so that none replaces another.
  func end() throws {
    for peer in peers.values {
      try peer.send(bytes: Peer.frame([0x03, 0xE8], opcode: 8))
      #expect(try peer.receiveClose().code == 1000)
    }
  }
}

extension RefusalVector {
  /// Whether a message says what the vector asks for; true where it asks for nothing.
  fileprivate func isSaid(in message: String) -> Bool { says.map { message.contains($0) } ?? true }
}
