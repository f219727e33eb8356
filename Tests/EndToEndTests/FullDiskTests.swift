// A full disk, as an operator meets it: the answers, the log, and that everything continues by itself. A limit on the
// size of files stands for the full disk: it needs no file system of its own, and is lifted while the hub runs.
import Foundation
import Testing

extension EndToEnd {
  @Suite(.enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  struct FullDisks {}
}

extension EndToEnd.FullDisks {
  private func ops(_ hub: HubProcess) throws -> Peer {
    let peer = try Peer(port: hub.port, query: "role=ops&id=o")
    _ = try peer.receive("connected")
    return peer
  }

  private func request(_ trip: String) -> [String: Any] {
    ["tripId": trip, "status": "requested", "timestamp": 1_763_680_000_000, "driverId": "d1", "riderId": "r1"]
  }

  /// Asks for trips until one meets the full disk: its name, and the message's id.
  private func fill(_ peer: Peer) throws -> (trip: String, message: String) {
    for number in 0..<1000 {
      let message = try peer.send("trip_status", request("T\(number)"))
      guard case .message(let answer) = try peer.next() else { throw PeerError.unexpected("no answer to a move") }
      #expect(answer.replyTo == message)
      if answer.type == "ack" { continue }
      #expect(answer.type == "error" && answer.code == "storage_full" && answer.number("retryAfter") != nil)
      return ("T\(number)", message)
    }
    throw PeerError.unexpected("a thousand trips fit")
  }

  @Test(
    "the first move that meets a full disk gets storage_full, the log says so, and sent again it is acked and made once"
  )
  func move() throws {
    let directory = try JournalDirectory()
    let hub = try HubProcess.serve(["--data", directory.path, "--session-rate", "0"], fileBytes: 8192)
    let peer = try ops(hub)
    let (trip, message) = try fill(peer)
    try hub.waitForError("event=journal_full")
    _ = try peer.send("trip_status", request(trip), id: message)
    #expect(try peer.receive("error").code == "storage_full")
    // A request for what is not stored gets the error, too; others continue.
    _ = try peer.send("subscribe", ["channel": "trip:\(trip)"])
    #expect(try peer.receive("error").code == "storage_full")
    _ = try peer.send("subscribe", ["channel": "trip:T0"])
    #expect(try peer.receive("subscribed").integer("sequence") == 1)

    try hub.allowFiles(bytes: nil)
    try hub.waitForError("event=journal_writable")
    _ = try peer.send("trip_status", request(trip), id: message)
    #expect(try peer.receive("ack").replyTo == message)
    _ = try peer.send("subscribe", ["channel": "trip:\(trip)"])
    #expect(try peer.receive("subscribed").integer("sequence") == 1)
    hub.send(signal: SIGTERM)
    let outcome = try hub.outcome()
    #expect(outcome.status == 0)
    let full = try #require(outcome.errors.split(separator: "\n").first { $0.contains("event=journal_full") })
    #expect(full.contains("level=error") && full.contains("\(directory.path)/") && full.contains(".segment"))
    #expect(full.contains("File too large"))
    let writable = try #require(outcome.errors.split(separator: "\n").first { $0.contains("event=journal_writable") })
    #expect(writable.contains("level=info") && writable.contains("seconds=") && writable.contains("refused=3"))
  }

  @Test("over HTTP alike: 503 storage_full, which names the trip, and the same again is answered with the trip")
  func post() throws {
    let directory = try JournalDirectory()
    let hub = try HubProcess.serve(["--data", directory.path], fileBytes: 8192)
    let connection = try RawConnection(port: hub.port)
    func post(_ trip: String) throws -> HTTPResponse {
      let body = #"{"tripId":"\#(trip)","driverId":"d1"}"#
      try connection.send(
        "POST /v1/trips?role=ops&id=o HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
      return try connection.readResponse()
    }
    var number = 0
    var answer = try post("T0")
    while answer.status == 201, number < 1000 {
      number += 1
      answer = try post("T\(number)")
    }
    #expect(answer.status == 503 && answer.errorCode == "storage_full" && answer.fields["retry-after"] != nil)
    #expect(answer.text.contains("trip T\(number) "), "\(answer.text)")
    try hub.allowFiles(bytes: nil)
    try hub.waitForError("event=journal_writable")
    #expect(try post("T\(number)").status == 200)
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
  }

  @Test(
    "a data directory that is moved away is noticed without traffic, nothing is acked, and all works when it is back")
  func movedAway() throws {
    let directory = try JournalDirectory()
    let away = directory.path + "-away"
    let options = ["--data", directory.path, "--session-rate", "0"]
    let hub = try HubProcess.serve(options)
    let peer = try ops(hub)
    _ = try peer.send("trip_status", request("before"))
    _ = try peer.receive("ack")
    try FileManager.default.moveItem(atPath: directory.path, toPath: away)
    try hub.waitForError("event=journal_full")
    let message = try peer.send("trip_status", request("T"))
    #expect(try peer.receive("error").code == "storage_full")
    try FileManager.default.moveItem(atPath: away, toPath: directory.path)
    try hub.waitForError("event=journal_writable")
    _ = try peer.send("trip_status", request("T"), id: message)
    #expect(try peer.receive("ack").replyTo == message)
    hub.send(signal: SIGKILL)
    #expect(try hub.outcome().errors.contains("\(directory.path): "))

    let second = try HubProcess.serve(options)
    let after = try ops(second)
    for trip in ["before", "T"] {
      _ = try after.send("subscribe", ["channel": "trip:\(trip)"])
      #expect(try after.receive("subscribed").integer("sequence") == 1)
    }
  }

  @Test("a data directory that is removed takes no move any more, and the log says that a restart is needed")
  func removed() throws {
    let directory = try JournalDirectory()
    let hub = try HubProcess.serve(["--data", directory.path, "--session-rate", "0"])
    let peer = try ops(hub)
    _ = try peer.send("trip_status", request("before"))
    _ = try peer.receive("ack")
    try FileManager.default.removeItem(atPath: directory.path)
    _ = try peer.send("trip_status", request("T"))
    #expect(try peer.receive("error").code == "storage_full")
    // Another directory of that name is not the one that was lost.
    try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: false)
    try hub.waitForError("event=journal_full")
    _ = try peer.send("trip_status", request("T"))
    #expect(try peer.receive("error").code == "storage_full")
    hub.send(signal: SIGTERM)
    let outcome = try hub.outcome()
    #expect(outcome.status == 0 && outcome.errors.contains("restart"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
  }

  @Test("SIGPIPE, as from a log whose reader has gone, changes nothing")
  func closedLog() throws {
    let hub = try HubProcess.serve()
    let peer = try ops(hub)
    hub.send(signal: SIGPIPE)
    try peer.send("ping", ["n": 1])
    _ = try peer.receive("pong")
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
  }

  @Test("SIGUSR1 and SIGUSR2 are logged and change nothing")
  func userSignals() throws {
    let hub = try HubProcess.serve()
    let peer = try ops(hub)
    for (signal, name) in [(SIGUSR1, "SIGUSR1"), (SIGUSR2, "SIGUSR2")] {
      hub.send(signal: signal)
      try hub.waitForError("event=signal_ignored signal=\(name)")
    }
    try peer.send("ping", ["n": 1])
    _ = try peer.receive("pong")
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
  }
}
