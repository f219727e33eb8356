// Options and operands of one call, checked against what the verb knows; and what a file and the environment say where
// the command line says nothing.
import Glibc

public struct Arguments {
  /// What was given, and how errors name where.
  struct Value {
    var origin: String
    var text: String
  }

  private let verb: String
  private let options: [Option]
  private var given: [String: [Value]] = [:]
  public private(set) var operands: [String] = []
  /// What stood behind `--`, where the verb hands it on.
  public private(set) var rest: [String] = []

  /// Reads `--name value`, `--name=value`, switches and operands; `--` ends the options. What is behind it are operands
  /// too, or, with `handsOn`, words for another program.
  public init(
    _ words: [String], verb: String, options: [Option], operands expected: String = "", handsOn: Bool = false,
    hint: (_ word: String, _ rest: ArraySlice<String>) -> String = { _, _ in "" }
  ) throws(CommandError) {
    self.verb = verb
    self.options = options
    var words = words[...]
    while let word = words.popFirst() {
      if word == "--" {
        if handsOn { rest = Array(words) } else { operands += words }
        break
      }
      guard word.hasPrefix("--") else {
        operands.append(word)
        continue
      }
      let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let option = try known(String(parts[0])) { hint(word, words) }
      try read(option, parts.count == 2 ? String(parts[1]) : nil, &words)
    }
    if expected.isEmpty, let extra = operands.first { throw .usage("\(verb) takes no operand: \(extra)") }
  }

  private mutating func read(
    _ option: Option, _ attached: String?, _ words: inout ArraySlice<String>
  ) throws(CommandError) {
    let origin = "--\(option.name)"
    guard given[option.name] == nil || option.repeats else { throw .usage("\(origin) is given twice") }
    guard let placeholder = option.placeholder else {
      guard attached == nil else { throw .usage("\(origin) takes no value") }
      given[option.name] = [Value(origin: origin, text: "true")]
      return
    }
    guard let text = attached ?? words.popFirst() else { throw .usage("\(origin) needs a value: \(placeholder)") }
    given[option.name, default: []].append(Value(origin: origin, text: text))
  }

  private func known(_ name: String, hint: () -> String) throws(CommandError) -> Option {
    if let option = options.first(where: { $0.name == name }) { return option }
    let near = options.first { $0.name.hasPrefix(name) || name.hasPrefix($0.name) }
    throw .usage("\(verb) has no option --\(name)" + (near.map { "; did you mean --\($0.name)?" } ?? hint()))
  }

  // MARK: Values

  /// Names of what was given, in alphabetical order.
  public var names: [String] { given.keys.sorted() }

  public func isGiven(_ name: String) -> Bool { given[name] != nil }

  func values(_ name: String) -> [Value] { given[name] ?? [] }

  /// A switch.
  public func has(_ name: String) -> Bool { string(name) == "true" }

  public func string(_ name: String) -> String? { given[name]?.last?.text }

  /// All values of an option that may be given several times.
  public func strings(_ name: String) -> [String] { values(name).map(\.text) }

  public func value<Value>(_ name: String, _ kind: ValueKind<Value>) throws(CommandError) -> Value? {
    guard let given = given[name]?.last else { return nil }
    guard let value = kind.read(given.text) else {
      throw .usage("\(given.origin) must be \(kind.words), not \(given.text)")
    }
    return value
  }

  // MARK: Files and the environment

  /// Adds what a file of `name = value` lines says, where the command line says nothing. `#` begins a comment.
  public mutating func merge(
    configuration text: String, file: String, except: Set<String> = []
  ) throws(CommandError) {
    let before = given
    for line in try SettingLine.lines(of: text, file: file) {
      guard !except.contains(line.name), let option = options.first(where: { $0.name == line.name }) else {
        throw .usage("\(line.origin): there is no setting \(line.name)")
      }
      if before[line.name] != nil { continue }
      guard given[line.name] == nil || option.repeats else {
        throw .usage("\(line.origin): \(line.name) is set twice")
      }
      guard option.placeholder != nil || line.value == "true" || line.value == "false" else {
        throw .usage("\(line.origin): \(line.name) must be true or false")
      }
      given[line.name, default: []].append(Value(origin: "\(line.origin): \(line.name)", text: line.value))
    }
  }

  /// Adds what the environment says, where nothing is given yet: `session-rate` is `PREFIX_SESSION_RATE`. Of what may
  /// be given several times there are spaces between.
  public mutating func merge(environment prefix: String) throws(CommandError) {
    for option in options where given[option.name] == nil {
      let variable = prefix + "_" + option.name.uppercased().split(separator: "-").joined(separator: "_")
      guard let text = unsafe getenv(variable).map({ unsafe String(cString: $0) }) else { continue }
      guard option.placeholder != nil || text == "true" || text == "false" else {
        throw .usage("\(variable) must be true or false, not \(text)")
      }
      let texts = option.repeats ? text.split(separator: " ").map(String.init) : [text]
      if !texts.isEmpty { given[option.name] = texts.map { Value(origin: variable, text: $0) } }
    }
  }
}

/// A line of a file of settings.
public struct SettingLine {
  /// `FILE:LINE`, for errors.
  public var origin: String
  public var name: String
  public var value: String

  /// The lines that say something; `#` begins a comment.
  public static func lines(of text: String, file: String) throws(CommandError) -> [SettingLine] {
    var lines: [SettingLine] = []
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let content = line.prefix { $0 != "#" }.trimmed
      if content.isEmpty { continue }
      let parts = content.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { throw .usage("\(file):\(index + 1): expected name = value") }
      lines.append(
        SettingLine(origin: "\(file):\(index + 1)", name: String(parts[0].trimmed), value: String(parts[1].trimmed)))
    }
    return lines
  }
}

extension Substring {
  /// Without the white space at both ends.
  public var trimmed: Substring {
    var text = self
    while let first = text.first, first.isWhitespace { text.removeFirst() }
    while let last = text.last, last.isWhitespace { text.removeLast() }
    return text
  }
}
