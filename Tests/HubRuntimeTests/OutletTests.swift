import HubCore
import HubSystem
import HubTestSupport
import Testing

@testable import HubRuntime

@Suite struct OutletTests {
  @Test("What several threads add to an atomic outlet set is taken once, and nothing of it is lost")
  func atomicSet() throws {
    let shared = SharedOutlets()
    let threads = try (0..<4).map { first in
      Joinable(
        try startThread(name: "adds") {
          for outlet in stride(from: first, to: OutletSet.capacity, by: 4) { shared.set.insert(outlet) }
        })
    }
    var taken: [Int] = []
    func take() {
      var some = shared.set.takeAll()
      while let outlet = some.popFirst() { taken.append(outlet) }
    }
    for _ in 0..<1000 { take() }
    for thread in threads { thread.join() }
    take()
    #expect(taken.sorted() == Array(0..<OutletSet.capacity))
    #expect(shared.set.takeAll().isEmpty)
  }
}

/// For threads to share.
private final class SharedOutlets: Sendable {
  let set = AtomicOutletSet()
}
