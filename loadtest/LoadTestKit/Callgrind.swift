// What valgrind's callgrind counted: instructions, and how often memory was asked for. Both hardly differ from run to
// run, on a busy machine either, so that a limit on them holds what a limit on time cannot.
//
// The format: valgrind's manual, "Callgrind Format Specification". Names are written once and numbered: `fn=(12)
// malloc`, `cfn=(12)`; the line behind a `cfn` is `calls=COUNT POSITION`.
import Glibc
import HubCommandLine

package struct CallgrindProfile: Sendable, Equatable {
  package var instructions = 0.0
  /// Calls of malloc and its like.
  package var allocations = 0.0

  private static let allocators: Set<Substring> = [
    "malloc", "calloc", "realloc", "reallocarray", "posix_memalign", "aligned_alloc", "memalign",
  ]

  /// Nil where it is no output of callgrind.
  package init?(parsing text: String) {
    var names: [Substring: Substring] = [:]
    var called: Substring = ""
    var hasTotals = false
    for line in text.split(separator: "\n") {
      if line.hasPrefix("fn=") || line.hasPrefix("cfn=") {
        let value = line[line.index(after: line.firstIndex(of: "=") ?? line.startIndex)...]
        let name = CallgrindProfile.name(value, &names)
        if line.hasPrefix("cfn=") { called = name }
      } else if line.hasPrefix("calls=") {
        guard let count = Double(line.dropFirst(6).prefix { $0 != " " }) else { return nil }
        // A recursion is recognised by 'N behind the name.
        if CallgrindProfile.allocators.contains(called.prefix { $0 != "'" }) { allocations += count }
      } else if line.hasPrefix("totals:") {
        guard let count = Double(line.dropFirst(7).trimmed.prefix { $0 != " " }) else { return nil }
        instructions = count
        hasTotals = true
      }
    }
    guard hasTotals else { return nil }
  }

  private static func name(_ value: Substring, _ names: inout [Substring: Substring]) -> Substring {
    guard value.hasPrefix("("), let end = value.firstIndex(of: ")") else { return value }
    let number = value[...end]
    let name = value[value.index(after: end)...].trimmed
    if !name.isEmpty { names[number] = name }
    return names[number] ?? ""
  }

  /// Whether there is a valgrind.
  package static var isAvailable: Bool {
    (getenv("PATH").map { String(cString: $0) } ?? "").split(separator: ":").contains {
      access("\($0)/valgrind", X_OK) == 0
    }
  }
}
