// The positions of all drivers: a quadtree over geohash cells, for exact nearest and within queries.
//
// The Earth is split at the bits of the geohash, a column bit and a row bit a level, wherever more than 16 drivers are
// in a cell, down to 38 by 19 m. A city centre gets small cells and an ocean one large cell, so neither a crowded
// square nor a driver 10,000 km away makes a query walk through thousands of candidates or empty cells, as a grid of
// one size would. A leaf keeps its drivers side by side as unit vectors: a candidate costs three subtractions, and
// distances are bit-equal to `Coordinate.distance(to:)`.
//
// Most moves are within a leaf and overwrite 32 bytes in place. Memory is 32 bytes a driver, and blocks of 16 entries
// (512 bytes) that are half to two thirds full in a city; the worst case, which takes an adversary, is one block a
// driver. No table is ever copied to grow.
//
// Sources: R. A. Finkel, J. L. Bentley, "Quad Trees", Acta Informatica 4 (1974); I. Gargantini, "An Effective Way to
// Represent Quadtrees", CACM 25 (1982) for Morton keys; N. Roussopoulos et al., "Nearest Neighbor Queries", SIGMOD
// 1995 for the search.

public import HubGeo
import HubMessages

/// The current coordinate of each driver, by handle.
///
/// Handles are small, dense numbers from the hub's slab. Not thread-safe: only the hub uses it.
public struct DriverIndex: ~Copyable {
  /// Entries in a block, and the most in a leaf above the deepest level.
  static var leafCapacity: Int { 16 }
  /// Inner cells with no more drivers than this become leaves again: half the capacity, so that a driver who crosses a
  /// border back and forth does not split and merge each time.
  static var mergeCount: UInt32 { 8 }
  /// Levels below the whole Earth: cells of 38 by 19 m at the equator. Deeper leaves chain blocks: a thousand vans on
  /// one spot can't be split.
  static var deepestLevel: Int { 20 }
  /// No block, no leaf, no node.
  static var none: UInt32 { .max }

  /// A driver within a leaf: what a search looks at.
  struct Entry: BitwiseCopyable {
    var vector: UnitVector
    var driver: UInt32
    /// In the padding, so that a search for free vans reads no other drivers' records.
    var label: DriverLabel
  }

  /// A driver's coordinate, and the leaf and slot of its entry.
  struct Locator: BitwiseCopyable {
    var latitude: Double
    var longitude: Double
    /// Morton code of the finest grid, 60 bits.
    var key: UInt64
    var leaf: UInt32
    /// Number of the entry: block × 16 + position.
    var slot: UInt32
  }

  /// A cell. Four children lie side by side; the root is number 0.
  struct Node: BitwiseCopyable {
    /// Of an inner cell its first child, of a leaf its head block or `none`.
    var link: UInt32
    /// Drivers in it.
    var count: UInt32
    var parent: UInt32
    var level: UInt8
    var isLeaf: Bool
    /// For a leaf, the number of the split or merge that made it (`shapes`).
    var shape: UInt16
  }

  var locators: PagedSlab<Locator>
  var entries: PagedSlab<Entry>
  /// Of a block in use the next of its leaf, of a free one the next free one.
  var nextBlock: PagedSlab<UInt32>
  var nodes: PagedSlab<Node>
  var freeBlock = DriverIndex.none
  /// First node of a free group of four, linked by `link`.
  var freeGroup = DriverIndex.none
  /// Counts splits and merges, and wraps around.
  var shapes: UInt16 = 0

  /// The number of drivers in the index.
  public private(set) var count = 0
  /// Handles are 0 ..< capacity.
  public let capacity: Int

  /// An empty index for handles 0 ..< `capacity` (up to 2^26). Memory grows with use and stays at its peak.
  public init(capacity: Int) {
    precondition(capacity > 0 && capacity <= 1 << 26)
    self.capacity = capacity
    let absent = Locator(latitude: 0, longitude: 0, key: 0, leaf: DriverIndex.none, slot: 0)
    locators = PagedSlab(limit: capacity, pageShift: 12, filler: absent)
    // One driver fills no more than one block, and while a leaf is split its own block is still in use.
    let blocks = capacity + 8
    let origin = UnitVector(Coordinate(clampingLatitude: 0, wrappingLongitude: 0))
    let empty = Entry(vector: origin, driver: 0, label: .none)
    entries = PagedSlab(limit: blocks * DriverIndex.leafCapacity, pageShift: 13, filler: empty)
    nextBlock = PagedSlab(limit: blocks, pageShift: 12, filler: DriverIndex.none)
    // Each inner cell holds more than 8 drivers, each driver is in at most 20 of them, and each has 4 children.
    let inner = capacity * DriverIndex.deepestLevel / Int(DriverIndex.mergeCount) + DriverIndex.deepestLevel
    let root = Node(link: DriverIndex.none, count: 0, parent: DriverIndex.none, level: 0, isLeaf: true, shape: 0)
    nodes = PagedSlab(limit: 4 * (inner + 1), pageShift: 8, filler: root)
    nodes.grow(to: 4)
  }

  /// Bytes allocated.
  public var allocatedBytes: Int {
    locators.allocatedBytes + entries.allocatedBytes + nextBlock.allocatedBytes + nodes.allocatedBytes
  }

  /// Whether a driver is in the index; false for handles past the capacity.
  public func contains(_ driver: UInt32) -> Bool {
    Int(driver) < locators.count && locators[driver].leaf != DriverIndex.none
  }

  /// The coordinate last passed to `move`; nil for a driver that is not in the index.
  public func position(of driver: UInt32) -> Coordinate? {
    guard contains(driver) else { return nil }
    let locator = locators[driver]
    return Coordinate(latitude: locator.latitude, longitude: locator.longitude)
  }

  /// Sets a driver's coordinate, new or not. 60 ns in cache, 90–300 ns where the record must be fetched from memory;
  /// amortised O(1), at worst 20 splits of 16 drivers. Precondition: the handle is below the capacity.
  public mutating func move(_ driver: UInt32, to coordinate: Coordinate, label: DriverLabel = .none) {
    precondition(Int(driver) < capacity)
    if Int(driver) >= locators.count { locators.grow(to: Int(driver) + 1) }
    let key = GridPoint(coordinate).mortonCode
    let entry = Entry(vector: UnitVector(coordinate), driver: driver, label: label)
    let old = locators[driver]
    locators[driver].latitude = coordinate.latitude
    locators[driver].longitude = coordinate.longitude
    locators[driver].key = key
    guard old.leaf != DriverIndex.none else {
      count += 1
      nodes[0].count += 1
      insert(entry, key: key, below: 0)
      return
    }
    let level = DriverIndex.commonLevel(old.key, key)
    if level >= Int(nodes[old.leaf].level) {
      entries[old.slot] = entry
      return
    }
    takeOut(old)
    insert(entry, key: key, below: leave(old.leaf, upTo: level))
  }

  /// Changes the label that filters see; does nothing for a driver that is not in the index.
  mutating func label(_ driver: UInt32, _ label: DriverLabel) {
    guard contains(driver) else { return }
    entries[locators[driver].slot].label = label
  }

  /// Removes a driver, if it is in the index.
  public mutating func remove(_ driver: UInt32) {
    guard contains(driver) else { return }
    let locator = locators[driver]
    locators[driver].leaf = DriverIndex.none
    takeOut(locator)
    nodes[leave(locator.leaf, upTo: 0)].count -= 1
    count -= 1
    mergeIfFew(0)
  }

  /// The level of the smallest cell that holds both keys, 0…29; 32 for equal keys.
  static func commonLevel(_ a: UInt64, _ b: UInt64) -> Int {
    ((a ^ b) << 4).leadingZeroBitCount >> 1
  }

  /// Which of the four children of a cell of this level a key lies in.
  static func quadrant(of key: UInt64, level: UInt8) -> UInt32 {
    UInt32(truncatingIfNeeded: key >> (58 - 2 * UInt64(level))) & 3
  }
}

/// What a search knows of a driver without a look-up: its status, and its vehicle type and tags as a number.
public struct DriverLabel: Sendable, Hashable, BitwiseCopyable {
  private let bits: UInt32

  /// The label of a driver that reported nothing.
  public static let none = DriverLabel(status: .available, profile: -1)

  /// - Parameter profile: its index in the hub's table of vehicle types and tags, −1 for none.
  init(status: DriverStatus, profile: Int32) {
    bits = UInt32(status.rawValue) | UInt32(bitPattern: profile + 1) << 2
  }

  var status: DriverStatus {
    switch bits & 3 {
    case 0: .available
    case 1: .unavailable
    case 2: .background
    default: .onTrip
    }
  }

  var profile: Int32 { Int32(bitPattern: bits >> 2) - 1 }
}
