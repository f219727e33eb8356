// The shortest way through the city: what a dispatcher's router would give, so that a trip has a route.

extension City {
  /// The crossings of a shortest way, both ends among them; empty where no street leads there. By A*: it looks at some
  /// thousand crossings for a way of 5 km.
  func route(from start: Crossing, to goal: Crossing) -> [Crossing] {
    var lengths: [Crossing: Double] = [start: 0]
    var before: [Crossing: Crossing] = [:]
    var open = RouteQueue()
    open.insert(start, distance(start, goal))
    while let crossing = open.removeFirst() {
      if crossing == goal { return way(to: goal, before) }
      guard let length = lengths[crossing] else { continue }
      for slot in City.slots(of: crossing) {
        let next = neighbours[slot]
        if next < 0 { break }
        let reached = length + distance(crossing, next)
        guard reached < lengths[next] ?? .infinity else { continue }
        lengths[next] = reached
        before[next] = crossing
        open.insert(next, reached + distance(next, goal))
      }
    }
    return []
  }

  private func way(to goal: Crossing, _ before: [Crossing: Crossing]) -> [Crossing] {
    var way = [goal]
    while let crossing = before[way[way.count - 1]] { way.append(crossing) }
    return way.reversed()
  }

  private func distance(_ first: Crossing, _ second: Crossing) -> Double {
    let way = places[Int(second)] - places[Int(first)]
    return (way * way).sum().squareRoot()
  }
}

/// A priority queue of crossings, the one with the shortest estimated way through it first: a binary heap.
private struct RouteQueue {
  private var heap: [(crossing: City.Crossing, length: Double)] = []

  mutating func insert(_ crossing: City.Crossing, _ length: Double) {
    heap.append((crossing, length))
    var at = heap.count - 1
    while at > 0, heap[at].length < heap[(at - 1) / 2].length {
      heap.swapAt(at, (at - 1) / 2)
      at = (at - 1) / 2
    }
  }

  mutating func removeFirst() -> City.Crossing? {
    guard let first = heap.first else { return nil }
    let last = heap.removeLast()
    guard !heap.isEmpty else { return first.crossing }
    heap[0] = last
    var at = 0
    while case let child = 2 * at + 1, child < heap.count {
      let smaller = child + 1 < heap.count && heap[child + 1].length < heap[child].length ? child + 1 : child
      if heap[at].length <= heap[smaller].length { break }
      heap.swapAt(at, smaller)
      at = smaller
    }
    return first.crossing
  }
}
