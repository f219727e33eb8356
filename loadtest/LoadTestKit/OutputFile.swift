// A file that results go to. A series takes minutes to hours, so that it can be written is known before, and what there
// is is written after each run: what fails later loses nothing.
import CHubLoadTest
import Glibc
import HubCommandLine
import HubSystem

package struct OutputFile: Sendable {
  package let path: String
  /// What is no regular file, a pipe for instance, is written once: there the text before would stay.
  private let isRegular: Bool

  /// Looks whether it can be written, and leaves it as it is.
  package init(_ path: String) throws(LoadTestError) {
    self.path = path
    let isNew = access(path, F_OK) != 0
    let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o644)
    // A pipe that nobody reads yet may be read when there is something to write (open(2), ENXIO).
    if file < 0, errno == ENXIO {
      isRegular = false
      return
    }
    guard file >= 0 else { throw .failed("cannot write \(path): \(SystemError.text(errno))") }
    var status = stat()
    isRegular = fstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    close(file)
    if isNew { unlink(path) }
  }

  /// The file at a path; nil where none was asked for.
  package static func optional(_ path: String?) throws(LoadTestError) -> OutputFile? {
    guard let path else { return nil }
    return try OutputFile(path)
  }

  /// While there may be more.
  package func update(_ text: @autoclosure () -> String) throws(LoadTestError) {
    if isRegular { try HubLoadTestKit.write(text(), to: path) }
  }

  /// All of it.
  package func write(_ text: String) throws(LoadTestError) { try HubLoadTestKit.write(text, to: path) }
}
