// A data directory with something in it that no hub has written: named in a message, exit code 1, and neither a trap
// nor a process that hangs.
import Foundation
import Testing

extension EndToEnd.Journals {
  /// What has a segment's name.
  enum OddFile: String, CaseIterable {
    case directory, fifo, sparse

    /// What the message says of it.
    var word: String {
      switch self {
      case .directory: "is a directory"
      case .fifo: "is a FIFO"
      case .sparse: "1099511627776 bytes"
      }
    }

    func put(at path: String) throws {
      switch self {
      case .directory: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      case .fifo: #expect(mkfifo(path, 0o600) == 0)
      case .sparse:
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        #expect(truncate(path, 1 << 40) == 0)
      }
    }
  }

  /// A directory in which a hub has written, and its segments' names, oldest first.
  private func written(_ options: [String] = []) throws -> (JournalDirectory, [String]) {
    let directory = try JournalDirectory()
    let hub = try HubProcess.serve(["--data", directory.path, "--session-rate", "0"] + options)
    let peer = try Peer(port: hub.port, query: "role=ops&id=o")
    _ = try peer.receive("connected")
    for trip in ["T", "U"] {  // a group each
      _ = try peer.send("trip_status", ["tripId": trip, "status": "requested", "timestamp": 1_763_680_000_000])
      _ = try peer.receive("ack")
    }
    hub.send(signal: SIGTERM)
    _ = try hub.outcome()
    let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
    return (directory, names.filter { $0.hasSuffix(".segment") }.sorted())
  }

  @Test(
    "a segment that is a directory, a FIFO, or larger than any: start and journal verbs name it",
    arguments: OddFile.allCases)
  func oddSegment(_ odd: OddFile) throws {
    let (directory, names) = try written()
    let name = try #require(names.last)
    try FileManager.default.removeItem(atPath: "\(directory.path)/\(name)")
    try odd.put(at: "\(directory.path)/\(name)")
    for command in [
      ["serve", "--dev-auth", "--port", "0", "--data", directory.path], ["journal", "verify", directory.path],
      ["journal", "inspect", directory.path], ["journal", "export", directory.path],
    ] {
      let outcome = try HubProcess.run(command)
      let text = outcome.errors + outcome.output
      #expect(outcome.status == 1, "\(command): \(text)")
      #expect(text.contains(name) && text.contains(odd.word), "\(command): \(text)")
    }
    // It is moved aside like other damage, where that is asked for.
    let hub = try HubProcess.serve(["--data", directory.path, "--accept-loss"])
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
    let after = try FileManager.default.contentsOfDirectory(atPath: directory.path)
    #expect(after.contains { $0.hasPrefix("damaged-") && $0.hasSuffix(name) })
  }

  /// CRC-32C (RFC 3720 §12.1), little-endian.
  private func sum(_ bytes: Data) -> [UInt8] {
    var sum = UInt32.max
    for byte in bytes {
      sum ^= UInt32(byte)
      for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0x82F6_3B78 : sum >> 1 }
    }
    return (0..<4).map { UInt8(truncatingIfNeeded: ~sum >> (8 * $0)) }
  }

  @Test("export and inspect end with 1, as verify does, where the newest segment is damaged or of another version")
  func damagedNewest() throws {
    let (directory, names) = try written()
    let name = try #require(names.last)
    let file = URL(fileURLWithPath: "\(directory.path)/\(name)")
    let whole = try Data(contentsOf: file)
    for (offset, byte, word) in [
      (60, whole[60] ^ 1, "group 1 at byte 36 is damaged"), (12, whole[12] ^ 1, "its header is damaged"),
      (8, whole[8] ^ 1, "its header is damaged"),
      (8, whole[8] - 1, "of format \(whole[8] - 1)"), (8, whole[8] + 1, "of format \(whole[8] + 1)"),
    ] as [(Int, UInt8, String)] {
      var bytes = whole
      bytes[offset] = byte
      // Another program's header has its sum; bits that flipped in ours have not.
      if word.hasPrefix("of format") { bytes.replaceSubrange(12..<16, with: sum(bytes[..<12] + bytes[16..<36])) }
      try bytes.write(to: file)
      for verb in ["export", "inspect", "verify"] {
        let outcome = try HubProcess.run(["journal", verb, directory.path])
        let text = outcome.errors + outcome.output
        #expect(outcome.status == 1, "\(verb): \(text)")
        #expect(text.contains(name) && text.contains(word), "\(verb): \(text)")
      }
    }
    try whole.dropLast().write(to: file)
    for verb in ["export", "inspect", "verify"] {
      #expect(try HubProcess.run(["journal", verb, directory.path]).status == 0, "\(verb): a write that was cut off")
    }
  }

  @Test("inspect shows no group in a newest segment that has none yet")
  func emptyNewest() throws {
    let (directory, names) = try written()
    let file = URL(fileURLWithPath: "\(directory.path)/\(try #require(names.last))")
    try Data(contentsOf: file).prefix(36).write(to: file)  // its header
    let outcome = try HubProcess.run(["journal", "inspect", directory.path])
    #expect(outcome.status == 0 && outcome.output.contains("no group yet\n"), "\(outcome.output)")
    #expect(outcome.output.contains("with 0 groups"), "\(outcome.output)")
  }

  @Test(
    "a snapshot that is none is passed over at a start, and all verbs name it behind what can be read",
    arguments: OddFile.allCases)
  func oddSnapshot(_ odd: OddFile) throws {
    let (directory, _) = try written()
    let name = "00000000000000000001.snapshot"
    try odd.put(at: "\(directory.path)/\(name)")
    // How large a snapshot may be, the other two do not know.
    let others = odd == .sparse ? [] : [("inspect", ".segment "), ("export", "\"tripId\":\"T\"")]
    for (verb, word) in [("verify", "segments with")] + others {
      let found = try HubProcess.run(["journal", verb, directory.path])
      #expect(found.status == 1 && (found.output + found.errors).contains(name), "\(found.output)\(found.errors)")
      #expect(found.output.contains(word), "\(verb): what can be read is there")
    }
    let hub = try HubProcess.serve(["--data", directory.path])
    let peer = try Peer(port: hub.port, query: "role=ops&id=o")
    _ = try peer.receive("connected")
    _ = try peer.send("subscribe", ["channel": "trip:T"])
    #expect(try peer.receive("subscribed").integer("sequence") == 1)
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().errors.contains("event=journal_snapshot_broken"))
  }

  @Test(
    "export and inspect name a segment that is missing in the middle; of a directory without a journal all verbs say so"
  )
  func gaps() throws {
    let directory = try JournalDirectory()
    let hub = try HubProcess.serve(["--data", directory.path, "--session-rate", "0", "--snapshot-every", "1K"])
    let peer = try Peer(port: hub.port, query: "role=ops&id=o")
    _ = try peer.receive("connected")
    let deadline = Deadline(seconds: 3 * Deadline.patience)
    var names: [String] = []
    var trips = 0
    while names.count < 4 {  // a snapshot ends where a segment ends
      guard !deadline.isOver else { throw PeerError.timedOut(waitingFor: "four segments") }
      trips += 1
      _ = try peer.send("trip_status", ["tripId": "T\(trips)", "status": "requested", "timestamp": 1_763_680_000_000])
      _ = try peer.receive("ack")
      names = try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0.hasSuffix(".segment") }
        .sorted()
    }
    hub.send(signal: SIGTERM)
    #expect(try hub.outcome().status == 0)
    #expect(try HubProcess.run(["journal", "export", directory.path]).status == 0)
    try FileManager.default.removeItem(atPath: "\(directory.path)/\(names[1])")
    for verb in ["export", "inspect", "verify"] {
      let outcome = try HubProcess.run(["journal", verb, directory.path])
      let text = outcome.errors + outcome.output
      #expect(outcome.status == 1, "\(verb): \(text)")
      #expect(text.contains("\(names[2]): groups ") && text.contains("missing"), "\(verb): \(text)")
    }
    let empty = try JournalDirectory()
    try FileManager.default.createDirectory(atPath: empty.path, withIntermediateDirectories: false)
    for verb in ["export", "inspect", "verify"] {
      let outcome = try HubProcess.run(["journal", verb, empty.path])
      #expect(outcome.status == 1 && outcome.errors.contains("\(empty.path): no journal"), "\(verb): \(outcome)")
    }
  }
}
