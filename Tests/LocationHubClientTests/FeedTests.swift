// What a slow reader gets, and what a map is put together from.
import Dispatch
import HubGeo
import HubMessages
import Synchronization
import Testing

@testable import LocationHubClient

@Suite struct FeedTests {
  @Test("States keep the newest of their kind, events all, in the order in which they came")
  func order() async {
    let reader = FeedReader<Int>()
    reader.push(1)
    reader.push(10, slot: 1)
    reader.push(2)
    reader.push(20, slot: 2)
    reader.push(11, slot: 1)
    reader.push(3)
    reader.finish()
    var seen: [Int] = []
    while let next = await reader.next() { seen.append(next) }
    #expect(seen == [1, 2, 20, 11, 3])
  }

  @Test("At 256 unread events all go, and the reader is to be notified")
  func overflow() async {
    let reader = FeedReader<Int>()
    for number in 0..<256 { #expect(reader.push(number)) }
    reader.push(-1, slot: 0)
    #expect(!reader.push(256))
    reader.push(1000)
    #expect(await reader.next() == 1000)
  }

  @Test("A reader whose task is cancelled gets nil, whether it waits or not")
  func cancelled() async {
    let reader = FeedReader<Int>()
    let task = Task { await reader.next() }
    task.cancel()
    #expect(await task.value == nil)
    #expect(await reader.next() == nil)
  }

  @Test("An actor's loop leaves its actor once for each event, when Swift's runtime resumes it, and not to wait for it")
  func hops() async {
    let events = 100
    let elsewhere = JobCounter()
    let (feed, loop) = (LatestSource(0), ActorLoop())
    let task = Task(executorPreference: elsewhere) { await loop.run(Latest(source: feed), through: events) }
    while await loop.seen < 1 { await Task.yield() }
    let before = elsewhere.jobs.load(ordering: .relaxed)
    for event in 1...events {
      feed.set(event)
      while await loop.seen <= event { await Task.yield() }
    }
    // One more is the task's end.
    #expect(elsewhere.jobs.load(ordering: .relaxed) - before <= events + 1)
    await task.value
  }

  /// An executor for what belongs to no actor, which counts it.
  private final class JobCounter: TaskExecutor {
    let jobs = Atomic(0)

    func enqueue(_ job: consuming ExecutorJob) {
      jobs.add(1, ordering: .relaxed)
      let job = UnownedJob(job)
      globalConcurrentExecutor.enqueue(job)
    }
  }

  private final class SerialQueue: SerialExecutor {
    private let queue = DispatchQueue(label: "loop")

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
  }

  /// Reads on an executor of its own, as an app does on its main thread.
  private actor ActorLoop {
    private let queue = SerialQueue()
    var seen = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }

    func run(_ states: Latest<Int>, through last: Int) async {
      for await state in states {
        seen = state + 1
        if state == last { return }
      }
    }
  }

  @Test("A state is there at once, for each reader, and then when it is another one")
  func latest() async {
    let source = LatestSource(1)
    let states = Latest(source: source)
    var first = states.makeAsyncIterator()
    var second = states.makeAsyncIterator()
    #expect(await first.next() == 1)
    source.set(1)
    source.set(2)
    source.set(3)
    #expect(await first.next() == 3)
    #expect(await second.next() == 3)
    #expect(states.current == 3)
  }

  private func driver(_ id: DriverID) -> AreaMap.Driver {
    AreaMap.Driver(
      driverID: id, coordinate: Coordinate(latitude: 48, longitude: 11)!, heading: nil, speed: nil, status: .available,
      timestamp: Timestamp(milliseconds: 1_763_680_000_000))
  }

  @Test("A map has what its cells show; a driver that goes from cell to cell is there once")
  func map() throws {
    let place = Coordinate(latitude: 48, longitude: 11)!
    let a = GeohashCell(place, precision: 6)
    let b = GeohashCell(Coordinate(latitude: 48.1, longitude: 11)!, precision: 6)
    var map = AreaMap()
    map.apply(AreaUpdate(cell: a, tick: 1, isFull: true, drivers: [driver("x")]))
    #expect(map.drivers.isEmpty, "it does not show that cell")
    map.show([a, b])
    map.apply(AreaUpdate(cell: a, tick: 2, isFull: true, drivers: [driver("x"), driver("y")], more: 7))
    map.apply(AreaUpdate(cell: b, tick: 2, isFull: true, drivers: [driver("z")]))
    #expect(Set(map.drivers.keys) == ["x", "y", "z"] && map.more == 7 && map.tick == 2)
    // The new cell may say so before the old one does.
    map.apply(AreaUpdate(cell: b, tick: 3, isFull: false, drivers: [driver("x")]))
    map.apply(AreaUpdate(cell: a, tick: 3, isFull: false, drivers: [], left: ["x"]))
    #expect(Set(map.drivers.keys) == ["x", "y", "z"])
    map.apply(AreaUpdate(cell: a, tick: 4, isFull: true, drivers: []))
    #expect(Set(map.drivers.keys) == ["x", "z"] && map.more == 0)
    map.show([a])
    #expect(map.drivers.isEmpty)
  }
}
