// What a trip's steps write into the journal: one record of the trip for each, whatever the step does.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct TripRecordsTests {
  /// How many records of trips a turn writes.
  private func records(_ bench: DurableBench, _ inputs: [HubInput]) throws -> Int {
    let before = bench.submitted.count
    bench.turn(inputs)
    bench.store()
    var count = 0
    for part in bench.submitted[before...] {
      try part.withUnsafeBytes { bytes in
        var reader = RecordReader(bytes)
        while let record = try DurableRecord.next(from: &reader) { if case .trip = record { count += 1 } }
      }
    }
    return count
  }

  private func unclaimed(_ bench: DurableBench) -> HubInput {
    .tripStatus(
      TripStatusInput(
        session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: Actor(role: .rider, id: id("R")),
        messageID: bench.freshMessage(),
        report: TripStatusReport(tripID: id("T"), status: .requested, timestamp: bench.now.timestamp),
        tripIsGranted: true))
  }

  @Test("Each move of a trip writes one record of it: the first, the one that claims it and the last as well")
  func moves() throws {
    let bench = try DurableBench()
    let requested = unclaimed(bench)
    #expect(try records(bench, [requested]) == 1)
    for status in TripStatus.allCases where status != .requested && status != .cancelled {
      let move = bench.move(.driver, "D", "T", status)
      #expect(try records(bench, [move]) == 1, "\(status)")
    }
    let second = try DurableBench(reading: bench.submitted, seed: 9)
    #expect(try second.state() == bench.state())
  }

  @Test("A trip that ops request, one that a fix begins and one that nobody ends write one record for each step")
  func others() throws {
    let bench = try DurableBench()
    let requested = bench.move(.ops, "o", "T", .requested)
    #expect(try records(bench, [requested]) == 1)
    let session = SessionRef(outlet: 0, slot: 3, generation: 1)
    bench.turn([.driverConnecting(session, id("D"), client: 0)])
    let fix = HubInput.fix(
      FixInput(
        session: session, messageID: bench.freshMessage(), sent: bench.now.timestamp, received: bench.now,
        update: LocationUpdate(
          tripID: id("U"), fix: Fix(coordinate: at(52.5, 13.4), timestamp: bench.now.timestamp)),
        tripIsGranted: true))
    #expect(try records(bench, [fix]) == 1)
    bench.advance(seconds: 86_401)
    #expect(try records(bench, []) == 2, "both are cancelled")
  }

  @Test("The route of an event is read back as it was written: nothing of it is decoded")
  func routes() throws {
    var update = TripUpdate(
      tripID: id("T"), status: .accepted, previousStatus: nil, driverID: nil, timestamp: time(0), location: nil,
      sequence: 1)
    update.route = "no polyline: \u{1F6A7}"
    let event = Publication(channel: .trip(id("T")), number: 1, timestamp: time(0), body: .tripUpdate(update))
    var bytes = ByteBuffer()
    RecordWriter.write(.event(event), into: &bytes)
    let read = try bytes.withBytes { bytes throws(RecordError) in
      var reader = RecordReader(bytes)
      return try DurableRecord.next(from: &reader)
    }
    #expect(read == .event(event))
  }
}
