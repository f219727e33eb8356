// hub-loadtest drivers: what a driver of the client library costs its phone: CPU time at a fix a second, and memory
// beside the process, with its queue on the disk.
//
// The first one brings up the library's runtime, so memory is what each further one adds. The hub is a process of its
// own, and does not count.
import Glibc
import HubCommandLine
import HubLoadTestKit
import HubSystem
import LocationHubClient

struct DriversRun {
  var drivers = 20
  var seconds = 20
  var executable: String

  /// Of a core, for each driver; and bytes.
  private static let (cpuBound, bytesBound) = (0.002, 300_000.0)
  /// Seconds after which connections stand and memory is what it will be.
  private static let settling = 3

  static func run(_ words: [String], executable: String) throws(LoadTestError) -> Bool {
    let options = try Arguments(words, .drivers)
    var run = DriversRun(executable: options.string("executable") ?? executable)
    run.drivers = try options.whole("drivers", or: run.drivers, in: 2...1000)
    run.seconds = try options.whole("seconds", or: run.seconds, in: 5...3600)
    try HubProcess.check(executable: run.executable)
    return try run.run()
  }

  private func run() throws(LoadTestError) -> Bool {
    try ProcessTuning.apply()
    let hub = try HubProcess(forClientOf: executable)
    defer { hub.stop() }
    let own = ProcessReadings(pid: getpid())
    var fleet: [Driver] = [try Driver(0, of: hub)]
    drive(fleet, for: Self.settling)
    let first = own.residentBytes
    for number in 1..<drivers { fleet.append(try Driver(number, of: hub)) }
    drive(fleet, for: Self.settling)
    let (all, before) = (own.residentBytes, own.cpu)
    let queued = drive(fleet, for: seconds)
    guard queued == seconds * drivers else { throw .failed("of \(seconds * drivers) fixes \(queued) were taken") }
    guard let first, let all, let before, let after = own.cpu else {
      throw .failed("there is no /proc of this process")
    }
    guard fleet.allSatisfy({ $0.client.connection.current.isLive }) else {
      throw .failed("not all drivers are connected: \(fleet.map { $0.client.connection.current })")
    }
    return report(
      cpu: (after.all - before.all) / Double(seconds * drivers), bytes: Double(all - first) / Double(drivers - 1),
      first: first)
  }

  private struct Driver {
    let client: DriverHub
    private let folder: TemporaryFolder

    init(_ number: Int, of hub: HubProcess) throws(LoadTestError) {
      guard let id = DriverID("D\(number)") else { preconditionFailure("it has only allowed characters") }
      folder = try TemporaryFolder(in: "/tmp")
      var power = PowerPolicy.standard
      power.highPerformance.interval = 1
      do throws(HubError) {
        client = try DriverHub(
          "ws://\(hub.address)/v1/ws", tokens: .development(.driver, id), store: .folder(folder.path), power: power)
      } catch {
        throw .failed("\(error)")
      }
      // Each fix goes out by itself.
      client.report(DeviceState(isCharging: true))
      client.start()
    }
  }

  /// Each sends a fix a second, one after the other.
  ///
  /// Gives how many were not left out.
  @discardableResult
  private func drive(_ fleet: [Driver], for seconds: Int) -> Int {
    var queued = 0
    for _ in 0..<seconds where Interruption.process.signal == nil {
      for driver in fleet {
        let time = Timestamp(milliseconds: ClockReading.read().unixMilliseconds)
        // Northwards at 11 m/s: who stands is not asked for a fix a second.
        let north = Double(time.milliseconds % 10_000_000) * 1e-7
        guard let place = Coordinate(latitude: 48 + north, longitude: 11) else {
          preconditionFailure("it is on the Earth")
        }
        let fix = Fix(coordinate: place, timestamp: time, accuracy: 5, speed: 11)
        if driver.client.send(fix) == .queued { queued += 1 }
        pause(microseconds: 1_000_000 / fleet.count)
      }
    }
    return queued
  }

  private func report(cpu: Double, bytes: Double, first: Int) -> Bool {
    show("drivers: \(drivers), a fix a second each, for \(seconds) s, with a queue on the disk")
    show("  CPU of a driver: \(decimals(cpu * 100, 3)) % of a core (at most \(decimals(Self.cpuBound * 100, 1)))")
    show(
      "  memory of one more: \(Int(bytes / 1000)) KB resident (at most \(Int(Self.bytesBound / 1000))); "
        + "\(first / 1_000_000) MB with the first")
    return cpu <= Self.cpuBound && bytes <= Self.bytesBound
  }
}
