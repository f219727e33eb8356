// What live areas ask of the hub's thread where a whole city is in one cell: how long the longest turn is while the
// cell is filled, and at a tick at which everybody has moved.

import HubBytes
import HubCore
import HubGeo
import HubMessages

enum AreaBench {
  static func run(drivers: Int) {
    var city = City(drivers: drivers, spread: 0.5)
    let middle = Coordinate(clampingLatitude: 41.15, wrappingLongitude: -8.1)
    for (slot, precision) in [3, 4, 5].enumerated() {
      let cell = GeohashCell(middle, precision: precision)
      let first = city.watch(.area(cell), role: .ops, slot: UInt32(drivers + slot))
      print("an operator begins to watch \(cell): \(city.settle(first))")
    }
    for _ in 0..<3 {
      for first in stride(from: 0, to: drivers, by: 64) { city.move(first..<min(first + 64, drivers)) }
      city.advance(seconds: 1)
      print("a tick, everybody has moved: \(city.settle())")
    }
  }

  /// The ticks round a full hour, at which riders know all drivers by new names, while riders watch the whole city.
  static func runRenaming(drivers: Int) {
    var city = City(drivers: drivers, spread: 0.5, unixMilliseconds: 1_763_683_200_000 - 10_000)
    var watched: Set<GeohashCell> = []
    for place in city.places { watched.insert(GeohashCell(place, precision: 5)) }
    var filling = Turns()
    for (slot, cell) in watched.enumerated() {
      filling.add(city.watch(.area(cell), role: .rider, slot: UInt32(drivers + slot)))
    }
    print("riders begin to watch \(watched.count) cells: \(city.settle(filling.longest))")
    city.advance(seconds: 1)
    print("a tick, nobody has moved: \(city.settle())")
    city.advance(seconds: Double(city.secondsToHour) - 1)
    print("the last tick of the hour: \(city.settle())")
    city.advance(seconds: 1)
    print("the first tick of the next hour, all get new names: \(city.settle())")
    city.advance(seconds: 1)
    print("the tick after it: \(city.settle())")
  }
}
