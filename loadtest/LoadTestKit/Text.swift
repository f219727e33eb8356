// Numbers and lines for people. No Foundation, so no formats.
import Glibc
import HubCommandLine
import HubSystem

package func show(_ text: String) { StandardStream.output.write(text + "\n") }

/// A number with so many decimals.
package func decimals(_ value: Double, _ count: Int = 2) -> String {
  guard value.isFinite, abs(value) < 1e15 else { return "\(value)" }
  var scale = 1.0
  for _ in 0..<count { scale *= 10 }
  let whole = Int((value * scale).rounded())
  let digits = String(abs(whole))
  let padded = String(repeating: "0", count: max(0, count + 1 - digits.count)) + digits
  return (whole < 0 ? "-" : "") + padded.dropLast(count) + (count > 0 ? "." : "") + padded.suffix(count)
}

/// A whole number with commas between thousands.
package func grouped(_ value: Int) -> String {
  var text = ""
  for (index, digit) in String(abs(value)).reversed().enumerated() {
    if index > 0, index % 3 == 0 { text = "," + text }
    text = String(digit) + text
  }
  return (value < 0 ? "-" : "") + text
}

/// `1 run`, `2,000 runs`.
func plural(_ count: Int, _ what: String) -> String { "\(grouped(count)) \(what)\(count == 1 ? "" : "s")" }

/// Text that fills at least so many columns.
func padded(_ text: String, to width: Int, right: Bool = false) -> String {
  let space = String(repeating: " ", count: max(0, width - text.count))
  return right ? space + text : text + space
}

/// Writes a file's complete content.
package func write(_ text: String, to path: String) throws(LoadTestError) {
  let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
  guard file >= 0 else { throw .failed("cannot write \(path): \(SystemError.text(errno))") }
  defer { _ = close(file) }
  var text = text
  let isWhole = text.withUTF8 { bytes in
    var rest = UnsafeRawBufferPointer(bytes)
    while rest.count > 0 {
      let count = Glibc.write(file, rest.baseAddress, rest.count)
      if count < 0 {
        if errno == EINTR { continue }
        return false
      }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
    return true
  }
  guard isWhole else { throw .failed("cannot write \(path): \(SystemError.text(errno))") }
}

package func readText(_ path: String) throws(LoadTestError) -> String {
  do throws(SystemError) {
    return String(decoding: try readFile(path), as: UTF8.self)
  } catch {
    throw .failed("cannot read \(path): \(error)")
  }
}
