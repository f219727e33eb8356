// Rules of the house that neither the compiler nor swift-format checks. What does not keep one is listed in
// Exceptions.swift; an entry there that is not needed any more fails, so that the lists only shrink.
import Foundation
import Testing

@Suite struct TidyTests {
  /// Compares what breaks a rule with the exceptions that are listed for it.
  private func expect(_ found: some Sequence<String>, toBe exceptions: [String], _ rule: Comment) {
    let (found, listed) = (Set(found), Set(exceptions))
    #expect(found.subtracting(listed).sorted() == [], rule)
    #expect(listed.subtracting(found).sorted() == [], "these keep the rule by now: take them off the list")
  }

  @Test("A line has at most 120 columns, a comment's too, unless a string in it cannot be broken")
  func lineLength() throws {
    let found = try SourceTree.files().flatMap { file in
      file.lines.indices.filter { file.lines[$0].count > 120 && !isInText(file, $0) }.map { "\(file.path):\($0 + 1)" }
    }
    expect(found, toBe: [], "break the line")
  }

  /// Whether strings make most of a line, which is no comment, or it is one of a string of several lines.
  private func isInText(_ file: SourceFile, _ line: Int) -> Bool {
    let text = file.lines[line]
    if file.lines[..<line].count(where: { $0.contains("\"\"\"") }) % 2 == 1 { return true }
    guard let first = text.firstIndex(of: "\""), let last = text.lastIndex(of: "\"") else { return false }
    return !text.drop { $0 == " " }.hasPrefix("//") && text.distance(from: first, to: last) >= 60
  }

  @Test("A file has at most 400 lines")
  func fileLength() throws {
    expect(
      try SourceTree.files().filter { $0.lines.count > 401 }.map(\.path), toBe: Exceptions.longFiles,
      "split the file: one concept each")
  }

  @Test("A function has at most 60 lines, and so has what computes a property")
  func functionLength() throws {
    let head = try Regex(#"^ *(@\S+ |[a-z]+(\(set\))? )*(func |init[?(<]|deinit|subscript|var \w+: [^=]*\{$)"#)
    let found = try SourceTree.files().flatMap { file in
      file.lines.indices.filter { line in
        guard let last = file.lines[line].last, "{(".contains(last), file.lines[line].firstMatch(of: head) != nil
        else { return false }
        return file.block(from: line)?.count ?? 0 > 60
      }.map { "\(file.path): \(file.lines[$0].split(separator: "(")[0].drop { $0 == " " })" }
    }
    expect(found, toBe: Exceptions.longFunctions, "give its parts names")
  }

  @Test("Each file of the product begins with what it is")
  func heads() throws {
    let found = try SourceTree.files().filter { $0.isProduct && !$0.lines[0].hasPrefix("//") }.map(\.path)
    expect(found, toBe: Exceptions.withoutHead, "say in a comment on top what the file is, and why this way")
  }

  @Test("A doc comment can be read without the one before it")
  func standAlone() throws {
    let leaning = /^ *\/\/\/ (The same[ ,.;]|Likewise|As above|See above)/
    let unfinished = /^ *\/\/\/ (Those (of|that|from) |That of |Of (all|it|them)[ ,.])/
    let found = try SourceTree.files().flatMap { file in
      file.lines.indices.filter { line in
        file.lines[line].contains("///")
          && (file.lines[line].firstMatch(of: leaning) != nil || file.lines[line].firstMatch(of: unfinished) != nil)
          && (line == 0 || !file.lines[line - 1].drop { $0 == " " }.hasPrefix("///"))
      }.map { "\(file.path): \($0 + 1)" }
    }
    expect(found, toBe: [], "say what it is by itself")
  }

  @Test("Memory is managed or pointed to, and the compiler's checks of concurrency are waived, only where listed")
  func unsafeIslands() throws {
    let hints = ["alloc", "mmap(", "strdup(", "Retained(", "Pointer", "unchecked", "unsafe"]
    let call = /\.allocate\(|\b([mc]|re)alloc\(|memalign\(|_alloc\(|\bmmap\(|strdup\(|\.passRetained\(/
    let waiver = /@unchecked Sendable|nonisolated\(unsafe\)/
    let member = /^ {2}(@\S+ |[a-z]+(\(set\))? )*(let|var) \w+: \[?(Unsafe\w*Pointer|OpaquePointer)[^{]*$/
    let found = try SourceTree.files().filter { file in
      file.isProduct
        && file.lines.contains { line in
          guard hints.contains(where: { line.contains($0) }) else { return false }
          let code = code(of: line)
          return code.firstMatch(of: call) != nil || code.firstMatch(of: waiver) != nil
            || code.firstMatch(of: member) != nil
        }
    }
    expect(found.map(\.path), toBe: Exceptions.unsafeIslands, "use what is there, or say in the file why it is right")
  }

  /// A line without its comment.
  private func code(of line: String) -> Substring {
    line.contains("//") ? line[..<(line.range(of: "//")?.lowerBound ?? line.endIndex)] : line[...]
  }

  @Test("No error of the product is dropped unseen: none is made nil by try?")
  func droppedErrors() throws {
    let found = try SourceTree.files().filter { file in
      file.isProduct && file.lines.contains { $0.firstMatch(of: /\btry\?/) != nil }
    }
    expect(found.map(\.path), toBe: [], "catch it, and count, log or answer it")
  }

  @Test("A limit stands in a file of limits, whether it is a type's, an instance's, a function's or nobody's")
  func limits() throws {
    let name = #"((maximum|minimum)[A-Z]\w*|\w+Limit|limit|maximum|minimum)"#
    let limit = try Regex(#"\b(let|var) \#(name)(: \w+)? (= |\{ )(\(|0[xb]|[1-9]|0\.0*[1-9])"#)
    let found = try SourceTree.files().flatMap { file in
      file.path.hasPrefix("Sources/") && !file.path.hasSuffix("Limits.swift")
        ? file.lines.filter { isLimit($0) && code(of: $0).firstMatch(of: limit) != nil }.map {
          "\(file.path): \(self.name(in: $0))"
        } : []
    }
    expect(found, toBe: Exceptions.limitsElsewhere, "move it to the limits of its target")
  }

  private func isLimit(_ line: String) -> Bool { line.contains("imit") || line.contains("imum") }

  private func name(in line: String) -> Substring {
    line.split(separator: " ").drop { $0 != "let" && $0 != "var" }.dropFirst()[...].first?.prefix { $0 != ":" } ?? ""
  }

  @Test("A switch over an enum of this house has no default: a new case must not be forgotten")
  func defaults() throws {
    let files = try SourceTree.files()
    let ours = enumCases(in: files)
    let found = files.filter(\.isProduct).flatMap { file in
      file.lines.indices.filter { hasDefault(file, switchAt: $0, over: ours) }.map { _ in file.path }
    }
    expect(found, toBe: Exceptions.withDefault, "name the cases")
  }

  /// The names of all cases of enums.
  private func enumCases(in files: [SourceFile]) -> Set<String> {
    var names: Set<String> = []
    for line in files.lazy.flatMap(\.lines) {
      guard line.utf8.contains(where: { $0 == UInt8(ascii: "c") }), line.contains("case "),
        let text = line.firstMatch(of: /^ *(indirect )?case ([a-z`].*)$/)?.2
      else { continue }
      for name in text.matches(of: /(?:^|, )`?([a-z]\w*)`?/) { names.insert(String(name.1)) }
    }
    return names
  }

  /// Whether a switch begins at a line whose cases are all names of enums' cases, in tuples as well, but for a default,
  /// whatever that is called.
  private func hasDefault(_ file: SourceFile, switchAt line: Int, over cases: Set<String>) -> Bool {
    guard file.lines[line].utf8.last == UInt8(ascii: "{"), file.lines[line].contains("switch "),
      let block = file.block(from: line)
    else { return false }
    let margin = String(repeating: " ", count: file.indentation(line))
    let rest = /^ *(default|case (let )?_|case \(_(, _)*\)):/
    let marks = block.map { file.lines[$0] }.filter { line in
      line.hasPrefix(margin + "case ") || line.hasPrefix(margin + "default")
    }
    let patterns = marks.filter { $0.firstMatch(of: rest) == nil }
    let isOurs = patterns.allSatisfy { pattern in
      guard let name = pattern.firstMatch(of: /^ *case (?:let )?\(?(?:_, )*\.(\w+)/)?.1 else { return false }
      return cases.contains(String(name))
    }
    return isOurs && !patterns.isEmpty && patterns.count < marks.count
  }

  /// The hub's members, and their types.
  private func domains(_ files: [SourceFile]) -> [(name: Substring, type: Substring)] {
    files.filter { $0.path.hasSuffix("/Hub.swift") }.flatMap(\.lines).compactMap {
      $0.firstMatch(of: /^  var (\w+)(?:: | = )([A-Z]\w+)/).map { (name: $0.1, type: $0.2) }
    }
  }

  @Test("A domain of the hub changes no other one: it gives an outcome, which the hub carries out")
  func outcomes() throws {
    let files = try SourceTree.files().filter { $0.path.hasPrefix("Sources/HubCore/") }
    // What all write into is no domain.
    let shared: Set<Substring> = ["HubStorage", "Deadlines"]
    let types = domains(files).map(\.type).filter { !shared.contains($0) }
    let parameter = try Regex("inout (\(types.joined(separator: "|")))\\b")
    let found = try files.flatMap { file in
      try file.lines.compactMap { $0.contains("inout ") ? $0.firstMatch(of: parameter)?[1].substring : nil }
        .filter { type in
          let home = members(of: type, in: files)?.home
          return try !file.path.hasPrefix(#require(home, "the hub has a member of an unknown type \(type)"))
        }.map { "\(file.path): \($0)" }
    }
    expect(found, toBe: [], "give an outcome")
  }

  @Test("What a domain of the hub keeps and does not hide is named in its own folder alone")
  func domains() throws {
    let files = try SourceTree.files().filter { $0.path.hasPrefix("Sources/HubCore/") }
    let domains = domains(files)
    #expect(domains.count >= 8)
    let found = try domains.flatMap { domain in
      guard let (home, members) = members(of: domain.type, in: files), !members.isEmpty else { return [String]() }
      let use = try Regex("\\b\(domain.name)\\.(\(members.joined(separator: "|")))\\b")
      let named = "\(domain.name)."
      let others = files.filter { !$0.path.hasPrefix(home) }
      return others.filter { $0.lines.contains { $0.contains(named) && $0.firstMatch(of: use) != nil } }
        .map { "\($0.path): \(domain.name)" }
    }
    expect(found, toBe: [], "give the domain a method that says what is wanted")
  }

  /// The folder of a struct's file, and the stored members that its other files may change.
  private func members(of type: Substring, in files: [SourceFile]) -> (home: String, names: [Substring])? {
    for file in files {
      let head = file.lines.firstIndex { $0.firstMatch(of: /^(public )?struct (\w+)/)?.2 == type }
      guard let head, let block = file.block(from: head) else { continue }
      let names = block.compactMap { file.lines[$0].firstMatch(of: /^  var (\w+)[^{]*$/)?.1 }
      return (file.path.split(separator: "/").dropLast().joined(separator: "/") + "/", names)
    }
    return nil
  }

  @Test("A test drives time by hand: none sleeps, by whatever name")
  func sleeps() throws {
    let call = try Regex(
      #"(^|[^.\w]|\b(Glibc|HubSystem)\.)(sleep|pause)\(|\.sleep\(|\b(u|nano)sleep\b|"#
        + #"poll\(nil|select\(0|asyncAfter|RunLoop\b"#)
    let hints = ["sleep", "pause(", "poll(", "select(", "asyncAfter", "RunLoop"]
    let found = try SourceTree.files().filter { file in
      !file.isProduct && !file.path.hasPrefix("Tests/TidyTests/")
        && file.lines.contains { line in
          guard hints.contains(where: { line.contains($0) }) else { return false }
          let code = code(of: line)
          return code.firstMatch(of: call) != nil && !code.contains("func ")
        }
    }
    expect(found.map(\.path), toBe: Exceptions.sleepingTests, "give it a clock that the test moves")
  }
}
