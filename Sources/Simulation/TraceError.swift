// The errors of a trace file, with the line.

/// A fault in a CSV trace. Lines count from 1; the header is a line.
public enum TraceError: Error, Sendable, Equatable {
  /// There is no header line.
  case empty
  /// A column without which there is no fix: `t_ms`, `lat` or `lon`.
  case missingColumn(String)
  /// Two columns of the header have the same meaning.
  case repeatedColumn(String)
  /// A row with more or fewer fields than the header.
  case wrongFieldCount(line: Int, expected: Int, got: Int)
  /// A field that must hold a number and does not, or is empty and must not be.
  case notANumber(line: Int, column: String, text: String)
  /// A number outside the range of its column: a latitude of 91°, a time before 1970.
  case outOfRange(line: Int, column: String, text: String)
}

extension TraceError: CustomStringConvertible {
  /// Where the trace is wrong, for the person who gave it.
  public var description: String {
    switch self {
    case .empty: "the trace is empty: it must begin with a header line such as t_ms,lat,lon"
    case .missingColumn(let name): "line 1: the header has no column \(name)"
    case .repeatedColumn(let name): "line 1: the header has more than one column for \(name)"
    case .wrongFieldCount(let line, let expected, let got):
      "line \(line): \(got) fields where the header has \(expected)"
    case .notANumber(let line, let column, let text): "line \(line): \(column) is not a number: \"\(text)\""
    case .outOfRange(let line, let column, let text): "line \(line): \(column) is out of range: \(text)"
    }
  }
}
