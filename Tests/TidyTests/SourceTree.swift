// The Swift sources of this checkout as text, for rules that the compiler does not check.
import Foundation

/// One file of Swift.
struct SourceFile {
  /// From the top of the checkout.
  let path: String
  let lines: [String]

  /// What a user's build has in it; the rest are tests.
  var isProduct: Bool { path.hasPrefix("Sources/") || path.hasPrefix("loadtest/") }

  /// The spaces before a line's text.
  func indentation(_ line: Int) -> Int { lines[line].prefix { $0 == " " }.count }

  /// The lines up to the one that closes what the line opens; nil where none does.
  func block(from line: Int) -> Range<Int>? {
    let closing = String(repeating: " ", count: indentation(line)) + "}"
    return lines[(line + 1)...].firstIndex { $0.hasPrefix(closing) }.map { line..<($0 + 1) }
  }
}

enum SourceTree {
  static let top = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// A document of this checkout.
  static func text(_ path: String) throws -> String {
    try String(contentsOf: top.appending(path: path), encoding: .utf8)
  }

  /// All files in the folders of Swift code.
  static func files() throws -> [SourceFile] {
    try ["Sources", "Tests", "loadtest"].flatMap { folder in
      let found = FileManager.default.enumerator(atPath: top.appending(path: folder).path)
      return try (found?.compactMap { $0 as? String } ?? []).filter { $0.hasSuffix(".swift") && !$0.contains(".docc/") }
        .sorted().map { name in
          let path = "\(folder)/\(name)"
          return SourceFile(path: path, lines: try text(path).components(separatedBy: "\n"))
        }
    }
  }
}
