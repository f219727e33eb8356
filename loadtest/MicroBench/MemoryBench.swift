// What a hub with very many drivers holds.

import Glibc
import HubCore

enum MemoryBench {
  /// Prints the resident bytes of the process before and after, for each driver.
  static func run(drivers: Int) {
    let before = residentBytes()
    let city = City(drivers: drivers, spread: 1)
    let bytes = residentBytes() - before
    let known = city.hub.shownCounters().entries(.drivers)
    print("\(known) drivers, \(bytes / 1_000_000) MB resident, \(bytes / drivers) bytes a driver")
    var index = DriverIndex(capacity: drivers)
    for driver in 0..<drivers { index.move(UInt32(driver), to: city.places[driver]) }
    print("of these the index \(index.allocatedBytes / drivers) bytes a driver")
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
