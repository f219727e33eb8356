// Images of a map: a PMTiles file, written here by its specification, and a folder.
import Foundation
import HubDeflate
import HubGeo
import HubSystem
import HubTestSupport
import Synchronization
import Testing

@testable import HubTiles

/// A file in memory.
struct MemoryTiles: TileBytes {
  var bytes: [UInt8]
  let tag = "m"
  func isUnchanged() throws(SystemError) -> Bool { true }

  func read(at offset: Int, count: Int) throws(SystemError) -> [UInt8] {
    offset < bytes.count ? Array(bytes[offset..<min(bytes.count, offset + count)]) : []
  }
}

/// Writes a file.
struct PMTilesWriter {
  /// The entries of each leaf; a single leaf is the first directory itself.
  var leaves: [[(number: UInt64, run: UInt64, image: Int)]] = [[]]
  var images: [[UInt8]] = []
  var isCompressed = true
  var type: UInt8 = 2
  var tileCompression: UInt8 = 1
  var zooms: (UInt8, UInt8) = (0, 3)
  var metadata = #"{"attribution":"<a href='x'>&copy; OpenStreetMap</a> &amp; &#169; &#xE9; &none; others"}"#

  private static func varint(_ value: UInt64) -> [UInt8] {
    var (value, bytes) = (value, [UInt8]())
    while value >= 0x80 {
      bytes.append(UInt8(value & 0x7F) | 0x80)
      value >>= 7
    }
    return bytes + [UInt8(value)]
  }

  static func directory(_ entries: [(number: UInt64, run: UInt64, length: UInt64, offset: UInt64)]) -> [UInt8] {
    var bytes = varint(UInt64(entries.count))
    var last: UInt64 = 0
    for entry in entries {
      bytes += varint(entry.number - last)
      last = entry.number
    }
    for entry in entries { bytes += varint(entry.run) }
    for entry in entries { bytes += varint(entry.length) }
    for (index, entry) in entries.enumerated() {
      let isBehind = index > 0 && entries[index - 1].offset + entries[index - 1].length == entry.offset
      bytes += varint(isBehind ? 0 : entry.offset + 1)
    }
    return bytes
  }

  private func packed(_ bytes: [UInt8]) -> [UInt8] { isCompressed ? Gzip(level: 9).compress(bytes) : bytes }

  func file() -> [UInt8] {
    var (offsets, data) = ([UInt64](), [UInt8]())
    for image in images {
      offsets.append(UInt64(data.count))
      data += image
    }
    let directories = leaves.map { leaf in
      packed(
        Self.directory(leaf.map { ($0.number, $0.run, UInt64(images[$0.image].count), offsets[$0.image]) }))
    }
    var (root, below) = (directories[0], [UInt8]())
    if leaves.count > 1 {
      var entries: [(UInt64, UInt64, UInt64, UInt64)] = []
      for (leaf, bytes) in zip(leaves, directories) {
        entries.append((leaf[0].number, 0, UInt64(bytes.count), UInt64(below.count)))
        below += bytes
      }
      root = packed(Self.directory(entries))
    }
    let said = packed(Array(metadata.utf8))
    var (head, start) = (Array("PMTiles".utf8) + [3], UInt64(127))
    func word(_ value: UInt64, _ count: Int = 8) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) }
    }
    for part in [root, said, below, data] {
      head += word(start) + word(UInt64(part.count))
      start += UInt64(part.count)
    }
    head += [UInt8](repeating: 0, count: 24) + [1, isCompressed ? 2 : 1, tileCompression, type, zooms.0, zooms.1]
    for degrees in [7.0, 43.5, 7.5, 44] { head += word(UInt64(bitPattern: Int64(degrees * 1e7)), 4) }
    head += [UInt8](repeating: 0, count: 9)
    return head + root + said + below + data
  }
}

/// A folder for images, gone with the test.
final class TileFolder {
  let path = FileManager.default.temporaryDirectory.appendingPathComponent("hub-tiles-\(UUID().uuidString)").path

  deinit {
    do { try FileManager.default.removeItem(atPath: path) } catch { Issue.record(error) }
  }
}

@Suite struct TilePackTests {
  private func image(_ text: String) -> [UInt8] { Array(text.utf8) }

  /// Two leaves: the world, all four of zoom 1 the same, one of zoom 3.
  private var leaves: PMTilesWriter {
    PMTilesWriter(
      leaves: [[(0, 1, 0), (1, 4, 1)], [(MapTile(zoom: 3, x: 5, y: 2)!.number, 1, 2)]],
      images: [image("world"), image("sea"), image("city")])
  }

  private func reader(_ bytes: [UInt8]) throws -> TileReader {
    TileReader(TilePack(try PMTilesArchive(MemoryTiles(bytes: bytes))))
  }

  private func text(_ reader: inout TileReader, _ zoom: Int, _ x: Int, _ y: Int) throws -> String? {
    try image(&reader, zoom, x, y).map { String(decoding: $0.bytes, as: UTF8.self) }
  }

  private func image(_ reader: inout TileReader, _ zoom: Int, _ x: Int, _ y: Int) throws -> MapImage? {
    let tile = try #require(MapTile(zoom: zoom, x: x, y: y))
    return try reader.image(tile)
  }

  @Test(
    "a tile's number is its index on the Hilbert curves of its zoom and of those before (the specification's table)",
    arguments: [
      (0, 0, 0, 0), (1, 0, 0, 1), (1, 0, 1, 2), (1, 1, 1, 3), (1, 1, 0, 4), (2, 0, 0, 5), (12, 3423, 1763, 19_078_479),
    ])
  func numbers(zoom: Int, x: Int, y: Int, number: UInt64) {
    #expect(MapTile(zoom: zoom, x: x, y: y)?.number == number)
  }

  @Test("each tile of a zoom has a number of its own, and those that follow each other touch")
  func curve() {
    var tiles: [UInt64: (Int, Int)] = [:]
    for x in 0..<64 { for y in 0..<64 { tiles[MapTile(zoom: 6, x: x, y: y)!.number] = (x, y) } }
    let order = tiles.keys.sorted()
    #expect(order.count == 4096 && order.first == 1365 && order.last == 5460)
    #expect(
      zip(order, order.dropFirst()).allSatisfy { one, next in
        abs(tiles[one]!.0 - tiles[next]!.0) + abs(tiles[one]!.1 - tiles[next]!.1) == 1
      })
    #expect(MapTile(zoom: 27, x: 0, y: 0) == nil && MapTile(zoom: 1, x: 2, y: 0) == nil)
    #expect(MapTile(zoom: 1, x: 0, y: -1) == nil && MapTile(zoom: -1, x: 0, y: 0) == nil)
    #expect(MapTile(zoom: 26, x: 1 << 26 - 1, y: 1 << 26 - 1)?.number != nil)
  }

  @Test("images come out of leaves and of one directory, compressed or not", arguments: [true, false])
  func archive(isCompressed: Bool) throws {
    var writer = leaves
    writer.isCompressed = isCompressed
    for isFlat in [false, true] {
      if isFlat { writer.leaves = [writer.leaves.flatMap(\.self)] }
      var reader = try reader(writer.file())
      #expect(try text(&reader, 0, 0, 0) == "world" && text(&reader, 3, 5, 2) == "city")
      for (x, y) in [(0, 0), (0, 1), (1, 0), (1, 1)] { #expect(try text(&reader, 1, x, y) == "sea") }
      #expect(try text(&reader, 2, 0, 0) == nil && text(&reader, 3, 7, 7) == nil && text(&reader, 4, 0, 0) == nil)
    }
  }

  @Test("a file says its zooms, where it is, and whose it is, without markup")
  func facts() throws {
    let pack = TilePack(try PMTilesArchive(MemoryTiles(bytes: leaves.file())))
    #expect(pack.zooms == 0...3 && pack.attribution == "© OpenStreetMap & © é &none; others")
    #expect(pack.cityBox?.west == 7 && pack.box?.south == 43.5 && pack.box?.east == 7.5 && pack.box?.north == 44)
  }

  @Test("what is more than a city is not shown first", arguments: [(7.0, 10.5), (7, -170), (-180, 180)])
  func wide(west: Double, east: Double) throws {
    var bytes = leaves.file()
    for (offset, degrees) in [(102, west), (110, east)] {
      let word = UInt32(bitPattern: Int32(degrees * 1e7))
      for index in 0..<4 { bytes[offset + index] = UInt8(truncatingIfNeeded: word >> (8 * UInt32(index))) }
    }
    #expect(TilePack(try PMTilesArchive(MemoryTiles(bytes: bytes))).cityBox == nil)
  }

  @Test("what the page cannot draw is refused in words")
  func refused() throws {
    func error(_ change: (inout PMTilesWriter) -> Void) -> String? {
      var writer = leaves
      change(&writer)
      do { _ = try PMTilesArchive(MemoryTiles(bytes: writer.file())) } catch { return "\(error)" }
      return nil
    }
    #expect(error { _ in } == nil)
    #expect(error { $0.type = 1 }?.contains("vector tiles (MVT)") == true)
    #expect(error { $0.tileCompression = 2 }?.contains("compressed once more") == true)
    #expect(error { $0.zooms = (9, 3) }?.contains("from 9 to 3") == true)
    #expect(throws: MapTileError.notPMTiles) { try PMTilesArchive(MemoryTiles(bytes: image("PMTiles"))) }
    var old = leaves.file()
    old[7] = 2
    #expect(throws: MapTileError.notPMTiles) { try PMTilesArchive(MemoryTiles(bytes: old)) }
    for (number, name) in [(3, "Brotli"), (4, "Zstandard"), (9, "does not name")] {
      var other = leaves.file()
      other[97] = UInt8(number)
      let refusal = #expect(throws: MapTileError.self) { try PMTilesArchive(MemoryTiles(bytes: other)) }
      #expect("\(refusal!)".contains(name))
    }
  }

  @Test("a file that is cut off anywhere, or has any byte changed, gives images, none, or words")
  func damaged() throws {
    let whole = leaves.file()
    func ask(_ bytes: [UInt8]) throws {
      var reader = try reader(bytes)
      for (zoom, x, y) in [(0, 0, 0), (1, 1, 0), (3, 5, 2), (3, 0, 0)] { _ = try text(&reader, zoom, x, y) }
    }
    for count in 0..<whole.count {
      #expect(throws: MapTileError.self, "\(count)") { try ask(Array(whole.prefix(count))) }
    }
    for index in whole.indices {
      for bit in 0..<8 {
        var bytes = whole
        bytes[index] ^= 1 << UInt8(bit)
        do { try ask(bytes) } catch is MapTileError {}
      }
    }
  }

  @Test("directories that lie are refused, whatever they promise")
  func lies() throws {
    func error(_ bytes: [UInt8]) -> MapTileError? {
      do throws(MapTileError) { _ = try PMTilesDirectory(bytes) } catch { return error }
      return nil
    }
    #expect(error([0xFF, 0xFF, 0xFF, 0xFF, 0x0F]) == .damaged("a directory has fewer entries than it says"))
    #expect(error([]) == .damaged("a directory ends too early"))
    #expect(error([1, 0, 1, 1, 0]) == .damaged("the first entry of a directory is behind another one"))
    #expect(error([2, 5, 0, 1, 1, 1, 1, 1, 1]) == .damaged("a directory is not in order"))
    #expect(
      error([1] + [UInt8](repeating: 0xFF, count: 9) + [0x7F, 1, 1, 1])
        == .damaged("a number of a directory has more than 64 bits"))
    #expect(error([0]) == nil)
    // A leaf that is a leaf again and again.
    var writer = leaves
    writer.isCompressed = false
    var looped = writer.file()
    let root = Int(looped[8])
    let below = looped[40..<48].reversed().reduce(0) { $0 << 8 | Int($1) }
    let entry = PMTilesWriter.directory([(0, 0, 5, 0)])
    looped.replaceSubrange(root..<root + entry.count, with: entry)
    looped.replaceSubrange(16..<17, with: [UInt8(entry.count)])
    looped.replaceSubrange(below..<below + entry.count, with: entry)
    var reader = try reader(looped)
    #expect(throws: MapTileError.damaged("its directories are nested too deeply")) { try text(&reader, 0, 0, 0) }
  }

  @Test("an image or a directory beyond its limit is not read")
  func limits() throws {
    var writer = PMTilesWriter(
      leaves: [[(0, 1, 0)]], images: [[UInt8](repeating: 7, count: TileLimits.maximumImageBytes)])
    var fits = try reader(writer.file())
    #expect(try image(&fits, 0, 0, 0)?.bytes.count == TileLimits.maximumImageBytes)
    writer.images[0].append(7)
    var tooLarge = try reader(writer.file())
    #expect(throws: MapTileError.damaged("an image has more than 1048576 bytes")) { try text(&tooLarge, 0, 0, 0) }
    // 5 MB of spaces are 5 KB of gzip.
    writer.metadata += String(repeating: " ", count: TileLimits.maximumDirectoryBytes)
    #expect(throws: MapTileError.damaged("its metadata is no gzip file of up to 4194304 bytes")) {
      try reader(writer.file())
    }
  }

  /// A file in memory that counts how often it is read.
  private final class Counted: TileBytes {
    let file: MemoryTiles
    let reads = Atomic(0)
    let tag = "c"
    func isUnchanged() throws(SystemError) -> Bool { true }
    init(_ bytes: [UInt8]) { file = MemoryTiles(bytes: bytes) }
    func read(at offset: Int, count: Int) throws(SystemError) -> [UInt8] {
      reads.wrappingAdd(1, ordering: .relaxed)
      return try file.read(at: offset, count: count)
    }
  }

  @Test("so many leaves are kept however few entries they have, each for its own bytes")
  func keptLeaves() throws {
    let count = TileLimits.keptDirectories + 1
    var writer = PMTilesWriter(
      leaves: (0..<count).map { [(UInt64($0), 1, 0)] }, images: [image("x")], zooms: (0, 6))
    writer.isCompressed = false
    let file = Counted(writer.file())
    var reader = TileReader(TilePack(try PMTilesArchive(file)))
    var tiles: [UInt64: MapTile] = [:]
    for zoom in 0...5 {
      for place in 0..<1 << (2 * zoom) {
        let tile = try #require(MapTile(zoom: zoom, x: place >> zoom, y: place & (1 << zoom - 1)))
        tiles[tile.number] = tile
      }
    }
    func reads(_ number: Int) throws -> Int {
      let before = file.reads.load(ordering: .relaxed)
      #expect(try reader.image(try #require(tiles[UInt64(number)]))?.bytes == image("x"))
      return file.reads.load(ordering: .relaxed) - before
    }
    for number in 0..<count { #expect(try reads(number) == 2) }
    #expect(try reads(count - 1) == 1 && reads(1) == 1 && reads(0) == 2 && reads(1) == 2)
    // Two directories that begin at one place.
    writer.leaves = [[(0, 5, 0)], [(5, 16, 0)]]
    var bytes = writer.file()
    let root = PMTilesWriter.directory([(0, 0, 5, 0), (1, 0, 6, 0)])
    let start = Int(bytes[8])
    #expect(Int(bytes[16]) == root.count)
    bytes.replaceSubrange(start..<start + root.count, with: root)
    let shared = Counted(bytes)
    var other = TileReader(TilePack(try PMTilesArchive(shared)))
    _ = try other.image(try #require(MapTile(zoom: 0, x: 0, y: 0)))
    let before = shared.reads.load(ordering: .relaxed)
    _ = try other.image(try #require(MapTile(zoom: 1, x: 0, y: 0)))
    #expect(shared.reads.load(ordering: .relaxed) - before == 2)
  }

  @Test("leaves are kept up to a limit, and read again beyond it")
  func kept() throws {
    let many = 400_000
    let leaf: (UInt64) -> [(number: UInt64, run: UInt64, image: Int)] = { first in
      (0..<UInt64(many)).map { (first + $0, 1, 0) }
    }
    let starts = [UInt64(0), 1 << 20, 2 << 20].map { $0 }
    let writer = PMTilesWriter(leaves: starts.map(leaf), images: [image("x")], zooms: (0, 12))
    let file = Counted(writer.file())
    var reader = TileReader(TilePack(try PMTilesArchive(file)))
    func reads(_ zoom: Int) throws -> Int {
      let before = file.reads.load(ordering: .relaxed)
      #expect(try text(&reader, zoom, 0, 0) == "x")
      return file.reads.load(ordering: .relaxed) - before
    }
    // 1 + 4 + … + 4^9 is below 400,000; the first of zoom 10 is 349,525, of zoom 11 1,398,101, in the second leaf.
    #expect(try reads(9) == 2 && reads(9) == 1 && reads(11) == 2 && reads(11) == 1 && reads(9) == 1)
    #expect(3 * many > TileLimits.keptDirectoryEntries && 2 * many < TileLimits.keptDirectoryEntries)
  }

  @Test("a folder has zoom/x/y, whatever kind of image it is")
  func folder() throws {
    let directory = TileFolder()
    defer { withExtendedLifetime(directory) {} }
    #expect(throws: MapTileError.system(SystemError(call: "open", errno: ENOENT))) { try TilePack(directory.path) }
    for (name, text) in [("3/5/2.webp", "city"), ("1/0/1.jpg", "sea")] {
      let file = URL(filePath: directory.path).appending(path: name)
      try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try text.write(to: file, atomically: true, encoding: .utf8)
    }
    let pack = try TilePack(directory.path)
    #expect(pack.zooms == 1...3)
    var reader = TileReader(pack)
    let city = try #require(try image(&reader, 3, 5, 2))
    #expect(String(decoding: city.bytes, as: UTF8.self) == "city" && "\(city.type)" == "image/webp")
    let sea = try #require(try image(&reader, 1, 0, 1))
    #expect("\(sea.type)" == "image/jpeg" && sea.tag != city.tag)
    #expect(try text(&reader, 2, 0, 0) == nil && text(&reader, 0, 0, 0) == nil && text(&reader, 3, 5, 3) == nil)
    let large = URL(filePath: directory.path).appending(path: "3/5/3.png")
    try Data(count: TileLimits.maximumImageBytes + 1).write(to: large)
    #expect(throws: MapTileError.system(SystemError(call: "read", errno: EFBIG))) { try text(&reader, 3, 5, 3) }
    try FileManager.default.createDirectory(atPath: directory.path + "/3/6/1.png", withIntermediateDirectories: true)
    #expect(throws: MapTileError.system(SystemError(call: "open", errno: EISDIR))) { try text(&reader, 3, 6, 1) }
  }

  @Test("a file that is written into gives no images any more; one that another takes the place of gives its own")
  func replaced() throws {
    let directory = TileFolder()
    defer { withExtendedLifetime(directory) {} }
    try FileManager.default.createDirectory(atPath: directory.path, withIntermediateDirectories: true)
    let path = directory.path + "/city.pmtiles"
    let file = URL(filePath: path)
    try Data(leaves.file()).write(to: file)
    var first = TileReader(try TilePack(path))
    #expect(try text(&first, 0, 0, 0) == "world")
    var other = leaves
    other.images = ["sky", "soil", "village"].map(image)
    try Data(other.file()).write(to: file, options: .atomic)  // which renames
    #expect(try text(&first, 0, 0, 0) == "world")
    var second = TileReader(try TilePack(path))
    #expect(try text(&second, 0, 0, 0) == "sky")
    try Data(leaves.file()).write(to: file)
    #expect(throws: MapTileError.damaged("it was written into while it was in use")) { try text(&second, 0, 0, 0) }
  }

  @Test("a folder without zooms, and a file of something else, are refused in words")
  func nothing() throws {
    let directory = TileFolder()
    defer { withExtendedLifetime(directory) {} }
    try FileManager.default.createDirectory(atPath: directory.path + "/a", withIntermediateDirectories: true)
    #expect(throws: MapTileError.noZooms) { try TilePack(directory.path) }
    try Data(count: 200).write(to: URL(filePath: directory.path + "/x"))
    #expect(throws: MapTileError.notPMTiles) { try TilePack(directory.path + "/x") }
  }
}
