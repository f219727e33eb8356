// Recorded drives as CSV: fixes in, positions out.
//
// In: a header names the columns, in any order: t_ms, lat, lon, and where there are accuracy_m, speed_mps, bearing_deg.
// Other columns (the truth, for judging) are passed over. An empty field is an absent value, and so is a negative
// speed, bearing or accuracy, as in the protocol. No quotes: every value is a number. Lines end with LF or CR LF.
// Out: t_ms,lat,lon,speed,bearing and, where asked for, accuracy; one row for each published position.
public import HubGeo
public import HubMessages

/// Reads and writes traces, as bytes.
public enum TraceFile {
  /// The fixes of a trace, in the order of its rows. O(bytes); this is for tools, not for the hub's hot path.
  public static func fixes(_ bytes: [UInt8]) throws(TraceError) -> [Fix] {
    var lines = TraceLines(bytes)
    guard let header = lines.next() else { throw .empty }
    let columns = try TraceColumns(header: header.text)
    var fixes: [Fix] = []
    fixes.reserveCapacity(bytes.count / 64)
    while let line = lines.next() {
      if line.text.isEmpty { continue }  // the end of the file, or a blank line
      fixes.append(try columns.fix(line.text, line: line.number))
    }
    return fixes
  }

  /// The first line of what `row` writes.
  public static let rowHeader = "t_ms,lat,lon,speed,bearing"

  /// One published position as a line without its end: coordinates with 7 decimals, speed (m/s), bearing
  /// (degrees) and accuracy (m, 68 %) with 2, empty where absent. Exact for the rounded values of a position.
  public static func row(
    timestamp: Timestamp, coordinate: Coordinate, speed: Double?, heading: Double?, accuracy: Double? = nil
  ) -> String {
    var row = String(timestamp.milliseconds)
    row += ","
    row += decimal(coordinate.latitude, decimals: 7)
    row += ","
    row += decimal(coordinate.longitude, decimals: 7)
    row += ","
    if let speed { row += decimal(speed, decimals: 2) }
    row += ","
    if let heading { row += decimal(heading, decimals: 2) }
    if let accuracy { row += "," + decimal(accuracy, decimals: 2) }
    return row
  }

  /// `value` with a fixed number of decimals and never an exponent, which not every reader of CSV understands.
  /// For |value| · 10^decimals < 2^53; positions and speeds are far below.
  private static func decimal(_ value: Double, decimals: Int) -> String {
    var unit: Int64 = 1
    for _ in 0..<decimals { unit *= 10 }
    guard let scaled = Int64(exactly: (value * Double(unit)).rounded()) else { return String(value) }
    let magnitude = scaled.magnitude
    let fraction = String(magnitude % UInt64(unit))
    let zeros = String(repeating: "0", count: decimals - fraction.utf8.count)
    return (scaled < 0 ? "-" : "") + String(magnitude / UInt64(unit)) + "." + zeros + fraction
  }
}

// MARK: - Reading

/// The lines of a file, numbered from 1. Bytes that are no UTF-8 become U+FFFD and then fail as numbers.
private struct TraceLines {
  private let bytes: [UInt8]
  private var at: Int
  private var number = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    at = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0  // a byte order mark, as spreadsheets write it
  }

  mutating func next() -> (text: Substring, number: Int)? {
    guard at < bytes.count else { return nil }
    let end = bytes[at...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
    var line = bytes[at..<end]
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    at = end + 1
    number += 1
    return (String(decoding: line, as: UTF8.self)[...], number)
  }
}

/// Which field of a row holds what.
private struct TraceColumns {
  private enum Column: String, CaseIterable {
    case time = "t_ms"
    case latitude = "lat"
    case longitude = "lon"
    case accuracy = "accuracy_m"
    case speed = "speed_mps"
    case bearing = "bearing_deg"

    /// By the name in a header; `speed`, `bearing` and `accuracy` are what `row` writes, so that its output can be read
    /// again.
    init?(header name: Substring) {
      switch name {
      case "speed": self = .speed
      case "bearing": self = .bearing
      case "accuracy": self = .accuracy
      default: self.init(rawValue: String(name))
      }
    }
  }

  private var fieldCount: Int
  private var indices: [Column: Int] = [:]

  init(header: Substring) throws(TraceError) {
    let names = header.split(separator: ",", omittingEmptySubsequences: false)
    fieldCount = names.count
    for (index, name) in names.enumerated() {
      guard let column = Column(header: name) else { continue }
      guard indices[column] == nil else { throw .repeatedColumn(column.rawValue) }
      indices[column] = index
    }
    for column in [Column.time, .latitude, .longitude] where indices[column] == nil {
      throw .missingColumn(column.rawValue)
    }
  }

  func fix(_ text: Substring, line: Int) throws(TraceError) -> Fix {
    let fields = text.split(separator: ",", omittingEmptySubsequences: false)
    guard fields.count == fieldCount else {
      throw .wrongFieldCount(line: line, expected: fieldCount, got: fields.count)
    }
    let row = Row(fields: fields, indices: indices, line: line)
    let time = try row.time()
    let latitude = try row.required(.latitude, in: -90...90)
    let longitude = try row.required(.longitude, in: -180...180)
    guard let coordinate = Coordinate(latitude: latitude, longitude: longitude) else {
      preconditionFailure("the ranges above are those of a coordinate")
    }
    let bearing = try row.optional(.bearing, atMost: 360)
    return Fix(
      coordinate: coordinate, timestamp: time, accuracy: try row.optional(.accuracy),
      heading: bearing == 360 ? 0 : bearing, speed: try row.optional(.speed))
  }

  private struct Row {
    var fields: [Substring]
    var indices: [Column: Int]
    var line: Int

    func text(_ column: Column) -> Substring { indices[column].map { fields[$0] } ?? "" }

    func time() throws(TraceError) -> Timestamp {
      let text = text(.time)
      guard let milliseconds = Int64(text) else {
        throw .notANumber(line: line, column: Column.time.rawValue, text: String(text))
      }
      let timestamp = Timestamp(milliseconds: milliseconds)
      guard Timestamp.accepted.contains(timestamp) else {
        throw .outOfRange(line: line, column: Column.time.rawValue, text: String(text))
      }
      return timestamp
    }

    func number(_ column: Column) throws(TraceError) -> Double {
      let text = text(column)
      // Double's own parser also takes hexadecimal, "nan" and "infinity", which are no values of a trace.
      let isPlain = text.utf8.allSatisfy {
        switch $0 {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "+"),
          UInt8(ascii: "e"), UInt8(ascii: "E"):
          true
        default: false
        }
      }
      guard isPlain, let value = Double(text), value.isFinite else {
        throw .notANumber(line: line, column: column.rawValue, text: String(text))
      }
      return value
    }

    func required(_ column: Column, in range: ClosedRange<Double>) throws(TraceError) -> Double {
      let value = try number(column)
      guard range.contains(value) else {
        throw .outOfRange(line: line, column: column.rawValue, text: String(text(column)))
      }
      return value
    }

    /// Nil where the field is absent, empty or negative.
    func optional(_ column: Column, atMost limit: Double = .infinity) throws(TraceError) -> Double? {
      if text(column).isEmpty { return nil }
      let value = try number(column)
      guard value <= limit else {
        throw .outOfRange(line: line, column: column.rawValue, text: String(text(column)))
      }
      return value < 0 ? nil : value
    }
  }
}
