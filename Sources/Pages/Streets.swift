// The streets below the drivers: lines of three kinds, as one file of JSON, or, where there are many, cut into tiles of
// zoom 14 (some 1.7 km at 45°), of which a page asks for those that it shows. Made and compressed once, at the start.
//
// A tile is by the "slippy map" scheme: x to the east from 180° W, y to the south from 85.05° N, in the Web Mercator
// projection.
import Glibc  // pure functions
import HubBytes
public import HubGeo
import HubMessages

/// A line on the map.
public struct Street: Sendable, Equatable {
  /// How important a street is, ascending: the pages draw it wider.
  public enum Kind: UInt8, Sendable {
    case residential, secondary, arterial
  }

  public var kind: Kind
  public var points: [Coordinate]

  public init(_ kind: Kind, _ points: [Coordinate]) {
    self.kind = kind
    self.points = points
  }
}

/// A tile of zoom 14.
public struct StreetTile: Hashable, Sendable {
  public let x: Int
  public let y: Int

  public static let zoom = 14
  /// The projection ends there: arctan(sinh π).
  private static let lastLatitude = 85.051_128_78

  public init(x: Int, y: Int) {
    self.x = x
    self.y = y
  }

  /// The tile in which a place is.
  public init(_ place: Coordinate) {
    let side = Double(1 << StreetTile.zoom)
    let latitude = min(max(place.latitude, -StreetTile.lastLatitude), StreetTile.lastLatitude) * .pi / 180
    let down = (1 - log(tan(latitude) + 1 / cos(latitude)) / .pi) / 2
    x = min(max(Int((place.longitude + 180) / 360 * side), 0), 1 << StreetTile.zoom - 1)
    y = min(max(Int(down * side), 0), 1 << StreetTile.zoom - 1)
  }
}

/// Why streets cannot be served.
public enum StreetError: Error, Equatable, CustomStringConvertible {
  /// Two points of a street are so far apart that it would be in thousands of tiles.
  case pieceTooLong(from: Coordinate, to: Coordinate)

  /// Which street is wrong, for operators.
  public var description: String {
    switch self {
    case .pieceTooLong(let start, let end):
      "a street goes straight from \(start.latitude),\(start.longitude) to \(end.latitude),\(end.longitude)"
    }
  }
}

/// Streets, compressed and ready to be served.
public struct Streets: Sendable {
  private enum Form: Sendable {
    case whole(PageFile)
    case tiles([StreetTile: PageFile], empty: PageFile)
  }

  private let form: Form
  /// The smallest box around them; nil where there are none. It does not cross the antimeridian.
  public let box: BoundingBox?

  /// Some 0.2 s for 70,000 streets.
  ///
  /// - Parameter limit: how many are served as one file.
  public init(
    _ streets: [Street], attribution: String?, inOneFile limit: Int = Streets.inOneFile
  ) throws(StreetError) {
    box = Streets.box(around: streets)
    if streets.count <= limit {
      form = .whole(Streets.file(streets, attribution))
    } else {
      var tiles: [StreetTile: [Street]] = [:]
      for street in streets { try Streets.cut(street, into: &tiles) }
      form = .tiles(tiles.mapValues { Streets.file($0, attribution) }, empty: Streets.file([], attribution))
    }
  }

  /// The most streets that are served as one file; more are cut into tiles.
  public static var inOneFile: Int { PageLimits.maximumStreetsInOneFile }

  /// Where they are served.
  public var path: String {
    switch form {
    case .whole: "/streets"
    case .tiles: "/streets/\(StreetTile.zoom)/{x}/{y}"
    }
  }

  /// The file for a tile, or for no tile; nil where the streets are served the other way, or where no tile can be.
  public func file(_ tile: StreetTile?) -> PageFile? {
    switch (form, tile) {
    case (.whole(let file), nil): file
    case (.tiles(let files, let empty), let tile?):
      if let file = files[tile] {
        file
      } else {
        (0..<1 << StreetTile.zoom).contains(tile.x) && (0..<1 << StreetTile.zoom).contains(tile.y) ? empty : nil
      }
    case (.whole, _?), (.tiles, nil): nil
    }
  }

  // MARK: Making them

  /// `{"attribution?":…,"ways":[{"c":kind,"p":"encoded polyline"}]}`
  private static func file(_ streets: [Street], _ attribution: String?) -> PageFile {
    var body = ByteBuffer(capacity: 64 + streets.count * 40)
    body.append("{")
    body.append("\"attribution\":", attribution)
    body.append(attribution == nil ? "\"ways\":" : ",\"ways\":")
    body.append(list: streets) { body, street in
      body.append("{\"c\":")
      body.append(integer: Int64(street.kind.rawValue))
      body.append(",\"p\":", Polyline.encode(street.points))
      body.append("}")
    }
    body.append("}")
    return PageFile(body.array(), type: "application/json")
  }

  /// Puts the runs of a street's pieces into the tiles that they touch.
  private static func cut(
    _ street: Street, into tiles: inout [StreetTile: [Street]]
  ) throws(StreetError) {
    var runs: [StreetTile: Int] = [:]  // where in its tile the run is that the piece before was in
    for (start, end) in zip(street.points, street.points.dropFirst()) {
      let (first, last) = (StreetTile(start), StreetTile(end))
      let columns = min(first.x, last.x)...max(first.x, last.x)
      let rows = min(first.y, last.y)...max(first.y, last.y)
      guard columns.count * rows.count <= PageLimits.maximumTilesPerPiece else {
        throw .pieceTooLong(from: start, to: end)
      }
      var next: [StreetTile: Int] = [:]
      for x in columns {
        for y in rows {
          let tile = StreetTile(x: x, y: y)
          if let run = runs[tile] {
            tiles[tile]?[run].points.append(end)
            next[tile] = run
          } else {
            tiles[tile, default: []].append(Street(street.kind, [start, end]))
            next[tile] = (tiles[tile]?.count ?? 1) - 1
          }
        }
      }
      runs = next
    }
  }

  private static func box(around streets: [Street]) -> BoundingBox? {
    var (south, west, north, east) = (90.0, 180.0, -90.0, -180.0)
    for point in streets.lazy.flatMap(\.points) {
      (south, north) = (min(south, point.latitude), max(north, point.latitude))
      (west, east) = (min(west, point.longitude), max(east, point.longitude))
    }
    return BoundingBox(south: south, west: west, north: north, east: east)
  }
}
