// What a hub with very many drivers holds: each connected, with a status and a position in a city, none on a trip.

import Bytes
import Geo
import Glibc
import HubCore
import Messages

enum MemoryBench {
  /// Prints the resident bytes of the process before and after, for each driver.
  static func run(drivers: Int) {
    guard let epoch = InlineText("bench"), let message = MessageID("m") else { preconditionFailure("short texts") }
    let limits = HubLimits(
      drivers: drivers, trips: 1000, channels: 1000, eventsPerChannel: 16, events: 1000, queryHits: 1000,
      queryBudget: .standard, fixTimesPerDriver: 64, driversWithFixTimes: 1000, profiles: 1000)
    var now = Moment(uptime: 0, timestamp: Timestamp(milliseconds: 1_763_680_000_000))
    let before = residentBytes()
    var hub = Hub(
      limits: limits, timings: HubTimings(), sampling: SamplingRules(), epoch: epoch, seed: 1, loops: 1, now: now)
    var outputs = HubOutputs()
    var state: UInt64 = 1
    func random() -> Double {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Double(state >> 11) * 0x1p-53 - 0.5
    }
    for number in 0..<drivers {
      guard let id = Identifier("driver-\(number)") else { preconditionFailure("it is an id") }
      let session = SessionRef(loop: 0, slot: UInt32(number), generation: 1)
      let report = DriverStatusReport(status: .available, vehicleType: InlineText("van"))
      var inputs: [HubInput] = [.driverConnecting(session, id), .driverStatus(session, message, report)]
      let place = Coordinate(clampingLatitude: 41.15 + random(), wrappingLongitude: -8.61 + random())
      for second in 0..<2 {
        now.timestamp = Timestamp(milliseconds: 1_763_680_000_000 + Int64(second) * 1000)
        let fix = Fix(coordinate: place, timestamp: now.timestamp, accuracy: 5, heading: 90, speed: 10)
        inputs.append(
          .fix(
            FixInput(
              session: session, messageID: message, sent: now.timestamp, received: now,
              update: LocationUpdate(fix: fix), tripIsGranted: false)))
      }
      hub.process(inputs, now: now)
      hub.drain(loop: 0, into: &outputs)
    }
    let bytes = residentBytes() - before
    print("\(hub.counters.drivers) drivers, \(bytes / 1_000_000) MB resident, \(bytes / drivers) bytes a driver")
  }

  /// Field 2 of /proc/self/statm, in pages (proc(5)).
  private static func residentBytes() -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    guard fgets(&line, 128, file) != nil else { return 0 }
    let text = line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    let fields = String(decoding: text, as: UTF8.self).split(separator: " ")
    return (fields.count > 1 ? Int(fields[1]) ?? 0 : 0) * sysconf(Int32(_SC_PAGESIZE))
  }
}
