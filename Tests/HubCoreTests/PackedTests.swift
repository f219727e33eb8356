// Optionals in the bytes of their values, and the records that consist of them.
import HubBytes
import HubGeo
import HubMessages
import Testing

@testable import HubCore

@Suite struct PackedTests {
  private struct Record {
    @Packed var time: Timestamp?
    @Packed var uptime: Int64?
    @Packed var meters: Double?
    @Packed var handle: Handle?
    @Packed var session: SessionRef?
    @PackedIndex var index: Int?
    @PackedPlace var place: Coordinate?
  }

  @Test("each is nil at first, has what it is given, and takes the bytes of that")
  func values() {
    var record = Record()
    #expect(record.time == nil && record.uptime == nil && record.meters == nil && record.handle == nil)
    #expect(record.session == nil && record.index == nil && record.place == nil)
    for _ in 0..<2 {
      (record.time, record.uptime, record.meters) = (Timestamp(milliseconds: 0), -1, 0)
      record.handle = Handle(index: 0, generation: 1)
      record.session = SessionRef(outlet: 0, slot: 0, generation: 0)
      (record.index, record.place) = (0, Coordinate(latitude: 0, longitude: -180))
      #expect(record.time?.milliseconds == 0 && record.uptime == -1 && record.meters == 0)
      #expect(record.handle?.generation == 1 && record.session?.slot == 0 && record.index == 0)
      #expect(record.place?.longitude == -180)
      record = Record()
      #expect(record.time == nil && record.uptime == nil && record.meters == nil && record.handle == nil)
      #expect(record.session == nil && record.index == nil && record.place == nil)
    }
    #expect(MemoryLayout<Record>.size == 8 + 8 + 8 + 8 + 12 + 4 + 16)
  }

  @Test("the records of which there are a million take no more than is said of them")
  func sizes() {
    #expect(MemoryLayout<Driver>.stride <= 624)
    #expect(MemoryLayout<Trip>.stride <= 400)
    #expect(MemoryLayout<ChannelRecord>.stride <= 96)
    #expect(MemoryLayout<FixOrder>.stride <= 56)
  }
}

@Suite struct KeptEventsTests {
  private func event(_ number: UInt64, route: Int = 0) throws -> Publication {
    let trip = try #require(Identifier("trip-\(number)"))
    var update = TripUpdate(
      tripID: trip, status: .accepted, previousStatus: nil, driverID: nil, timestamp: Timestamp(milliseconds: 1),
      location: nil, sequence: number)
    if route > 0 { update.route = String(repeating: "?", count: route) }
    return Publication(
      channel: .trip(trip), number: number, timestamp: Timestamp(milliseconds: 2), body: .tripUpdate(update))
  }

  @Test("events come back in order; the oldest goes first, with its node")
  func order() throws {
    var kept = KeptEvents()
    for number in 1...9 as ClosedRange<UInt64> { kept.append(try event(number), node: UInt32(number) * 10) }
    #expect(kept.count == 9)
    #expect(kept.removeFirst() == (node: 10, contentBytes: 0))
    #expect(kept.suffix(3).map(\.number) == [7, 8, 9] && kept.suffix(20).map(\.number) == Array(2...9))
    #expect(kept.suffix(0).isEmpty)
    var (offset, numbers) = (0, [UInt64]())
    for _ in 0..<kept.count { numbers.append(kept.next(&offset).number) }
    #expect(numbers == Array(2...9))
    #expect(kept.suffix(1).first?.channel == .trip(try #require(Identifier("trip-9"))))
    #expect(kept.removeAll().map(\.node) == (2...9).map { $0 * 10 })
    #expect(kept.isEmpty && kept.suffix(5).isEmpty)
  }

  @Test("of a long row the oldest go one by one, with the bytes of their contents, and the rest stay in order")
  func row() throws {
    var kept = KeptEvents()
    for number in 1...100 as ClosedRange<UInt64> {
      kept.append(try event(number, route: 2 * Int(number)), node: UInt32(number))
      guard number > 10 else { continue }
      let oldest = UInt32(number) - 10
      #expect(kept.removeFirst() == (node: oldest, contentBytes: 2 * oldest))
      #expect(kept.count == 10 && kept.suffix(2).map(\.number) == [number - 1, number])
      #expect(kept.suffix(10).first?.number == number - 9)
    }
  }
}

@Suite struct ActiveTripsTests {
  @Test("A journal with more active trips than may begin now is read, with who drives them")
  func moreThanMayBegin() throws {
    let bench = try DurableBench()
    bench.store()
    let trips = ["T0", "T1", "T2"]
    for trip in trips {
      bench.turn([bench.move(.ops, "o", trip, .requested), bench.move(.driver, "D", trip, .accepted)])
      bench.store()
    }
    #expect(statuses(of: trips, bench) == [.accepted, .accepted, .accepted])
    var limits = HubLimits.roomy
    limits.trips = 2
    let next = try DurableBench(reading: bench.submitted, limits: limits)
    next.store()
    #expect(statuses(of: trips, next) == [.accepted, .accepted, .accepted])
    #expect(try activeTrip(of: "D", next) == nil, "it has three")
    next.advance(seconds: 1)  // or the moves would have the ids of those before
    next.turn([next.move(.ops, "o", "T0", .cancelled), next.move(.ops, "o", "T1", .cancelled)])
    #expect(statuses(of: trips, next) == [.cancelled, .cancelled, .accepted])
    let last = next.hub.trips.find(id("T2"))
    #expect(try activeTrip(of: "D", next) == last)
  }

  private func statuses(of trips: [String], _ bench: DurableBench) -> [TripStatus?] {
    trips.map { trip in bench.hub.trips.find(id(trip)).map { bench.hub.trips[$0].status } }
  }

  private func activeTrip(of driver: String, _ bench: DurableBench) throws -> Int? {
    let found = bench.hub.drivers.find(id(driver))
    return bench.hub.trips.onlyActive(of: bench.hub.drivers.handle(of: try #require(found)))
  }
}
