// The journal of a demo.
import Glibc
import HubCommandLine
import HubJournal
import HubSystem

/// A directory for a journal that is gone when its owner is.
final class TemporaryJournal {
  let path: String

  init() throws(CommandError) {
    let base = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/locationhub-XXXXXX".utf8CString)
    guard let made = unsafe mkdtemp(&template) else {
      throw .failed("cannot make a directory in \(base): \(SystemError(call: "mkdtemp", errno: errno))")
    }
    path = unsafe String(cString: made)
  }

  deinit {
    do {
      let files = try DiskFiles(beside: path)
      for name in try files.names() { try files.remove(name) }
      guard unsafe rmdir(path) == 0 else { throw SystemError(call: "rmdir", errno: errno) }
    } catch {
      StandardStream.error.write("left behind: \(path): \(error)\n")
    }
  }
}
