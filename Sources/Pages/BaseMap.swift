// The base map of the pages, as `GET /v1/about` describes it.
public import HubGeo
public import HubTiles

/// The release that this is.
public enum Release {
  public static let name = "0.1.0-dev"
}

/// What the pages need to know.
public struct PageConfiguration: Sendable {
  public var map = BaseMap()

  public init() {}
}

/// What the pages draw below the drivers: streets, tiles, both or neither.
public struct BaseMap: Sendable {
  /// The initial view, if known.
  public var box: BoundingBox?
  public var streets: Streets?
  public var tiles: MapTiles?
  /// Whose streets and tiles they are, for people: shown on the map.
  public var attribution: String?

  public init() {}
}

/// Images of a map, 256 points wide, of the Web Mercator projection.
public struct MapTiles: Sendable {
  /// Where a page has them from, with `{z}`, `{x}` and `{y}` in it.
  public let path: String
  /// The origin of that; nil for the hub's own.
  public let origin: String?
  /// The hub's own images; nil for those of others.
  public let pack: TilePack?

  /// Images that the hub serves itself.
  public init(_ pack: TilePack) {
    (path, origin) = ("/tiles/{z}/{x}/{y}", nil)
    self.pack = pack
  }

  /// An `https` (or `http`) URL with `{z}`, `{x}` and `{y}`; nil for anything else. Its origin may hold nothing that
  /// means something in a `Content-Security-Policy`.
  public init?(url: String) {
    guard let scheme = ["https://", "http://"].first(where: { url.hasPrefix($0) }) else { return nil }
    let host = url.dropFirst(scheme.count).prefix { $0 != "/" }
    let isHost = host.utf8.allSatisfy {
      (0x61...0x7A).contains($0) || (0x41...0x5A).contains($0) || (0x30...0x3A).contains($0) || "-.[]".utf8.contains($0)
    }
    guard isHost, !host.isEmpty, ["{z}", "{x}", "{y}"].allSatisfy({ url.contains($0) }) else { return nil }
    path = url
    origin = scheme + host
    pack = nil
  }
}
