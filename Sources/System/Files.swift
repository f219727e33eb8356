// Reading a file whole: configuration and traces.

import Glibc

/// The bytes of a file, or of a pipe up to its end.
public func readFile(_ path: String) throws(SystemError) -> [UInt8] {
  let file = try unsafe Descriptor(open(path, O_RDONLY | O_CLOEXEC), from: "open")
  var bytes: [UInt8] = []
  var failure: SystemError?
  unsafe withUnsafeTemporaryAllocation(byteCount: 65536, alignment: 16) { buffer in
    while true {
      let count = unsafe read(file.raw, buffer.baseAddress!, buffer.count)
      if count < 0 {
        if errno == EINTR { continue }
        failure = SystemError("read")
        return
      }
      if count == 0 { return }
      unsafe bytes.append(contentsOf: buffer[..<count])
    }
  }
  if let failure { throw failure }
  return bytes
}
