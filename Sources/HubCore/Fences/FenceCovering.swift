// The cells of a fence: those within it, where a fix need not be compared with its shape, and those that its border
// crosses. It is made where the fence is read, on a loop's thread, to save the hub's time.
//
// From the whole Earth down, cells that the border meets are quartered, the largest first, until the fence's limit of
// cells is reached (S2's region coverer, S. Dawes et al., s2geometry.io). Only edges that met a cell are checked
// against its quarters. A cell counts as within, or is left out, only where that is certain.
import HubGeo
public import HubMessages

/// The cells of one fence.
public struct FenceCovering: Sendable, Equatable {
  struct Entry: Sendable, Equatable {
    var key: UInt64
    /// The cell is entirely in the fence.
    var isWhole: Bool
  }

  let entries: [Entry]

  public init(_ fence: Fence) {
    entries = fence.area.map { FenceCovering.cells(of: FenceOutline($0)) } ?? []
  }

  private static func cells(of outline: FenceOutline) -> [Entry] {
    var whole: [FenceCell] = []
    var done: [FenceCell] = []
    // Coarse before fine, so the first one is always the largest.
    var crossed = [(cell: FenceCell.world, edges: outline.edges)]
    var next = 0
    while next < crossed.count {
      let (cell, edges) = crossed[next]
      next += 1
      guard cell.level < FenceCell.finestLevel else {
        done.append(cell)
        continue
      }
      var wholeParts: [FenceCell] = []
      var crossedParts: [(FenceCell, [Int32])] = []
      for part in cell.children {
        switch outline.relation(to: part, among: edges) {
        case .outside: break
        case .within: wholeParts.append(part)
        case .crossed(let some): crossedParts.append((part, some))
        }
      }
      let count = whole.count + done.count + crossed.count - next + wholeParts.count + crossedParts.count
      guard count <= HubLimits.cellsPerFence else {
        done.append(cell)
        continue
      }
      whole += wholeParts
      crossed += crossedParts.map { (cell: $0.0, edges: $0.1) }
    }
    return whole.map { Entry(key: $0.key, isWhole: true) } + done.map { Entry(key: $0.key, isWhole: false) }
  }
}

/// A shape with what a covering needs of it.
private struct FenceOutline {
  enum Relation {
    case outside, within
    /// The border may cross it: by these edges, where the shape has any.
    case crossed([Int32])
  }

  private let area: FenceArea
  private let border: Edges?
  /// The indices of all edges.
  let edges: [Int32]

  init(_ area: FenceArea) {
    self.area = area
    switch area {
    case .circle: border = nil
    case .polygons(let polygons): border = Edges(polygons)
    case .corridor(let corridor, _): border = Edges(corridor.path)
    }
    edges = border?.all ?? []
  }

  func relation(to cell: FenceCell, among edges: [Int32]) -> Relation {
    switch area {
    case .circle(let circle): relation(to: cell, circle)
    case .polygons(let polygons): relation(to: cell, polygons, edges)
    case .corridor(let corridor, _): relation(to: cell, corridor, edges)
    }
  }

  /// By the triangle inequality, with a centimetre for rounding.
  private func relation(to cell: FenceCell, _ circle: Circle) -> Relation {
    let reach = cell.reachMeters
    let distance = circle.center.distance(to: cell.box.center)
    if distance - reach > circle.radiusMeters + 0.01 { return .outside }
    return distance + reach < circle.radiusMeters - 0.01 ? .within : .crossed([])
  }

  /// Where no edge meets the cell, its middle decides for all of it. All longitudes of a pole are one point, so where
  /// the border touches the pole, the cells there count as crossed.
  private func relation(to cell: FenceCell, _ polygons: MultiPolygon, _ edges: [Int32]) -> Relation {
    guard let border else { return .crossed([]) }
    let box = cell.box
    if box.north == 90, border.touch(latitude: 90, edges) { return .crossed(edges) }
    if box.south == -90, border.touch(latitude: -90, edges) { return .crossed(edges) }
    let meeting = border.meeting(box, among: edges)
    guard meeting.isEmpty else { return .crossed(meeting) }
    return polygons.contains(box.center) ? .within : .outside
  }

  /// Outside where no edge comes within half the width of the cell's box; only such edges can contain the cell. Within
  /// only where the distance from a path is exact to 0.01 %, which is below 80° of latitude.
  private func relation(to cell: FenceCell, _ corridor: Corridor, _ edges: [Int32]) -> Relation {
    guard let border else { return .crossed([]) }
    let meeting = border.meeting(cell.box.grown(byMeters: corridor.halfWidthMeters), among: edges)
    guard !meeting.isEmpty else { return .outside }
    let (middle, reach) = (cell.box.center, cell.reachMeters)
    let isExact = abs(middle.latitude) < 80 && reach < corridor.halfWidthMeters
    guard isExact else { return .crossed(meeting) }
    let distance = corridor.path.distance(from: middle, toNearestOf: meeting)
    return distance + reach < corridor.halfWidthMeters * 0.999 ? .within : .crossed(meeting)
  }
}
