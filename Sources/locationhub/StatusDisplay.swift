// A status of one or more lines: refreshed in place on a terminal, appended in a log.
import Glibc
import HubSystem

struct StatusDisplay {
  private let stream = StandardStream.output
  private let isTerminal = StandardStream.output.isTerminal
  /// Lines on the screen that the next text replaces.
  private var shown = 0

  /// False when the reader of the output has gone.
  @discardableResult
  mutating func show(_ text: String, short: String? = nil) -> Bool {
    guard isTerminal else { return stream.write((short ?? text) + "\n") }
    // ECMA-48: CUU, cursor up; ED, erase below. Lines longer than the terminal would be counted wrongly, so callers
    // keep them short.
    let back = shown > 0 ? "\u{1B}[\(shown)A\r\u{1B}[J" : ""
    shown = text.utf8.count { $0 == UInt8(ascii: "\n") } + 1
    return stream.write(back + text + "\n")
  }

  /// Leaves the shown lines in place.
  mutating func end() { shown = 0 }
}
