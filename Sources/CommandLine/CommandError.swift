// How a command ends, and why it failed.

/// How the process ends.
public enum ExitCode: Int32, Sendable {
  case ok = 0
  /// The command was valid, but failed.
  case failed = 1
  /// The command line or a setting is invalid.
  case usage = 2
}

/// A failure that ends the process with a message for the person who called it.
public enum CommandError: Error, Equatable, CustomStringConvertible {
  /// The command line or a setting is invalid.
  case usage(String)
  /// The command was valid, but failed.
  case failed(String)

  /// The exit code of the process.
  public var code: ExitCode {
    switch self {
    case .usage: .usage
    case .failed: .failed
    }
  }

  /// The message for the person who called it.
  public var description: String {
    switch self {
    case .usage(let text), .failed(let text): text
    }
  }
}

/// Errors that are collected, to be reported together.
public struct Faults: Sendable {
  public private(set) var errors: [CommandError] = []

  public init() {}

  /// Adds an error to those that `check` throws.
  public mutating func add(_ error: CommandError) { errors.append(error) }

  /// Collects what `work` throws.
  public mutating func collect(_ work: () throws(CommandError) -> Void) {
    do throws(CommandError) { try work() } catch { add(error) }
  }

  /// Throws the collected errors, if any, as one: a usage error where one of them is.
  public func check() throws(CommandError) {
    guard errors.count > 1 else {
      if let only = errors.first { throw only }
      return
    }
    let text = "\(errors.count) faults" + errors.map { "\n  \($0)" }.joined()
    throw errors.contains { $0.code == .usage } ? .usage(text) : .failed(text)
  }
}
