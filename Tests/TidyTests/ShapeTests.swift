// The shape of the source as a whole: how much is written as one type's, and which types refer to each other in a
// circle.
import Foundation
import Testing

@Suite struct ShapeTests {
  /// Lines of a type's declaration, or of its extensions, by the file that they stand in.
  private func lines(_ head: String) throws -> [String: Int] {
    var counts: [String: Int] = [:]
    for file in try SourceTree.files() where file.isProduct {
      for line in file.lines.indices where file.lines[line].hasPrefix(head) && file.lines[line].hasSuffix("{") {
        counts[file.path, default: 0] += file.block(from: line)?.count ?? 0
      }
    }
    return counts
  }

  @Test("What the hub does at an input is written in one folder, in at most 1,500 lines: domains decide")
  func hub() throws {
    let found = try lines("extension Hub ")
    #expect(found.count > 10)
    #expect(found.keys.filter { !$0.hasPrefix("Sources/HubCore/Hub/") } == [], "extend the hub in its folder")
    #expect(found.values.reduce(0, +) <= 1500, "give a domain what it can decide by its own state")
  }

  @Test("A loop's sessions are written in at most 900 lines: they read as the list of a turn")
  func sessionLoop() throws {
    let found = try lines("extension SessionLoop ").values.reduce(0, +)
    let declared = try lines("struct SessionLoop: ").values.reduce(0, +)
    #expect(declared > 0)
    #expect(found + declared <= 900, "what has state of its own is a type of its own")
  }

  @Test("Types refer to each other in one direction, but for the circles that CONTRIBUTING.md names")
  func circles() throws {
    let files = try SourceTree.files().filter { $0.path.hasPrefix("Sources/") }
    let targets = Dictionary(grouping: files) { String($0.path.split(separator: "/")[1]) }
    let found = targets.flatMap { target, files in
      TypeReferences(files).circles.map { "\(target): \($0.joined(separator: ", "))" }
    }
    let change = found.sorted().difference(from: try namedCircles().sorted())
    #expect(change.isEmpty, "turn a reference round, or put what both need apart: \(change)")
  }

  /// The circles in CONTRIBUTING.md's table: a target's are separated by semicolons, a circle's types in backquotes.
  private func namedCircles() throws -> [String] {
    let rows = try SourceTree.text("CONTRIBUTING.md").components(separatedBy: "## Circles of types")[1]
      .components(separatedBy: "\n## ")[0].split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst(2)
    return rows.flatMap { row in
      let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      return cells[1].components(separatedBy: ";").map { circle in
        "\(cells[0]): " + circle.matches(of: /`(\w+)`/).map { String($0.1) }.sorted().joined(separator: ", ")
      }
    }
  }
}

/// Which types of one target name which others, in their declarations and extensions.
private struct TypeReferences {
  private var declared: Set<String> = []
  private var references: [String: Set<String>] = [:]

  init(_ files: [SourceFile]) {
    for file in files {
      for line in file.lines {
        if let head = TypeReferences.head(line), head.keyword != "extension" { declared.insert(head.name) }
      }
    }
    for file in files {
      var current: String?
      for line in file.lines {
        if let head = TypeReferences.head(line) { current = declared.contains(head.name) ? head.name : nil }
        guard let type = current else { continue }
        for word in TypeReferences.typeNames(in: line) where word != type && declared.contains(word) {
          references[type, default: []].insert(word)
        }
        if line == "}" { current = nil }
      }
    }
  }

  /// Groups of types each of which refers to all others of its group, over however many between them.
  var circles: [[String]] {
    let reached = Dictionary(uniqueKeysWithValues: references.keys.map { ($0, reachable(from: $0)) })
    let groups = reached.filter { $0.value.contains($0.key) }.map { type, others in
      others.filter { reached[$0]?.contains(type) == true }.sorted()
    }
    return Set(groups).filter { $0.count > 1 }.sorted { $0[0] < $1[0] }
  }

  private func reachable(from type: String) -> Set<String> {
    var found: Set<String> = []
    var open = references[type, default: []]
    while let next = open.popFirst() {
      guard found.insert(next).inserted else { continue }
      open.formUnion(references[next, default: []].subtracting(found))
    }
    return found
  }

  /// The keyword and name of a declaration or extension that begins at the margin.
  private static func head(_ line: String) -> (keyword: Substring, name: String)? {
    guard line.utf8.first.map({ $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "/") }) == true else { return nil }
    let words = line.split { !$0.isLetter && !$0.isNumber && $0 != "_" }
    let keywords: Set<Substring> = ["struct", "class", "enum", "protocol", "actor", "extension"]
    guard let index = words.firstIndex(where: keywords.contains), index + 1 < words.count else { return nil }
    return (words[index], String(words[index + 1]))
  }

  /// The words of a line that begin with a capital, outside comments and the text of strings.
  private static func typeNames(in line: String) -> [String] {
    var names: [String] = []
    var word: [UInt8] = []
    // For each open string: the open parentheses of its interpolation, 0 in its text.
    var strings: [Int] = []
    var previous = UInt8(0)
    for byte in line.utf8 + [UInt8(ascii: " ")] {
      let isEscaped = previous == UInt8(ascii: "\\")
      let isInString = strings.last == 0
      switch byte {
      case UInt8(ascii: "\"") where !isEscaped: if isInString { strings.removeLast() } else { strings.append(0) }
      case UInt8(ascii: "(") where !strings.isEmpty && (isEscaped || !isInString): strings[strings.count - 1] += 1
      case UInt8(ascii: ")") where !strings.isEmpty && !isInString: strings[strings.count - 1] -= 1
      default: break
      }
      let isPartOfWord =
        byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z") || byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
        || byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") || byte == UInt8(ascii: "_")
      if isPartOfWord, !isInString {
        word.append(byte)
      } else if !word.isEmpty {
        if word[0] >= UInt8(ascii: "A"), word[0] <= UInt8(ascii: "Z") {
          names.append(String(decoding: word, as: UTF8.self))
        }
        word.removeAll()
      }
      if byte == UInt8(ascii: "/"), previous == byte, !isInString { break }
      previous = byte
    }
    return names
  }
}
