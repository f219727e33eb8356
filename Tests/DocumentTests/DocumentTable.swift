// A table in a document that is made from a table in the code: it stands between two lines,
//
//     <!-- table NAME, made by `make docs` -->
//     <!-- end of table NAME -->
//
// in some .md file of the repository. The tests compare; with WRITE_TABLES set they write.
import Foundation
import Testing

struct DocumentTable {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  var name: String
  /// The first row has the columns' names.
  var rows: [[String]]

  /// In Markdown; a `|` in a cell is written so that it does not end the cell.
  var text: String {
    let lines = rows.map { row in
      "| " + row.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ") + " |"
    }
    let rule = "|" + String(repeating: " --- |", count: rows[0].count)
    return ([lines[0], rule] + lines.dropFirst()).joined(separator: "\n")
  }

  /// Fails where the document says something else, or writes it.
  func check() throws {
    let begin = "<!-- table \(name), made by `make docs` -->\n"
    let end = "\n<!-- end of table \(name) -->"
    for folder in ["protocol", "deploy", "."] {
      let names = try FileManager.default.contentsOfDirectory(atPath: Self.root.appending(path: folder).path)
      for name in names where name.hasSuffix(".md") {
        let file = Self.root.appending(path: folder).appending(path: name)
        var document = try String(contentsOf: file, encoding: .utf8)
        guard let first = document.range(of: begin), let last = document.range(of: end) else { continue }
        let there = first.upperBound..<last.lowerBound
        if document[there] == text { return }
        guard ProcessInfo.processInfo.environment["WRITE_TABLES"] != nil else {
          Issue.record("\(folder)/\(name) does not have the table \(self.name) as the code has it: run `make docs`")
          return
        }
        document.replaceSubrange(there, with: text)
        try document.write(to: file, atomically: true, encoding: .utf8)
        return
      }
    }
    Issue.record("no document has the line \(begin)")
  }
}
