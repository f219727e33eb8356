// A file that goes with the test that wrote it.
import Foundation

final class TemporaryFile {
  let path: String

  init(_ text: String) throws {
    path = FileManager.default.temporaryDirectory.appendingPathComponent("hub-\(UUID().uuidString).conf").path
    try text.write(toFile: path, atomically: true, encoding: .utf8)
  }

  deinit { unlink(path) }
}
