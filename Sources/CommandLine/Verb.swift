// What can be done with a program: verbs, each with its options, help and action.

/// One verb of a program.
public struct Verb: Sendable {
  public var name: String
  /// What follows the verb beside options, for instance `TRACE.csv [more…]`; empty for none.
  public var operands: String
  public var summary: String
  public var options: [Option]
  private let action: @Sendable ([String]) throws(CommandError) -> ExitCode

  /// `run` gets valid arguments; with `collectsFaults` they may have `faults`, to which it adds its own.
  public init(
    name: String, operands: String, summary: String, options: [Option], collectsFaults: Bool = false,
    run: @escaping @Sendable (Arguments) throws(CommandError) -> ExitCode
  ) {
    self.name = name
    self.operands = operands
    self.summary = summary
    self.options = options
    action = { (words) throws(CommandError) in
      let arguments = Arguments(collecting: words, verb: name, options: options, operands: operands)
      if !collectsFaults { try arguments.faults.check() }
      return try run(arguments)
    }
  }

  /// Runs it with the words behind its name.
  public func run(_ words: [String]) throws(CommandError) -> ExitCode { try action(words) }

  /// Its help for a terminal: usage, summary and a line for each option.
  public func help(program: String) -> String {
    let usage = [program, name, options.isEmpty ? "" : "[options]", operands].filter { !$0.isEmpty }
    var text = "usage: \(usage.joined(separator: " "))\n\n\(summary)\n"
    if !options.isEmpty { text += "\noptions:\n" }
    for option in options { text += option.line + "\n" }
    return text
  }
}

extension Option {
  /// A line of the help.
  public var line: String {
    let left = "  --\(name)\(placeholder.map { " " + $0 } ?? "")"
    return left + String(repeating: " ", count: max(2, 30 - left.count)) + help
  }
}
