// What trips take while the hub runs for weeks, and where they are when it has forgotten them: in the journal.
import HubBytes
import HubGeo
import HubMessages
import Testing

@testable import HubCore

@Suite struct HubForgettingTests {
  private static let moves: [TripStatus] = [
    .requested, .accepted, .driverEnRoute, .arrivedPickup, .tripStarted, .arrivedDestination, .completed,
  ]

  /// Trips that are driven to their end, and a day and a bit without any.
  private func day(_ bench: DurableBench, trips: Range<Int>) {
    for trip in trips {
      for status in Self.moves {
        bench.advance(seconds: 1)
        bench.turn([bench.move(.ops, "o", "T\(trip)", status), bench.fix(bench.clock, trip: "T\(trip)")])
      }
    }
    bench.store()
    for _ in 0..<25 * 60 {
      bench.advance(seconds: 60)
      bench.turn([])
      bench.store()
    }
  }

  /// The trip as the journal has it last.
  private func stored(_ trip: String, in bench: DurableBench) throws -> StoredTrip? {
    var found: StoredTrip?
    for group in bench.submitted {
      try group.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
        var offsets: [Int] = []
        DurableKeys.forEach(in: bytes) { key, offset in if key == DurableKeys.trip(id(trip)) { offsets.append(offset) }
        }
        for offset in offsets {
          guard let (_, next) = DurableKeys.record(in: bytes, at: offset) else { continue }
          found = try StoredTrip(record: UnsafeRawBufferPointer(rebasing: bytes[offset..<next])) ?? found
        }
      }
    }
    return found
  }

  @Test("Trips that ended give their memory back after a day, to the next day's, and stay in the journal as they ended")
  func trips() throws {
    let bench = try DurableBench()
    bench.connect()
    day(bench, trips: 0..<40)
    let (slots, channels) = (bench.hub.trips.endIndex, bench.hub.shownCounters().entries(.channels))
    let eventsOfDriver = HubLimits.roomy.eventsPerChannel
    for next in 1...5 as ClosedRange<Int> {
      #expect(bench.hub.shownCounters().entries(.trips) == 0 && bench.hub.trips.legs.count == 0)
      let counters = bench.hub.shownCounters()
      #expect(counters.entries(.channels) == channels && counters.entries(.events) <= eventsOfDriver)
      day(bench, trips: next * 40..<(next + 1) * 40)
    }
    #expect(bench.hub.trips.endIndex == slots, "the slots of those before are used again")
    let ofTrips = try bench.state().filter { record in
      switch record {
      case .trip, .channel(.trip, _): true
      case .event(let event): if case .trip = event.channel { true } else { false }
      default: false
      }
    }
    #expect(ofTrips.count == 0, "a snapshot has nothing of them")
    #expect(try DurableBench(reading: bench.submitted, seed: 2).state() == bench.state())
    for trip in [0, 39, 40, 239] {
      let stored = try stored("T\(trip)", in: bench)
      #expect(stored?.report.status == .completed && stored?.report.summary != nil)
    }
  }
}
