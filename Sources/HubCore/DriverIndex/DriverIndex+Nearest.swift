// The nearest drivers: depth first, nearest child first, pruned by the worst hit so far.
//
// Not best-first with a queue of cells: depth first needs a stack of at most 61 and no allocation, and looks at few
// cells more. The hits are a heap with the worst on top, in the caller's array.

public import HubGeo

/// A driver found by a search.
public struct DriverHit: Sendable, Hashable {
  public var driver: UInt32
  /// Great-circle metres, bit-equal to `Coordinate.distance(to:)`.
  public var distanceMeters: Double
  /// Of equal distances the smaller one is nearer; 0 where the handles decide.
  public var tie: UInt32 = 0

  /// Nearer first; of equal distances the smaller `tie`, and of equal ones the smaller handle.
  @inline(__always)
  static func isNearer(_ a: DriverHit, _ b: DriverHit) -> Bool {
    if a.distanceMeters != b.distanceMeters { return a.distanceMeters < b.distanceMeters }
    return a.tie != b.tie ? a.tie < b.tie : a.driver < b.driver
  }

  /// Puts the hits from `start` on into order, nearest first.
  static func sort(_ hits: inout [DriverHit], from start: Int) {
    // By way of the buffer: `hits[start...].sort` would copy the array.
    unsafe hits.withUnsafeMutableBufferPointer { all in
      var own = unsafe UnsafeMutableBufferPointer(rebasing: all[start...])
      unsafe own.sort(by: isNearer)
    }
  }
}

/// The work that one call may do before it stops.
public struct SearchBudget: Sendable, Hashable {
  /// Cells looked at, with their four children: about 50 ns each.
  public var cells: Int
  /// Drivers looked at: 10 ns each in cache, 40 out of it, and the cost of the filter.
  public var candidates: Int

  public init(cells: Int, candidates: Int) {
    self.cells = cells
    self.candidates = candidates
  }

  /// Under 200 µs out of cache, with a cheap filter and a limit of some hundred; room for the 1,400 drivers within 1 km
  /// in a city of 100,000.
  public static let standard = SearchBudget(cells: 1_000, candidates: 2_500)
}

/// Whether a nearest search was complete.
public enum NearestOutcome: Sendable, Hashable {
  case complete
  /// The budget ran out. Hits are exact up to this distance; beyond it nearer drivers may be missing.
  case exhausted(completeWithinMeters: Double)
}

extension DriverIndex {
  /// Appends the drivers nearest to a coordinate to `hits`, nearest first, of equal distances the smaller handle first.
  ///
  /// At most `limit`, none farther than `withinMeters` (a driver at exactly that distance is in), only those that
  /// `filter` accepts; it is asked only about drivers that would be hits. No allocation but for the growth of `hits`
  /// and, over some 60 hits, a scratch buffer of the sort.
  /// Costs O(log drivers + limit · log limit): a few µs for 10.
  public func nearest(
    to center: Coordinate, limit: Int, withinMeters: Double = .infinity, budget: SearchBudget = .standard,
    into hits: inout [DriverHit], where filter: (UInt32, DriverLabel) -> Bool = { _, _ in true }
  ) -> NearestOutcome {
    var budget = budget
    let first = hits.count
    let outcome = nearest(
      to: center, limit: limit, withinMeters: withinMeters, spending: &budget, into: &hits, where: filter)
    DriverHit.sort(&hits, from: first)
    return outcome
  }

  /// The nearest drivers, at most `limit`, unordered; its work is subtracted from the budget. A caller that must look
  /// further discards the hits.
  func nearest(
    to center: Coordinate, limit: Int, withinMeters: Double, spending budget: inout SearchBudget,
    into hits: inout [DriverHit], where filter: (UInt32, DriverLabel) -> Bool
  ) -> NearestOutcome {
    guard limit > 0, withinMeters >= 0, count > 0 else { return .complete }
    let point = SearchPoint(center)
    var best = BestHits(start: hits.count, limit: limit, withinMeters: withinMeters)
    var stack = SearchStack()
    stack.push(Pending(node: 0, cell: .world, squaredChord: 0))
    while let next = stack.pop() {
      if next.squaredChord > best.squaredChordLimit { continue }
      let node = nodes[next.node]
      guard budget.cells > 0, budget.candidates > 0 || !node.isLeaf else {
        stack.push(next)
        break
      }
      budget.cells -= 1
      guard node.isLeaf else {
        pushChildren(of: node, at: next.cell, from: point, nearerThan: best.squaredChordLimit, on: &stack)
        continue
      }
      // A crowd on one spot may exceed the budget: then a part of it, and no claim about the rest.
      if Int(node.count) > budget.candidates { stack.push(next) }
      scan(leaf: node, atMost: budget.candidates) { entry in
        let squared = point.vector.squaredChord(to: entry.vector)
        if squared > best.squaredChordLimit { return }
        let hit = DriverHit(driver: entry.driver, distanceMeters: point.vector.distance(to: entry.vector))
        if best.wants(hit, hits), filter(entry.driver, entry.label) { best.add(hit, to: &hits) }
      }
      budget.candidates -= min(Int(node.count), budget.candidates)
    }
    return outcome(stack, best)
  }

  /// Complete, unless a cell that could have a hit is left.
  private func outcome(_ stack: borrowing SearchStack, _ best: BestHits) -> NearestOutcome {
    let least = stack.minimumSquaredChord
    if least > best.squaredChordLimit { return .complete }
    return .exhausted(completeWithinMeters: SearchPoint.minimumMeters(squaredChord: least))
  }

  /// Pushes the children that have drivers and are near enough, the nearest last, so that it comes first.
  @inline(__always)
  private func pushChildren(
    of node: Node, at cell: TreeCell, from point: SearchPoint, nearerThan limit: Double, on stack: inout SearchStack
  ) {
    let bottom = stack.count
    for quadrant in 0..<UInt32(4) {
      let child = node.link + quadrant
      if nodes[child].count == 0 { continue }
      let childCell = cell.child(quadrant)
      let squared = point.minimumSquaredChord(to: childCell)
      if squared > limit { continue }
      stack.insert(Pending(node: child, cell: childCell, squaredChord: squared), above: bottom)
    }
  }

  /// Calls `body` for each entry of a leaf, or for `limit` of them.
  @inline(__always)
  private func scan(leaf: Node, atMost limit: Int, _ body: (Entry) -> Void) {
    var block = leaf.link
    var left = limit
    var length = (Int(leaf.count) - 1) % DriverIndex.leafCapacity + 1
    while block != DriverIndex.none, left > 0 {
      unsafe entries.withRun(from: Int(block) * DriverIndex.leafCapacity, count: min(length, left)) { run in
        for index in run.indices { unsafe body(run[index]) }
      }
      left -= length
      block = nextBlock[block]
      length = DriverIndex.leafCapacity
    }
  }
}
