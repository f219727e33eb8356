// A PMTiles file whose header, first directory and metadata have been read; what else it has is read when it is asked
// for.
import HubBytes
import HubDeflate
import HubSystem

/// Where a file's bytes come from.
protocol TileBytes: Sendable {
  /// A text that differs when the bytes have changed.
  var tag: String { get }
  /// The bytes from `offset` on: `count`, or fewer where the file ends before.
  func read(at offset: Int, count: Int) throws(SystemError) -> [UInt8]
  /// Whether the bytes are those of the beginning.
  func isUnchanged() throws(SystemError) -> Bool
}

extension StoredFile: TileBytes {}

struct PMTilesArchive: Sendable {
  let header: PMTilesHeader
  let root: PMTilesDirectory
  /// From its metadata, without markup.
  let attribution: String?
  private let file: any TileBytes

  init(_ file: any TileBytes) throws(MapTileError) {
    self.file = file
    let header = try PMTilesHeader(PMTilesArchive.read(0..<UInt64(PMTilesHeader.byteCount), of: file))
    self.header = header
    root = try PMTilesArchive.directory(header.root, of: file, header)
    let metadata = try PMTilesArchive.text(header.metadata, of: file, header, "its metadata")
    attribution = JSONValue(parsing: metadata)?.members?["attribution"]?.string.map(plain(html:))
  }

  /// A directory below the first one.
  func leaf(_ entry: PMTilesDirectory.Entry) throws(MapTileError) -> PMTilesDirectory {
    try PMTilesArchive.directory(try range(entry, in: header.leaves), of: file, header)
  }

  func image(_ entry: PMTilesDirectory.Entry) throws(MapTileError) -> MapImage {
    let range = try range(entry, in: header.images)
    let bytes = try PMTilesArchive.read(range, of: file, atMost: TileLimits.maximumImageBytes, "an image")
    return MapImage(bytes: bytes, type: header.type, tag: "\(file.tag).\(String(range.lowerBound, radix: 36))")
  }

  private func range(
    _ entry: PMTilesDirectory.Entry, in part: Range<UInt64>
  ) throws(MapTileError) -> Range<UInt64> {
    let size = part.upperBound - part.lowerBound
    guard entry.length > 0, entry.offset <= size, UInt64(entry.length) <= size - entry.offset else {
      throw .damaged("an entry of a directory lies outside its part")
    }
    return part.lowerBound + entry.offset..<part.lowerBound + entry.offset + UInt64(entry.length)
  }

  private static func directory(
    _ range: Range<UInt64>, of file: any TileBytes, _ header: PMTilesHeader
  ) throws(MapTileError) -> PMTilesDirectory {
    try PMTilesDirectory(text(range, of: file, header, "a directory"))
  }

  /// The bytes of a range, decompressed if the archive's directories are compressed.
  private static func text(
    _ range: Range<UInt64>, of file: any TileBytes, _ header: PMTilesHeader, _ name: String
  ) throws(MapTileError) -> [UInt8] {
    let limit = TileLimits.maximumDirectoryBytes
    let bytes = try read(range, of: file, atMost: limit, name)
    guard header.isCompressed, !bytes.isEmpty else { return bytes }
    guard let text = Gzip.decompress(bytes, limit: limit) else {
      throw .damaged("\(name) is no gzip file of up to \(limit) bytes")
    }
    return text
  }

  private static func read(
    _ range: Range<UInt64>, of file: any TileBytes, atMost limit: Int, _ name: String
  ) throws(MapTileError) -> [UInt8] {
    guard range.count <= limit else { throw .damaged("\(name) has more than \(limit) bytes") }
    let bytes = try read(range, of: file)
    guard bytes.count == range.count else { throw .damaged("it ends within \(name)") }
    return bytes
  }

  /// Reads a range; gives fewer bytes where the file ends before. Directories that are known say nothing of a file that
  /// was written into since.
  private static func read(_ range: Range<UInt64>, of file: any TileBytes) throws(MapTileError) -> [UInt8] {
    let (bytes, isUnchanged): ([UInt8], Bool)
    do throws(SystemError) {
      bytes = try file.read(at: Int(range.lowerBound), count: range.count)
      isUnchanged = try file.isUnchanged()
    } catch {
      throw .system(error)
    }
    guard isUnchanged else { throw .damaged("it was written into while it was in use") }
    return bytes
  }
}

/// The text without markup: most attributions of others are links.
private func plain(html: String) -> String {
  var text = ""
  var rest = html[...]
  while let character = rest.popFirst() {
    if character == "<" {
      rest = rest.drop { $0 != ">" }.dropFirst()
    } else if character == "&", let end = rest.prefix(8).firstIndex(of: ";"), let meant = entity(rest[..<end]) {
      text.append(meant)
      rest = rest[end...].dropFirst()
    } else {
      text.append(character)
    }
  }
  return String(text.prefix(TileLimits.attributionCharacters))
}

/// The character references between `&` and `;` that attributions use.
private func entity(_ name: Substring) -> Character? {
  if name.hasPrefix("#") {
    let isHex = name.hasPrefix("#x") || name.hasPrefix("#X")
    let number = UInt32(name.dropFirst(isHex ? 2 : 1), radix: isHex ? 16 : 10)
    return number.flatMap(Unicode.Scalar.init).map(Character.init)
  }
  return ["copy": "©", "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "nbsp": " "][name]
}
