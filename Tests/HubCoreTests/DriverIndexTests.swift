// The driver index against brute force: the same drivers, every one looked at.

import Foundation
import HubGeo
import HubTestSupport
import Testing

@testable import HubCore

/// Where everything is, with no cleverness.
private struct Oracle {
  var places: [UInt32: Coordinate] = [:]

  func within(_ center: Coordinate, _ radiusMeters: Double, where filter: (UInt32) -> Bool = { _ in true })
    -> [DriverHit]
  {
    places.compactMap { driver, place in
      let distance = center.distance(to: place)
      return distance <= radiusMeters && filter(driver)
        ? DriverHit(driver: driver, distanceMeters: distance) : nil
    }.sorted { ($0.distanceMeters, $0.driver) < ($1.distanceMeters, $1.driver) }
  }

  func within(_ box: BoundingBox) -> [UInt32] {
    places.filter { box.contains($0.value) }.map(\.key).sorted()
  }
}

/// Where a population lives and how far its members step.
private struct Region: Sendable, CustomTestStringConvertible {
  var name: String
  var center: Coordinate
  var radiusMeters: Double
  var stepMeters: Double
  /// Round coordinates, so that many share a spot.
  var gridDegrees: Double?

  var testDescription: String { name }

  static let all: [Region] = [
    Region(name: "a city", center: at(41.15, -8.61), radiusMeters: 8_000, stepMeters: 60),
    Region(name: "the antimeridian", center: at(-16.8, 179.999), radiusMeters: 8_000, stepMeters: 200),
    Region(name: "the north pole", center: at(89.999, 30), radiusMeters: 3_000, stepMeters: 100),
    Region(name: "the south pole", center: at(-90, 0), radiusMeters: 50_000, stepMeters: 1_000),
    Region(name: "the whole world", center: at(0, 0), radiusMeters: 20_015_000, stepMeters: 30_000),
    Region(name: "the corner of the map's quarters", center: at(0, 0), radiusMeters: 500, stepMeters: 20),
    Region(
      name: "a few crowded spots", center: at(48.2, 16.37), radiusMeters: 400, stepMeters: 100, gridDegrees: 0.002),
  ]

  func place(_ random: inout SplitMix64) -> Coordinate {
    let distance = radiusMeters * Double.random(in: 0...1, using: &random).squareRoot()
    return snapped(center.destination(bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: distance))
  }

  func step(from place: Coordinate, _ random: inout SplitMix64) -> Coordinate {
    let distance = Double.random(in: 0...stepMeters, using: &random)
    return snapped(place.destination(bearingDegrees: .random(in: 0..<360, using: &random), distanceMeters: distance))
  }

  private func snapped(_ place: Coordinate) -> Coordinate {
    guard let gridDegrees else { return place }
    return Coordinate(
      clampingLatitude: (place.latitude / gridDegrees).rounded() * gridDegrees,
      wrappingLongitude: (place.longitude / gridDegrees).rounded() * gridDegrees)
  }
}

@Suite struct DriverIndexTests {
  @Test("Every answer equals brute force while drivers come, move and go", arguments: Region.all)
  fileprivate func oracle(region: Region) {
    var random = SplitMix64(seed: 7)
    var index = DriverIndex(capacity: 1_000)
    var oracle = Oracle()
    for round in 0..<24 {
      for _ in 0..<200 {
        let driver = UInt32.random(in: 0..<1_000, using: &random)
        if Int.random(in: 0..<10, using: &random) == 0 {
          index.remove(driver)
          oracle.places[driver] = nil
        } else {
          let place = oracle.places[driver].map { region.step(from: $0, &random) } ?? region.place(&random)
          index.move(driver, to: place)
          oracle.places[driver] = place
        }
      }
      #expect(index.count == oracle.places.count)
      index.checkInvariants()
      compare(index, oracle, region, &random)
      if round == 12 {  // empty it, so that all merges back
        for driver in 0..<UInt32(1_000) { index.remove(driver) }
        oracle.places = [:]
        index.checkInvariants()
        #expect(index.count == 0 && index.nodes[0].isLeaf)
      }
    }
  }

  private func compare(
    _ index: borrowing DriverIndex, _ oracle: Oracle, _ region: Region, _ random: inout SplitMix64
  ) {
    let driverThere = oracle.places.min { $0.key < $1.key }?.value
    let centers = [region.place(&random), region.center, random.coordinate()] + (driverThere.map { [$0] } ?? [])
    for center in centers {
      let all = oracle.within(center, .infinity)
      for limit in [1, 10, 2_000] {
        var hits: [DriverHit] = []
        #expect(index.nearest(to: center, limit: limit, budget: .unlimited, into: &hits) == .complete)
        #expect(hits == Array(all.prefix(limit)))
      }
      // A radius that ends exactly on a driver, and one that ends anywhere.
      let radii = [
        all.randomElement(using: &random)?.distanceMeters ?? 0,
        region.radiusMeters * .random(in: 0...1.2, using: &random),
      ]
      for radius in radii {
        var hits: [DriverHit] = []
        #expect(index.within(center: center, radiusMeters: radius, into: &hits) == nil)
        let expected = oracle.within(center, radius)
        #expect(sorted(hits) == expected)
        hits = []
        #expect(
          index.nearest(to: center, limit: 20, withinMeters: radius, budget: .unlimited, into: &hits) { driver, _ in
            driver % 3 == 0
          }
            == .complete)
        #expect(hits == Array(expected.filter { $0.driver % 3 == 0 }.prefix(20)))
        let box = BoundingBox(center: center, radiusMeters: radius)
        var drivers: [UInt32] = []
        #expect(index.within(box, into: &drivers) == nil)
        #expect(drivers.sorted() == oracle.within(box))
      }
    }
  }

  private func sorted(_ hits: [DriverHit]) -> [DriverHit] {
    hits.sorted { ($0.distanceMeters, $0.driver) < ($1.distanceMeters, $1.driver) }
  }

  @Test("A box is answered exactly wherever its borders are", arguments: [UInt64(1), 2, 3])
  func boxes(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var index = DriverIndex(capacity: 3_000)
    var oracle = Oracle()
    for driver in 0..<UInt32(3_000) {
      let place = random.coordinate()
      index.move(driver, to: place)
      oracle.places[driver] = place
    }
    for _ in 0..<300 {
      let (a, b) = (random.coordinate(), random.coordinate())
      let box = try #require(
        BoundingBox(
          south: min(a.latitude, b.latitude), west: a.longitude, north: max(a.latitude, b.latitude), east: b.longitude))
      var drivers: [UInt32] = []
      #expect(index.within(box, into: &drivers) == nil)
      #expect(drivers.sorted() == oracle.within(box))
    }
    var drivers: [UInt32] = []
    #expect(index.within(.world, into: &drivers) == nil)
    #expect(drivers.count == 3_000)
  }

  @Test("A driver can be put in, asked for, moved far and taken out twice")
  func lifeOfOne() {
    var index = DriverIndex(capacity: 10)
    #expect(!index.contains(9) && !index.contains(4_000_000) && index.position(of: 9) == nil)
    index.move(9, to: at(48.2, 16.37))
    #expect(index.contains(9) && !index.contains(8) && index.count == 1)
    index.move(9, to: at(-33.9, 151.2))
    #expect(index.position(of: 9) == at(-33.9, 151.2) && index.count == 1)
    index.remove(9)
    index.remove(9)
    #expect(!index.contains(9) && index.count == 0)
    index.checkInvariants()
  }

  @Test("Drivers on one spot are all found, the smaller handle first")
  func ties() {
    var index = DriverIndex(capacity: 500)
    let depot = at(52.5, 13.4)
    for driver in (0..<UInt32(500)).reversed() { index.move(driver, to: depot) }
    index.checkInvariants()
    var hits: [DriverHit] = []
    #expect(index.nearest(to: depot, limit: 7, into: &hits) == .complete)
    #expect(hits == (0..<7).map { DriverHit(driver: $0, distanceMeters: 0) })
    hits = []
    #expect(index.within(center: depot, radiusMeters: 0, into: &hits) == nil)
    #expect(Set(hits.map(\.driver)) == Set(0..<500))
    for driver in 0..<UInt32(500) where driver % 2 == 0 { index.remove(driver) }
    index.checkInvariants()
    hits = []
    _ = index.nearest(to: depot, limit: 3, into: &hits)
    #expect(hits.map(\.driver) == [1, 3, 5])
  }

  @Test("Hits are added behind what the array already holds")
  func appended() {
    var index = DriverIndex(capacity: 4)
    for driver in 0..<UInt32(4) { index.move(driver, to: at(0, Double(4 - driver))) }
    let old = DriverHit(driver: 99, distanceMeters: 1e9)
    var hits = [old]
    #expect(index.nearest(to: at(0, 0), limit: 2, into: &hits) == .complete)
    #expect(hits.map(\.driver) == [99, 3, 2])
  }

  @Test("No limit, no radius and no drivers give no hits")
  func nothing() {
    var index = DriverIndex(capacity: 4)
    var hits: [DriverHit] = []
    #expect(index.nearest(to: at(0, 0), limit: 5, into: &hits) == .complete)
    index.move(0, to: at(0, 0))
    #expect(index.nearest(to: at(0, 0), limit: 0, into: &hits) == .complete)
    #expect(index.nearest(to: at(0, 0), limit: 5, withinMeters: -1, into: &hits) == .complete)
    #expect(hits.isEmpty)
  }
}
