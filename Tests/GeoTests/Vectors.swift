// Reads the test vectors of other projects that lie beside the repository; where they are absent the tests that need
// them say so and pass.

import Foundation

enum Vectors {
  /// The lines of a file in `../shared/data/vectors`, split at commas, without the head line; nil when it is absent.
  static func rows(_ name: String) -> [[String]]? {
    guard let text = text(name) else { return nil }
    return text.split(separator: "\n").dropFirst().map { line in
      line.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }
  }

  static func text(_ name: String) -> String? {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let file = root.appending(path: "../shared/data/vectors").appending(path: name)
    do {
      return try String(contentsOf: file, encoding: .utf8)
    } catch {
      print("skipped: no \(name) in ../shared/data/vectors")
      return nil
    }
  }
}
