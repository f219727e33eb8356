// Offers over the hub's own death: none is made before it is stored, none twice to one driver, and each search ends.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct OfferDurabilityTests {
  private func follow(_ bench: DurableBench, drivers: Int) {
    for number in 1...drivers {
      bench.turn([bench.subscribe(.driver(id("D\(number)")), slot: UInt32(number) + 200)])
    }
    bench.store()
  }

  private func place(_ bench: DurableBench, drivers: Int) {
    for number in 1...drivers {
      let session = SessionRef(outlet: 0, slot: UInt32(number), generation: UInt32(bench.submitted.count + 1))
      bench.turn([.driverConnecting(session, id("D\(number)"))])
      bench.turn([
        .fix(
          FixInput(
            session: session, messageID: bench.freshMessage(), sent: bench.now.timestamp, received: bench.now,
            update: LocationUpdate(
              fix: Fix(
                coordinate: offerPickup.moved(90, Double(number) * 100), timestamp: bench.now.timestamp, accuracy: 5)),
            tripIsGranted: false))
      ])
    }
    bench.store()
  }

  private func request(_ bench: DurableBench, _ criteria: OfferCriteria) -> [HubOutput] {
    bench.turn([
      requested("T", by: Actor(role: .ops, id: id("o")), criteria, at: bench.now, message: bench.freshMessage())
    ])
  }

  private func next(_ bench: DurableBench, after seconds: Double) throws -> DurableBench {
    let next = try DurableBench(
      reading: bench.submitted, uptime: bench.now.uptime + Int64(seconds * 1e9))
    next.store()
    follow(next, drivers: 3)
    return next
  }

  @Test("An offer is stored before its driver hears of it")
  func waits() throws {
    let bench = try DurableBench()
    place(bench, drivers: 2)
    follow(bench, drivers: 2)
    #expect(heard(request(bench, OfferCriteria())).isEmpty)
    #expect(heard(bench.store()) == [Heard("D1", "T", "made")])
  }

  @Test("A trip that is cancelled is offered to nobody, however little room its records find")
  func cancelled() throws {
    for limit in stride(from: 100, to: 1500, by: 20) {
      let bench = try DurableBench()
      bench.hub.attachJournal(limit: limit, startsEpoch: true, epoch: InlineText("e")!)
      place(bench, drivers: 1)
      follow(bench, drivers: 1)
      let asked = requested(
        "T", by: Actor(role: .ops, id: id("o")), OfferCriteria(), at: bench.now, message: bench.freshMessage())
      var all = bench.turn([asked, bench.move(.ops, "o", "T", .cancelled)])
      let trip = bench.hub.trips.find(id("T"))
      let isCancelled = trip.map { bench.hub.trips[$0].status } == .cancelled
      for _ in 0..<3 { all += bench.store() + bench.turn([]) }
      #expect(!isCancelled || heard(all).isEmpty, "\(limit)")
      let isIdle = bench.hub.offers.isIdle
      #expect(!isCancelled || isIdle, "\(limit)")
    }
  }

  @Test("After a kill the driver that was asked keeps the rest of its time, and is not asked again")
  func rest() throws {
    let bench = try DurableBench()
    place(bench, drivers: 3)
    _ = request(bench, OfferCriteria())
    bench.store()
    let second = try next(bench, after: 5)
    var all: [HubOutput] = []
    for _ in 0..<9 {
      second.advance(seconds: 1)
      all += second.turn([]) + second.store()
    }
    #expect(heard(all).isEmpty, "14 s have passed")
    for _ in 0..<3 {
      second.advance(seconds: 1)
      all += second.turn([]) + second.store()
    }
    #expect(heard(all) == [Heard("D1", "T", "expired"), Heard("D2", "T", "made")])
    let accepted = second.turn([
      .tripStatus(
        TripStatusInput(
          session: SessionRef(outlet: 0, slot: 90, generation: 1), actor: Actor(role: .driver, id: id("D2")),
          messageID: second.freshMessage(),
          report: TripStatusReport(tripID: id("T"), status: .accepted, timestamp: second.now.timestamp),
          tripIsGranted: false))
    ])
    #expect(Turn(loops: [accepted + second.store()]).acks.count == 1)
  }

  @Test("Who was asked and whose time passed while the hub was down counts as silent")
  func silent() throws {
    let bench = try DurableBench()
    place(bench, drivers: 3)
    _ = request(bench, OfferCriteria(atOnce: 2))
    bench.store()
    let second = try next(bench, after: 40)
    second.advance(seconds: 2)
    #expect(
      heard(second.turn([]) + second.store()) == [
        Heard("D1", "T", "expired"), Heard("D2", "T", "expired"), Heard("D3", "T", "made"),
      ])
  }

  @Test("After a restart, a driver that cannot resume is sent another hub's open offer again, as it was last")
  func ofOthers() throws {
    let bench = try DurableBench(loops: 2)
    bench.hub.joinCluster(outlet: 1)
    place(bench, drivers: 1)
    follow(bench, drivers: 1)
    let asked = AskedDriver(
      id: id("D1"), driver: nil, offered: bench.now.timestamp, expires: bench.now.timestamp, deadline: 0, answer: .open)
    let search = OfferSearch(ofOther: id("T"), at: bench.now.timestamp)
    let pickup = offerPickup.moved(90, 2000)
    for place in [offerPickup, pickup] {
      let offer = SentOffer(asked, of: search, pickup: place, dropoff: offerPickup)
      #expect(heard(bench.turn([.offer(.nobody, offer)]) + bench.store()) == [Heard("D1", "T", "made")])
    }
    let second = try next(bench, after: 5)
    let own = SubscribeInput(
      session: SessionRef(outlet: 0, slot: 70, generation: 1), actor: Actor(role: .driver, id: id("D1")),
      messageID: second.freshMessage(), request: Subscribe(channel: .driver(id("D1"))), grant: .granted)
    let offers = (second.turn([.subscribe(own)]) + second.store()).compactMap { output -> Offer.Terms? in
      guard case .delivery(let delivery) = output, case .offer(let offer) = delivery.publication.body,
        case .made(let terms) = offer.state
      else { return nil }
      return terms
    }
    #expect(offers.map(\.pickup) == [pickup] && offers.map(\.dropoff) == [offerPickup])
  }

  @Test("A driver that its own hub has passed over does not count as asked after a restart either")
  func passed() throws {
    let asked = OffersReport.Asked(
      driverID: id("D1"), offered: time(0), expires: time(15_000), answer: .withdrawn(.unavailable))
    let report = OffersReport(
      tripID: id("T"), criteria: OfferCriteria(limit: 1), began: time(0), end: nil, asked: [asked])
    var search = OfferSearch(DurableOffers(asker: 1, key: 2, report: report), trip: OfferSearch.noTrip)
    #expect(search.wanted == 0)
    search.asked[0].isPassed = true
    var bytes = ByteBuffer()
    RecordWriter.write(.offers(search.durable), into: &bytes)
    let read = try bytes.withBytes { bytes throws(RecordError) in
      var reader = RecordReader(bytes)
      return try DurableRecord.next(from: &reader)
    }
    guard case .offers(let durable) = read else {
      Issue.record("\(String(describing: read))")
      return
    }
    #expect(OfferSearch(durable, trip: OfferSearch.noTrip).wanted == 1)
  }

  @Test("A snapshot holds the same as the records it stands for")
  func snapshots() throws {
    let bench = try DurableBench()
    place(bench, drivers: 3)
    _ = request(bench, OfferCriteria(atOnce: 2, vehicleType: nil))
    bench.store()
    let (records, snapshot) = (try DurableBench(reading: bench.submitted), try DurableBench(reading: bench.snapshot()))
    #expect(try records.state() == snapshot.state())
    #expect(try records.state() == bench.state())
  }

  @Test("Offers are shown as JSON")
  func json() throws {
    let bench = try DurableBench()
    place(bench, drivers: 1)
    _ = request(bench, OfferCriteria())
    var text = ByteBuffer()
    for record in bench.submitted {
      try record.withUnsafeBytes { bytes in
        try RecordJSON.check(bytes)
        try RecordJSON.write(bytes, group: 1, into: &text)
      }
    }
    let lines = String(decoding: text.array(), as: UTF8.self)
    #expect(lines.contains(#""record":"offers","offers":{"tripId":"T","state":"open""#))
    #expect(lines.contains(#""type":"offer","payload":{"channel":"driver:D1","tripId":"T""#))
  }
}
