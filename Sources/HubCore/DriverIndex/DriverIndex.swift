// Where all drivers are: a quadtree over geohash cells, for nearest and within queries that are exact.
//
// The idea. Split the Earth at the bits of the geohash, a column bit and a row bit a level, wherever more than 16
// drivers are in a cell, down to 38 by 19 m. A city centre gets small cells and an ocean one large cell, so neither a
// crowded square nor a driver 10,000 km away makes a query walk through thousands of candidates or empty cells, which
// a grid of one size does in one of the two. A leaf keeps its drivers side by side as unit vectors: a candidate costs
// three subtractions, and distances are bit-equal to `Coordinate.distance(to:)`.
//
// The numbers. A move within a leaf, nearly all of them, overwrites 32 bytes in place. Memory is 32 bytes a driver,
// and blocks of 16 entries (512 bytes) that are half to two thirds full in a city; the worst case, made by an
// adversary who spreads drivers just so, is one block a driver. No table is ever copied to grow.
//
// Sources: R. A. Finkel, J. L. Bentley, "Quad Trees", Acta Informatica 4 (1974); I. Gargantini, "An Effective Way to
// Represent Quadtrees", CACM 25 (1982) for Morton keys; N. Roussopoulos et al., "Nearest Neighbor Queries", SIGMOD
// 1995 for the search.

public import HubGeo
import HubMessages

/// The current place of each driver, by handle.
///
/// Handles are dense: small numbers that the hub's slab gives out. Not thread-safe: it belongs to the hub.
public struct DriverIndex: ~Copyable {
  /// Entries in a block and most in a leaf that can still be split.
  static var leafCapacity: Int { 16 }
  /// Inner cells with no more drivers than this become leaves again: half, so that a driver who goes back and forth
  /// over a border does not split and merge each time.
  static var mergeCount: UInt32 { 8 }
  /// Levels below the whole Earth: cells of 38 by 19 m at the equator. Deeper leaves chain blocks instead: a depot
  /// with a thousand vans on one spot can't be split.
  static var deepestLevel: Int { 20 }
  /// No block, no leaf, no node.
  static var none: UInt32 { .max }

  /// A driver within a leaf: what a search looks at.
  struct Entry: BitwiseCopyable {
    var vector: UnitVector
    var driver: UInt32
    /// In what would be padding: a search that wants free vans looks up no driver that is none.
    var label: DriverLabel
  }

  /// A driver by handle: its place, and where its entry is.
  struct Place: BitwiseCopyable {
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
    /// Of a leaf, which of all splits and merges made it (`shapes`).
    var shape: UInt16
  }

  var places: PagedSlab<Place>
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
    let absent = Place(latitude: 0, longitude: 0, key: 0, leaf: DriverIndex.none, slot: 0)
    places = PagedSlab(limit: capacity, pageShift: 12, filler: absent)
    // One driver fills no more than one block, and while a leaf is split its own block is still in use.
    let blocks = capacity + 8
    let origin = UnitVector(Coordinate(clampingLatitude: 0, wrappingLongitude: 0))
    let empty = Entry(vector: origin, driver: 0, label: .none)
    entries = PagedSlab(limit: blocks * DriverIndex.leafCapacity, pageShift: 13, filler: empty)
    nextBlock = PagedSlab(limit: blocks, pageShift: 12, filler: DriverIndex.none)
    // Each inner cell holds more than 8 drivers, each driver is in at most 20 of them, and each has 4 children.
    let inner = capacity * DriverIndex.deepestLevel / Int(DriverIndex.mergeCount) + DriverIndex.deepestLevel
    let root = Node(link: DriverIndex.none, count: 0, parent: DriverIndex.none, level: 0, isLeaf: true, shape: 0)
    nodes = PagedSlab(limit: 4 * (inner + 1), pageShift: 12, filler: root)
    nodes.grow(to: 4)
  }

  /// Bytes allocated.
  public var allocatedBytes: Int {
    places.allocatedBytes + entries.allocatedBytes + nextBlock.allocatedBytes + nodes.allocatedBytes
  }

  /// Whether a driver is in the index; false for handles past the capacity.
  public func contains(_ driver: UInt32) -> Bool {
    Int(driver) < places.count && places[driver].leaf != DriverIndex.none
  }

  /// The place last given to `move`; nil for a driver that is not in the index.
  public func position(of driver: UInt32) -> Coordinate? {
    guard contains(driver) else { return nil }
    let place = places[driver]
    return Coordinate(latitude: place.latitude, longitude: place.longitude)
  }

  /// Puts a driver at a place, whether it was in the index or not. 60 ns in cache, 90–300 ns where the driver's
  /// place must be fetched from memory; amortised O(1), at worst 20 splits of 16 drivers. A handle past the capacity is
  /// a precondition.
  public mutating func move(_ driver: UInt32, to coordinate: Coordinate, label: DriverLabel = .none) {
    precondition(Int(driver) < capacity)
    if Int(driver) >= places.count { places.grow(to: Int(driver) + 1) }
    let key = GridPoint(coordinate).mortonCode
    let entry = Entry(vector: UnitVector(coordinate), driver: driver, label: label)
    let old = places[driver]
    places[driver].latitude = coordinate.latitude
    places[driver].longitude = coordinate.longitude
    places[driver].key = key
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

  /// Changes what filters see of a driver; one that is not in the index has nothing to change.
  mutating func label(_ driver: UInt32, _ label: DriverLabel) {
    guard contains(driver) else { return }
    entries[places[driver].slot].label = label
  }

  /// Takes a driver out; one that is not in the index is left as it is.
  public mutating func remove(_ driver: UInt32) {
    guard contains(driver) else { return }
    let place = places[driver]
    places[driver].leaf = DriverIndex.none
    takeOut(place)
    nodes[leave(place.leaf, upTo: 0)].count -= 1
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

/// What a search can tell of a driver without looking it up: its status, and its vehicle type and tags as a number.
public struct DriverLabel: Sendable, Hashable, BitwiseCopyable {
  private let bits: UInt32

  /// Of a driver that said nothing.
  public static let none = DriverLabel(status: .available, profile: -1)

  /// - Parameter profile: its place in the hub's table of vehicle types and tags, −1 for none.
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
