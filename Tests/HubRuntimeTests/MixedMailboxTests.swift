// The queue between a loop and the hub, a turn's batch at a time. Run with the thread sanitizer, too.
import Glibc
import HubBytes
import HubSystem
import HubTestSupport
import Synchronization
import Testing

@testable import HubRuntime

private typealias Numbers = MixedList<Int, Int>

extension Numbers {
  fileprivate init(_ numbers: some Sequence<Int>) {
    self.init()
    for number in numbers { number % 7 == 0 ? append(number) : append(common: number) }
  }

  fileprivate var all: [Int] {
    var numbers: [Int] = []
    var cursor = Cursor()
    while let step = next(&cursor) {
      switch step {
      case .common(let index): numbers.append(self[common: index])
      case .rare(let index): numbers.append(self[rare: index])
      }
    }
    return numbers
  }
}

@Suite struct `Mixed mailbox` {
  @Test func `everything arrives once and in each producer's order`() throws {
    let each = 20_000
    let mailbox = MixedMailbox<Int, Int>(capacity: 500)
    let done = Atomic<Int>(0)
    @Sendable func produce(_ base: Int) {
      var random = SplitMix64(seed: UInt64(base))
      var next = 0
      while next < each {
        let count = min(each - next, Int.random(in: 1...60, using: &random))
        var batch = Numbers(base + next..<base + next + count)
        mailbox.append(whatFitsOf: &batch)
        while !batch.isEmpty {
          sched_yield()
          mailbox.append(whatFitsOf: &batch)
        }
        next += count
      }
      done.add(1, ordering: .releasing)
    }
    let first = try startThread(name: "producer-1") { @Sendable in produce(0) }
    let second = try startThread(name: "producer-2") { @Sendable in produce(1_000_000) }
    var arrived: [[Int]] = [[], []]
    while true {
      let isLast = done.load(ordering: .acquiring) == 2
      var batch = Numbers()
      mailbox.drain(into: &batch)
      #expect(batch.count <= 500)
      for message in batch.all { arrived[message / 1_000_000].append(message % 1_000_000) }
      if isLast { break }
      sched_yield()
    }
    first.join()
    second.join()
    #expect(arrived[0] == Array(0..<each))
    #expect(arrived[1] == Array(0..<each))
  }

  @Test func `a full mailbox takes what it has room for and leaves the rest with the producer, in order`() {
    let mailbox = MixedMailbox<Int, Int>(capacity: 10)
    var batch = Numbers(0..<4)
    mailbox.append(whatFitsOf: &batch)
    #expect(batch.count == 0)
    batch = Numbers(4..<24)
    mailbox.append(whatFitsOf: &batch)
    #expect(batch.all == Array(10..<24))
    mailbox.append(whatFitsOf: &batch)
    #expect(batch.count == 14)
    var taken = Numbers()
    mailbox.drain(into: &taken)
    #expect(taken.all == Array(0..<10))
    taken.removeAll()
    mailbox.append(whatFitsOf: &batch)
    mailbox.drain(into: &taken)
    #expect(taken.all == Array(10..<20))
    #expect(batch.all == Array(20..<24))
  }

  @Test func `the memory of a stall is freed once batches are small again`() {
    let mailbox = MixedMailbox<Int, Int>(capacity: 1 << 20)
    var batch = Numbers(0..<100_000)
    var taken = Numbers()
    mailbox.append(whatFitsOf: &batch)
    for round in 0..<4 {
      mailbox.drain(into: &taken)
      taken.removeAll()
      batch.append(round)
      mailbox.append(whatFitsOf: &batch)
    }
    mailbox.drain(into: &taken)
    let capacity = max(batch.capacity, taken.capacity)
    #expect(taken.all == [3] && capacity < 100)
  }
}
