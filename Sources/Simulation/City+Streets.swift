// The city's streets as lines on a map, for who draws them.
public import HubGeo

extension City {
  /// A street between two crossings.
  public struct Way: Sendable {
    public let ends: [Coordinate]
    /// m/s
    public let limit: Double

    /// 0 for a residential street, 1 for one with more traffic, 2 for an arterial.
    public var rank: UInt8 {
      limit >= City.arterialLimit - 0.01 ? 2 : limit >= City.streetLimit - 0.01 ? 1 : 0
    }
  }

  /// All streets, each once. O(crossings).
  public var ways: [Way] {
    var ways: [Way] = []
    for crossing in places.indices {
      for slot in City.slots(of: Crossing(crossing)) where Int(neighbours[slot]) > crossing {
        let ends = [coordinate(places[crossing]), coordinate(places[Int(neighbours[slot])])]
        ways.append(Way(ends: ends, limit: Double(limits[slot])))
      }
    }
    return ways
  }
}
