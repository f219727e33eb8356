// Log lines for machines and people alike: `time=… level=… event=… key=value …` on standard error. What is logged never
// contains a credential: targets are logged without their query.
import HubBytes
import HubMessages
import HubSystem

public enum LogLevel: UInt8, Sendable, CaseIterable, Comparable {
  case debug, info, warning, error

  public var name: StaticString {
    switch self {
    case .debug: "debug"
    case .info: "info"
    case .warning: "warning"
    case .error: "error"
    }
  }

  public static func < (a: LogLevel, b: LogLevel) -> Bool { a.rawValue < b.rawValue }
}

/// Writes lines at or above a level. Costs a system call for each, so the hot path has none.
public struct Log: Sendable {
  public let level: LogLevel
  private let isSilent: Bool

  public init(level: LogLevel) { self.init(level: level, isSilent: false) }

  private init(level: LogLevel, isSilent: Bool) {
    self.level = level
    self.isSilent = isSilent
  }

  /// Writes nothing: the log of a simulated world.
  package static let silent = Log(level: .error, isSilent: true)

  public func callAsFunction(
    _ level: LogLevel, _ event: StaticString, _ fields: KeyValuePairs<StaticString, String> = [:]
  ) {
    guard level >= self.level, !isSilent else { return }
    var line = ByteBuffer(capacity: 128)
    line.append("time=")
    line.append(rfc3339: Timestamp(milliseconds: ClockReading.read().unixMilliseconds))
    line.append(" level=")
    line.append(level.name)
    line.append(" event=")
    line.append(event)
    for (key, value) in fields {
      line.append(" ")
      line.append(key)
      line.append("=")
      Log.write(value, into: &line)
    }
    line.append("\n")
    _ = unsafe line.withBytes { unsafe StandardStream.error.write($0) }
  }

  /// Plain where it is one word, quoted otherwise; control characters cannot forge a line.
  static func write(_ value: String, into line: inout ByteBuffer) {
    let isPlain =
      !value.isEmpty && value.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x3D && $0 != 0x5C }
    if isPlain { return line.append(utf8: value) }
    line.append("\"")
    for byte in value.utf8 {
      switch byte {
      case 0x22, 0x5C:
        line.append(UInt8(0x5C))
        line.append(byte)
      case 0..<0x20, 0x7F: line.append(UInt8(0x20))
      default: line.append(byte)
      }
    }
    line.append("\"")
  }
}
