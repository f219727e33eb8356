// Log lines on standard error: `time=… level=… event=… key=value …` (logfmt), or a JSON object. Credentials are never
// logged: targets appear without their query.
import HubBytes
import HubMessages
import HubSystem
import Synchronization

/// How important a line is, ascending.
public enum LogLevel: UInt8, Sendable, CaseIterable, Comparable {
  case debug, info, warning, error

  /// Its keyword in log lines and settings.
  public var name: StaticString {
    switch self {
    case .debug: "debug"
    case .info: "info"
    case .warning: "warning"
    case .error: "error"
    }
  }

  /// Whether `a` is less important than `b`.
  public static func < (a: LogLevel, b: LogLevel) -> Bool { a.rawValue < b.rawValue }
}

/// The form of log lines.
public enum LogFormat: Sendable, CaseIterable {
  /// `time=2026-11-24T06:00:00.000Z level=info event=listening address=127.0.0.1:8080`
  case logfmt
  /// An object with the same members, all of them strings.
  case json

  /// Its keyword in settings.
  public var name: String {
    switch self {
    case .logfmt: "logfmt"
    case .json: "json"
    }
  }
}

/// Writes lines at or above a level. Costs a system call for each, so the hot path has none.
public struct Log: Sendable {
  private let threshold: Threshold
  private let format: LogFormat
  private let isSilent: Bool

  public init(level: LogLevel, format: LogFormat = .logfmt) { self.init(level: level, format, isSilent: false) }

  private init(level: LogLevel, _ format: LogFormat, isSilent: Bool) {
    threshold = Threshold(level)
    self.format = format
    self.isSilent = isSilent
  }

  /// Lines below it are not written. Shared by all copies of a log.
  public var level: LogLevel { threshold.level }

  /// Writes no lines below this level from now on, for all copies of this log, on any thread.
  public func setLevel(_ level: LogLevel) { threshold.level = level }

  private final class Threshold: Sendable {
    private let number: Atomic<UInt8>

    init(_ level: LogLevel) { number = Atomic(level.rawValue) }

    var level: LogLevel {
      get { LogLevel(rawValue: number.load(ordering: .relaxed)) ?? .info }
      set { number.store(newValue.rawValue, ordering: .relaxed) }
    }
  }

  /// Writes nothing: for simulations.
  package static let silent = Log(level: .error, .logfmt, isSilent: true)

  /// Writes one line to standard error, unless the level is too low. Blocks while the stream does; a line that cannot
  /// be written is lost. Values may be any text: they are escaped.
  public func callAsFunction(
    _ level: LogLevel, _ event: StaticString, _ fields: KeyValuePairs<StaticString, String> = [:]
  ) {
    guard level >= self.level, !isSilent else { return }
    let time = Timestamp(milliseconds: ClockReading.read().unixMilliseconds)
    let line = Log.line(format, time, level, event, fields)
    _ = unsafe line.withBytes { unsafe StandardStream.error.write($0) }
  }

  /// One line, with its end.
  static func line(
    _ format: LogFormat, _ time: Timestamp, _ level: LogLevel, _ event: StaticString,
    _ fields: KeyValuePairs<StaticString, String>
  ) -> ByteBuffer {
    var line = ByteBuffer(capacity: 128)
    switch format {
    case .logfmt:
      line.append("time=")
      line.append(rfc3339: time)
      line.append(" level=")
      line.append(level.name)
      line.append(" event=")
      line.append(event)
      for (key, value) in fields {
        line.append(" ")
        line.append(key)
        line.append("=")
        write(value, into: &line)
      }
    case .json:
      line.append("{\"time\":\"")
      line.append(rfc3339: time)
      line.append("\",\"level\":\"")
      line.append(level.name)
      line.append("\",\"event\":\"")
      line.append(event)
      line.append("\"")
      for (key, value) in fields {
        line.append(",\"")
        line.append(key)
        line.append("\":")
        line.append(json: value)
      }
      line.append("}")
    }
    line.append("\n")
    return line
  }

  /// Plain if it is one word, else quoted; control characters cannot forge a line.
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
