// Live areas: what moves on a part of the map, published once a second for each cell to all who watch it. The table of
// areas does the work (AreaTable+Ticks.swift).
import HubMessages

extension Hub {
  /// Something about a driver has changed that those who watch areas see: its place, its status, its presence.
  @inline(__always)
  mutating func noteArea(_ driver: Int) { areas.note(driver, &drivers[areaOf: driver]) }
}
