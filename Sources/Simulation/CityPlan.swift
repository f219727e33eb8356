// How a city's streets are laid out. Runs once, before any traffic.

/// A city while it is being drawn.
struct CityPlan {
  let side: Int
  var places: [SIMD2<Double>]
  var neighbours: [City.Crossing]
  var limits: [Float]
  var lightCycles: [Float]
  var lightOffsets: [Float]

  private var columnLimits: [Double] = []
  private var rowLimits: [Double] = []

  /// One line of the grid in so many is an arterial.
  private static let arterialEvery = 5
  /// The fraction of residential ways that are closed.
  private static let closed = 0.06
  /// By which fraction blocks' lengths vary, and by how many metres crossings lie off their lines.
  private static let unevenness = 0.35
  private static let bend = 9.0

  init(radius: Double, random: inout SplitMix64) {
    let half = radius / 2.0.squareRoot() - CityPlan.bend * 2
    side = max(4, Int(2 * half / City.blockMeters) + 1)
    let count = side * side
    places = []
    places.reserveCapacity(count)
    neighbours = [City.Crossing](repeating: -1, count: count * City.neighbourSlots)
    limits = [Float](repeating: 0, count: count * City.neighbourSlots)
    lightCycles = [Float](repeating: 0, count: count)
    lightOffsets = [Float](repeating: 0, count: count)
    let columns = CityPlan.lines(side, within: half, &random)
    let rows = CityPlan.lines(side, within: half, &random)
    for row in rows {
      for column in columns {
        let off = SIMD2(random.uniform(-1, 1), random.uniform(-1, 1)) * CityPlan.bend
        places.append(SIMD2(column, row) + off)
      }
    }
  }

  /// `count` lines from −half to half, unevenly spaced.
  private static func lines(_ count: Int, within half: Double, _ random: inout SplitMix64) -> [Double] {
    var lines = [0.0]
    for _ in 1..<count { lines.append(lines[lines.count - 1] + 1 + random.uniform(-unevenness, unevenness)) }
    let scale = 2 * half / lines[count - 1]
    return lines.map { $0 * scale - half }
  }

  mutating func build(_ random: inout SplitMix64) {
    columnLimits = (0..<side).map { CityPlan.lineLimit($0, &random) }
    rowLimits = (0..<side).map { CityPlan.lineLimit($0, &random) }
    for row in 0..<side {
      for column in 0..<side {
        if column + 1 < side {
          open(crossing(column, row), crossing(column + 1, row), limit: rowLimits[row], &random)
        }
        if row + 1 < side {
          open(crossing(column, row), crossing(column, row + 1), limit: columnLimits[column], &random)
        }
      }
    }
    addDiagonals(&random)
    addLights(&random)
  }

  private static func lineLimit(_ line: Int, _ random: inout SplitMix64) -> Double {
    if line % arterialEvery == arterialEvery / 2 { return City.arterialSpeed }
    return random.chance(0.5) ? City.streetSpeed : City.residentialSpeed
  }

  private func crossing(_ column: Int, _ row: Int) -> City.Crossing { City.Crossing(row * side + column) }

  private mutating func open(
    _ first: City.Crossing, _ second: City.Crossing, limit: Double, _ random: inout SplitMix64
  ) {
    if limit == City.residentialSpeed, random.chance(CityPlan.closed) { return }
    join(first, second, limit)
    join(second, first, limit)
  }

  private mutating func join(_ first: City.Crossing, _ second: City.Crossing, _ limit: Double) {
    for slot in City.slots(of: first) where neighbours[slot] < 0 {
      neighbours[slot] = second
      limits[slot] = Float(limit)
      return
    }
    preconditionFailure("four ways of the grid and four of the diagonals fill eight slots")
  }

  /// One avenue each way, corner to corner across the blocks, a few blocks off the middle.
  private mutating func addDiagonals(_ random: inout SplitMix64) {
    let rising = random.below(max(1, side / 3))
    let falling = random.below(max(1, side / 3))
    for step in 0..<(side - 1) {
      if step + 1 + rising < side {
        join(crossing(step + rising, step), crossing(step + 1 + rising, step + 1), City.arterialSpeed)
        join(crossing(step + 1 + rising, step + 1), crossing(step + rising, step), City.arterialSpeed)
      }
      if step + 1 + falling < side {
        let row = side - 1 - step
        join(crossing(step + falling, row), crossing(step + 1 + falling, row - 1), City.arterialSpeed)
        join(crossing(step + 1 + falling, row - 1), crossing(step + falling, row), City.arterialSpeed)
      }
    }
  }

  /// Lights stand where an arterial crosses, and at some other crossings.
  private mutating func addLights(_ random: inout SplitMix64) {
    for row in 0..<side {
      for column in 0..<side {
        let isBusy = columnLimits[column] == City.arterialSpeed || rowLimits[row] == City.arterialSpeed
        guard random.chance(isBusy ? 0.8 : 0.1) else { continue }
        let at = Int(crossing(column, row))
        lightCycles[at] = Float(random.uniform(50, 90))
        lightOffsets[at] = Float(random.uniform(0, 90))
      }
    }
  }
}
