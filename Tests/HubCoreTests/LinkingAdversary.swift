// An adversary that watches drivers before and after all their names change, and says who became whom.
//
// It keeps, for every name, all that a rider is shown: what area updates say and what nearby answers say, in both forms
// the values and when and in which order they came. Each trait of a name is a number; a trait by itself, and all of
// them together, is a guess at the pairs of old and new names.
import Foundation
import HubGeo
import HubMessages
import HubTestSupport

@testable import HubCore

/// All that was seen under one name.
struct NameTrace {
  /// The content of area updates.
  var timestamps: [Double] = []
  var ticks: [Double] = []
  var orders: [Double] = []
  var headings: [Double] = []
  var speeds: [Double] = []
  var places: [Coordinate] = []
  /// The content of nearby answers: ages, when one was greater than the one before, their moments, ranks in the order,
  /// and the smallest limit that shows the driver.
  var ages: [Double] = []
  var rises: [Double] = []
  var moments: [Double] = []
  var answerOrders: [Double] = []
  var smallestLimit = 1_000.0
}

/// What one observer saw within one life of the names.
struct Sightings {
  var names: [Identifier: NameTrace] = [:]

  mutating func see(_ update: AreaUpdate) {
    for (index, driver) in update.drivers.enumerated() {
      var trace = names[driver.driverID] ?? NameTrace()
      trace.timestamps.append(Double(driver.timestamp.milliseconds))
      trace.ticks.append(Double(update.tick))
      if update.drivers.count > 1 { trace.orders.append(Double(index) / Double(update.drivers.count)) }
      if let heading = driver.heading { trace.headings.append(heading) }
      if let speed = driver.speed { trace.speeds.append(speed) }
      trace.places.append(driver.coordinate)
      names[driver.driverID] = trace
    }
  }

  /// - Parameter now: when the answer was given, in milliseconds since 1970.
  mutating func see(_ list: DriverList, limit: Int, now: Int64) {
    for (index, driver) in list.drivers.enumerated() {
      var trace = names[driver.driverID] ?? NameTrace()
      trace.smallestLimit = min(trace.smallestLimit, Double(limit))
      trace.answerOrders.append(Double(index))
      if let seen = driver.position {
        if let last = trace.ages.last, last < seen.age { trace.rises.append(Double(now)) }
        trace.ages.append(seen.age)
        trace.moments.append(Double(now) - seen.age * 1000)
        if let heading = seen.heading { trace.headings.append(heading) }
        if let speed = seen.speed { trace.speeds.append(speed) }
        trace.places.append(seen.coordinate)
      }
      names[driver.driverID] = trace
    }
  }
}

/// One trait of a name: a number on a line, or on a circle of a circumference.
struct Trait: Sendable {
  var name: String
  var circumference: Double?
  var value: @Sendable (NameTrace) -> Double

  static let all: [Trait] =
    [250.0, 1000, 4000].flatMap { period in
      [
        Trait(name: "area time mod \(period) ms", circumference: period) { middle(of: $0.timestamps, on: period) },
        Trait(name: "answer time mod \(period) ms", circumference: period) { middle(of: $0.moments, on: period) },
      ]
    } + [
      Trait(name: "answer time mod 120200.0 ms", circumference: 120_200) { middle(of: $0.moments, on: 120_200) },
      Trait(name: "age rises mod 120200.0 ms", circumference: 120_200) { middle(of: $0.rises, on: 120_200) },
      Trait(name: "ticks mod 4", circumference: 4) { middle(of: $0.ticks, on: 4) },
      Trait(name: "number of updates") { Double($0.ticks.count) },
      Trait(name: "order in updates") { mean($0.orders) },
      Trait(name: "order in answers") { mean($0.answerOrders) },
      Trait(name: "smallest limit") { $0.smallestLimit },
      Trait(name: "heading", circumference: 360) { middle(of: $0.headings, on: 360) },
      Trait(name: "speed") { mean($0.speeds) },
      Trait(name: "has heading") { Double(min(1, $0.headings.count)) },
      Trait(name: "has speed") { Double(min(1, $0.speeds.count)) },
      Trait(name: "rounding of heading") { mean($0.headings.map { ($0 * 4).truncatingRemainder(dividingBy: 1) }) },
      Trait(name: "rounding of speed") { mean($0.speeds.map { ($0 * 4).truncatingRemainder(dividingBy: 1) }) },
      Trait(name: "age") { mean($0.ages) },
      Trait(name: "latitude") { mean($0.places.map(\.latitude)) },
      Trait(name: "longitude") { mean($0.places.map(\.longitude)) },
    ]

  private static func mean(_ values: [Double]) -> Double {
    values.isEmpty ? 0 : values.reduce(0, +) / Double(values.count)
  }

  private static func middle(of values: [Double], on circumference: Double) -> Double {
    let angles = values.map { $0.truncatingRemainder(dividingBy: circumference) / circumference * 2 * .pi }
    let angle = atan2(mean(angles.map(sin)), mean(angles.map(cos)))
    return (angle < 0 ? angle + 2 * .pi : angle) / (2 * .pi) * circumference
  }

  /// How unlike each old name is to each new one, as a multiple of the mean.
  func differences(_ old: [NameTrace], _ new: [NameTrace]) -> [[Double]] {
    let values = new.map(value)
    let differences = old.map { trace in
      let own = value(trace)
      return values.map { other in
        let difference = abs(own - other)
        return circumference.map { min(difference, $0 - difference) } ?? difference
      }
    }
    let mean = Trait.mean(differences.flatMap { $0 })
    // What is the same for all to within the noise of arithmetic reveals nothing.
    return differences.map { $0.map { mean > 1e-6 ? $0 / mean : 0 } }
  }
}

enum LinkingAdversary {
  /// How many of the drivers are linked, by each trait and by all together.
  ///
  /// - Parameter driver: who bears a name, which the adversary uses only to count.
  static func linked(
    _ old: Sightings, _ new: Sightings, random: inout SplitMix64, driver: (Identifier) -> Int?
  ) -> [String: Int] {
    // Sorted first, or the shuffle would not be the same in each run.
    let (before, after) = (shuffled(old, &random), shuffled(new, &random))
    var sum = [[Double]](repeating: [Double](repeating: 0, count: after.count), count: before.count)
    var result: [String: Int] = [:]
    func count(_ pairs: [(Int, Int)]) -> Int {
      pairs.count { driver(before[$0.0].key) != nil && driver(before[$0.0].key) == driver(after[$0.1].key) }
    }
    for trait in Trait.all {
      let differences = trait.differences(before.map(\.value), after.map(\.value))
      for row in sum.indices { for column in sum[row].indices { sum[row][column] += differences[row][column] } }
      result[trait.name] = count(pairs(differences))
    }
    result["all traits"] = count(pairs(sum))
    let names = (before.map(\.key.description), after.map(\.key.description))
    let ranks = (
      names.0.map { name in names.0.count { $0 < name } }, names.1.map { name in names.1.count { $0 < name } }
    )
    result["order of names"] = count(pairs(ranks.0.map { own in ranks.1.map { Double(abs(own - $0)) } }))
    return result
  }

  private static func shuffled(
    _ sightings: Sightings, _ random: inout SplitMix64
  ) -> [(key: Identifier, value: NameTrace)] {
    sightings.names.sorted { $0.key.description < $1.key.description }.shuffled(using: &random)
  }

  /// The most alike first, each name in one pair; of equal ones those that stand first in the shuffled lists.
  private static func pairs(_ differences: [[Double]]) -> [(Int, Int)] {
    let all = differences.indices.flatMap { row in differences[row].indices.map { (row, $0) } }
      .sorted { (differences[$0.0][$0.1], $0.0, $0.1) < (differences[$1.0][$1.1], $1.0, $1.1) }
    var (rows, columns, pairs) = (Set<Int>(), Set<Int>(), [(Int, Int)]())
    for (row, column) in all where !rows.contains(row) && !columns.contains(column) {
      rows.insert(row)
      columns.insert(column)
      pairs.append((row, column))
    }
    return pairs
  }
}
