// The search for the highest rate, against hubs of a given capacity.
import Testing

@testable import HubLoadTestKit

@Suite struct RateSearchTests {
  /// Searches with runs that keep the bound up to `limit` fixes a second of a driver, and are valid up to `reach`.
  private func search(first: Double, limit: Double, reach: Double = .infinity) -> RateSearch {
    var search = RateSearch(first: first, bound: 50_000)
    while let rate = search.next {
      var run = sampleRun()
      run.figures[.fixesPerSecond] = rate
      run.figures[.latencyP99] = rate <= limit ? 1000 : 90_000
      run.invalid = rate <= reach ? [] : ["too busy"]
      search.note(run)
    }
    return search
  }

  @Test("it comes within 5 % of the limit, from far below and far above", arguments: [1.0, 30, 1000, 64_000])
  func finds(first: Double) throws {
    let steps = search(first: first, limit: 777).steps
    let best = try #require(steps.filter(\.isKept).map(\.fixesPerSecond).max())
    let least = try #require(steps.filter { !$0.isKept }.map(\.fixesPerSecond).min())
    #expect(best <= 777 && least > 777 && least / best <= 1.05)
    #expect(RateSearch.verdict(steps, bound: 50_000).contains("is the most"))
  }

  @Test("a rate at which less comes in than is offered is above the one that was kept")
  func saturated() throws {
    var search = RateSearch(first: 100, bound: 50_000)
    while let rate = search.next {
      var run = sampleRun()
      // 150 is the most that the hub takes, and of more it takes less.
      run.figures[.fixesPerSecond] = rate <= 150 ? rate : 90
      run.figures[.latencyP99] = rate <= 150 ? 1000 : 90_000
      search.note(run)
    }
    #expect(RateSearch.verdict(search.steps, bound: 50_000).contains("is the most with p99 under"))
    #expect(search.steps.map(\.offered).prefix(2) == [100, 200])
  }

  @Test("where the load is the limit, it says at least, and not the most")
  func reach() {
    let steps = search(first: 10, limit: 1000, reach: 200).steps
    #expect(RateSearch.verdict(steps, bound: 50_000).hasPrefix("at least"))
    #expect(steps.filter(\.isKept).allSatisfy { $0.fixesPerSecond <= 200 })
  }

  @Test("where no rate will do, it ends and says so")
  func nothing() {
    let steps = search(first: 10, limit: 0).steps
    #expect(steps.count == RateSearch.maximumSteps)
    #expect(RateSearch.verdict(steps, bound: 50_000).hasPrefix("no rate"))
    #expect(search(first: 10, limit: 100, reach: 0).steps.count <= RateSearch.maximumSteps)
  }
}

@Suite struct ScheduleTests {
  private var scenario: Scenario {
    var scenario = Scenario()
    scenario.drivers = 4
    scenario.rate = 2
    scenario.warmUp = 1
    scenario.duration = 10
    scenario.churn = 100
    return scenario
  }

  @Test("drivers are spread evenly over an interval, and each is due once in it")
  func due() {
    let schedule = Schedule(scenario, start: 1000)
    #expect((0..<4).map { schedule.due($0, 0) } == [1000, 125_001_000, 250_001_000, 375_001_000])
    #expect(schedule.due(1, 3) == 1000 + 1_625_000_000)
    #expect(schedule.churnDue(5) == 50_001_000)
  }

  @Test("every moment of the window is in one of its parts, and no other is")
  func parts() {
    let schedule = Schedule(scenario, start: 0)
    #expect(schedule.window == 1_000_000_000..<11_000_000_000 && schedule.partCount == 10)
    #expect(schedule.part(of: 999_999_999) == nil && schedule.part(of: 11_000_000_000) == nil)
    #expect(schedule.part(of: 1_000_000_000) == 0 && schedule.part(of: 10_999_999_999) == 9)
    #expect(schedule.part(of: 2_500_000_000) == 1)
  }

  @Test("shares have each session once", arguments: 1...5)
  func shares(count: Int) {
    var seen: [Int] = []
    for index in 0..<count {
      let share = Share(index: index, of: count)
      seen += (0..<share.size(of: 13)).map(share.number)
      for local in 0..<share.size(of: 13) { #expect(share.local(share.number(local)) == local) }
    }
    #expect(seen.sorted() == Array(0..<13))
  }

  @Test("a fix's timestamp says its number, also of phones that measure within their step")
  func numbers() {
    #expect(FixTime.number(FixTime.timestamp(77)) == 77)
    #expect(FixTime.number(FixTime.timestamp(77) + 500) == 77)
    #expect(FixTime.number(5) == nil)
  }
}
