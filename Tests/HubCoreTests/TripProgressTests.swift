// What a trip's summary counts, and that all of it comes back from a record to the bit.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

private let rules = TripRules()

/// A published position, `north` metres from the start.
private func position(_ seconds: Double, _ north: Double, speed: Double? = 10) -> Position {
  Position(
    coordinate: LocalPlane(origin: at(48.1, 11.5)).coordinate(eastMeters: 0, northMeters: north), speed: speed,
    heading: 0, accuracy: 5, confidence: .high, timestamp: .test(seconds))
}

extension TripProgress {
  fileprivate mutating func follow(_ track: [Position], status: TripStatus) {
    for position in track { follow(position, after: nil, status: status, maximumSpeed: 90, rules: rules) }
  }
}

@Suite struct TripProgressTests {
  @Test("a ride has its metres, its seconds, its fixes; the way before its start is its approach")
  func ride() {
    var progress = TripProgress()
    progress.follow((0...50).map { position(Double($0), 10 * Double($0)) }, status: .driverEnRoute)
    progress.move(to: .arrivedPickup, at: .test(51))
    progress.move(to: .tripStarted, at: .test(60))
    progress.follow((60...160).map { position(Double($0), 500 + 20 * Double($0 - 60)) }, status: .tripStarted)
    progress.move(to: .arrivedDestination, at: .test(161.5))
    progress.move(to: .completed, at: .test(300))
    let summary = progress.summary
    #expect(abs(summary.approach - 500) < 0.2 && abs(summary.distance - 2000) < 0.2)
    #expect(abs(summary.track - 2500) < 0.2)
    #expect(summary.duration == 101.5 && summary.waiting == 0)
    #expect(summary.fixes == 152 && summary.gaps == 0 && summary.gapDuration == 0)
  }

  @Test("fixes of drivers who may take a trip count from when one has it")
  func unclaimed() {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(bench.move(.rider, "r", "t", .requested))
    let start = at(48.1, 11.5)
    _ = bench.drive(session, from: start, to: start.moved(0, 500), trip: "t")
    let unclaimed = bench.hub.trips[0].progress
    #expect(unclaimed == TripProgress())
    bench.turn(bench.move(.driver, "d", "t", .accepted))
    _ = bench.drive(session, from: start.moved(0, 500), to: start.moved(0, 800), trip: "t")
    let summary = bench.hub.trips[0].progress.summary
    #expect((280...310).contains(summary.approach))
  }

  @Test("waiting is standing still from arrived_pickup on; standing in the approach is not, nor is an unknown speed")
  func waiting() {
    var progress = TripProgress()
    progress.follow((0...30).map { position(Double($0), 0, speed: 0) }, status: .driverEnRoute)
    #expect(progress.summary.waiting == 0)
    progress.follow((40...50).map { position(Double($0), 0, speed: 0.9) }, status: .arrivedPickup)
    #expect(progress.summary.waiting == 20, "from the last fix before it on")
    progress.follow([position(51, 0, speed: 1), position(52, 0, speed: 0)], status: .tripStarted)
    #expect(progress.summary.waiting == 20, "only between two fixes that stand")
    progress.follow([position(60.25, 0, speed: 0)], status: .tripStarted)
    #expect(progress.summary.waiting == 28.25)
    progress.follow([position(70, 0, speed: nil), position(80, 0, speed: 0)], status: .tripStarted)
    #expect(progress.summary.waiting == 28.25)
  }

  @Test("a gap is a pause longer than a minute between fixes; it is no waiting, and a clock set back is none")
  func gaps() {
    var progress = TripProgress()
    progress.follow([position(0, 0, speed: 0), position(60, 0, speed: 0)], status: .tripStarted)
    #expect(progress.summary.gaps == 0 && progress.summary.waiting == 60)
    progress.follow([position(120.001, 0, speed: 0)], status: .tripStarted)
    #expect(progress.summary.gaps == 1 && progress.summary.gapDuration == 60.001)
    #expect(progress.summary.waiting == 60)
    progress.follow([position(20, 0), position(400, 2000)], status: .tripStarted)
    #expect(progress.summary.gaps == 2 && progress.summary.gapDuration == 440.001)
  }

  @Test("a trip that was cancelled under way ends then; one that never started has no duration")
  func cancelled() {
    var progress = TripProgress()
    progress.move(to: .tripStarted, at: .test(10))
    progress.move(to: .cancelled, at: .test(25))
    #expect(progress.summary.duration == 15)
    var unused = TripProgress()
    unused.move(to: .cancelled, at: .test(25))
    #expect(unused.summary.duration == 0 && unused.summary.fixes == 0)
    var strange = TripProgress()
    strange.move(to: .tripStarted, at: .test(10))
    strange.move(to: .arrivedDestination, at: .test(5))
    #expect(strange.summary.duration == 0, "clocks of two senders need not agree")
  }

  @Test("a pace is a mean at first and forgets with its time constant; standing makes it slow, and never nothing")
  func pace() {
    var pace = Pace()
    #expect(pace.expected(rules) == rules.firstPace)
    for _ in 0..<20 { pace.follow(speed: 12, seconds: 1, rules: rules) }
    #expect(abs(pace.expected(rules) - 112.0 / 11) < 1e-9, "of 20 s of 8 m/s that were assumed 5/6, and 20 s of 12")
    for _ in 0..<100 { pace.follow(speed: 12, seconds: 1, rules: rules) }
    #expect(abs(pace.expected(rules) - 12) < 1e-9, "after two minutes nothing is left of what was assumed")
    for _ in 0..<600 { pace.follow(speed: 12, seconds: 1, rules: rules) }
    #expect(abs(pace.expected(rules) - 12) < 0.05)
    for _ in 0..<60 { pace.follow(speed: 0, seconds: 2, rules: rules) }
    #expect(abs(pace.expected(rules) / 12 - 0.368) < 0.01, "120 s later 1/e is left")
    for _ in 0..<600 { pace.follow(speed: 0, seconds: 2, rules: rules) }
    #expect(pace.expected(rules) == rules.slowestPace)
  }

  @Test("progress comes back from its record to the bit, at every stage of random drives")
  func records() throws {
    var random = SplitMix64(seed: 11)
    for _ in 0..<50 {
      var trip = DurableTrip(
        id: id("t"), number: 7, created: .test(0), updated: .test(1), begunBy: .rider, status: .tripStarted,
        changed: .test(0), recentMoves: [1, 2])
      var seconds = 0.0
      var north = 0.0
      for step in 0..<40 {
        if step == 10 { trip.progress.move(to: .tripStarted, at: .test(seconds)) }
        if step == 30 { trip.progress.move(to: .arrivedDestination, at: .test(seconds)) }
        seconds += .random(in: -2...90, using: &random)
        north += .random(in: 0...500, using: &random)
        let speed = Bool.random(using: &random) ? Double.random(in: 0...20, using: &random) : nil
        trip.progress.follow([position(seconds, north, speed: speed)], status: step < 10 ? .accepted : .tripStarted)
        trip.progress.notices = TripNotices(rawValue: .random(in: 0..<32, using: &random))
        var bytes = ByteBuffer()
        RecordWriter.write(.trip(trip), into: &bytes)
        let read = try bytes.withBytes { bytes throws(RecordError) in
          var reader = RecordReader(bytes)
          return try DurableRecord.next(from: &reader)
        }
        #expect(read == .trip(trip))
      }
    }
  }
}
