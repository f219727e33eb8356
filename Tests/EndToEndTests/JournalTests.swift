// Trips over the death of the process: kill -9 at any moment, a directory that two want, damage.
import Foundation
import HubMessages
import HubTestSupport
import Testing

/// A directory for a journal, gone with the test.
final class JournalDirectory {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("hub-journal-\(UUID().uuidString)").path
  }

  deinit {
    do { try FileManager.default.removeItem(atPath: path) } catch { Issue.record(error) }
  }

  /// The newest segment.
  func segment() throws -> URL {
    let names = try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasSuffix(".segment") }
    return URL(fileURLWithPath: path).appendingPathComponent(try #require(names.sorted().last))
  }
}

extension EndToEnd {
  @Suite(.enabled(if: HubProcess.executable != nil, "locationhub is built beside the tests"))
  struct Journals {}
}

extension EndToEnd.Journals {
  private func ops(_ hub: HubProcess) throws -> Peer {
    let peer = try Peer(port: hub.port, query: "role=ops&id=o")
    _ = try peer.receive("connected")
    return peer
  }

  private func move(_ trip: String, _ status: String) -> [String: Any] {
    [
      "tripId": trip, "status": status, "timestamp": 1_763_680_000_000, "driverId": "d1", "riderId": "r1",
      "route": "_p~iF~ps|U_ulLnnqC_mqNvxq`@",
    ]
  }

  @Test("what was acked before kill -9 is there afterwards: the trip, its events, their numbers, and who sent what")
  func killed() throws {
    let directory = try JournalDirectory()
    let first = try HubProcess.serve(port: 0, ["--data", directory.path, "--session-rate", "0"])
    let before = try ops(first)
    _ = try before.send("subscribe", ["channel": "trip:T1"])
    let epoch = try #require(try before.receive("subscribed").string("epoch"))
    let request = try before.send("trip_status", move("T1", "requested"))
    #expect(try before.skip(to: "ack").string("replyTo") == request)
    _ = try before.send("trip_status", move("T1", "accepted"))
    _ = try before.skip(to: "ack")
    first.send(signal: SIGKILL)
    #expect(try first.outcome().status == -SIGKILL)

    let second = try HubProcess.serve(port: 0, ["--data", directory.path, "--session-rate", "0"])
    let after = try ops(second)
    _ = try after.send("subscribe", ["channel": "trip:T1", "since": 1, "epoch": epoch])
    let subscribed = try after.receive("subscribed")
    #expect(subscribed.payload["recovered"] as? Bool == true && subscribed.integer("sequence") == 2)
    #expect(subscribed.string("epoch") == epoch)
    let missed = try after.receive("trip_update")
    #expect(missed.string("status") == "accepted" && missed.integer("sequence") == 2)
    // The same message again: the same ack, and nothing else.
    _ = try after.send("trip_status", move("T1", "requested"), id: request)
    #expect(try after.receive("ack").string("replyTo") == request)
    _ = try after.send("trip_status", move("T1", "driver_en_route"), id: "next")
    #expect(try after.receive("trip_update").integer("sequence") == 3)
    _ = try after.receive("ack")
    second.send(signal: SIGTERM)
    let outcome = try second.outcome()
    #expect(outcome.status == 0)
    #expect(outcome.errors.contains("event=journal_read") && outcome.errors.contains("trips=1"))
  }

  @Test(
    "killed at any moment under load, and while it writes snapshots: acked moves are there, and what a subscriber saw",
    arguments: [[], ["--snapshot-every", "1K"]])
  func killedUnderLoad(_ keeping: [String]) throws {
    var random = SplitMix64(seed: UInt64.random(in: 0 ... .max))
    let directory = try JournalDirectory()
    var acked: [String: String] = [:]
    var seen: [String: [String]] = [:]
    for round in 0..<6 {
      let hub = try HubProcess.serve(port: 0, ["--data", directory.path, "--session-rate", "0"] + keeping)
      let writer = try ops(hub)
      let reader = try ops(hub)
      for trip in 0..<8 { _ = try reader.send("subscribe", ["channel": "trip:t\(round)-\(trip)"]) }
      for _ in 0..<8 { _ = try reader.receive("subscribed") }
      var sent: [String: (trip: String, status: String)] = [:]
      for status in ["requested", "accepted", "driver_en_route", "arrived_pickup"] {
        for trip in 0..<8 {
          let name = "t\(round)-\(trip)"
          sent[try writer.send("trip_status", move(name, status), id: "\(name)-\(status)")] = (name, status)
        }
      }
      // So many answers are waited for, and then the hub is gone.
      let patience = Int.random(in: 0...32, using: &random)
      for _ in 0..<patience {
        let message = try #require(try writer.receive("ack").string("replyTo"))
        let move = try #require(sent[message])
        acked[move.trip] = move.status
      }
      hub.send(signal: SIGKILL)
      #expect(try hub.outcome().status == -SIGKILL)
      for message in try reader.receiveClose().before where message.type == "trip_update" {
        seen[try #require(message.string("tripId")), default: []].append(try #require(message.string("status")))
      }
      try check(directory, acked, seen)
    }
  }

  /// Starts a hub and asks it for everything.
  private func check(_ directory: JournalDirectory, _ acked: [String: String], _ seen: [String: [String]]) throws {
    let order = ["requested", "accepted", "driver_en_route", "arrived_pickup"]
    let hub = try HubProcess.serve(port: 0, ["--data", directory.path, "--session-rate", "0"])
    let peer = try ops(hub)
    for trip in Set(acked.keys).union(seen.keys).sorted() {
      _ = try peer.send("subscribe", ["channel": "trip:\(trip)"])
      let answer = try peer.receive("subscribed")
      let epoch = try #require(answer.string("epoch"))
      let count = try #require(answer.integer("sequence"))
      _ = try peer.send("subscribe", ["channel": "trip:\(trip)", "since": 0, "epoch": epoch])
      #expect(try peer.receive("subscribed").payload["recovered"] as? Bool == true)
      let statuses = try (0..<count).map { _ in try #require(try peer.receive("trip_update").string("status")) }
      #expect(statuses == Array(order.prefix(count)), "\(trip)")
      if let status = acked[trip] { #expect(statuses.contains(status), "\(trip): the acked \(status) is gone") }
      #expect(statuses.starts(with: seen[trip] ?? []), "\(trip): \(seen[trip] ?? []) was seen")
    }
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
  }

  @Test("a directory that another hub uses: a clear message and exit code 1")
  func locked() throws {
    let directory = try JournalDirectory()
    let first = try HubProcess.serve(port: 0, ["--data", directory.path])
    let second = try HubProcess.run(["serve", "--dev-auth", "--port", "0", "--data", directory.path])
    #expect(second.status == 1)
    #expect(second.errors.contains("another process uses the journal in \(directory.path)"))
    withExtendedLifetime(first) {}
  }

  @Test("damage: the hub names file and offset and does not start; with --accept-loss it does, and deletes nothing")
  func damage() throws {
    let directory = try JournalDirectory()
    let first = try HubProcess.serve(port: 0, ["--data", directory.path])
    let peer = try ops(first)
    for trip in 0..<4 {
      _ = try peer.send("trip_status", move("T\(trip)", "requested"))
      _ = try peer.receive("ack")
    }
    first.send(signal: SIGKILL)
    _ = try first.outcome()
    let segment = try directory.segment()
    var bytes = try Data(contentsOf: segment)
    bytes[bytes.count / 2] ^= 1
    try bytes.write(to: segment)
    let refused = try HubProcess.run(["serve", "--dev-auth", "--port", "0", "--data", directory.path])
    #expect(refused.status == 1)
    #expect(refused.errors.contains(segment.lastPathComponent) && refused.errors.contains("--accept-loss"))
    #expect(try Data(contentsOf: segment) == bytes)

    let second = try HubProcess.serve(port: 0, ["--data", directory.path, "--accept-loss"])
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
    let aside = try #require(names.first { $0.hasPrefix("damaged-") })
    #expect(try Data(contentsOf: URL(fileURLWithPath: "\(directory.path)/\(aside)")) == bytes)
    let after = try ops(second)
    _ = try after.send("subscribe", ["channel": "trip:T0"])
    #expect(try after.receive("subscribed").object("snapshot") != nil)
    second.send(signal: SIGTERM)
    #expect(try second.outcome().errors.contains("event=journal_loss"))
  }

  @Test("--accept-loss without a journal: exit code 2; a directory that cannot be made: exit code 1")
  func usage() throws {
    let outcome = try HubProcess.run(["serve", "--accept-loss"])
    #expect(outcome.status == 2 && outcome.errors.contains("--accept-loss"))
    let nowhere = try HubProcess.run(["serve", "--dev-auth", "--port", "0", "--data", "/proc/nothing/here"])
    #expect(nowhere.status == 1 && nowhere.errors.contains("/proc/nothing/here"))
  }
}
