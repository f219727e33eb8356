// What live areas ask of the hub's thread where a whole city is in one cell: how long the longest turn is while the cell is
// filled, and at a tick at which everybody has moved.

import Bytes
import Geo
import HubCore
import Messages

enum AreaBench {
  static func run(drivers: Int) {
    var city = City(drivers: drivers, spread: 0.5)
    let middle = Coordinate(clampingLatitude: 41.15, wrappingLongitude: -8.1)
    for (slot, precision) in [3, 4, 5].enumerated() {
      let cell = GeohashCell(middle, precision: precision)
      let first = city.watch(.area(cell), role: .ops, slot: UInt32(drivers + slot))
      report("an operator begins to watch \(cell)", settle(&city, first))
    }
    for _ in 0..<3 {
      for first in stride(from: 0, to: drivers, by: 64) { city.move(first..<min(first + 64, drivers)) }
      city.advance(seconds: 1)
      report("a tick, everybody has moved", settle(&city, 0))
    }
  }

  private struct Turns {
    var count = 0
    var all: Int64 = 0
    var longest: Int64 = 0
  }

  private static func settle(_ city: inout City, _ first: Int64) -> Turns {
    var turns = Turns(count: 1, all: first, longest: first)
    repeat {
      let took = city.turn([])
      turns.count += 1
      turns.all += took
      turns.longest = max(turns.longest, took)
    } while city.hub.hasMoreDue
    return turns
  }

  private static func report(_ what: String, _ turns: Turns) {
    print("\(what): \(turns.all / 1000) us in \(turns.count) turns, the longest \(turns.longest / 1000) us")
  }
}
