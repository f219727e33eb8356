// Jobs between threads.
import HubSystem
import Testing

@Suite struct JobQueueTests {
  @Test("jobs are taken in order, and no more wait than may")
  func order() {
    let queue = JobQueue<Int>(capacity: 3)
    for round in 0..<10 {
      for job in 0..<3 { #expect(queue.append(round * 3 + job)) }
      #expect(!queue.append(-1))
      for job in 0..<3 { #expect(queue.next() == round * 3 + job) }
    }
  }

  @Test("a job may go before all that wait, within the same limit")
  func next() {
    let queue = JobQueue<Int>(capacity: 3)
    #expect(queue.append(1) && queue.append(2) && queue.append(0, isNext: true) && !queue.append(-1, isNext: true))
    #expect(queue.next() == 0 && queue.next() == 1)
    #expect(queue.append(3) && queue.append(1, isNext: true))
    #expect((0..<3).map { _ in queue.next() } == [1, 2, 3])
    #expect(queue.append(4) && queue.next() == 4)
  }

  @Test("a taker that waits already is given the job that comes then, and is let go when the queue is closed")
  func waiting() throws {
    let queue = JobQueue<Int>(capacity: 3)
    let taken = Locked([Int]())
    let taker = try startThread(name: "taker") {
      while let job = queue.next() { taken.withLock { $0.append(job) } }
    }
    // By the time that one was taken and this thread has seen it, the taker waits for the next. Only an optimised build
    // ever failed here.
    for job in 1...100 {
      #expect(queue.append(job))
      while taken.withLock({ $0.count }) < job { pause(microseconds: 200) }
    }
    queue.close()
    taker.join()
    #expect(taken.withLock { $0 } == Array(1...100))
  }

  @Test("every job of many threads is taken once, and the taker ends when the queue is closed")
  func threads() throws {
    let queue = JobQueue<Int>(capacity: 50)
    let sum = Locked(0)
    let taken = Locked(0)
    let taker = try startThread(name: "taker") {
      while let job = queue.next() {
        sum.withLock { $0 += job }
        taken.withLock { $0 += 1 }
      }
    }
    @Sendable func give() {
      for job in 1...1000 { while !queue.append(job) { pause(microseconds: 50) } }
    }
    let first = try startThread(name: "giver") { give() }
    let second = try startThread(name: "giver") { give() }
    first.join()
    second.join()
    while taken.withLock({ $0 }) < 2000 { pause(microseconds: 100) }
    queue.close()
    taker.join()
    #expect(sum.withLock { $0 } == 1_001_000)
    #expect(!queue.append(1) && queue.isClosed)
  }

  @Test("what a job holds is freed when it is done, while others wait")
  func freed() {
    final class Room: Sendable {}
    let queue = JobQueue<@Sendable () -> Room?>(capacity: 3)
    var room: Room? = Room()
    weak let held = room
    do {
      let kept = room
      #expect(queue.append { kept } && queue.append { nil })
    }
    room = nil
    #expect(held != nil && queue.next()?() != nil)
    #expect(held == nil, "the queue keeps it")
    #expect(queue.next()?() == nil)
  }
}
