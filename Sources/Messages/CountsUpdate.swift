// The number of drivers of each status in the cells of a part of the map (protocol/ops.md, "counts").
//
// The unit is a block: a geohash cell of two characters fewer than the counted cells, of which it has 1,024. A block is
// published once for all views that touch it.
public import HubGeo

/// The changed counts of the cells of one block, or all that are not zero. State: the latest replaces earlier ones.
public struct CountsUpdate: Sendable, Equatable {
  /// How many drivers of each status are in a cell.
  public struct Cell: Sendable, Equatable {
    public var cell: GeohashCell
    public var available = 0
    public var onTrip = 0
    public var unavailable = 0
    public var background = 0
    public var offline = 0

    public init(_ cell: GeohashCell) { self.cell = cell }
  }

  public var block: GeohashCell
  /// Grows by one a second, together with that of areas.
  public var tick: UInt64
  /// True where cells that are not listed are empty; else they are unchanged.
  public var isFull: Bool
  public var cells: [Cell]

  public init(block: GeohashCell, tick: UInt64, isFull: Bool, cells: [Cell]) {
    self.block = block
    self.tick = tick
    self.isFull = isFull
    self.cells = cells
  }

  /// How many more characters the geohash of a counted cell has than that of its block.
  public static let depth = 2
}
