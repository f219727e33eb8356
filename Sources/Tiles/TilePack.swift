// The images of a map as an operator has them beside the hub: a PMTiles file, or a folder of folders zoom/x/y.png.
// Looked at when the hub starts, and read by a thread that may wait for a disk.
import Glibc  // error numbers
public import HubGeo
import HubSystem

/// An image of a map, ready to be served.
public struct MapImage: Sendable {
  public let bytes: [UInt8]
  /// Its media type.
  public let type: StaticString
  /// The entity tag: it differs where the image may have changed.
  public let tag: String
}

/// A file, or a folder, of images.
public struct TilePack: Sendable {
  fileprivate enum Form: Sendable {
    case archive(PMTilesArchive)
    case folder(String)
  }

  fileprivate let form: Form
  public let zooms: ClosedRange<Int>
  /// The area that it covers, if it states one.
  let box: BoundingBox?
  /// The attribution for people, if any.
  public let attribution: String?

  /// The area that it covers, if it is at most a city and its surroundings: a whole country is no view.
  public var cityBox: BoundingBox? {
    box.flatMap { box in
      (0...TileLimits.cityDegrees).contains(box.east - box.west) && box.north - box.south <= TileLimits.cityDegrees
        ? box : nil
    }
  }

  /// Opens a file or folder; throws where it cannot be used.
  public init(_ path: String) throws(MapTileError) {
    guard isFolder(path) else {
      self.init(try PMTilesArchive(TilePack.open(path)))
      return
    }
    let found = MapTile.zooms.filter { isFolder("\(path)/\($0)") }
    guard let first = found.first, let last = found.last else { throw .noZooms }
    self.init(.folder(path), first...last, nil, nil)
  }

  init(_ archive: PMTilesArchive) {
    self.init(.archive(archive), archive.header.zooms, archive.header.box, archive.attribution)
  }

  private init(_ form: Form, _ zooms: ClosedRange<Int>, _ box: BoundingBox?, _ attribution: String?) {
    (self.form, self.zooms, self.box, self.attribution) = (form, zooms, box, attribution)
  }

  fileprivate static func open(_ path: String) throws(MapTileError) -> StoredFile {
    do throws(SystemError) { return try StoredFile(path) } catch { throw .system(error) }
  }
}

/// Reads images on its own thread.
public struct TileReader {
  private static let suffixes: [(String, StaticString)] = [
    ("png", "image/png"), ("jpg", "image/jpeg"), ("jpeg", "image/jpeg"), ("webp", "image/webp"), ("avif", "image/avif"),
  ]

  private let pack: TilePack
  /// Directories below the first one, by their bytes in the file, the oldest first; and how many entries they have.
  private var leaves: [(offset: UInt64, length: UInt32, directory: PMTilesDirectory)] = []
  private var keptEntries = 0
  /// The index of the last image's suffix, which is tried first: the next one most likely has it, too.
  private var suffix = 0

  public init(_ pack: TilePack) { self.pack = pack }

  /// The image of a tile; nil where there is none. At most one read of the disk for each level of directories that is
  /// not known yet, and one for the image.
  public mutating func image(_ tile: MapTile) throws(MapTileError) -> MapImage? {
    guard pack.zooms.contains(tile.zoom) else { return nil }
    return switch pack.form {
    case .archive(let archive): try image(tile, archive)
    case .folder(let path): try image(tile, folder: path)
    }
  }

  private mutating func image(_ tile: MapTile, _ archive: PMTilesArchive) throws(MapTileError) -> MapImage? {
    var directory = archive.root
    for _ in 0..<TileLimits.maximumDirectoryLevels {
      guard let entry = directory.entry(for: tile.number) else { return nil }
      if entry.run > 0 { return try archive.image(entry) }
      directory = try leaf(entry, archive)
    }
    throw .damaged("its directories are nested too deeply")
  }

  private mutating func leaf(
    _ entry: PMTilesDirectory.Entry, _ archive: PMTilesArchive
  ) throws(MapTileError) -> PMTilesDirectory {
    if let known = leaves.first(where: { $0.offset == entry.offset && $0.length == entry.length }) {
      return known.directory
    }
    let directory = try archive.leaf(entry)
    leaves.append((entry.offset, entry.length, directory))
    keptEntries += directory.entries.count
    while keptEntries > TileLimits.keptDirectoryEntries || leaves.count > TileLimits.keptDirectories {
      keptEntries -= leaves.removeFirst().directory.entries.count
    }
    return directory
  }

  private mutating func image(_ tile: MapTile, folder: String) throws(MapTileError) -> MapImage? {
    for step in TileReader.suffixes.indices {
      let number = (suffix + step) % TileReader.suffixes.count
      let (name, type) = TileReader.suffixes[number]
      do throws(SystemError) {
        let file = try StoredFile("\(folder)/\(tile.zoom)/\(tile.x)/\(tile.y).\(name)")
        suffix = number
        guard file.size <= TileLimits.maximumImageBytes else { throw SystemError(call: "read", errno: EFBIG) }
        return MapImage(bytes: try file.read(at: 0, count: file.size), type: type, tag: file.tag)
      } catch {
        guard error.errno == ENOENT || error.errno == ENOTDIR else { throw .system(error) }
      }
    }
    return nil
  }
}

extension StoredFile {
  /// A text that differs when the file was written again, unless within the same second and with the same size.
  var tag: String { String(modified, radix: 36) + "." + String(size, radix: 36) }
}
