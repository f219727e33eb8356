// The map below the drivers on the pages: streets of a file, tiles, or the streets of a simulated city.
import HubCommandLine
import HubGateway
import HubGeo
import HubMessages
import HubPages
import HubSimulation
import HubTiles

/// The options of `serve` and `demo` for the map.
struct MapOptions: Sendable {
  var streets: String?
  var tiles: Tiles?
  var attribution: String?

  enum Tiles: Sendable {
    case elsewhere(MapTiles)
    /// A PMTiles file, or a folder.
    case here(String)

    /// Nil for a URL without tiles.
    init?(_ text: String) {
      if text.contains("://") {
        guard let tiles = MapTiles(url: text) else { return nil }
        self = .elsewhere(tiles)
      } else {
        self = .here(text)
      }
    }
  }

  /// The map of these options, with its streets read.
  func read() throws(CommandError) -> BaseMap {
    var map = BaseMap()
    map.attribution = attribution
    switch tiles {
    case nil: break
    case .elsewhere(let tiles): map.tiles = tiles
    case .here(let path):
      let pack = try open(path)
      map.tiles = MapTiles(pack)
      map.box = pack.cityBox
      map.attribution = attribution ?? pack.attribution
    }
    guard let streets else { return map }
    let suffix = "_edges.csv"
    guard streets.hasSuffix(suffix) else {
      throw .usage("--streets must be a file NAME\(suffix), with its crossings in NAME_nodes.csv beside it")
    }
    let crossings = streets.dropLast(suffix.count) + "_nodes.csv"
    let graph = try parse("\(crossings)") { (bytes) throws(RoadGraphError) in try RoadGraph.readCrossings(bytes) }
    let ways = try parse(streets) { (bytes) throws(RoadGraphError) in
      try RoadGraph.readStreets(bytes, between: graph)
    }
    map.streets = try make(ways, streets)
    map.box = map.streets?.box ?? map.box
    return map
  }

  private func open(_ path: String) throws(CommandError) -> TilePack {
    do throws(MapTileError) { return try TilePack(path) } catch { throw .failed("cannot use \(path): \(error)") }
  }

  private func parse<Value>(
    _ file: String, _ read: ([UInt8]) throws(RoadGraphError) -> Value
  ) throws(CommandError) -> Value {
    let bytes = try readBytes(file)
    do throws(RoadGraphError) { return try read(bytes) } catch { throw .failed("cannot use \(file): \(error)") }
  }

  private func make(_ streets: [Street], _ file: String) throws(CommandError) -> Streets {
    do throws(StreetError) {
      return try Streets(streets, attribution: attribution)
    } catch {
      throw .failed("cannot use \(file): \(error)")
    }
  }
}

extension BaseMap {
  /// The map of a simulated city, which needs no attribution.
  init(of city: City) throws(CommandError) {
    self.init()
    let streets = city.ways.map { Street(Street.Kind(rawValue: $0.rank) ?? .residential, $0.ends) }
    do throws(StreetError) {
      self.streets = try Streets(streets, attribution: nil)
    } catch {
      throw .failed("the city is too large: \(error)")
    }
    box = self.streets?.box
  }
}
