// Each limit of fences in the hub, reached.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct FenceLimitTests {
  let center = at(48.137, 11.575)

  private func bench(_ change: (inout HubLimits) -> Void) -> HubBench {
    var limits = HubLimits.roomy
    change(&limits)
    return HubBench(limits: limits)
  }

  @Test("A driver that is in as many fences as it may enters another one when it has left one")
  func perDriver() {
    let bench = bench { $0.fencesPerDriver = 2 }
    let driver = bench.connect("D")
    bench.turn(bench.subscribe(bench.driver("D")))
    for (name, radius) in [("A", 100.0), ("B", 400), ("C", 400)] { bench.turn(.put(circle(name, center, radius))) }
    let out = bench.stand(driver, at: center, seconds: 3).events(on: bench.driver("D"))
    #expect(out.kinds == ["fence_enter", "fence_enter"])
    #expect(bench.hub.counters.hits(.fencesPerDriver) > 0)
    // The small one is left, and there is room for the last of the large ones.
    let later = bench.drive(driver, from: center, to: center.moved(0, 300)).events(on: bench.driver("D"))
    let received = (out + later).filter { $0.kind == .fenceEnter }.compactMap(\.fence?.fenceID)
    #expect(Set(received) == [id("A"), id("B"), id("C")] || !received.contains(id("A")))
    let stays = bench.hub.fences.stays.count
    #expect(stays == 2)
  }

  @Test("The table of stays is full: the next driver is published when there is room")
  func stays() {
    let bench = bench { $0.fenceStays = 1 }
    let (a, b) = (bench.connect("A"), bench.connect("B", slot: 1))
    bench.turn(.put(circle("F", center, 200)))
    bench.turn(bench.subscribe(bench.channel("F")))
    _ = bench.stand(a, at: center, seconds: 2)
    #expect(bench.stand(b, at: center, seconds: 2).events(on: bench.channel("F")).isEmpty)
    let left = bench.drive(a, from: center, to: center.moved(0, 300)).events(on: bench.channel("F"))
    #expect(left.kinds == ["fence_exit"])
    let entered = bench.stand(b, at: center, seconds: 2).events(on: bench.channel("F"))
    #expect(entered.kinds == ["fence_enter"] && entered.first?.driverID == id("B"))
  }

  @Test("The table of pairs is full: no further one begins")
  func pairs() {
    let bench = bench { $0.fencePairs = 1 }
    let sessions = (0..<3).map { bench.connect("D\($0)", slot: UInt32($0)) }
    bench.turn(.put(roaming("R", 100)))
    bench.turn(bench.subscribe(bench.channel("R")))
    let out = (0..<4).flatMap { _ in sessions.flatMap { bench.stand($0, at: center, seconds: 1) } }
    #expect(out.events(on: bench.channel("R")).kinds == ["fence_enter"])
    #expect(bench.hub.counters.hits(.fencePairs) > 0)
  }

  @Test("Fences and their positions are refused at their limits; one that replaces another is not one more")
  func tables() throws {
    let bench = bench {
      $0.fences = 2
      $0.fencePositions = 12
    }
    func put(_ fence: Fence) -> FenceAnswer? { bench.turn(.put(fence)).all.fenceAnswers.first }
    let ring = stride(from: 0.0, to: 360, by: 36).map { center.moved($0, 500) }
    #expect(put(circle("A", center, 100))?.isNew == true)
    #expect(put(try polygon("B", [ring + [ring[0]]]))?.isNew == true)
    #expect(put(circle("C", center, 100))?.refusal?.message == "fence limit reached (2)")
    #expect(put(circle("A", center, 200))?.isNew == false)
    let refused = put(try polygon("A", [ring + [ring[0]]]))?.refusal
    #expect(refused?.code == .storageFull && refused?.message.contains("12 positions") == true)
    #expect(bench.turn(.ask(.delete(id("B")))).all.fenceAnswers.first?.isDeleted == true)
    #expect(put(try polygon("A", [ring + [ring[0]]]))?.isNew == false)
    #expect(put(circle("C", center, 100))?.isNew == true)
  }

  @Test("Where as many fences are in one place as may be, each of them can be replaced")
  func perCell() {
    let bench = bench { $0.fencesPerCell = 2 }
    func put(_ name: String, _ radius: Double) -> FenceAnswer? {
      bench.turn(.put(circle(name, center, radius))).all.fenceAnswers.first
    }
    #expect(put("A", 100)?.isNew == true && put("B", 100)?.isNew == true)
    #expect(put("C", 100)?.refusal?.code == .storageFull)
    #expect(put("A", 90)?.isNew == false && bench.hub.counters.hits(.fencesPerCell) == 1)
  }

  @Test("A list gives each fence once, newest first, while fences come and go between its pages")
  func pages() throws {
    let bench = HubBench()
    for number in 0..<7 { bench.turn(.put(circle("F\(number)", center, 100))) }
    func page(below number: UInt64) throws -> FenceAnswer {
      try #require(bench.turn(.ask(.list(below: number, limit: 3))).all.fenceAnswers.first)
    }
    let first = try page(below: .max)
    #expect(first.list?.map(\.fence.id) == [id("F6"), id("F5"), id("F4")])
    bench.turn(.ask(.delete(id("F4"))), .ask(.delete(id("F2"))), .put(circle("F9", center, 50)))
    let second = try page(below: try #require(first.next))
    #expect(second.list?.map(\.fence.id) == [id("F3"), id("F1"), id("F0")] && second.next == nil)
  }

  @Test("A page ends where it has so many positions, and has one fence at least")
  func positions() throws {
    let bench = HubBench()
    for number in 0..<5 { bench.turn(.put(circle("F\(number)", center, 100))) }
    let one = try #require(bench.hub.fences.find(id("F0")).map { bench.hub.fences.table[$0].fence.positionCount })
    let each = [1, 1, 1, 1, 1]
    let two = 2 * (one + HubLimits.positionsPerListedFence)
    for (positions, pages) in [(two, [2, 2, 1]), (two - 1, each), (1, each)] {
      var (sizes, below, seen) = ([Int](), UInt64?.some(.max), [Identifier]())
      while let number = below {
        let question = FenceQuestion.list(below: number, limit: 100, positions: positions)
        let page = try #require(bench.turn(.ask(question)).all.fenceAnswers.first)
        let fences = try #require(page.list).map(\.fence.id)
        (sizes, below, seen) = (sizes + [fences.count], page.next, seen + fences)
      }
      #expect(sizes == pages && seen == (0..<5).reversed().map { id("F\($0)") }, "\(positions)")
    }
  }
}
