// Fixes over the death of the process: what a batch's ack and a pong's storedThrough promise.
import Foundation
import HubMessages
import HubTestSupport
import Testing

extension EndToEnd.Journals {
  private func serve(_ directory: JournalDirectory) throws -> HubProcess {
    try HubProcess.serve(port: 0, ["--data", directory.path, "--session-rate", "0", "--sampling", "4"])
  }

  private func driver(_ hub: HubProcess, _ id: String = "d1") throws -> Peer {
    let peer = try Peer(port: hub.port, query: "role=driver&id=\(id)")
    _ = try peer.receive("connected")
    return peer
  }

  private func batch(_ steps: Range<Int>) -> [String: Any] {
    ["tripId": "T1", "locations": steps.map { Peer.fix($0) }]
  }

  private func storedThrough(_ peer: Peer) throws -> Int? {
    _ = try peer.send("ping", [:])
    return try peer.skip(to: "pong").integer("storedThrough").map { ($0 - Peer.firstFix) / 1000 }
  }

  @Test("a live fix is stored soon though nobody waits, and after kill -9 what is older is never published again")
  func liveFixes() throws {
    let directory = try JournalDirectory()
    let first = try serve(directory)
    let before = try driver(first)
    for step in 0..<5 { try before.sendFix(step, trip: "T1") }
    let deadline = Deadline()
    while try storedThrough(before) != 4 {
      guard !deadline.isOver else { throw PeerError.unexpected("the fixes were never stored") }
    }
    first.send(signal: SIGKILL)
    #expect(try first.outcome().status == -SIGKILL)

    let second = try serve(directory)
    let watcher = try Peer(port: second.port, query: "role=ops&id=o")
    _ = try watcher.receive("connected")
    try watcher.subscribe("trip:T1")
    let after = try driver(second)
    #expect(try storedThrough(after) == 4)
    for step in [3, 4, 6] { try after.sendFix(step, trip: "T1") }
    #expect(try watcher.receive("driver_location").integer("timestamp") == Peer.firstFix + 6000)
    second.send(signal: SIGTERM)
    #expect(try second.outcome().status == 0)
  }

  @Test("killed at any moment: every fix of an acked batch is there, by socket and by HTTP, and the trip's way with it")
  func batches() throws {
    var random = SplitMix64(seed: UInt64.random(in: 0 ... .max))
    let directory = try JournalDirectory()
    var acked = -1
    var next = 0
    for _ in 0..<4 {
      let hub = try serve(directory)
      let peer = try driver(hub)
      if acked >= 0 {
        let stored = try storedThrough(peer)
        #expect(try #require(stored) >= acked)
      }
      var sent: [String: Int] = [:]
      for _ in 0..<8 {
        sent[try peer.send("location_batch", batch(next..<next + 50))] = next + 49
        next += 50
      }
      for _ in 0..<Int.random(in: 0...8, using: &random) {
        let ack = try peer.skip(to: "ack")
        #expect(ack.integer("accepted") == 50)
        let message = try #require(ack.replyTo)
        acked = try #require(sent[message])
      }
      hub.send(signal: SIGKILL)
      #expect(try hub.outcome().status == -SIGKILL)
    }
    let hub = try serve(directory)
    let body = try JSONSerialization.data(withJSONObject: batch(next..<next + 10))
    let connection = try RawConnection(port: hub.port)
    try connection.send(
      "POST /v1/locations?role=driver&id=d1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: \(body.count)\r\n\r\n"
        + String(decoding: body, as: UTF8.self))
    #expect(try connection.readResponse().text.contains("\"accepted\":10"))
    hub.send(signal: SIGKILL)
    _ = try hub.outcome()

    let last = try serve(directory)
    let peer = try driver(last)
    #expect(try storedThrough(peer) == next + 9)
    // The way counts from where it was: at least what the acked batches showed, at 10 m each.
    let watcher = try Peer(port: last.port, query: "role=ops&id=o")
    _ = try watcher.receive("connected")
    try watcher.subscribe("trip:T1")
    _ = try watcher.send("trip_status", ["tripId": "T1", "status": "cancelled", "timestamp": 1_763_680_000_000])
    let update = try watcher.skip(to: "trip_update")
    let track = update.object("summary")?["track"] as? Double
    #expect(try #require(track) > Double(next) * 10 * 0.95)
    last.send(signal: SIGTERM)
    #expect(try last.outcome().status == 0)
  }

  @Test("fixes that came live, and are older than what memory knows of, are found in the journal and not taken again")
  func lookedUp() throws {
    let directory = try JournalDirectory()
    let hub = try serve(directory)
    let peer = try driver(hub)
    for step in 0..<20 { try peer.sendFix(step, trip: "T1") }
    try peer.sendFix(30, trip: "T1")
    // The first batch: of what came before, memory knows the newest.
    for (steps, accepted, duplicates) in [(10..<25, 5, 10), (0..<31, 5, 26)] {
      _ = try peer.send("location_batch", batch(steps))
      let ack = try peer.skip(to: "ack")
      #expect(ack.integer("accepted") == accepted && ack.integer("duplicates") == duplicates, "\(ack.text)")
    }
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
  }

  @Test("the status of a driver that was acked is there after kill -9")
  func driverStatus() throws {
    let directory = try JournalDirectory()
    let first = try serve(directory)
    let before = try driver(first)
    _ = try before.send("driver_status", ["status": "background", "vehicleType": "van", "tags": ["xl"]])
    _ = try before.skip(to: "ack")
    first.send(signal: SIGKILL)
    _ = try first.outcome()
    let second = try serve(directory)
    let connection = try RawConnection(port: second.port)
    try connection.send("GET /v1/drivers/d1?role=ops&id=o HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    let answer = try connection.readResponse().text
    #expect(answer.contains("\"background\"") && answer.contains("\"van\"") && answer.contains("\"xl\""))
  }
}
