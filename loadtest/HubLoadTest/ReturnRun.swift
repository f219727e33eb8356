// hub-loadtest return: many clients of the library, each with a thread of its own, lose a hub that is killed or drained
// and restarted at once. When does each come back?
//
// The peak of arrivals in any second is held against 1.5 times their mean from the first to the last, and the first
// delay that each has drawn is looked at. `ClientCoreTests` holds the same for 10,000 state machines by hand; this is
// with threads, sockets and a hub.
import HubCommandLine
import HubLoadTestKit
import HubSystem
import HubTransport
import LocationHubClient

struct ReturnRun {
  var clients = 4000
  var executable: String

  /// Peak of arrivals over their mean.
  static let bound = 1.5
  /// Seconds from the cut within which all are back: the first delay, and one more where the hub was not there yet.
  private static let patience = 30.0

  static func run(_ words: [String], executable: String) throws(LoadTestError) -> Bool {
    let options = try Arguments(words, .comeBack)
    var run = ReturnRun(executable: options.string("executable") ?? executable)
    run.clients = try options.whole("clients", or: run.clients, in: 100...100_000)
    try HubProcess.check(executable: run.executable)
    return try run.run()
  }

  private func run() throws(LoadTestError) -> Bool {
    try ProcessTuning.apply()
    var hub = try start(port: 0)
    let port = hub.address.port
    let riders = try connect(port)
    var isGood = true
    for (name, isKilled) in [("killed, no close code", true), ("drained, 1001", false)] {
      // Only an end of a connection that stood is a first one (ClientLimits.stableSeconds).
      pause(microseconds: 11_000_000)
      let before = try arrivals(of: riders)
      guard before == clients else { throw .failed("\(before) of \(clients) are connected") }
      let cut = ClockReading.read()
      if isKilled { hub.crash() } else if let violation = hub.stop() { throw .failed(violation) }
      hub = try start(port: port)
      let outage = Double(ClockReading.uptime() - cut.uptimeNanoseconds) / 1e9
      isGood = try report(name, follow(riders, since: cut), outage: outage) && isGood
    }
    for rider in riders { end(rider) }
    guard let violation = hub.stop() else { return isGood }
    throw .failed(violation)
  }

  private func start(port: UInt16) throws(LoadTestError) -> HubProcess {
    try HubProcess(
      executable: executable,
      arguments: [
        "serve", "--port", "\(port)", "--dev-auth", "--loops", "1", "--no-journal", "--log-level",
        "error",
      ])
  }

  // MARK: Clients

  /// All of them, connected, 500 a second.
  private func connect(_ port: UInt16) throws(LoadTestError) -> [RiderHub] {
    var riders: [RiderHub] = []
    do throws(HubError) {
      for number in 0..<clients {
        guard let id = DriverID("R\(number)") else { preconditionFailure("it has only allowed characters") }
        riders.append(try RiderHub("ws://127.0.0.1:\(port)/v1/ws", tokens: .development(.rider, id)))
        riders[number].start()
        pause(microseconds: 2000)
      }
    } catch {
      throw .failed("client \(riders.count): \(error)")
    }
    let end = ClockReading.uptime() + Int64(Self.patience * 1e9)
    while try arrivals(of: riders) < clients, ClockReading.uptime() < end { pause(microseconds: 50_000) }
    return riders
  }

  private func arrivals(of riders: [RiderHub]) throws(LoadTestError) -> Int {
    try Interruption.process.check()
    return riders.count { $0.connection.current.isLive }
  }

  private func end(_ rider: RiderHub) { Task { await rider.stop() } }

  /// What a client did after the cut, in seconds from it.
  private struct Comeback {
    /// The delay that it had drawn when it was first looked at: after the outage, for some their second.
    var delay: Double?
    var arrived: Double?
  }

  private func follow(_ riders: [RiderHub], since cut: ClockReading) throws(LoadTestError) -> [Comeback] {
    var all = riders.map { _ in Comeback() }
    var left = riders.count
    let end = cut.uptimeNanoseconds + Int64(Self.patience * 1e9)
    while left > 0, ClockReading.uptime() < end {
      try Interruption.process.check()
      for index in all.indices where all[index].arrived == nil {
        switch riders[index].connection.current {
        case .waiting(_, let error):
          if all[index].delay == nil, case .later(let seconds) = error.retry { all[index].delay = seconds }
        case .live(let since):
          guard since.milliseconds > cut.unixMilliseconds else { continue }
          all[index].arrived = Double(since.milliseconds - cut.unixMilliseconds) / 1000
          left -= 1
        case .connecting, .idle, .stopped: continue
        }
      }
      pause(microseconds: 10_000)
    }
    return all
  }

  // MARK: What came of it

  private func report(_ name: String, _ all: [Comeback], outage: Double) throws(LoadTestError) -> Bool {
    let times = all.compactMap(\.arrived).sorted()
    let delays = all.compactMap(\.delay).sorted()
    guard let first = times.first, let last = times.last, last > first, let least = delays.first,
      let most = delays.last
    else { throw .failed("nobody came back") }
    var peak = 0
    var begin = 0
    for index in times.indices {
      while times[begin] <= times[index] - 1 { begin += 1 }
      peak = max(peak, index - begin + 1)
    }
    let mean = Double(times.count) / (last - first)
    show(
      "return: \(times.count) of \(all.count) clients, hub \(name), away \(decimals(outage, 2)) s: back from "
        + "\(decimals(first, 2)) to \(decimals(last, 2)) s, \(peak) in the fullest second, "
        + "\(decimals(mean, 0)) a second on average: \(decimals(Double(peak) / mean, 2)) times")
    show(
      "  delays of \(delays.count), as seen once the hub was back: "
        + "\(decimals(least, 2)) to \(decimals(most, 2)) s, median "
        + "\(decimals(delays[delays.count / 2], 2))")
    return times.count == all.count && Double(peak) < Self.bound * mean && most < 5
  }
}
