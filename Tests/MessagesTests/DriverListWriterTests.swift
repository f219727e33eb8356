// Lists of drivers in order, and written in pieces.
import HubBytes
import HubGeo
import HubTestSupport
import Testing

@testable import HubMessages

@Suite struct DriverListWriterTests {
  /// Drivers whose distances and ids are often the same, or begin alike.
  private func list(_ count: Int, seed: UInt64, more: Int = 0) throws -> DriverList {
    var random = SplitMix64(seed: seed)
    var ids: Set<String> = []
    while ids.count < count {
      let length = Int.random(in: 1...20, using: &random)
      ids.insert(String((0..<length).compactMap { _ in "-.0AZ_az".randomElement(using: &random) }))
    }
    let drivers = try ids.sorted().shuffled(using: &random).map { id in
      var report = DriverReport(driverID: try #require(Identifier(id)), status: .available)
      report.distance = Double(Int.random(in: 0..<10, using: &random)) / 4
      report.tags = [try #require(InlineText("a \"tag\" of \(id)"))]
      report.position = DriverReport.Place(
        coordinate: Coordinate(clampingLatitude: 52.5, wrappingLongitude: 13.4), heading: nil, speed: 3, accuracy: 5,
        age: 1.5, timestamp: Timestamp(milliseconds: 1_763_680_000_000))
      return report
    }
    return DriverList(drivers: drivers, more: more)
  }

  @Test("the nearest are first, of equal distances the smaller id", arguments: [0, 1, 2, 3, 10, 100, 999])
  func order(count: Int) throws {
    var list = try list(count, seed: UInt64(count))
    let expected = list.drivers.sorted {
      ($0.distance ?? 0, $0.driverID.description) < ($1.distance ?? 0, $1.driverID.description)
    }
    list.sort()
    #expect(list.drivers == expected)
  }

  @Test(
    "pieces of any size are the bytes of the whole, in every form",
    arguments: [MessageForm.binary] + TimeFormat.allCases.map { .json($0) })
  func pieces(form: MessageForm) throws {
    for (count, more) in [(0, 0), (1, 0), (64, 3), (257, 300)] {
      let list = try list(count, seed: 7, more: more)
      var sorted = list
      sorted.sort()
      var whole = ByteBuffer()
      switch form {
      case .json(let time): JSONWriter.writeMembers(.drivers(sorted), time, &whole)
      case .binary: BinaryWriter.write(.drivers(sorted), &whole)
      }
      for size in [1, 3, 64, 1000] {
        var writer = DriverListWriter(list, form: form)
        var pieces = ByteBuffer()
        var written = 0
        while !writer.isDone {
          #expect(writer.left == count - written)
          let piece = writer.write(atMost: size, into: &pieces)
          #expect(piece == min(size, count - written))
          written += piece
        }
        #expect(written == count && pieces.array() == whole.array())
      }
    }
  }
}
