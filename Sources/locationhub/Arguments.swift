// Options and operands of one call, checked against what the verb knows.

struct Arguments {
  private let verb: Verb
  private var values: [String: String] = [:]
  /// All values of the options that may be given several times, in order.
  private var lists: [String: [String]] = [:]
  private(set) var operands: [String] = []

  /// Reads `--name value`, `--name=value`, switches and operands; `--` ends the options.
  init(_ words: [String], of verb: Verb) throws(CommandError) {
    self.verb = verb
    var rest = words[...]
    while let word = rest.popFirst() {
      if word == "--" {
        operands += rest
        break
      }
      guard word.hasPrefix("--") else {
        operands.append(word)
        continue
      }
      try readOption(word.dropFirst(2), &rest)
    }
    if verb.operands.isEmpty, let extra = operands.first {
      throw .usage("\(verb.name) takes no operand: \(extra)")
    }
  }

  private mutating func readOption(_ word: Substring, _ rest: inout ArraySlice<String>) throws(CommandError) {
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0])
    let option = try known(name)
    guard values[name] == nil || option.repeats else { throw .usage("--\(name) is given twice") }
    guard let placeholder = option.placeholder else {
      guard parts.count == 1 else { throw .usage("--\(name) takes no value") }
      values[name] = "true"
      return
    }
    if parts.count == 2 {
      values[name] = String(parts[1])
    } else if let value = rest.popFirst() {
      values[name] = value
    } else {
      throw .usage("--\(name) needs a value: \(placeholder)")
    }
    if option.repeats, let value = values[name] { lists[name, default: []].append(value) }
  }

  private func known(_ name: String) throws(CommandError) -> Option {
    if let option = verb.options.first(where: { $0.name == name }) { return option }
    let near = verb.options.first { $0.name.hasPrefix(name) || name.hasPrefix($0.name) }
    throw .usage("\(verb.name) has no option --\(name)" + (near.map { "; did you mean --\($0.name)?" } ?? ""))
  }

  // MARK: Values

  func has(_ name: String) -> Bool { values[name] == "true" }

  func string(_ name: String) -> String? { values[name] }

  /// All values of an option that may be given several times.
  func strings(_ name: String) -> [String] { lists[name] ?? [] }

  func integer(_ name: String, in range: ClosedRange<Int>) throws(CommandError) -> Int? {
    guard let text = values[name] else { return nil }
    guard let value = Int(text), range.contains(value) else {
      throw .usage("--\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound), not \(text)")
    }
    return value
  }

  func number(_ name: String, in range: ClosedRange<Double>) throws(CommandError) -> Double? {
    guard let text = values[name] else { return nil }
    guard let value = Double(text), range.contains(value) else {
      throw .usage("--\(name) must be a number from \(range.lowerBound) to \(range.upperBound), not \(text)")
    }
    return value
  }

  /// One of a few words.
  func choice(_ name: String, of words: [String]) throws(CommandError) -> String? {
    guard let text = values[name] else { return nil }
    guard words.contains(text) else {
      throw .usage("--\(name) must be \(words.dropLast().joined(separator: ", ")) or \(words.last ?? ""), not \(text)")
    }
    return text
  }

  // MARK: Configuration files

  /// Adds what a file of `name = value` lines says, where the command line says nothing. `#` begins a comment.
  mutating func merge(configuration text: String, file: String) throws(CommandError) {
    var seen: Set<String> = []
    let given = Set(values.keys)
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let place = "\(file):\(index + 1)"
      let content = line.prefix { $0 != "#" }.trimmingSpaces
      if content.isEmpty { continue }
      let parts = content.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { throw .usage("\(place): expected name = value") }
      let name = String(parts[0].trimmingSpaces)
      let value = String(parts[1].trimmingSpaces)
      guard name != "config", let option = verb.options.first(where: { $0.name == name }) else {
        throw .usage("\(place): there is no setting \(name)")
      }
      guard seen.insert(name).inserted || option.repeats else { throw .usage("\(place): \(name) is set twice") }
      guard option.placeholder != nil || value == "true" || value == "false" else {
        throw .usage("\(place): \(name) must be true or false")
      }
      if given.contains(name) { continue }
      values[name] = value
      if option.repeats { lists[name, default: []].append(value) }
    }
  }
}

extension Substring {
  fileprivate var trimmingSpaces: Substring {
    var text = self
    while let first = text.first, first.isWhitespace { text.removeFirst() }
    while let last = text.last, last.isWhitespace { text.removeLast() }
    return text
  }
}
