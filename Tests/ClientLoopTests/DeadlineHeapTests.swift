// Which client is next.
import HubTestSupport
import Testing

@testable import HubClientLoop

@Suite struct DeadlineHeapTests {
  @Test("Times come out in order, and none before it is due")
  func order() {
    var random = SplitMix64(seed: 3)
    var heap = DeadlineHeap()
    var times: [Int64] = []
    for _ in 0..<1000 {
      let time = Int64(random.next() % 500)
      times.append(time)
      heap.insert(.init(time: time, client: 0, kind: 0))
    }
    times.sort()
    var taken: [Int64] = []
    for now in stride(from: Int64(0), through: 504, by: 7) {
      while let entry = heap.take(at: now) {
        #expect(entry.time <= now)
        taken.append(entry.time)
      }
      #expect((heap.first ?? .max) > now)
    }
    #expect(taken == times)
  }
}
