// The vectors of protocol/refused for clients: what a client passes over, and what it does after a refusal.
import HubMessages
import HubTestSupport
import HubWebSocket
import Testing

@testable import HubClientCore

@Suite struct RefusalTests {
  private static func vectors(where isWanted: (RefusalVector) -> Bool) throws -> [RefusalVector] {
    try RefusalVector.all(of: "client.ndjson").filter(isWanted)
  }

  @Test("What a client cannot read is counted and passed over, and what it does not know is the application's")
  func reading() throws {
    for vector in try Self.vectors(where: { $0.reads != nil }) {
      let stage = try Stage { if vector.text == nil { $0.codec = .binary } }
      try stage.open()
      stage.delivered = []
      stage.frame(vector.text == nil ? .binary : .text, vector.bytes)
      #expect(stage.session.state == .open && stage.closeCodes.isEmpty, "\(vector)")
      #expect(stage.session.counters.unreadable == (vector.reads == "unreadable" ? 1 : 0), "\(vector)")
      let read = stage.delivered.map {
        switch $0 {
        case .unknown: "unknown"
        case .publication(let publication): if case .driverLocation = publication.body { "position" } else { "other" }
        case .reply: "other"
        }
      }
      #expect(read == (vector.reads == "unreadable" ? [] : [vector.reads]), "\(vector)")
    }
  }

  @Test("After each error a message is dropped, sent again when it may be, or sent again once")
  func errors() throws {
    let vectors = try Self.vectors(where: { $0.code != nil })
    #expect(Set(vectors.compactMap(\.code)).isSuperset(of: ErrorCode.allCases.map { "\($0.name)" }))
    for vector in vectors {
      let stage = try Stage()
      try stage.open()
      let id = try #require(stage.session.send(Stage.move(.requested)))
      var sendings = 0
      while sendings < 3 {
        stage.messages = []
        try stage.flush()
        guard stage.ids == [id] else { break }
        sendings += 1
        let error = #"{"code":"\#(try #require(vector.code))","message":"no","replyTo":"\#(id)","retryAfter":1}"#
        let text = #"{"type":"error","payload":\#(error),"timestamp":1763680000123,"messageId":"r9"}"#
        stage.frame(.text, Array(text.utf8))
        stage.advance(seconds: 1.5)
      }
      #expect(sendings == ["drop": 1, "once": 2, "again": 3][vector.then], "\(vector)")
      #expect(stage.session.unconfirmed == (vector.then == "again" ? 1 : 0), "\(vector)")
    }
  }

  @Test("A refusal or a result with a word of a newer hub answers what it answers")
  func newerWords() throws {
    let stage = try Stage()
    try stage.open()
    let move = try #require(stage.session.send(Stage.move(.requested)))
    let question = try #require(stage.session.send(.trip(Identifier("T1")!)))
    try stage.flush()
    #expect(stage.ids == [move, question])
    let refusal = #"{"code":"invalid_transition","message":"no","replyTo":"\#(move)","details":{"status":"parked"}}"#
    let times = #""timestamp":1763680000000,"created":1763680000000,"updated":1763680000000"#
    let result = #"{"replyTo":"\#(question)","tripId":"T1","status":"parked",\#(times)}"#
    for (type, payload) in [("error", refusal), ("result", result)] {
      let text = #"{"type":"\#(type)","payload":\#(payload),"timestamp":1763680000123,"messageId":"r9"}"#
      stage.frame(.text, Array(text.utf8))
    }
    #expect(stage.session.unconfirmed == 0 && stage.session.takeRefused() != nil)
    #expect(stage.delivered.last == .unknown(type: "result"), "for the application")
  }

  @Test("A message under an id of the application is known by it until the hub has answered, and no longer")
  func ownIDs() throws {
    let stage = try Stage { $0.limits.queuedMessages = 3 }
    try stage.open()
    let ids = (1...4).map { MessageID("m-\($0)")! }
    #expect(ids.map { stage.session.send(Stage.move(.accepted), as: $0) } == [true, true, true, false])
    #expect(Set(stage.session.numbersByID.keys) == Set(ids.prefix(3)))
    try stage.flush()
    stage.ack(ids[0])
    stage.say(.error(ErrorReply(code: .forbidden, message: "", replyTo: ids[1])))
    // An answer of a newer hub.
    let payload = #"{"replyTo":"m-3","tripId":"T1","status":"parked","timestamp":1763680000000}"#
    let answer = #"{"type":"result","payload":\#(payload),"timestamp":1763680000123,"messageId":"r9"}"#
    stage.frame(.text, Array(answer.utf8))
    #expect(stage.session.unconfirmed == 0 && stage.session.numbersByID.isEmpty)
  }

  @Test("After each close code a client comes back as it should, or not at all")
  func closes() throws {
    let vectors = try Self.vectors(where: { $0.close != nil })
    #expect(Set(vectors.compactMap(\.close)).isSuperset(of: CloseReason.allCases.map(\.rawValue)))
    for vector in vectors {
      let stage = try Stage()
      try stage.open()
      stage.sayClose(try #require(vector.close))
      try stage.flush()
      check(vector, stage.session.transportEnded(stage.now).next)
    }
  }

  @Test("After each refusal of the upgrade a client comes back, or not")
  func statuses() throws {
    for vector in try Self.vectors(where: { $0.status != nil }) {
      let stage = try Stage()
      stage.session.start(now: stage.now)
      try stage.flush()
      stage.session.transportConnected(stage.now)
      try stage.flush()
      stage.send(Array("HTTP/1.1 \(try #require(vector.status)) No\r\nContent-Length: 0\r\n\r\n".utf8))
      try stage.flush()
      check(vector, stage.session.transportEnded(stage.now).next)
    }
  }

  private func check(_ vector: RefusalVector, _ next: Disconnection.Next) {
    switch next {
    case .ended: #expect(vector.then == "never", "\(vector)")
    case .retry(let seconds):
      let expected: [String: ClosedRange<Double>] = ["again": 1...1.3, "spread": 0...5, "after 60 s": 60...78]
      #expect(expected[vector.then ?? ""]?.contains(seconds) == true, "\(vector): \(seconds) s")
    }
  }
}
