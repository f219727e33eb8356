// Where what is measured keeps its files.
import Glibc
import HubCommandLine
import HubSystem

/// A folder of files that is gone when its owner is.
package final class TemporaryFolder {
  package let path: String

  package init(in parent: String) throws(LoadTestError) {
    var template = Array("\(parent)/hub-loadtest-XXXXXX".utf8CString)
    guard let made = mkdtemp(&template) else {
      throw .failed("cannot make a folder in \(parent): \(SystemError.text(errno))")
    }
    path = String(cString: made)
  }

  deinit {
    if let stream = opendir(path) {
      while let entry = readdir(stream) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
          String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != ".", name != ".." { unlink("\(path)/\(name)") }
      }
      closedir(stream)
    }
    rmdir(path)
  }
}
