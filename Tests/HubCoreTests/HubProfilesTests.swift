// What drivers say of their vehicles: kept once for all that say the same, shown to who asks, and bounded.
import HubBytes
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

private func report(_ type: String? = nil, _ tags: [String]? = nil, _ status: DriverStatus = .available)
  -> DriverStatusReport
{
  DriverStatusReport(
    status: status, vehicleType: type.map { InlineText($0)! }, tags: tags.map { $0.map { InlineText($0)! } })
}

extension HubBench {
  fileprivate func say(_ session: SessionRef, _ report: DriverStatusReport) -> Turn {
    turn(.driverStatus(session, freshMessage(), report))
  }

  fileprivate func shown(_ driver: String) -> DriverReport? {
    report(of: driver)
  }
}

@Suite struct HubProfilesTests {
  @Test("vehicle type and tags stay until the driver says something else of them")
  func kept() {
    let bench = HubBench()
    let session = bench.connect("d")
    #expect(bench.shown("d")?.vehicleType == nil && bench.shown("d")?.tags == [])
    #expect(bench.say(session, report("van", ["xl", "wheelchair"])).acks.count == 1)
    #expect(bench.say(session, report(nil, nil, .background)).acks.count == 1)
    #expect(bench.shown("d")?.vehicleType == InlineText("van"))
    #expect(bench.shown("d")?.tags.map(\.description) == ["xl", "wheelchair"])
    #expect(bench.shown("d")?.status == .background)
    _ = bench.say(session, report("bus"))
    #expect(bench.shown("d")?.vehicleType == InlineText("bus") && bench.shown("d")?.tags.count == 2)
    _ = bench.say(session, report(nil, []))
    #expect(bench.shown("d")?.vehicleType == InlineText("bus") && bench.shown("d")?.tags == [])
  }

  @Test("what a driver's token says of its vehicle holds, also for what filters by it; the rest is the driver's word")
  func claims() {
    let bench = HubBench()
    let session = bench.connect("d")
    bench.turn(bench.fix(session))
    _ = bench.say(session, report("bus", ["xl"]))
    bench.turn(.vehicle(id("d"), VehicleClaims(vehicleType: InlineText("van"))))
    #expect(bench.shown("d")?.vehicleType == InlineText("van") && bench.shown("d")?.tags == [InlineText("xl")!])
    bench.turn(.vehicle(id("d"), VehicleClaims(tags: [])))
    #expect(bench.shown("d")?.vehicleType == InlineText("van") && bench.shown("d")?.tags == [])
    for (type, count) in [("van", 1), ("bus", 0)] {
      let filter = DriverFilter(vehicleType: InlineText(type))
      let search = DriverSearch(area: .nearby(at(52.52, 13.405), radiusMeters: 500), limit: 5, filter: filter)
      #expect(bench.ask(search)?.drivers.count == count, "\(type)")
    }
    bench.turn(.vehicle(id("nobody"), VehicleClaims(tags: [])))
    #expect(bench.hub.shownCounters().entries(.drivers) == 1)
  }

  @Test("where the table has no room for a claim the driver is shown with nothing, not with what it says itself")
  func claimWithoutRoom() {
    var limits = HubLimits.roomy
    limits.profiles = 2
    let bench = HubBench(limits: limits)
    let sessions = (0..<3).map { bench.connect("d\($0)", slot: UInt32($0)) }
    _ = bench.say(sessions[0], report("van"))
    _ = bench.say(sessions[1], report("bus"))
    _ = bench.say(sessions[2], report("bus"))
    bench.turn(.vehicle(id("d2"), VehicleClaims(vehicleType: InlineText("cab"))))
    #expect(bench.shown("d2")?.vehicleType == nil && bench.shown("d1")?.vehicleType == InlineText("bus"))
    #expect(bench.hub.counters.hits(.profiles) == 1)
  }

  @Test("nearby drivers are shown with it")
  func nearby() {
    let bench = HubBench()
    let session = bench.connect("d")
    _ = bench.say(session, report("van", ["xl"]))
    bench.turn(bench.fix(session))
    let reports = bench.nearby(at(52.52, 13.405), radiusMeters: 500, limit: 10) ?? []
    #expect(reports.first?.vehicleType == InlineText("van") && reports.first?.tags == [InlineText("xl")!])
  }

  @Test("what many drivers say is kept once, and goes with the last of them")
  func shared() {
    let bench = HubBench()
    let sessions = (0..<50).map { bench.connect("d\($0)", slot: UInt32($0)) }
    for session in sessions { _ = bench.say(session, report("van", ["xl"])) }
    #expect(bench.hub.drivers.profiles.count == 1)
    for session in sessions.dropFirst() { _ = bench.say(session, report("bus")) }
    #expect(bench.hub.drivers.profiles.count == 2)
    for session in sessions { bench.turn(.driverDisconnected(session)) }
    for _ in 0..<3 { bench.pass(seconds: 86_400) }
    #expect(bench.hub.shownCounters().entries(.drivers) == 0 && bench.hub.drivers.profiles.count == 0)
  }

  @Test("at the limit a new combination is refused and nothing changes; known ones, and changing one's own, go on")
  func limit() {
    var limits = HubLimits.roomy
    limits.profiles = 2
    let bench = HubBench(limits: limits)
    let first = bench.connect("d1", slot: 1)
    let second = bench.connect("d2", slot: 2)
    let third = bench.connect("d3", slot: 3)
    _ = bench.say(first, report("van"))
    _ = bench.say(second, report("bus"))
    let refused = bench.say(third, report("tram", nil, .unavailable))
    #expect(refused.codes == [.storageFull] && refused.errors.first?.retryAfter == 60 && refused.acks.isEmpty)
    #expect(bench.hub.counters.hits(.profiles) == 1)
    #expect(bench.shown("d3")?.vehicleType == nil && bench.shown("d3")?.status == .available)
    #expect(bench.say(third, report(nil, nil, .unavailable)).acks.count == 1)
    #expect(bench.say(third, report("van")).acks.count == 1)
    #expect(bench.say(second, report("ferry")).acks.count == 1, "its own entry is free")
    #expect(bench.say(first, report("sled")).codes == [.storageFull], "the third still has it")
  }

  @Test("the table agrees with a dictionary, whatever drivers say", arguments: 1...6 as ClosedRange<UInt64>)
  func model(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var table = DriverProfileTable(capacity: 6, seed: seed)
    var indices = [Int32](repeating: -1, count: 12)
    var model = [DriverProfile](repeating: DriverProfile(), count: 12)
    let words = ["a", "b", "c"].map { InlineText($0)! }
    for _ in 0..<3000 {
      let driver = Int.random(in: 0..<12, using: &random)
      let profile = DriverProfile(
        vehicleType: Bool.random(using: &random) ? words.randomElement(using: &random) : nil,
        tags: (0..<Int.random(in: 0...2, using: &random)).map { _ in words.randomElement(using: &random)! })
      var after = model
      after[driver] = profile
      let wanted = Set(after.filter { !$0.isEmpty }.map(\.key)).count
      if let index = table.replace(indices[driver], with: profile) {
        indices[driver] = index
        model = after
        #expect(wanted <= 6)
      } else {
        #expect(wanted > 6)
      }
      for (index, profile) in zip(indices, model) { #expect(table.profile(index) == profile) }
      #expect(table.count == Set(model.filter { !$0.isEmpty }.map(\.key)).count)
    }
    for index in indices { table.release(index) }
    #expect(table.count == 0)
  }
}

extension DriverProfile {
  fileprivate var key: String { "\(vehicleType?.description ?? "-")|\(tags.map(\.description))" }
}
