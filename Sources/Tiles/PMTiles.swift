// PMTiles, version 3 (github.com/protomaps/PMTiles, spec/v3/spec.md): a map's images in one file. A header has the
// offsets of its parts; a directory has each image's offset, by its number; a large root directory refers to others,
// its leaves. Parsed here without I/O; PMTilesArchive.swift reads the file.
import HubGeo
public import HubSystem

/// Why images of a map cannot be served.
public enum MapTileError: Error, Equatable, CustomStringConvertible {
  /// It is no PMTiles file, or of another version.
  case notPMTiles
  /// The page draws images, and these are something else.
  case notImages(String)
  case compression(String)
  /// A part of the file is malformed.
  case damaged(String)
  /// A folder without a folder of a zoom.
  case noZooms
  case system(SystemError)

  /// Why the file cannot be served, for operators.
  public var description: String {
    switch self {
    case .notPMTiles: "it is no PMTiles file of version 3, and no folder"
    case .notImages(let kind): "its tiles are \(kind): the page draws PNG, JPEG, WebP and AVIF"
    case .compression(let name): "its \(name), of which only gzip, or none, is understood"
    case .damaged(let part): "it is damaged: \(part)"
    case .noZooms: "a folder of tiles has folders 0 to \(MapTile.zooms.upperBound) in it: zoom/x/y.png"
    case .system(let error): "\(error)"
    }
  }
}

/// An image of a map, by the "slippy map" scheme: x to the east from 180° W, y to the south from 85.05° N.
public struct MapTile: Sendable, Equatable {
  public let zoom: Int
  public let x: Int
  public let y: Int

  /// Above 26 the sum of all numbers exceeds what other programs use for it.
  static let zooms = 0...26

  /// Nil where the world has no such tile.
  public init?(zoom: Int, x: Int, y: Int) {
    guard MapTile.zooms.contains(zoom), (0..<1 << zoom).contains(x), (0..<1 << zoom).contains(y) else { return nil }
    (self.zoom, self.x, self.y) = (zoom, x, y)
  }

  /// Its index on the Hilbert curve of its zoom, after all tiles of smaller zooms. O(zoom).
  var number: UInt64 {
    var (x, y, index) = (x, y, 0)
    for level in (0..<zoom).reversed() {
      let side = 1 << level
      let (right, down) = (x & side != 0, y & side != 0)
      index += ((right ? 3 : 0) ^ (down ? 1 : 0)) << (2 * level)
      guard !down else { continue }
      if right { (x, y) = ((side - 1 - x) & (side - 1), (side - 1 - y) & (side - 1)) }
      (x, y) = (y, x)
    }
    let before = ((1 << (2 * zoom)) - 1) / 3  // 1 + 4 + 16 + …
    return UInt64(before + index)
  }
}

/// The first bytes of a file (§3).
struct PMTilesHeader: Sendable {
  static let byteCount = 127

  let root: Range<UInt64>
  let metadata: Range<UInt64>
  let leaves: Range<UInt64>
  let images: Range<UInt64>
  /// Directories and metadata are gzip files.
  let isCompressed: Bool
  /// The images' media type.
  let type: StaticString
  let zooms: ClosedRange<Int>
  /// The area that the images cover; nil where the header's bounds are no box.
  let box: BoundingBox?

  init(_ bytes: [UInt8]) throws(MapTileError) {
    guard bytes.count >= PMTilesHeader.byteCount, bytes.starts(with: "PMTiles".utf8), bytes[7] == 3 else {
      throw .notPMTiles
    }
    func word(_ offset: Int, _ count: Int = 8) -> UInt64 {
      (0..<count).reversed().reduce(0) { $0 << 8 | UInt64(bytes[offset + $1]) }
    }
    func part(_ offset: Int, _ name: String) throws(MapTileError) -> Range<UInt64> {
      let (start, count) = (word(offset), word(offset + 8))
      let (end, overflow) = start.addingReportingOverflow(count)
      guard !overflow, end <= UInt64(Int64.max) else { throw .damaged("its \(name) would lie behind all files' ends") }
      return start..<end
    }
    func degrees(_ offset: Int) -> Double { Double(Int32(truncatingIfNeeded: word(offset, 4))) / 1e7 }
    root = try part(8, "root directory")
    metadata = try part(24, "metadata")
    leaves = try part(40, "leaf directories")
    images = try part(56, "images")
    switch bytes[97] {
    case 1: isCompressed = false
    case 2: isCompressed = true
    case 3: throw .compression("directories are in Brotli")
    case 4: throw .compression("directories are in Zstandard")
    default: throw .compression("directories are compressed in a way that it does not name")
    }
    // Images are compressed by their format; some writers give an unknown compression.
    guard bytes[98] <= 1 else { throw .compression("images are compressed once more") }
    type = try PMTilesHeader.type(bytes[99])
    let (first, last) = (Int(bytes[100]), Int(bytes[101]))
    guard first <= last, MapTile.zooms.contains(last) else { throw .damaged("it has zooms from \(first) to \(last)") }
    zooms = first...last
    box = BoundingBox(south: degrees(106), west: degrees(102), north: degrees(114), east: degrees(110))
  }

  private static func type(_ number: UInt8) throws(MapTileError) -> StaticString {
    switch number {
    case 1: throw .notImages("vector tiles (MVT)")
    case 2: "image/png"
    case 3: "image/jpeg"
    case 4: "image/webp"
    case 5: "image/avif"
    default: throw .notImages("of a kind that it does not name")
    }
  }
}

/// Where images are, or leaves in which they are (§4).
struct PMTilesDirectory: Sendable {
  struct Entry: Equatable, Sendable {
    /// The number of the first tile that it is for.
    var number: UInt64
    /// Tiles in a row that have this image; 0 for a leaf, which is for all up to the next entry.
    var run: UInt32
    var length: UInt32
    var offset: UInt64
  }

  let entries: [Entry]

  /// Linear in the bytes, of which each entry has four at least.
  init(_ bytes: [UInt8]) throws(MapTileError) {
    var input = bytes[...]
    func next() throws(MapTileError) -> UInt64 {
      var (value, shift) = (UInt64(0), UInt64(0))
      while let byte = input.popFirst() {
        guard shift < 63 || byte <= 1 else { throw .damaged("a number of a directory has more than 64 bits") }
        value |= UInt64(byte & 0x7F) << shift
        if byte < 0x80 { return value }
        shift += 7
      }
      throw .damaged("a directory ends too early")
    }
    func next32() throws(MapTileError) -> UInt32 {
      guard let value = UInt32(exactly: try next()) else { throw .damaged("an entry is longer than 4 GB") }
      return value
    }
    let count = try next()
    guard count <= UInt64(bytes.count / 4) else { throw .damaged("a directory has fewer entries than it says") }
    var entries: [Entry] = []
    entries.reserveCapacity(Int(count))
    var number: UInt64 = 0
    for index in 0..<count {
      let (following, overflow) = number.addingReportingOverflow(try next())
      guard !overflow, index == 0 || following > number else { throw .damaged("a directory is not in order") }
      number = following
      entries.append(Entry(number: number, run: 0, length: 0, offset: 0))
    }
    for index in entries.indices { entries[index].run = try next32() }
    for index in entries.indices { entries[index].length = try next32() }
    for index in entries.indices {
      let value = try next()
      if value > 0 {
        entries[index].offset = value - 1
      } else {
        // 0: it follows the entry before it.
        guard index > 0 else { throw .damaged("the first entry of a directory is behind another one") }
        let before = entries[index - 1]
        let (offset, overflow) = before.offset.addingReportingOverflow(UInt64(before.length))
        guard !overflow else { throw .damaged("an entry would lie behind all files' ends") }
        entries[index].offset = offset
      }
    }
    self.entries = entries
  }

  /// The entry that a tile has, or the leaf in which it may be. O(log n).
  func entry(for number: UInt64) -> Entry? {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if entries[middle].number <= number { low = middle + 1 } else { high = middle }
    }
    guard low > 0 else { return nil }
    let entry = entries[low - 1]
    return entry.run == 0 || number - entry.number < UInt64(entry.run) ? entry : nil
  }
}
