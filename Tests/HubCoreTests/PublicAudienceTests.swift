// What riders see: pseudonyms, rounded places, and answers that give away no more.
import HubBytes
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct SipHashTests {
  /// The reference's vectors_sip64, little-endian: key 00 01 … 0f, input 00 01 … of the length of the index.
  private static let vectors: [UInt64] = [
    0x726f_db47_dd0e_0e31, 0x74f8_39c5_93dc_67fd, 0x0d6c_8009_d9a9_4f5a, 0x8567_6696_d7fb_7e2d,
    0xcf27_94e0_2771_87b7, 0x1876_5564_cd99_a68d, 0xcbc9_466e_58fe_e3ce, 0xab02_00f5_8b01_d137,
    0x93f5_f579_9a93_2462, 0x9e00_82df_0ba9_e4b0, 0x7a5d_bbc5_94dd_b9f3, 0xf4b3_2f46_226b_ada7,
    0x751e_8fbc_860e_e5fb, 0x14ea_5627_c084_3d90, 0xf723_ca90_8e7a_f2ee, 0xa129_ca61_49be_45e5,
  ]

  @Test("the hash is that of the paper and of its reference")
  func reference() throws {
    let key = try #require(SipKey(hexadecimal: "000102030405060708090a0b0c0d0e0f"))
    #expect(key == SipKey(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908))
    for length in 0..<16 {
      var hash = SipHash(key)
      var rest: UInt64 = 0
      for byte in 0..<length {
        rest |= UInt64(byte) << UInt64(8 * (byte % 8))
        if byte % 8 == 7 {
          hash.combine(rest)
          rest = 0
        }
      }
      #expect(hash.finished(rest: rest, count: UInt64(length % 8)) == Self.vectors[length], "\(length)")
    }
    for bad in ["", "00", "000102030405060708090a0b0c0d0e0g", "+00102030405060708090a0b0c0d0e0f"] {
      #expect(SipKey(hexadecimal: bad) == nil)
    }
  }

  @Test("the hash of an id depends on key, id and role alone")
  func ids() throws {
    let (id, other) = (try #require(Identifier("rider-1")), try #require(Identifier("rider-2")))
    let hash = id.hash(as: .rider, by: SipKey(1, 2))
    #expect(hash == id.hash(as: .rider, by: SipKey(1, 2)))
    #expect(hash != id.hash(as: .rider, by: SipKey(1, 3)) && hash != other.hash(as: .rider, by: SipKey(1, 2)))
    #expect(hash != id.hash(as: .ops, by: SipKey(1, 2)))
  }
}

@Suite struct PublicAudienceTests {
  private let audience = PublicAudience(key: SipKey(1, 2))
  private let hour: Int64 = 3_600_000

  @Test("a pseudonym stays for an hour, changes with the full hour for all and after each trip, and needs the key")
  func pseudonyms() {
    var minutes = Set<[Int]>()
    var seen = Set<UInt64>()
    for number in 0..<200 {
      let driver = id("driver-\(number)")
      func name(_ minute: Int64, trip: Int64 = 0) -> UInt64 {
        audience.pseudonym(of: driver, lastTripEnded: trip, at: time(490_000 * hour - 20 * 60_000 + minute * 60_000))
      }
      let names = (0..<180).map { name($0) }
      let changes = (1..<180).filter { names[$0] != names[$0 - 1] }
      minutes.insert(changes)
      #expect(name(0, trip: 5) != name(0) && name(0, trip: 5) != name(0, trip: 6))
      let other = PublicAudience(key: SipKey(1, 3))
      #expect(
        other.pseudonym(of: driver, lastTripEnded: 0, at: time(0))
          != audience.pseudonym(
            of: driver, lastTripEnded: 0, at: time(0)))
      seen.formUnion(names)
    }
    #expect(minutes == [[20, 80, 140]], "all at once")
    #expect(seen.count == 800, "no two alike")
  }

  @Test("a pseudonym is an id of 14 characters that encodes all 64 bits")
  func names() {
    #expect(PublicAudience.name(0).description == "p0000000000000")
    #expect(PublicAudience.name(.max).description == "pgzzzzzzzzzzzz")
    #expect(PublicAudience.name(1).description == "p0000000000001")
    #expect(PublicAudience.name(0x8000_0000_0000_0000).description == "p8000000000000")
  }

  @Test("a place is at most 18 m from the middle of its field, which is the same from everywhere in it")
  func grid() {
    var random = SplitMix64(seed: 8)
    var places = (0..<3_000).map { _ in random.coordinate() }
    places += [at(90, 0), at(-90, 180), at(0, 180), at(0, -180), at(89.99999, 77), at(-89.9, -180)]
    for place in places {
      let shown = PublicGrid.snapped(place)
      #expect(place.distance(to: shown) <= PublicGrid.displacementMeters, "\(place)")
      #expect(PublicGrid.snapped(shown) == shown, "\(place)")
    }
    let middle = PublicGrid.snapped(at(52.52, 13.4))
    for (east, north) in [(9.5, 9.5), (-9.5, 9.5), (9.5, -9.5), (-9.5, -9.5)] {
      let corner = LocalPlane(origin: middle).coordinate(eastMeters: east, northMeters: north)
      #expect(PublicGrid.snapped(corner) == middle)
      let beyond = LocalPlane(origin: middle).coordinate(eastMeters: east, northMeters: north * 1.1)
      #expect(PublicGrid.snapped(beyond) != middle)
    }
  }

  @Test(
    "riders get free drivers under pseudonyms, chosen and measured by their rounded places", arguments: [3_000, 60])
  func answers(candidates: Int) throws {
    var limits = HubLimits.roomy
    limits.queryBudget = SearchBudget(cells: 100, candidates: candidates)
    let bench = HubBench(limits: limits)
    let center = at(52.52, 13.4)
    var random = SplitMix64(seed: 6)
    for number in 0..<300 {
      let session = bench.connect("d\(number)", slot: UInt32(number))
      let report = DriverStatusReport(
        status: number % 4 == 0 ? .unavailable : .available, vehicleType: InlineText("van"), tags: [InlineText("xl")!])
      let place = center.destination(
        bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: .random(in: 0..<900, using: &random))
      bench.turn(
        .driverStatus(session, bench.freshMessage(), report), bench.fix(session, at: place, speed: 7.6, heading: 44.7))
    }
    let shown = (0..<300).filter { $0 % 4 != 0 }.compactMap { number -> Double? in
      bench.report(of: "d\(number)")?.position.map { center.distance(to: PublicGrid.snapped($0.coordinate)) }
    }.sorted()
    func metres(_ search: DriverSearch) throws -> [Double] {
      let list = try #require(bench.ask(search, for: .riders))
      for report in list.drivers {
        let position = try #require(report.position)
        #expect(report.driverID.description.count == 14 && report.status == .available)
        #expect(PublicGrid.snapped(position.coordinate) == position.coordinate)
        #expect(position.accuracy == nil && position.timestamp == nil)
        #expect(report.predicted == nil && report.tags.isEmpty)
        #expect(position.speed == nil && position.heading == nil && position.age == 0)
        #expect(report.vehicleType == InlineText("van") && report.isOnline == nil)
        #expect(report.distance == center.distance(to: position.coordinate).rounded())
      }
      return list.drivers.compactMap(\.distance)
    }
    func expected(_ distances: [Double]) -> [Double] { distances.map { $0.rounded() } }
    let nearest = DriverSearch(area: .nearby(center, radiusMeters: nil), limit: 20)
    #expect(try metres(nearest) == expected(Array(shown.prefix(20))))
    let within = DriverSearch(area: .nearby(center, radiusMeters: 300), limit: nil)
    #expect(try metres(within) == expected(Array(shown.filter { $0 <= 300 }.prefix(100))))
    let box = DriverSearch(area: .box(BoundingBox(center: center, radiusMeters: 2_000)), limit: nil)
    #expect(try metres(box).count == 100 && bench.ask(box, for: .riders)?.more == shown.count - 100)
  }

  @Test("of an online driver a rider learns no age, also by asking with one greatest age after the other")
  func ages() throws {
    let bench = HubBench(sampling: SamplingRules())
    let session = bench.connect("d")
    for _ in 0..<8 {
      bench.turn(bench.fix(session, speed: 0))
      bench.advance(seconds: 4)
    }
    var (shown, known): ([Double?], [Double]) = ([], [])
    for _ in 0..<40 {
      bench.advance(seconds: 7)
      var search = DriverSearch(area: .nearby(at(52.52, 13.405), radiusMeters: 500))
      known.append(try #require(bench.ask(search)?.drivers.first?.position?.age))
      for maxAge in [nil, 0.0, 1, 119, 120, 600] {
        search.filter.maxAge = maxAge
        shown.append(bench.ask(search, for: .riders)?.drivers.first?.position?.age)
      }
    }
    #expect(known.last! > 280, "standing, it may be silent for five minutes")
    #expect(shown.allSatisfy { $0 == 0 })
  }

  @Test("of a crowd at one place a limit lets through now these and now those")
  func ties() {
    let bench = HubBench()
    for driver in 0..<10 { bench.turn(bench.fix(bench.connect("d\(driver)", slot: UInt32(driver)))) }
    let search = DriverSearch(area: .nearby(at(52.52, 13.405), radiusMeters: 500), limit: 1)
    let first = (0..<60).compactMap { _ in bench.ask(search, for: .riders)?.drivers.first?.driverID }
    #expect(first.count == 60 && Set(first).count > 5)
    let ops = (0..<60).compactMap { _ in bench.ask(search)?.drivers.first?.driverID }
    #expect(Set(ops) == [id("d0")], "ops get the same one")
  }

  @Test("after a trip a driver comes back under another name")
  func afterTrip() throws {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(bench.fix(session))
    func name() -> Identifier? {
      bench.ask(DriverSearch(area: .nearby(at(52.52, 13.405), radiusMeters: 500)), for: .riders)?.drivers.first?
        .driverID
    }
    let before = try #require(name())
    #expect(name() == before)
    bench.turn(bench.fix(session, trip: "t"))
    #expect(name() == nil, "on a trip it is not free")
    bench.turn(bench.move(.ops, "o", "t", .cancelled))
    let after = try #require(name())
    #expect(after != before)
  }
}
