// What can be done with this program: verbs, each with its options, help and action.

/// How the process ends.
enum ExitCode: Int32 {
  case ok = 0
  /// It was tried and failed.
  case failed = 1
  /// It was asked for wrongly.
  case usage = 2
}

/// A failure that ends the process with a message for the person who called it.
struct CommandError: Error, Equatable {
  var code: ExitCode
  var text: String

  static func usage(_ text: String) -> CommandError { CommandError(code: .usage, text: text) }
  static func failed(_ text: String) -> CommandError { CommandError(code: .failed, text: text) }
}

/// One option of a verb: `--name VALUE`, or `--name` alone where there is no placeholder.
struct Option: Sendable {
  var name: String
  /// What stands for the value in the help; nil for a switch.
  var placeholder: String?
  var help: String
  /// It may be given several times.
  var repeats: Bool

  init(_ name: String, _ placeholder: String? = nil, _ help: String, repeats: Bool = false) {
    self.repeats = repeats
    self.name = name
    self.placeholder = placeholder
    self.help = help
  }
}

struct Verb: Sendable {
  var name: String
  /// What follows the verb beside options, for instance `TRACE.csv [more…]`; empty for none.
  var operands: String
  var summary: String
  var options: [Option]
  var run: @Sendable (Arguments) throws(CommandError) -> ExitCode

  var help: String {
    let words = ["locationhub", name, options.isEmpty ? "" : "[options]", operands].filter { !$0.isEmpty }
    var text = "usage: \(words.joined(separator: " "))\n\n\(summary)\n"
    if !options.isEmpty { text += "\noptions:\n" }
    for option in options {
      let left = "  --\(option.name)\(option.placeholder.map { " " + $0 } ?? "")"
      text += left + String(repeating: " ", count: max(2, 30 - left.count)) + option.help + "\n"
    }
    return text
  }
}
