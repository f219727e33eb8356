// How long a start takes, and what it holds then, where a journal knows very many drivers that drive about: once from
// segments alone, once from a snapshot.
//
//   hub-microbench start [DRIVERS]      1,000,000 without; needs some 800 MB in TMPDIR or /tmp, and 3 GB of memory
import HubCore
import HubGeo
import HubMessages

struct StartBench {
  private static let turn = 500

  private let journal: BenchJournal
  private let drivers: Int

  init(drivers: Int) throws {
    self.drivers = max(1, drivers)
    journal = try BenchJournal(drivers: self.drivers, trips: 1000)
  }

  func run() throws {
    defer { journal.removeAll() }
    let last = try journal.write(turns(minutes: 2))
    print("\(drivers) drivers with two fixes each in segments: \(try read(minutes: 2))")
    let bytes = try journal.writeSnapshot(through: last)
    print("\(drivers) drivers in a snapshot of \(bytes) bytes: \(try read(minutes: 2))")
  }

  private func read(minutes: Int) throws -> String {
    let start = try journal.read(at: BenchJournal.moment(minutes * 60)) {
      precondition($0.shownCounters().entries(.drivers) == drivers, "all drivers are read")
    }
    return "\(start.bytes) bytes of segments, read in \(start.time), \(start.residentMegabytes) MB resident"
  }

  /// Each driver sends a fix a minute, spread over cities of ten kilometres.
  private func turns(minutes: Int) -> () -> (inputs: [HubInput], now: Moment)? {
    var (minute, first) = (0, 0)
    return {
      if first >= drivers { (minute, first) = (minute + 1, 0) }
      guard minute < minutes else { return nil }
      let now = BenchJournal.moment(minute * 60)
      var inputs: [HubInput] = []
      for driver in first..<min(drivers, first + Self.turn) {
        let session = SessionRef(outlet: 0, slot: UInt32(driver), generation: 1)
        if minute == 0 { inputs.append(.driverConnecting(session, Identifier("driver-\(driver)")!)) }
        inputs.append(fix(driver, minute: minute, session, now))
      }
      first += Self.turn
      return (inputs, now)
    }
  }

  private func fix(_ driver: Int, minute: Int, _ session: SessionRef, _ now: Moment) -> HubInput {
    // Weyl sequences: spread evenly, and the same in each run.
    let (city, number) = (driver / 10_000, Double(driver % 10_000))
    let latitude = Double(city % 100) - 50 + (number * 0.618_033_988).truncatingRemainder(dividingBy: 1) * 0.1
    let longitude = Double(city / 100) + (number * 0.414_213_562).truncatingRemainder(dividingBy: 1) * 0.1
    let place = Coordinate(latitude: latitude + Double(minute) * 0.001, longitude: longitude)!
    return .fix(
      FixInput(
        session: session, messageID: MessageID("m")!, sent: now.timestamp, received: now,
        update: LocationUpdate(
          tripID: nil, fix: Fix(coordinate: place, timestamp: now.timestamp, accuracy: 5, heading: 0, speed: 2)),
        tripIsGranted: false))
  }
}
