// The journal of a running hub: kept, looked into, and where it is when nobody says.
import Foundation
import Testing

extension EndToEnd.Journals {
  private func moves(_ hub: HubProcess, trips: Range<Int>) throws {
    let peer = try Peer(port: hub.port, query: "role=ops&id=o")
    _ = try peer.receive("connected")
    for trip in trips {
      for status in ["requested", "accepted"] {
        _ = try peer.send(
          "trip_status",
          ["tripId": "K\(trip)", "status": status, "timestamp": 1_763_680_000_000, "driverId": "d\(trip)"])
        _ = try peer.skip(to: "ack")
      }
    }
  }

  private func metric(_ name: String, _ hub: HubProcess) throws -> Int {
    let connection = try RawConnection(port: hub.port)
    try connection.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    let page = try connection.readResponse().text
    let line = try #require(page.split(separator: "\n").first { $0.hasPrefix("\(name) ") })
    return try #require(Int(line.split(separator: " ")[1]))
  }

  /// Makes trips until maintenance has written so many snapshots.
  private func run(_ hub: HubProcess, untilSnapshots count: Int, trips: inout Int) throws {
    let deadline = Deadline(seconds: 3 * Deadline.patience)
    while try metric("locationhub_journal_snapshots_total", hub) < count {
      try moves(hub, trips: trips..<trips + 20)
      trips += 20
      guard deadline.millisecondsLeft > 0 else { throw PeerError.timedOut(waitingFor: "snapshots") }
    }
  }

  @Test("snapshots are written while the hub runs; after kill -9 a start reads the newest, and all trips are there")
  func keeping() throws {
    let directory = try JournalDirectory()
    let options = ["--data", directory.path, "--session-rate", "0", "--snapshot-every", "2K"]
    let first = try HubProcess.serve(options)
    var trips = 0
    try run(first, untilSnapshots: 3, trips: &trips)
    #expect(try metric("locationhub_journal_segments", first) >= 2)
    #expect(try metric("locationhub_journal_maintenance_failures_total", first) == 0)
    // Beside the running hub.
    let verified = try HubProcess.run(["journal", "verify", directory.path])
    #expect(verified.status == 0 && verified.output.hasSuffix("good\n"), "\(verified.output)\(verified.errors)")
    first.send(signal: SIGKILL)
    _ = try first.outcome()
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
    #expect((1...3).contains(names.filter { $0.hasSuffix(".snapshot") }.count))

    let second = try HubProcess.serve(options + ["--log-level", "info"])
    let peer = try Peer(port: second.port, query: "role=ops&id=o")
    _ = try peer.receive("connected")
    for trip in 0..<trips {
      _ = try peer.send("subscribe", ["channel": "trip:K\(trip)"])
      let answer = try peer.receive("subscribed")
      #expect(answer.integer("sequence") == 2, "K\(trip)")
      // On a slow machine there may be more trips by then than a session may follow.
      _ = try peer.send("unsubscribe", ["channel": "trip:K\(trip)"])
      _ = try peer.receive("unsubscribed")
    }
    second.send(signal: SIGTERM)
    let outcome = try second.outcome()
    #expect(outcome.status == 0 && !outcome.errors.contains("snapshot=none"), "\(outcome.errors)")
  }

  @Test("a snapshot that cannot be made is reported once and counted, and the hub continues")
  func keepingFails() throws {
    let directory = try JournalDirectory()
    let hub = try HubProcess.serve(["--data", directory.path, "--session-rate", "0", "--snapshot-every", "8K"])
    try moves(hub, trips: 0..<2)
    let segment = try FileHandle(forUpdating: directory.segment())
    try segment.seek(toOffset: 60)
    try segment.write(contentsOf: [0xFF, 0xFF])
    try segment.close()
    let deadline = Deadline(seconds: 3 * Deadline.patience)
    var trips = 2
    while try metric("locationhub_journal_maintenance_failures_total", hub) == 0 {
      try moves(hub, trips: trips..<trips + 10)
      trips += 10
      guard deadline.millisecondsLeft > 0 else { throw PeerError.timedOut(waitingFor: "a failure") }
    }
    try moves(hub, trips: trips..<trips + 5)
    #expect(try metric("locationhub_journal_snapshots_total", hub) == 0)
    hub.send(signal: SIGTERM)
    let outcome = try hub.outcome()
    #expect(outcome.status == 0)
    #expect(outcome.errors.matches(of: /event=journal_maintenance_failed/).count == 1)
  }

  @Test("journal inspect, verify and export list what is there, and what is damaged; export may lose its reader")
  func verbs() throws {
    let directory = try JournalDirectory()
    let hub = try HubProcess.serve(["--data", directory.path, "--session-rate", "0", "--snapshot-every", "2K"])
    var trips = 0
    try run(hub, untilSnapshots: 1, trips: &trips)
    try moves(hub, trips: trips..<trips + 50)
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)

    let inspected = try HubProcess.run(["journal", "inspect", directory.path])
    #expect(inspected.status == 0)
    #expect(inspected.output.contains(".segment") && inspected.output.contains("through group"))
    let exported = try shell("\"$0\" journal export \"$1\"", directory)
    #expect(exported.status == 0)
    var kinds: Set<String> = []
    var statuses: [String: [String]] = [:]
    for line in exported.output.split(separator: "\n") {
      let object = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      let kind = try #require(object["record"] as? String)
      kinds.insert(kind)
      if kind == "trip" {
        let id = try #require(object["tripId"] as? String)
        statuses[id, default: []].append(try #require(object["status"] as? String))
      }
      if kind == "event" {
        let message = try #require(object["message"] as? [String: Any])
        #expect(message["type"] as? String == "trip_update")
      }
      if kind == "epoch" { #expect(inspected.output.contains(try #require(object["epoch"] as? String))) }
    }
    #expect(kinds.isSuperset(of: ["epoch", "trip", "event"]))
    #expect(statuses.count == trips + 50)
    // A change may have more than one record; each has the trip's state then.
    for (trip, list) in statuses {
      #expect(Set(list) == ["requested", "accepted"], "\(trip)")
      #expect(list.first == "requested" && list.last == "accepted", "\(trip)")
    }
    let later = try shell("\"$0\" journal export --since 2100-01-01T00:00:00Z \"$1\"", directory)
    #expect(later.status == 0 && later.output.utf8.count < exported.output.utf8.count)
    let head = try shell("\"$0\" journal export \"$1\" | head -n 1; exit ${PIPESTATUS[0]}", directory)
    #expect(head.status == 0 && head.output.split(separator: "\n").count == 1)

    let segment = try #require(
      try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0.hasSuffix(".segment") }.sorted()
        .first)
    let file = URL(fileURLWithPath: "\(directory.path)/\(segment)")
    var bytes = try Data(contentsOf: file)
    bytes[60] ^= 1
    try bytes.write(to: file)
    let damaged = try HubProcess.run(["journal", "verify", directory.path])
    #expect(damaged.status == 1 && damaged.output.contains("damaged: \(segment): group 1 at byte 36"))
    #expect(try shell("\"$0\" journal export \"$1\"", directory).status == 1)
    // It is in the snapshot: a start does not need it.
    let again = try HubProcess.serve(["--data", directory.path])
    again.send(signal: SIGTERM)
    #expect(try again.outcome().status == 0)
  }

  /// Runs a line of shell with the program as `$0` and the directory as `$1`; its output may be long.
  private func shell(_ line: String, _ directory: JournalDirectory) throws -> (status: Int32, output: String) {
    let shell = Process()
    shell.executableURL = URL(fileURLWithPath: "/bin/bash")
    shell.arguments = ["-c", line, try #require(HubProcess.executable).path, directory.path]
    let output = Pipe()
    shell.standardOutput = output
    shell.standardError = FileHandle.nullDevice
    try shell.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    shell.waitUntilExit()
    return (shell.terminationStatus, text)
  }

  @Test("without an option the journal is in ./data; with --no-journal nowhere, whatever the environment says")
  func defaults() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hub-folder-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { do { try FileManager.default.removeItem(at: folder) } catch { Issue.record(error) } }
    let data = folder.appendingPathComponent("data").path
    let without = try HubProcess.serve(["--no-journal"], in: folder.path)
    without.send(signal: SIGTERM)
    #expect(try without.outcome().status == 0)
    #expect(!FileManager.default.fileExists(atPath: data))
    let with = try HubProcess.serve(in: folder.path)
    try moves(with, trips: 0..<1)
    with.send(signal: SIGTERM)
    #expect(try with.outcome().status == 0)
    #expect(FileManager.default.fileExists(atPath: data))
    let both = try HubProcess.run(["serve", "--no-journal", "--data", data])
    #expect(both.status == 2 && both.errors.contains("--no-journal") && both.errors.contains("--data"))
    // As in a container, whose environment names a directory.
    let check = ["serve", "--check", "--dev-auth"]
    #expect(try HubProcess.run(check + ["--no-journal"], environment: ["LHUB_DATA": data]).status == 0)
    let same = try HubProcess.run(check + ["--data", data], environment: ["LHUB_NO_JOURNAL": "true"])
    #expect(same.status == 2 && same.errors.contains("--data cannot be combined with LHUB_NO_JOURNAL"))
    let nowhere = try HubProcess.run(["serve", "--dev-auth", "--port", "0", "--data", "/proc/nothing/here"])
    #expect(nowhere.errors.contains("--data") && nowhere.errors.contains("--no-journal"))
  }

  @Test(
    "what is no time and no size is refused with the forms that are",
    arguments: [
      ["--retain", "5"], ["--retain", "d"], ["--retain", "0s"], ["--retain", "9999999d"], ["--retain", "1.5h"],
      ["--retain-size", "1T"], ["--retain-size", "-1"], ["--retain-size", "K"], ["--snapshot-every", "0"],
    ])
  func units(_ options: [String]) throws {
    let outcome = try HubProcess.run(["serve", "--port", "0", "--data", "/tmp/never-made"] + options)
    #expect(outcome.status == 2 && outcome.errors.contains(options[0]))
    #expect(try HubProcess.run(["journal", "look", "/tmp"]).status == 2)
    #expect(try HubProcess.run(["journal", "inspect", "/nonexistent"]).status == 1)
  }

  @Test("fifty copies beside a hub that writes, summarises and deletes: each starts, with every move acked before it")
  func backups() throws {
    let directory = try JournalDirectory()
    let hub = try HubProcess.serve([
      "--data", directory.path, "--session-rate", "0", "--snapshot-every", "2K", "--retain-size", "8K",
    ])
    var trips = 0
    for number in 0..<50 {
      try moves(hub, trips: trips..<trips + 4)
      trips += 4
      let copy = directory.path + "-copy"
      let made = try HubProcess.run(["journal", "backup", directory.path, copy])
      #expect(made.status == 0 && made.output.hasSuffix(": good\n"), "\(made.output)\(made.errors)")
      // A start of each tenth, for it takes a second; all were read back.
      if number % 10 == 9 {
        let second = try HubProcess.serve(["--data", copy])
        let peer = try Peer(port: second.port, query: "role=ops&id=o")
        _ = try peer.receive("connected")
        for trip in max(0, trips - 20)..<trips {
          _ = try peer.send("subscribe", ["channel": "trip:K\(trip)"])
          #expect(try peer.receive("subscribed").integer("sequence") == 2, "K\(trip)")
        }
      }
      try FileManager.default.removeItem(atPath: copy)
    }
    let segment = try #require(
      try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0.hasSuffix(".segment") }.min())
    #expect(Int(segment.prefix { $0 != "." }) ?? 0 > 1, "the oldest were deleted meanwhile")
  }

  @Test("who resumes behind a backup, at the hub that was started from it, is told of the loss, not given other events")
  func resumeBehindBackup() throws {
    let directory = try JournalDirectory()
    let hub = try HubProcess.serve(["--data", directory.path])
    try moves(hub, trips: 0..<1)
    let copy = directory.path + "-copy"
    #expect(try HubProcess.run(["journal", "backup", directory.path, copy]).status == 0)
    func subscribe(to hub: HubProcess, _ more: [String: Any]) throws -> HubMessage {
      let peer = try Peer(port: hub.port, query: "role=ops&id=o")
      _ = try peer.receive("connected")
      _ = try peer.send("subscribe", ["channel": "trip:K0"].merging(more) { $1 })
      return try peer.receive("subscribed")
    }
    func move(_ hub: HubProcess, to status: String) throws {
      let peer = try Peer(port: hub.port, query: "role=ops&id=o")
      _ = try peer.receive("connected")
      _ = try peer.send("trip_status", ["tripId": "K0", "status": status, "timestamp": 1_763_680_001_000])
      _ = try peer.skip(to: "ack")
    }
    try move(hub, to: "driver_en_route")
    let epoch = try #require(try subscribe(to: hub, [:]).string("epoch"))
    let restored = try HubProcess.serve(["--data", copy])
    // The third event of this trip again, and another one.
    try move(restored, to: "cancelled")
    let answer = try subscribe(to: restored, ["since": 3, "epoch": epoch])
    #expect(answer.payload["recovered"] as? Bool == false, "\(answer.payload)")
    try FileManager.default.removeItem(atPath: copy)
  }

  @Test("a copy of more segments than may be open at first is made")
  func backupOfManySegments() throws {
    let directory = try JournalDirectory()
    let hub = try HubProcess.serve(["--data", directory.path, "--session-rate", "0", "--snapshot-every", "2K"])
    var trips = 0
    try run(hub, untilSnapshots: 2, trips: &trips)
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
    // The standard streams, two directories, a snapshot, and a segment.
    let made = try shell("ulimit -S -n 7; \"$0\" journal backup \"$1\" \"$1-copy\" && rm -r \"$1-copy\"", directory)
    #expect(made.status == 0 && made.output.hasSuffix(": good\n"), "\(made.output)")
  }

  @Test("damage in history that a snapshot covers is copied and named, and a hub starts from the copy")
  func backupOfDamagedHistory() throws {
    let directory = try JournalDirectory()
    let hub = try HubProcess.serve(["--data", directory.path, "--session-rate", "0", "--snapshot-every", "2K"])
    var trips = 0
    try run(hub, untilSnapshots: 1, trips: &trips)
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
    let segment = try #require(
      try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0.hasSuffix(".segment") }.min())
    let file = URL(fileURLWithPath: "\(directory.path)/\(segment)")
    var bytes = try Data(contentsOf: file)
    bytes[60] ^= 1
    try bytes.write(to: file)
    let copy = directory.path + "-copy"
    let made = try HubProcess.run(["journal", "backup", directory.path, copy])
    #expect(made.status == 0 && made.output.contains("a hub starts from it"), "\(made.output)\(made.errors)")
    #expect(made.errors.contains("damaged history: \(segment): group 1 at byte 36"), "\(made.errors)")
    let second = try HubProcess.serve(["--data", copy])
    second.send(signal: SIGTERM)
    #expect(try second.outcome().status == 0)
    try FileManager.default.removeItem(atPath: copy)
  }

  @Test("a copy without room, onto something, or of damage ends with 1, says why, and leaves nothing")
  func backupFails() throws {
    let directory = try JournalDirectory()
    let hub = try HubProcess.serve(["--data", directory.path, "--session-rate", "0"])
    try moves(hub, trips: 0..<20)
    let folder = URL(fileURLWithPath: directory.path)
    func names() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: folder.deletingLastPathComponent().path)
        .filter { $0.hasPrefix(folder.lastPathComponent) }
    }
    let copy = directory.path + "-copy"
    // A run that was killed has left this.
    let left = copy + ".unfinished-backup"
    try FileManager.default.createDirectory(atPath: left, withIntermediateDirectories: false)
    try Data([1, 2, 3]).write(to: URL(fileURLWithPath: left + "/" + directory.segment().lastPathComponent))
    let good = try HubProcess.run(["journal", "backup", directory.path, copy + "/"])
    #expect(good.status == 0, "\(good.errors)")
    try FileManager.default.removeItem(atPath: copy)
    let full = try HubProcess(["journal", "backup", directory.path, copy], fileBytes: 1024).outcome()
    #expect(full.status == 1 && full.errors.contains("File too large"), "\(full.errors)")
    let onto = try HubProcess.run(["journal", "backup", directory.path, directory.path])
    #expect(onto.status == 1 && onto.errors.contains("File exists"), "\(onto.errors)")
    let few = try HubProcess.run(["journal", "backup", directory.path])
    #expect(few.status == 2 && few.errors.contains("two directories"))
    let segment = try FileHandle(forUpdating: directory.segment())
    try segment.seek(toOffset: 60)
    try segment.write(contentsOf: [0xFF, 0xFF])
    try segment.close()
    let damaged = try HubProcess.run(["journal", "backup", directory.path, copy])
    #expect(damaged.status == 1 && damaged.errors.contains("group"), "\(damaged.errors)")
    #expect(try names() == [folder.lastPathComponent])
  }
}
