// Options of `locationhub serve` as they stand behind `--`, each given as `--name value` or `--name=value`.

package enum ServeOptions {
  /// `defaults`, but for those that are given.
  package static func merged(_ given: [String], over defaults: [String]) -> [String] {
    var words = given
    for option in groups(defaults) where !has(name(option[0]), in: words) { words += option }
    return words
  }

  /// Words as options, each with its value.
  static func groups(_ words: [String]) -> [[String]] {
    var options: [[String]] = []
    for word in words {
      if word.hasPrefix("--") || options.isEmpty {
        options.append([word])
      } else {
        options[options.count - 1].append(word)
      }
    }
    return options
  }

  /// Whether there is an option of this name, `--loops` for instance.
  static func has(_ name: String, in words: [String]) -> Bool { words.contains { self.name($0) == name } }

  /// The value of the first option of this name.
  static func value(_ name: String, in words: [String]) -> String? {
    guard let index = words.firstIndex(where: { self.name($0) == name }) else { return nil }
    let attached = words[index].dropFirst(name.count)
    return attached.isEmpty ? words[(index + 1)...].first : String(attached.dropFirst())
  }

  /// Whether they say themselves if and where there is a journal.
  package static func sayWhatIsStored(_ words: [String]) -> Bool {
    has("--data", in: words) || has("--no-journal", in: words)
  }

  private static func name(_ word: String) -> String { String(word.prefix { $0 != "=" }) }
}
