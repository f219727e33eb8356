// What the tests of the driver index need: places, chance, and a look inside.

import Foundation
import HubGeo
import Testing

@testable import HubCore

extension DriverIndex {
  /// Checks that counts add up, each driver is where its locator says, and few drivers are never in an inner cell.
  func checkInvariants() {
    var broken = 0
    func hold(_ condition: Bool) { broken += condition ? 0 : 1 }  // an #expect each would take most of the time
    var (found, blocksInUse, groupsInUse) = (0, 0, 0)
    var stack: [(UInt32, TreeCell)] = [(0, .world)]
    while let (number, cell) = stack.popLast() {
      let node = nodes[number]
      hold(node.level == cell.level)
      if node.isLeaf {
        hold(Int(node.count) <= DriverIndex.leafCapacity || Int(node.level) == DriverIndex.deepestLevel)
        var block = node.link
        var length = (Int(node.count) - 1) % DriverIndex.leafCapacity + 1
        var inLeaf = 0
        while block != DriverIndex.none {
          blocksInUse += 1
          for position in 0..<length {
            let slot = block * UInt32(DriverIndex.leafCapacity) + UInt32(position)
            let locator = locators[entries[slot].driver]
            hold(locator.leaf == number && locator.slot == slot)
            hold(locator.key >= cell.firstKey && locator.key <= cell.lastKey)
          }
          inLeaf += length
          block = nextBlock[block]
          length = DriverIndex.leafCapacity
        }
        hold(inLeaf == Int(node.count))
        found += inLeaf
      } else {
        groupsInUse += 1
        hold(node.count > DriverIndex.mergeCount)
        var sum: UInt32 = 0
        for quadrant in 0..<UInt32(4) {
          hold(nodes[node.link + quadrant].parent == number)
          sum += nodes[node.link + quadrant].count
          stack.append((node.link + quadrant, cell.child(quadrant)))
        }
        hold(sum == node.count)
      }
    }
    hold(found == count)
    hold(blocksInUse + chainLength(freeBlock) { nextBlock[$0] } == nextBlock.count)
    hold(4 * (1 + groupsInUse + chainLength(freeGroup) { nodes[$0].link }) == nodes.count)
    #expect(broken == 0)
  }

  private func chainLength(_ first: UInt32, next: (UInt32) -> UInt32) -> Int {
    var (length, item) = (0, first)
    while item != DriverIndex.none { (length, item) = (length + 1, next(item)) }
    return length
  }
}

extension SearchBudget {
  static let unlimited = SearchBudget(cells: .max, candidates: .max)
}

/// Searches as the hub runs them: cells that may have a hit are entered, and each entry in them is looked at.
extension DriverIndex {
  /// Appends the drivers within `radiusMeters` of a coordinate to `hits`, unordered.
  func within(
    center: Coordinate, radiusMeters: Double, from cursor: SearchCursor = .start, budget: SearchBudget = .unlimited,
    into hits: inout [DriverHit]
  ) -> SearchCursor? {
    let point = SearchPoint(center)
    let limitChord = SearchPoint.squaredChordLimit(meters: radiusMeters)
    var budget = budget
    return traverse(from: cursor, spending: &budget) { cell in
      point.minimumSquaredChord(to: cell) <= limitChord
    } visit: { entry in
      let distance = point.vector.distance(to: entry.vector)
      if distance <= radiusMeters { hits.append(DriverHit(driver: entry.driver, distanceMeters: distance)) }
    }
  }

  /// Appends the handles of the drivers in a box to `drivers`, unordered.
  func within(
    _ box: BoundingBox, from cursor: SearchCursor = .start, budget: SearchBudget = .unlimited,
    into drivers: inout [UInt32]
  ) -> SearchCursor? {
    var budget = budget
    return traverse(from: cursor, spending: &budget) { cell in
      cell.intersects(box)
    } visit: { entry in
      if let place = position(of: entry.driver), box.contains(place) { drivers.append(entry.driver) }
    }
  }
}
