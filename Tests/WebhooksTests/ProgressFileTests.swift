// What is stored of a webhook, on a disk that forgets and tears.
import HubJournal
import HubJournalSupport
import HubMessages
import HubTestSupport
import Testing

@testable import HubWebhooks

@Suite struct ProgressFileTests {
  private let start = DeliveryProgress(cursor: JournalPosition(group: 9, record: 0))

  private func open(
    _ disk: SimulatedDisk, _ request: DeliveryCommand? = nil, epoch: String = "e2", recovered: UInt64 = 100,
    newest: UInt64 = 100, isFirst: Bool = true, hasLost: Bool = false
  ) throws -> ProgressFile.Opened {
    let isNew = try disk.about("orders") == nil
    let extent = ProgressFile.Extent(
      recovered: recovered, newest: isNew ? 8 : newest, isFirst: isFirst, hasLost: hasLost)
    return try #require(try ProgressFile.open(disk, "orders", epoch: epoch, extent, request))
  }

  private func lane(_ name: String, _ group: UInt64, failures: Int = 0) -> DeliveryProgress.Lane {
    .init(
      channel: .trip(Identifier(name)!), position: JournalPosition(group: group, record: 4), failures: failures,
      firstTry: failures > 0 ? Timestamp(milliseconds: 77) : nil)
  }

  private func isSame(_ a: DeliveryProgress, _ b: DeliveryProgress) -> Bool {
    a.cursor == b.cursor && a.isEnabled == b.isEnabled
      && Dictionary(grouping: a.lanes, by: \.channel) == Dictionary(grouping: b.lanes, by: \.channel)
  }

  @Test("Changes are read back as they were written, and a new file begins at the given position")
  func changes() throws {
    let disk = SimulatedDisk()
    let opened = try open(disk, epoch: "e1")
    #expect(opened.progress == start)
    let (a, b) = (lane("A", 10), lane("B", 11, failures: 3))
    #expect(try opened.file.append(cursor: b.position, isEnabled: true, [(a.channel, a), (b.channel, b)]))
    #expect(try opened.file.append(cursor: b.position.next, isEnabled: false, [(a.channel, nil)]))
    let again = try open(disk)
    #expect(again.file.epoch == "e1", "ids stay as they are over a restart")
    #expect(isSame(again.progress, DeliveryProgress(cursor: b.position.next, lanes: [b], isEnabled: false)))
  }

  @Test("A line that is torn or damaged ends the reading, at whatever byte")
  func torn() throws {
    let disk = SimulatedDisk()
    let opened = try open(disk)
    let (a, b) = (lane("A", 10), lane("B", 11))
    let before = try disk.read("orders").count
    #expect(try opened.file.append(cursor: a.position, isEnabled: true, [(a.channel, a)]))
    let whole = try disk.read("orders")
    #expect(try opened.file.append(cursor: b.position, isEnabled: true, [(b.channel, b)]))
    let all = try disk.read("orders")
    for count in whole.count..<(all.count - 1) {
      let read = try #require(ProgressFile.parse(String(decoding: all[..<count], as: UTF8.self)))
      #expect(isSame(read.progress, DeliveryProgress(cursor: a.position, lanes: [a])))
    }
    for index in before..<whole.count where all[index] != 0x0A {
      var damaged = all
      damaged[index] ^= 1
      let read = try #require(ProgressFile.parse(String(decoding: damaged, as: UTF8.self)))
      #expect(isSame(read.progress, start))
    }
  }

  @Test("Of many changes of many channels the newest of each counts")
  func manyChanges() throws {
    let disk = SimulatedDisk()
    let opened = try open(disk)
    var random = SplitMix64(seed: 1)
    var lanes: [Channel: DeliveryProgress.Lane] = [:]
    for number in 0..<DeliveryQueue.maximumLanes {
      let new = lane("L\(number)", 10)
      lanes[new.channel] = new
    }
    try opened.file.rewrite(DeliveryProgress(cursor: start.cursor, lanes: Array(lanes.values)))
    for group in 11..<3000 as Range<UInt64> {
      let new = lane("L\(Int.random(in: 0..<DeliveryQueue.maximumLanes, using: &random))", group)
      lanes[new.channel] = lanes[new.channel] == nil || group % 2 == 0 ? new : nil
      #expect(
        try opened.file.append(cursor: new.position, isEnabled: true, [(new.channel, lanes[new.channel])]))
    }
    let read = try #require(ProgressFile.parse(String(decoding: try disk.read("orders"), as: UTF8.self)))
    #expect(isSame(read.progress, DeliveryProgress(cursor: lane("L", 2999).position, lanes: Array(lanes.values))))
  }

  @Test("After a power cut it continues from what was stored last, or before it, and never from nothing")
  func powerCuts() throws {
    for seed in 0..<200 as Range<UInt64> {
      var random = SplitMix64(seed: seed)
      let disk = SimulatedDisk()
      let opened = try open(disk)
      var synchronized = UInt64(9)
      for group in 10..<40 as Range<UInt64> {
        let next = lane("A", group)
        #expect(try opened.file.append(cursor: next.position, isEnabled: true, [(next.channel, next)]))
        if Int.random(in: 0..<4, using: &random) == 0 {
          try opened.file.synchronize()
          synchronized = group
        }
        if Int.random(in: 0..<8, using: &random) == 0 { break }
      }
      disk.cutPower(&random)
      disk.revive()
      let read = try open(disk)
      #expect(read.progress.cursor.group >= synchronized && read.progress.cursor.group < 40, "seed \(seed)")
    }
  }

  @Test("The file is written anew when it has grown")
  func rewriting() throws {
    let disk = SimulatedDisk()
    let opened = try open(disk)
    let a = lane("A", 10)
    var count = 0
    while try opened.file.append(cursor: a.position, isEnabled: true, [(a.channel, a)]) { count += 1 }
    let size = try disk.read("orders").count
    #expect(count > 1000 && size < ProgressFile.rewriteBytes + 200)
    try opened.file.rewrite(DeliveryProgress(cursor: a.position, lanes: [a]))
    #expect(try disk.read("orders").count < 200)
    let read = try open(disk).progress
    #expect(isSame(read, DeliveryProgress(cursor: a.position, lanes: [a])))
  }

  @Test("What a journal has given up is forgotten, and ids begin anew")
  func startingAnew() throws {
    let disk = SimulatedDisk()
    let opened = try open(disk, epoch: "e1")
    let (old, new) = (lane("A", 5), lane("B", 11))
    #expect(
      try opened.file.append(cursor: new.position.next, isEnabled: true, [(old.channel, old), (new.channel, new)]))
    // What was stored since the start, 9 and 10, is delivered.
    let again = try open(disk, recovered: 8, newest: 10, hasLost: true)
    #expect(again.file.epoch == "e2" && isSame(again.progress, DeliveryProgress(cursor: start.cursor, lanes: [old])))
  }

  @Test("A position that the journal has not come to is of a longer one: it continues with what came since the start")
  func beyond() throws {
    let disk = SimulatedDisk()
    let (old, new) = (lane("A", 5), lane("B", 5000))
    let first = try open(disk, epoch: "e1").file
    #expect(try first.append(cursor: new.position.next, isEnabled: true, [(old.channel, old), (new.channel, new)]))
    for (isFirst, recovered) in [(true, 5000), (false, 8)] as [(Bool, UInt64)] {
      let same = try open(disk, recovered: recovered, newest: 5000, isFirst: isFirst)
      #expect(same.findings == [] && same.file.epoch == "e1" && same.progress.cursor == new.position.next)
    }
    // Also where the journal has come to that number since the start.
    let again = try open(disk, recovered: 8, newest: 6000)
    #expect(again.findings == [.beyondTheJournal(new.position.next)] && again.file.epoch == "e2")
    #expect(isSame(again.progress, DeliveryProgress(cursor: start.cursor, lanes: [old])))
  }

  @Test("What can't be read is left as it is, until an operator says where to begin")
  func unreadable() throws {
    let disk = SimulatedDisk()
    #expect(try open(disk, epoch: "e1").progress == start)
    var bytes = try disk.read("orders")
    bytes[3] ^= 1
    try disk.replace("orders", by: bytes)
    let extent = ProgressFile.Extent(recovered: 100, newest: 100)
    for request in [nil, .enable] as [DeliveryCommand?] {
      #expect(try ProgressFile.open(disk, "orders", epoch: "e2", extent, request) == nil)
      #expect(try disk.read("orders") == bytes)
    }
    let opened = try open(disk, DeliveryCommand("replay evt_e1_7_64"))
    #expect(opened.progress.cursor == JournalPosition(group: 7, record: 64) && opened.file.epoch == "e2")
  }

  @Test("An operator's request enables, or goes back to an event without losing one that was behind")
  func requests() throws {
    let disk = SimulatedDisk()
    let opened = try open(disk)
    let a = lane("A", 5)
    #expect(try opened.file.append(cursor: start.cursor, isEnabled: false, [(a.channel, a)]))
    #expect(DeliveryCommand("enable\n") == .enable && DeliveryCommand("replay 7") == nil && DeliveryCommand("") == nil)
    let (request, foreign) = (DeliveryCommand("replay evt_e2_7_64"), EventID("evt_e1_7_64")!)
    let refused = try open(disk, .replay(from: foreign))
    #expect(refused.findings == [.foreignEvent(foreign)] && !refused.progress.isEnabled)
    #expect(try open(disk, request).progress == DeliveryProgress(cursor: a.position))
    #expect(try open(disk, .replayFrom(JournalPosition(group: 2, record: 8))).progress.cursor.group == 2)
  }
}
