// How long a start takes to read a journal of many trip records: once from segments alone, once from a snapshot.
//
//   hub-microbench recovery [RECORDS]      1,000,000 without; needs some 600 MB in TMPDIR or /tmp, and the like of
//   memory
import HubCore
import HubGeo
import HubMessages

struct RecoveryBench {
  /// Each a record of the trip and one of the event.
  private static let moves: [TripStatus] = [.requested, .accepted, .driverEnRoute, .arrivedPickup]
  private static let turn = 500

  private let journal: BenchJournal
  private let trips: Int

  init(records: Int) throws {
    trips = max(1, records / Self.moves.count)
    journal = try BenchJournal(drivers: 1 << 20, trips: 1 << 20)
  }

  func run() throws {
    defer { journal.removeAll() }
    let last = try write()
    let first = try read()
    print("\(trips * Self.moves.count) trip records in segments: \(first.bytes) bytes, read in \(first.time)")
    try journal.writeSnapshot(through: last)
    print("\(trips) trips in a snapshot: read in \(try read().time)")
  }

  /// A journal of so many moves, made by a hub; its last group.
  private func write() throws -> UInt64 {
    var (first, step) = (0, 0)
    return try journal.write {
      guard first < trips else { return nil }
      let inputs = (first..<min(trips, first + Self.turn)).map { move($0, Self.moves[step]) }
      step += 1
      if step == Self.moves.count { (first, step) = (first + Self.turn, 0) }
      return (inputs, BenchJournal.moment(0))
    }
  }

  private func move(_ trip: Int, _ status: TripStatus) -> HubInput {
    let session = SessionRef(outlet: 0, slot: 0, generation: 1)
    let driver = Identifier("driver-\(trip / 100)")!
    return .tripStatus(
      TripStatusInput(
        session: session, actor: Actor(role: .ops, id: driver), messageID: MessageID("m\(trip)-\(status.rawValue)")!,
        report: TripStatusReport(
          tripID: Identifier("trip-\(trip)")!, status: status,
          timestamp: Timestamp(milliseconds: 1_763_680_000_000),
          pickup: Coordinate(latitude: 52.5, longitude: 13.4), dropoff: Coordinate(latitude: 52.6, longitude: 13.5),
          driverID: driver, riderID: Identifier("rider-\(trip)")!),
        tripIsGranted: true))
  }

  private func read() throws -> BenchJournal.Start {
    try journal.read(at: BenchJournal.moment(0)) {
      precondition($0.shownCounters().entries(.trips) == trips, "all trips are read")
    }
  }
}
