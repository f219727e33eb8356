// Standard output and error, written whole and at once: Swift's print buffers, so that a line announcing a port would
// reach a pipe only when the process ends.

import Glibc

/// A stream of this process that is written without a buffer.
public enum StandardStream: Int32, Sendable {
  case output = 1
  case error = 2

  /// Writes all bytes; false when the reader has gone or the disk is full.
  @discardableResult
  public func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var rest = unsafe bytes
    while rest.count > 0 {
      let written = unsafe Glibc.write(rawValue, rest.baseAddress!, rest.count)
      if written < 0 {
        if errno == EINTR { continue }
        guard errno == EAGAIN else { return false }
        pause(microseconds: 1000)
        continue
      }
      unsafe rest = UnsafeRawBufferPointer(rebasing: rest[written...])
    }
    return true
  }

  @discardableResult
  public func write(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { unsafe write(UnsafeRawBufferPointer($0)) }
  }

  /// Whether a person looks at it.
  public var isTerminal: Bool { isatty(rawValue) == 1 }
}
