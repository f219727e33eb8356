// How a command ends, and why it failed.

/// How the process ends.
public enum ExitCode: Int32, Sendable {
  case ok = 0
  /// It was tried and failed.
  case failed = 1
  /// It was asked for wrongly.
  case usage = 2
}

/// A failure that ends the process with a message for the person who called it.
public enum CommandError: Error, Equatable, CustomStringConvertible {
  /// It was asked for wrongly.
  case usage(String)
  /// It was tried and failed.
  case failed(String)

  public var code: ExitCode {
    switch self {
    case .usage: .usage
    case .failed: .failed
    }
  }

  public var description: String {
    switch self {
    case .usage(let text), .failed(let text): text
    }
  }
}
