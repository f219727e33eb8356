// The content of events of one group, on a disk in memory.
import HubBytes
import HubJournalSupport
import HubMessages
import Testing

@testable import HubCore
@testable import HubJournal
@testable import HubWebhooks

@Suite struct LastGroupTests {
  @Test("A group is read once for its events and all webhooks that come to them")
  func once() throws {
    let (disk, limits) = (SimulatedDisk(), JournalLimits())
    var writer = try Recovery(files: disk, limits: limits).run(damage: .refuse) { _ in
    } group: { _, _ in
    }.takeWriter()
    for numbers in [1...3, 4...6] as [ClosedRange<UInt64>] {
      var payload = ByteBuffer()
      for number in numbers {
        let body = HubMessages.Notification(
          kind: .fenceEnter, title: "", body: "b", driverID: nil, leg: nil, sequence: number)
        RecordWriter.write(
          .event(
            Publication(
              channel: .trip(Identifier("T")!), number: number, timestamp: Timestamp(milliseconds: 1),
              body: .notification(body))), into: &payload)
      }
      _ = try payload.withBytes { (bytes) throws(JournalError) in try writer.append(bytes, created: 1) }
    }
    let (shared, start) = (LastGroup(), JournalPosition(group: 1, record: 0))
    let readers = (0..<2).map { _ in
      EventReader(
        EventFilter(channels: [.all])!, ahead: JournalTail(files: disk, limits: limits, next: 1),
        behind: JournalTail(files: disk, limits: limits, next: 1), cursor: start, lastGroup: shared)
    }
    var events: [FoundEvent] = []
    while case .event(_, let event) = try readers[0].scan(from: start, through: 2) { events.append(event) }
    try #require(events.count == 6)
    #expect(try readers[0].publication(of: events[0])?.number == 1)
    disk.files = [:]
    #expect(try readers[0].publication(of: events[1])?.number == 2)
    #expect(try readers[1].publication(of: events[2])?.number == 3)
    #expect(try readers[1].publication(of: events[3]) == nil)
  }
}
