// How many drivers of each status there are in the cells of a part of the map (protocol/faces.md, "counts").
//
// What is told of is a block: a geohash cell of two characters fewer than the cells that are counted, of which it has
// 1,024. A block is told of once for all whose view touches it.
public import HubGeo

/// The counts of the cells of one block that changed, or of all that are not empty. State: latest wins.
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
  /// True where what is not among `cells` is empty; else it is as it was.
  public var isFull: Bool
  public var cells: [Cell]

  public init(block: GeohashCell, tick: UInt64, isFull: Bool, cells: [Cell]) {
    self.block = block
    self.tick = tick
    self.isFull = isFull
    self.cells = cells
  }

  /// Characters that a counted cell has more than its block.
  public static let depth = 2
}
