// The cells of fences: no part of a fence is outside of them, and a cell that is called whole is inside.
import HubGeo
import HubMessages
import HubTestSupport
import Testing

@testable import HubCore

@Suite struct FenceIndexTests {
  /// The fences that the index has for a place, and whether wholly.
  private func found(_ index: borrowing FenceIndex, _ place: Coordinate) -> [Int: Bool] {
    var known = FenceLevels()
    index.look(place, &known)
    var walk = index.walk(known)
    var found: [Int: Bool] = [:]
    while let (fence, isWhole) = index.next(&walk) {
      #expect(found.updateValue(isWhole, forKey: fence) == nil, "each comes once")
    }
    return found
  }

  private func shapes(around center: Coordinate) throws -> [Fence] {
    let square = [at(1, 1), at(1, -1), at(-1, -1), at(-1, 1), at(1, 1)].map {
      Coordinate(
        clampingLatitude: center.latitude + $0.latitude, wrappingLongitude: center.longitude + $0.longitude * 2)
    }
    var shapes = [
      circle("small", center, 40), circle("town", center, 3_000), circle("land", center, 400_000),
      circle("half", center, 1_000_000), try corridor("road", [square[0], square[2], square[3]], width: 400),
      try corridor("lane", [center, center.moved(70, 900), center.moved(100, 2500)], width: 20_000),
    ]
    // A square round a pole would go round it.
    if abs(center.latitude) < 88 {
      let hole = [0.0, 120, 240, 0].map { center.moved($0, 5_000) }
      shapes += [try polygon("square", [square]), try polygon("ring", [square, hole])]
    }
    return shapes
  }

  @Test(
    "Each place that a fence has is in one of its cells, and each place of a whole cell is in the fence",
    arguments: [
      at(0, 0), at(48.1, 11.5), at(-33.9, 179.9999), at(52, -180), at(52, 180), at(86, 40), at(89.99, 10), at(90, 0),
      at(-90, 0), at(-88.5, 100),
    ])
  func cells(center: Coordinate) throws {
    var random = SplitMix64(seed: 5)
    for fence in try shapes(around: center) {
      guard let area = fence.area else { continue }
      let covering = FenceCovering(fence)
      #expect(covering.entries.count <= HubLimits.cellsPerFence && !covering.entries.isEmpty)
      var index = FenceIndex()
      index.insert(covering, fence: 7)
      var (inside, whole) = (0, 0)
      for round in 0..<2_000 {
        let reach = area.sizeMeters * (round % 2 == 0 ? 1.05 : 3)
        let place = center.moved(.random(in: 0..<360, using: &random), .random(in: 0...reach, using: &random))
        let cell = found(index, place)[7]
        let isIn = area.contains(place, UnitVector(place))
        if isIn { inside += 1 }
        if cell == true { whole += 1 }
        #expect(!isIn || cell != nil, "\(fence.id) has \(place), its cells don't")
        #expect(cell != true || isIn, "\(fence.id) has not all of the cell of \(place)")
      }
      #expect(inside > 0)
      if area.sizeMeters > 1_000_000 { #expect(whole > inside / 2) }
    }
  }

  @Test("A polygon that holds a pole has it by all of its names")
  func pole() throws {
    let cap = try polygon("cap", [[at(80, -180), at(80, 0), at(80, 180), at(90, 180), at(90, -180), at(80, -180)]])
    var index = FenceIndex()
    index.insert(FenceCovering(cap), fence: 1)
    for longitude in [-180.0, -90, 0, 33, 180] {
      let (there, near) = (found(index, at(90, longitude))[1], found(index, at(85, longitude))[1])
      let opposite = found(index, at(-90, longitude))[1]
      #expect(there != nil && near != nil && opposite == nil)
    }
  }

  @Test("Fences come and go in any order, more to a cell than a record holds, and nothing is left")
  func changes() throws {
    var random = SplitMix64(seed: 8)
    var index = FenceIndex()
    var there: [Int: Fence] = [:]
    let center = at(48.1, 11.5)
    for step in 0..<2_000 {
      let number = Int.random(in: 0..<60, using: &random)
      if let fence = there.removeValue(forKey: number) {
        index.remove(FenceCovering(fence), fence: number)
      } else {
        let place = center.moved(.random(in: 0..<360, using: &random), .random(in: 0...200, using: &random))
        let fence = circle("F", place, .random(in: 20...600, using: &random))
        there[number] = fence
        index.insert(FenceCovering(fence), fence: number)
      }
      guard step % 20 == 0 else { continue }
      for _ in 0..<10 {
        let place = center.moved(.random(in: 0..<360, using: &random), .random(in: 0...800, using: &random))
        let hits = found(index, place)
        for (number, fence) in there {
          guard let area = fence.area else { continue }
          #expect(!area.contains(place, UnitVector(place)) || hits[number] != nil)
        }
        #expect(hits.keys.allSatisfy { there[$0] != nil })
      }
    }
    for (number, fence) in there { index.remove(FenceCovering(fence), fence: number) }
    let left = index.cellCount
    #expect(left == 0)
  }

  @Test("A cell takes as many fences as it may and no more")
  func crowded() {
    var index = FenceIndex()
    let covering = FenceCovering(circle("F", at(48, 11), 100))
    for number in 0..<30 {
      let hasRoom = index.hasRoom(covering, perCell: 30)
      #expect(hasRoom)
      index.insert(covering, fence: number)
    }
    let hasRoom = index.hasRoom(covering, perCell: 30)
    #expect(!hasRoom)
    let hasRoomInstead = index.hasRoom(covering, perCell: 30, besides: 17)
    #expect(hasRoomInstead)
    let count = found(index, at(48, 11)).count
    #expect(count == 30)
  }
}
