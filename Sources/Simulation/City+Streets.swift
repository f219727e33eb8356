// The city's streets as lines, to draw on a map, and places where trips begin and end.
public import HubGeo

extension City {
  /// A street between two crossings.
  public struct Way: Sendable {
    public let ends: [Coordinate]
    /// m/s
    public let limit: Double

    /// 0 for a residential street, 1 for one with more traffic, 2 for an arterial.
    public var rank: UInt8 {
      limit >= City.arterialSpeed - 0.01 ? 2 : limit >= City.streetSpeed - 0.01 ? 1 : 0
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

  // MARK: Places of trips

  private func hasStreets(_ crossing: Int) -> Bool {
    neighbours[City.slots(of: Crossing(crossing))].contains { $0 >= 0 }
  }

  /// The crossing with streets that is nearest to a coordinate. O(crossings).
  func crossing(nearest coordinate: Coordinate) -> Crossing {
    let wanted = place(coordinate)
    var (best, distance) = (0, Double.infinity)
    for crossing in places.indices where hasStreets(crossing) {
      let apart = places[crossing] - wanted
      let squared = (apart * apart).sum()
      if squared < distance { (best, distance) = (crossing, squared) }
    }
    return Crossing(best)
  }

  /// A random crossing, where a trip begins or ends.
  public func anyPlace(_ random: inout SplitMix64) -> Coordinate {
    for _ in 0..<64 {
      let crossing = random.below(places.count)
      if hasStreets(crossing) { return coordinate(places[crossing]) }
    }
    return center
  }
}
