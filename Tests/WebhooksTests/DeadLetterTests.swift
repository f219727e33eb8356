// What was given up, and how far webhooks and streams are, as an operator reads it from the disk.
import Foundation
import HubJournal
import HubJournalSupport
import HubMessages
import HubTestSupport
import Testing

@testable import HubWebhooks

@Suite struct DeadLetterTests {
  private let time = Timestamp(milliseconds: 1_764_000_000_000)

  @Test("A line has time, id, channel and a reason in one line")
  func line() throws {
    let disk = SimulatedDisk()
    let letters = DeadLetterFile(disk, "orders")
    try letters.append(
      id: "evt_e_1_2", channel: "trip:T1", reason: "status 500\r\nx" + String(repeating: "y", count: 999), at: time)
    try letters.append(id: "evt_e_2_2", channel: "trip:T1", reason: "", at: time)
    let lines = try DeadLetterFile.lines(disk, "orders")
    #expect(lines.count == 2 && lines[0].hasPrefix("2025-11-24T16:00:00.000Z evt_e_1_2 trip:T1 status 500xy"))
    #expect(lines[0].count < 300 && lines[1].hasSuffix("evt_e_2_2 trip:T1 "))
    #expect(try DeadLetterFile.lines(disk, "other") == [])
  }

  @Test("Two files at most are kept, with the newest letters")
  func limit() throws {
    let disk = SimulatedDisk()
    let letters = DeadLetterFile(disk, "orders")
    let reason = String(repeating: "r", count: 200)
    for number in 0..<4000 { try letters.append(id: "evt_e_\(number)_0", channel: "trip:T1", reason: reason, at: time) }
    let lines = try DeadLetterFile.lines(disk, "orders")
    #expect(lines.last?.contains("evt_e_3999_0") == true && lines[0].contains("evt_e_\(4000 - lines.count)_0"))
    let bytes = try disk.names().reduce(0) { $0 + (try disk.about($1)?.bytes ?? 0) }
    #expect(bytes < 2 * (DeadLetterFile.maximumBytes + 300) && bytes > DeadLetterFile.maximumBytes)
  }

  @Test("An operator sees each webhook and stream, its position, and what is behind")
  func list() throws {
    let directory = "/tmp/webhooks-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: directory) }
    #expect(throws: JournalError.self) { try StoredDelivery.all(journal: directory) }
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    let files = try DiskFiles(path: directory + "/" + DeliveryCommand.folder)
    let position = JournalPosition(group: 120, record: 64)
    func lane(_ group: UInt64) -> DeliveryProgress.Lane {
      .init(channel: .trips, position: JournalPosition(group: group, record: 64), failures: 1, firstTry: time)
    }
    let bus = DeliveryKind.stream.stem("bus")
    for (stem, progress) in [
      ("orders", DeliveryProgress(cursor: position, lanes: [lane(119)])),
      (bus, DeliveryProgress(cursor: position, lanes: [lane(120)], isEnabled: false)),
    ] {
      let extent = ProgressFile.Extent(recovered: 0, newest: 200)
      try #require(try ProgressFile.open(files, stem + ProgressFile.suffix, epoch: "e", extent, nil)).file
        .rewrite(progress)
    }
    try DeadLetterFile(files, bus).append(id: "evt_e_1_2", channel: "trip.T1", reason: "x", at: time)
    #expect(
      try StoredDelivery.all(journal: directory).readable == [
        StoredDelivery(name: "bus", isEnabled: false, position: position, channelsBehind: 0, deadLetters: 1),
        StoredDelivery(name: "orders", isEnabled: true, position: position, channelsBehind: 1, deadLetters: 0),
      ])
    #expect(try StoredDelivery.deadLetters(of: "bus", journal: directory)?.count == 1)
    #expect(try StoredDelivery.deadLetters(of: "orders", journal: directory) == [])
    #expect(try StoredDelivery.deadLetters(of: "ordres", journal: directory) == nil)
    try files.replace("orders" + ProgressFile.suffix, by: Array("damaged\n".utf8))
    let found = try StoredDelivery.all(journal: directory)
    #expect(found.readable.map(\.name) == ["bus"] && found.damaged == ["orders"])
  }
}
