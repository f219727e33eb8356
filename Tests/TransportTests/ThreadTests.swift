// Where threads meet: the waker, the mailbox, threads themselves. Run with the thread sanitizer, too.

import CHubLinux
import Glibc
import HubSystem
import Testing

@testable import HubTransport

extension EventLoop {
  /// Runs a turn. False where it slept for half a minute: nobody woke it, however slow the other thread is. A limit on
  /// the whole test would count the time that its threads waited for other tests.
  fileprivate func isWokenInTime() -> Bool {
    let start = ClockReading.read().uptimeNanoseconds
    runTurn(timeoutMilliseconds: 30_000)
    return ClockReading.read().uptimeNanoseconds - start < 29_000_000_000
  }
}

@Suite struct `Waking a loop` {
  @Test func `a loop that is awake is woken without a system call, and sees it before it sleeps`() throws {
    let loop = try EventLoop()
    let recorder = Recorder(loop)
    loop.waker.wake()
    loop.waker.wake()
    loop.runTurn()  // Would sleep for ever if the call had been lost.
    #expect(recorder.wakeUps == 1)
    loop.runTurn(timeoutMilliseconds: 0)
    #expect(recorder.wakeUps == 1)
    var count: UInt64 = 0
    #expect(read(loop.waker.descriptor, &count, 8) == -1, "nobody slept, so nothing was to be written")
  }

  /// Two loops throw a ball: each turn sleeps until it is woken, so a single lost wake-up shows.
  @Test func `no wake-up is lost in twenty thousand throws between two threads`() throws {
    let throwsEach = 20_000
    let here = try EventLoop()
    let recorder = Recorder(here)
    let started = Mailbox<Waker>(capacity: 1, waking: here.waker)
    let back = here.waker
    let thread = try startThread(name: "waker-test") {
      do {
        let loop = try EventLoop()
        let recorder = Recorder(loop)
        recorder.onWoken = { back.wake() }
        _ = started.append(loop.waker)
        while recorder.wakeUps < throwsEach, loop.isWokenInTime() {}
      } catch {
        Issue.record(error)
      }
    }
    var wakers: [Waker] = []
    while wakers.isEmpty {
      here.runTurn()
      started.drain(into: &wakers)
    }
    for _ in 0..<throwsEach {
      let before = recorder.wakeUps
      wakers[0].wake()
      while recorder.wakeUps == before { try #require(here.isWokenInTime(), "throw \(before) was lost") }
    }
    thread.join()
  }
}

/// A batch of numbers in order; those that 7 divides are the rare ones.
@Suite struct `Mailbox at its limit` {
  @Test func `single messages are refused at the limit`() {
    let mailbox = Mailbox<Int>(capacity: 2, waking: nil)
    #expect(mailbox.append(1))
    #expect(mailbox.append(2))
    #expect(!mailbox.append(3))
    var taken: [Int] = []
    mailbox.drain(into: &taken)
    #expect(taken == [1, 2])
    #expect(mailbox.append(4))
  }
}

@Suite struct `Threads and signals` {
  @Test func `a thread runs its body under its name, and join waits for it`() throws {
    let name = Locked("")
    let thread = try startThread(name: "a-name-that-is-too-long") {
      guard let bytes = ProcessFacts.contents(of: "/proc/thread-self/comm") else { return }
      name.withLock { $0 = String(decoding: bytes.dropLast(), as: UTF8.self) }
    }
    thread.join()
    #expect(name.withLock { $0 } == "a-name-that-is-")
  }

  @Test func `a signal is an event of the loop`() throws {
    let seen = Locked<[Int32]>([])
    // On a thread of its own, so that the signals do not stay blocked in the runner's.
    let thread = try startThread(name: "signals") {
      do {
        let loop = try EventLoop()
        try loop.watchSignals([SIGUSR1, SIGUSR2]) { signal in seen.withLock { $0.append(signal) } }
        pthread_kill(pthread_self(), SIGUSR1)
        loop.runTurn()
        pthread_kill(pthread_self(), SIGUSR2)
        loop.runTurn()
        loop.runTurn(timeoutMilliseconds: 0)
      } catch {
        Issue.record(error)
      }
    }
    thread.join()
    #expect(seen.withLock { $0 } == [SIGUSR1, SIGUSR2])
  }

  @Test func `run goes on until stop`() throws {
    let loop = try EventLoop()
    let recorder = Recorder(loop)
    recorder.onWoken = { [unowned loop, unowned recorder] in
      if recorder.wakeUps == 3 { loop.stop() } else { loop.waker.wake() }
    }
    loop.waker.wake()
    loop.run()
    #expect(recorder.wakeUps == 3)
  }
}

@Suite struct `Combining lock between threads` {
  /// What the holder alone touches.
  private final class Counts: @unchecked Sendable {
    var byThread: [[Int]]
    var holders = 0

    init(_ threads: Int) { byThread = Array(repeating: [], count: threads) }
  }

  @Test func `all that was left is done, in each thread's order, by one thread at a time`() throws {
    let (threads, each) = (4, 20_000)
    let lock = CombiningLock()
    let counts = Counts(threads)
    let inboxes = (0..<threads).map { _ in Locked<[Int]>([]) }
    @Sendable func work() {
      counts.holders += 1
      #expect(counts.holders == 1)
      for (thread, inbox) in inboxes.enumerated() {
        counts.byThread[thread] += inbox.withLock { queue in
          defer { queue = [] }
          return queue
        }
      }
      counts.holders -= 1
    }
    let started = try (0..<threads).map { thread in
      let handle = try startThread(name: "combiner-\(thread)") { @Sendable in
        for next in 0..<each {
          inboxes[thread].withLock { $0.append(next) }
          // Nobody comes back here: what is left with a false must be done by who has the lock.
          guard lock.lockOrDelegate() else { continue }
          repeat { work() } while !lock.unlock()
        }
      }
      return Handle(handle)
    }
    for thread in started { thread.join() }
    for thread in 0..<threads { #expect(counts.byThread[thread] == Array(0..<each)) }
    #expect(lock.tryLock())
  }

  @Test func `who comes while it is held gets false, and the holder that somebody came`() {
    let lock = CombiningLock()
    #expect(lock.tryLock() && !lock.tryLock())
    #expect(lock.unlock())
    #expect(lock.lockOrDelegate() && !lock.lockOrDelegate() && !lock.lockOrDelegate())
    #expect(!lock.unlock())
    #expect(!lock.tryLock())
    #expect(lock.unlock())
    #expect(lock.tryLock() && !lock.lockOrDelegate())
    lock.unlockAnyway()
    #expect(lock.tryLock() && lock.unlock())
  }
}

/// A thread in an array or an object, which hold copyable things only.
final class Handle {
  private var handle: ThreadHandle?

  init(_ handle: consuming ThreadHandle) { self.handle = consume handle }

  func join() { handle.take()?.join() }
}
