// Live areas: drivers on a part of the map, published once a second for each cell to all who watch it. The table of
// areas does the work (AreaTable+Ticks.swift).
import HubMessages

extension Hub {
  /// Notes a change that watchers of areas see: position, status or presence.
  @inline(__always)
  mutating func noteArea(_ driver: Int) { areas.note(driver, &drivers[areaOf: driver]) }
}
