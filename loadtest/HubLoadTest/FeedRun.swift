// hub-loadtest feed: how long it takes from the client library's reading of a frame to the `for await` loop that gets
// the event, with a DriverHub, a RiderHub and a real hub on loopback.
//
// The time begins where the client's thread has been woken and is about to read (`HubOptions.clock`). The fixes go one
// after the other, with pauses, so that the client's threads sleep before each, as on a phone. Between them, turn by
// turn, it measures what the machine takes for a bare wake (WakeFloor.swift): of the client's own a reader's task, of
// which there is one for each event, is the only one.
import HubBytes
import HubCommandLine
import HubLoadTestKit
import HubSystem
import LocationHubClient

struct FeedRun {
  var positions = 2000
  var codec = Subprotocol.binary
  /// Drivers on a map that is measured; nil for a trip's positions.
  var drivers: Int?
  var executable: String

  /// Microseconds at p99 that are not to be exceeded.
  static let bound: UInt64 = 200
  /// Seconds that the next position may take.
  private static let patience = 10.0

  static func run(_ words: [String], executable: String) throws(LoadTestError) -> Bool {
    let options = try Arguments(words, .feed)
    var run = FeedRun(executable: options.string("executable") ?? executable)
    run.positions = try options.whole("positions", or: run.positions, in: 100...1_000_000)
    run.codec = try options.value("codec", .choice([("json", .json), ("binary", .binary)])) ?? run.codec
    run.drivers = try options.value("map", .whole(1...100))
    if run.drivers != nil, !options.isGiven("positions") { run.positions = 100 }
    try HubProcess.check(executable: run.executable)
    return try run.run()
  }

  private func run() throws(LoadTestError) -> Bool {
    try ProcessTuning.apply()
    // No turn of the rider's thread is for a ping.
    let hub = try HubProcess(forClientOf: executable, heartbeatSeconds: 3600)
    defer { hub.stop() }
    let (turns, floor, outcome) = (TurnClock(), try WakeFloor(), Locked(Outcome()))
    do throws(HubError) {
      if let drivers {
        try measureMap(of: drivers, hub, turns, floor, outcome)
      } else {
        try measure(hub, turns, floor, outcome)
      }
    } catch {
      throw .failed("\(error)")
    }
    var seen = -1
    while !outcome.withLock({ $0.isOver }), Interruption.process.signal == nil {
      let count = Int(outcome.withLock { $0.latency.count })
      guard count > seen else { throw .failed("the hub has published no position for \(Self.patience) s") }
      seen = count
      wait(until: { outcome.withLock { $0.isOver } }, seconds: Self.patience)
    }
    return report(outcome.withLock { $0 })
  }

  private struct Outcome {
    var latency = LatencyHistogram()
    /// The machine's own wakes.
    var task = LatencyHistogram()
    var thread = LatencyHistogram()
    var isOver = false
  }

  private func wait(until isOver: () -> Bool, seconds: Double) {
    let end = ClockReading.uptime() + Int64(seconds * 1e9)
    while !isOver(), ClockReading.uptime() < end, Interruption.process.signal == nil { pause(microseconds: 100_000) }
  }

  /// When the rider's thread was woken for the first time since `forget`: no later than it reads (uptime, ns).
  private final class TurnClock: Sendable {
    private let first = Locked<Int64?>(nil)

    var begin: Int64? { first.withLock { $0 } }

    func forget() { first.withLock { $0 = nil } }

    func read() -> ClockReading {
      let reading = ClockReading.read()
      first.withLock { $0 = $0 ?? reading.uptimeNanoseconds }
      return reading
    }
  }

  /// Begins to drive and to follow.
  private func measure(
    _ hub: HubProcess, _ turns: TurnClock, _ floor: WakeFloor, _ outcome: Locked<Outcome>
  ) throws(HubError) {
    let (driver, rider) = (try driver("D1", hub), try rider(hub, turns))
    let positions = positions
    Task {
      var number = 0
      for await event in rider.trip("T1") {
        let now = ClockReading.uptime()
        switch event {
        case .snapshot where number == 0: break
        case .position:
          let begin = turns.begin
          // The first ones bring up threads and memory.
          if number > 100, let begin { outcome.withLock { $0.latency.record(nanoseconds: now - begin) } }
        case .snapshot, .eta, .update, .notice, .gap, .ended: continue
        }
        guard number < positions + 101 else { break }
        await FeedRun.measure(floor, outcome)
        await sleep(milliseconds: 2 + number * 7 % 11)
        turns.forget()
        driver.send(FeedRun.fix(number), trip: "T1")
        number += 1
      }
      await driver.stop()
      await rider.stop()
      outcome.withLock { $0.isOver = true }
    }
  }

  private static func measure(_ floor: WakeFloor, _ outcome: Locked<Outcome>) async {
    let (task, thread) = (await floor.wakeTask(), await floor.wakeThread())
    outcome.withLock {
      $0.task.record(nanoseconds: task)
      $0.thread.record(nanoseconds: thread)
    }
  }

  /// Drivers move all the time, and of each tick, a second, the first map is measured.
  private func measureMap(
    of count: Int, _ hub: HubProcess, _ turns: TurnClock, _ floor: WakeFloor, _ outcome: Locked<Outcome>
  ) throws(HubError) {
    var drivers: [DriverHub] = []
    for number in 0..<count {
      guard let id = DriverID("D\(number)") else { preconditionFailure("it has only allowed characters") }
      drivers.append(try driver(id, hub))
    }
    let (moving, rider, ticks) = (drivers, try rider(hub, turns), positions)
    Task {
      var second = 0
      while !outcome.withLock({ $0.isOver }) {
        for (number, driver) in moving.enumerated() { driver.send(FeedRun.fix(second, besides: number)) }
        second += 1
        await sleep(milliseconds: 1000)
      }
    }
    Task {
      var maps = rider.area(around: FeedRun.place(0, 0), radius: 500).makeAsyncIterator()
      while outcome.withLock({ $0.latency.count < ticks }), let map = await maps.next() {
        let (now, begin) = (ClockReading.uptime(), turns.begin)
        // A map that waited meanwhile has no turn of its own.
        if map.drivers.count == count, let begin { outcome.withLock { $0.latency.record(nanoseconds: now - begin) } }
        await FeedRun.measure(floor, outcome)
        await sleep(milliseconds: 400)
        turns.forget()
      }
      outcome.withLock { $0.isOver = true }
    }
  }

  private func driver(_ id: DriverID, _ hub: HubProcess) throws(HubError) -> DriverHub {
    var power = PowerPolicy.standard
    power.highPerformance.interval = 1
    let driver = try DriverHub(
      "ws://\(hub.address)/v1/ws", tokens: .development(.driver, id), store: .memory, power: power, options: options)
    // Each fix goes out by itself.
    driver.report(DeviceState(isCharging: true))
    driver.start()
    return driver
  }

  private func rider(_ hub: HubProcess, _ turns: TurnClock) throws(HubError) -> RiderHub {
    var options = options
    options.clock = { turns.read() }
    let rider = try RiderHub("ws://\(hub.address)/v1/ws", tokens: .development(.rider, "R1"), options: options)
    rider.start()
    return rider
  }

  private var options: HubOptions {
    var options = HubOptions()
    options.codec = codec
    return options
  }

  private func sleep(milliseconds: Int) async {
    do { try await Task.sleep(nanoseconds: UInt64(milliseconds) * 1_000_000) } catch {
      // Nobody cancels it.
    }
  }

  /// Northwards at 10 m/s, 5 s from one to the next.
  private static func fix(_ number: Int) -> Fix {
    Fix(
      coordinate: place(Double(number) * 4.5e-4, 0),
      timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64(number) * 5000), accuracy: 5)
  }

  /// To and fro at 11 m/s, each on a street of its own.
  private static func fix(_ second: Int, besides number: Int) -> Fix {
    let step = second % 20 < 10 ? second % 10 : 10 - second % 10
    return Fix(
      coordinate: place(Double(step) * 1e-4, Double(number) * 1e-5),
      timestamp: Timestamp(milliseconds: 1_763_680_000_000 + Int64(second) * 1000), accuracy: 5)
  }

  private static func place(_ north: Double, _ east: Double) -> Coordinate {
    guard let place = Coordinate(latitude: 40 + north, longitude: 11 + east) else {
      preconditionFailure("it is on the Earth")
    }
    return place
  }

  private func report(_ outcome: Outcome) -> Bool {
    let latency = outcome.latency
    func line(_ name: String, _ times: LatencyHistogram) -> String {
      "  \(name): p50 \(times.value(atQuantile: 0.5)) µs, p90 \(times.value(atQuantile: 0.9)), "
        + "p99 \(times.value(atQuantile: 0.99)), max \(times.maximum)"
    }
    show("feed: \(latency.count) \(drivers.map { "maps of \($0) drivers" } ?? "positions"), \(codec.name)")
    show(line("from the frame's reading to the loop", latency))
    show(line("beside it, a sleeping task that a thread resumes", outcome.task))
    show(line("a sleeping thread that a pipe wakes", outcome.thread))
    let isGood = latency.count > 0 && latency.value(atQuantile: 0.99) <= Self.bound
    if !isGood { show("  p99 is over \(Self.bound) µs") }
    return isGood
  }
}

extension HubProcess {
  /// For the client library to be measured with: a hub that stores nothing and wants a fix a second.
  init(forClientOf executable: String, heartbeatSeconds: Int = 30) throws(LoadTestError) {
    try self.init(
      executable: executable,
      arguments: [
        "serve", "--port", "0", "--dev-auth", "--loops", "1", "--no-journal", "--session-rate", "0", "--sampling", "1",
        "--heartbeat", "\(heartbeatSeconds)", "--log-level", "error",
      ])
  }
}
