// The options and operands of one call, checked against the verb's; defaults are from a file and the environment.
// Errors are collected (`faults`), and reported together.

/// The options and operands of one call, by name.
public struct Arguments: Sendable {
  /// A value that was given.
  public struct Value: Sendable {
    /// Where it was given, as errors name it: `--port`, `hub.conf:3: port`, `LHUB_PORT`.
    public let origin: String
    public let text: String
  }

  private let verb: String
  private let options: [Option]
  private var given: [String: [Value]] = [:]
  public private(set) var operands: [String] = []
  /// The words behind `--`, where the verb passes them on to another program.
  public private(set) var rest: [String] = []
  /// The mistakes found so far.
  public var faults = Faults()

  /// Reads the words of a call; throws all mistakes in them as one error.
  public init(
    _ words: [String], verb: String, options: [Option], operands: String = "", handsOn: Bool = false,
    hint: (_ word: String, _ rest: ArraySlice<String>) -> String = { _, _ in "" }
  ) throws(CommandError) {
    self.init(collecting: words, verb: verb, options: options, operands: operands, handsOn: handsOn, hint: hint)
    try faults.check()
  }

  /// Reads `--name value`, `--name=value`, switches and operands, and collects mistakes in `faults`; `--` ends the
  /// options. What is behind it are operands too, or, with `handsOn`, words for another program.
  public init(
    collecting words: [String], verb: String, options: [Option], operands expected: String = "", handsOn: Bool = false,
    hint: (_ word: String, _ rest: ArraySlice<String>) -> String = { _, _ in "" }
  ) {
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
      let name = String(parts[0])
      if let option = options.first(where: { $0.name == name }) {
        read(option, parts.count == 2 ? String(parts[1]) : nil, &words)
      } else {
        let near = nearest(to: name, among: options.map(\.name)).map { "; did you mean --\($0)?" }
        faults.add(.usage("\(verb) has no option --\(name)" + (near ?? hint(word, words))))
        // What follows is taken for its value, and is not a second fault.
        if parts.count == 1, words.first?.hasPrefix("--") == false { words.removeFirst() }
      }
    }
    if expected.isEmpty, let extra = operands.first { faults.add(.usage("\(verb) takes no operand: \(extra)")) }
  }

  private mutating func read(_ option: Option, _ attached: String?, _ words: inout ArraySlice<String>) {
    let origin = "--\(option.name)"
    // A word that begins with `--` is the next option: a value like that is given as --name=--value.
    let takesNext = option.placeholder != nil && words.first?.hasPrefix("--") == false
    let text = attached ?? (takesNext ? words.popFirst() : nil)
    guard given[option.name] == nil || option.repeats else { return faults.add(.usage("\(origin) is given twice")) }
    guard let placeholder = option.placeholder else {
      guard text == nil else { return faults.add(.usage("\(origin) takes no value")) }
      given[option.name] = [Value(origin: origin, text: "true")]
      return
    }
    guard let text else { return faults.add(.usage("\(origin) needs a value: \(placeholder)")) }
    given[option.name, default: []].append(Value(origin: origin, text: text))
  }

  // MARK: Values

  /// Names of what was given, in alphabetical order.
  public var names: [String] { given.keys.sorted() }

  /// Whether an option was given, in the call, a file or the environment.
  public func isGiven(_ name: String) -> Bool { given[name] != nil }

  /// What was given for an option, with where.
  public func values(_ name: String) -> [Value] { given[name] ?? [] }

  /// A switch.
  public func has(_ name: String) -> Bool { string(name) == "true" }

  /// The text of an option, the last where it was given several times; nil where it was not.
  public func string(_ name: String) -> String? { given[name]?.last?.text }

  /// All values of an option that may be given several times.
  public func strings(_ name: String) -> [String] { values(name).map(\.text) }

  /// The value of an option, the last where it was given several times; nil where it was not. Throws a usage error that
  /// says where the value was given.
  public func value<Value>(_ name: String, _ kind: ValueKind<Value>) throws(CommandError) -> Value? {
    guard let given = given[name]?.last else { return nil }
    guard let value = kind.read(given.text) else {
      throw .usage("\(given.origin) must be \(kind.words), not \(given.text)")
    }
    return value
  }

  // MARK: Files and the environment

  /// Adds the settings of a file of `name = value` lines that are not given yet.
  public mutating func merge(configuration text: String, file: String, except: Set<String> = []) {
    let before = given
    for line in SettingLine.lines(of: text, file: file, &faults) {
      guard !except.contains(line.name), let option = options.first(where: { $0.name == line.name }) else {
        guard !line.name.isEmpty else {
          faults.add(.usage("\(line.origin): there is no name before the ="))
          continue
        }
        let near = nearest(to: line.name, among: options.map(\.name).filter { !except.contains($0) })
        faults.add(
          .usage("\(line.origin): there is no setting \(line.name)" + (near.map { "; did you mean \($0)?" } ?? "")))
        continue
      }
      if before[line.name] != nil { continue }
      guard given[line.name] == nil || option.repeats else {
        faults.add(.usage("\(line.origin): \(line.name) is set twice"))
        continue
      }
      add(option, line.value, from: "\(line.origin): \(line.name)")
    }
  }

  /// Adds the settings of environment variables that are not given yet: `session-rate` is `PREFIX_SESSION_RATE`. Values
  /// of a repeated option are separated by spaces. A variable with the prefix but no option's name is a fault.
  public mutating func merge(environment variables: [String: String], prefix: String, except: Set<String> = []) {
    let known = options.filter { !except.contains($0.name) }
    let names = known.map { prefix + "_" + $0.name.uppercased().replacing("-", with: "_") }
    for variable in variables.keys.sorted() where variable.hasPrefix(prefix + "_") && !names.contains(variable) {
      let near = nearest(to: variable, among: names)
      faults.add(
        .usage("there is no setting for the variable \(variable)" + (near.map { "; did you mean \($0)?" } ?? "")))
    }
    for (option, name) in zip(known, names) where given[option.name] == nil {
      guard let text = variables[name] else { continue }
      for text in option.repeats ? text.split(separator: " ").map(String.init) : [text] {
        add(option, text, from: name)
      }
    }
  }

  private mutating func add(_ option: Option, _ text: String, from origin: String) {
    guard option.placeholder != nil || text == "true" || text == "false" else {
      return faults.add(.usage("\(origin) must be true or false, not \(text)"))
    }
    given[option.name, default: []].append(Value(origin: origin, text: text))
  }
}

/// The most similar name: one that begins as `word` does or the other way round, else the one with the smallest
/// Levenshtein distance, if that is at most two, or a third of the word. Costs the product of the lengths for each
/// name.
func nearest(to word: String, among names: [String]) -> String? {
  if word.isEmpty { return nil }
  if let name = names.first(where: { $0.hasPrefix(word) || word.hasPrefix($0) }) { return name }
  let distances = names.map { (name: $0, distance: distance(Array(word.utf8.prefix(100)), Array($0.utf8))) }
  guard let near = distances.min(by: { $0.distance < $1.distance }), near.distance <= max(2, word.utf8.count / 3) else {
    return nil
  }
  return near.name
}

/// How many letters have to be put in, left out or changed to make one word of the other (Wagner and Fischer 1974).
private func distance(_ from: [UInt8], _ to: [UInt8]) -> Int {
  var row = Array(0...to.count)
  for (i, letter) in from.enumerated() {
    var diagonal = row[0]
    row[0] = i + 1
    for (j, other) in to.enumerated() {
      (diagonal, row[j + 1]) = (row[j + 1], min(row[j] + 1, row[j + 1] + 1, diagonal + (letter == other ? 0 : 1)))
    }
  }
  return row[to.count]
}

/// A line of a file of settings.
public struct SettingLine {
  /// `FILE:LINE`, for errors.
  public var origin: String
  public var name: String
  public var value: String

  /// The lines without comments. `#` begins one at the line's start or behind white space, so that values may have it.
  public static func lines(of text: String, file: String) throws(CommandError) -> [SettingLine] {
    var faults = Faults()
    let lines = lines(of: text, file: file, &faults)
    try faults.check()
    return lines
  }

  /// All lines of a file, also empty ones. Editors of Windows end lines with CR LF, which is one character, and begin
  /// with a byte order mark.
  public static func all(of text: String) -> [Substring] {
    let text = text.hasPrefix("\u{FEFF}") ? text.dropFirst() : text[...]
    return text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
  }

  static func lines(of text: String, file: String, _ faults: inout Faults) -> [SettingLine] {
    var lines: [SettingLine] = []
    for (index, line) in all(of: text).enumerated() {
      var mayComment = true
      let comment = line.firstIndex { character in
        defer { mayComment = character.isWhitespace }
        return character == "#" && mayComment
      }
      let content = line[..<(comment ?? line.endIndex)].trimmed
      if content.isEmpty { continue }
      let parts = content.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else {
        faults.add(.usage("\(file):\(index + 1): expected name = value"))
        continue
      }
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
