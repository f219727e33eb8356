// A road graph in two tables of comma-separated values, as tools that work with OpenStreetMap write them: crossings
// (`id,lat,lon`) and the ways between them (`from,to,…,class`), whose classes are those of OpenStreetMap's `highway=`.
// Columns are found by their names; others are passed over. A way that is there in both directions is drawn once.
import HubBytes
public import HubGeo

/// Why a table is no road graph.
public enum RoadGraphError: Error, Equatable, CustomStringConvertible {
  case missingColumn(String)
  case badLine(Int, column: String)
  case unknownCrossing(Int, line: Int)

  /// Where the table is wrong, for operators.
  public var description: String {
    switch self {
    case .missingColumn(let name): "its first line names no column \(name)"
    case .badLine(let line, let column): "line \(line) has no \(column) that can be used"
    case .unknownCrossing(let id, let line):
      "line \(line) goes to crossing \(id), which is in no line of the other file"
    }
  }
}

/// Reads a road graph into the streets of a map.
public enum RoadGraph {
  /// The crossings by their ids. Linear in the bytes.
  public static func readCrossings(_ bytes: [UInt8]) throws(RoadGraphError) -> [Int: Coordinate] {
    var crossings: [Int: Coordinate] = [:]
    var table = try Table(bytes, columns: ["id", "lat", "lon"])
    while let row = table.next() {
      guard let id = Int(row[0]) else { throw .badLine(table.line, column: "id") }
      guard let latitude = Double(row[1]), let longitude = Double(row[2]),
        let place = Coordinate(latitude: latitude, longitude: longitude)
      else { throw .badLine(table.line, column: "lat and lon") }
      crossings[id] = place
    }
    return crossings
  }

  /// The streets, each a straight line. Linear in the bytes.
  public static func readStreets(
    _ bytes: [UInt8], between crossings: [Int: Coordinate]
  ) throws(RoadGraphError) -> [Street] {
    var streets: [Street] = []
    var seen: Set<SIMD2<Int>> = []
    var table = try Table(bytes, columns: ["from", "to", "class"])
    while let row = table.next() {
      guard let from = Int(row[0]) else { throw .badLine(table.line, column: "from") }
      guard let to = Int(row[1]) else { throw .badLine(table.line, column: "to") }
      guard let start = crossings[from] else { throw .unknownCrossing(from, line: table.line) }
      guard let end = crossings[to] else { throw .unknownCrossing(to, line: table.line) }
      guard seen.insert(SIMD2(min(from, to), max(from, to))).inserted else { continue }
      streets.append(Street(kind(of: row[2]), [start, end]))
    }
    return streets
  }

  private static func kind(of highway: Substring) -> Street.Kind {
    switch highway.prefix(while: { $0 != "_" }) {  // motorway_link is drawn like a motorway
    case "motorway", "trunk", "primary": .arterial
    case "secondary", "tertiary": .secondary
    default: .residential
    }
  }

  /// Lines, of which some columns are wanted.
  private struct Table {
    private var lines: [Substring]
    private let wanted: [Int]
    /// The number of the row that was read last.
    private(set) var line = 1

    init(_ bytes: [UInt8], columns: [String]) throws(RoadGraphError) {
      let text = String(decoding: bytes, as: UTF8.self)
      lines = text.split(omittingEmptySubsequences: false) { $0.isNewline }
      let head = (lines.first ?? "").split(separator: ",", omittingEmptySubsequences: false)
      var wanted: [Int] = []
      for name in columns {
        guard let column = head.firstIndex(where: { $0 == name }) else { throw .missingColumn(name) }
        wanted.append(column)
      }
      self.wanted = wanted
    }

    /// The wanted columns of the next row that is not empty; one that is missing is empty text.
    mutating func next() -> [Substring]? {
      while line < lines.count {
        line += 1
        let row = lines[line - 1].split(separator: ",", omittingEmptySubsequences: false)
        if !row.isEmpty, !lines[line - 1].isEmpty { return wanted.map { $0 < row.count ? row[$0] : "" } }
      }
      return nil
    }
  }
}
