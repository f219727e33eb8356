// Standard output and error, unbuffered: Swift's print buffers, and a line that announces a port would reach a pipe
// only at the process's end.

import Glibc
import Synchronization

/// The errno of the first failed write to standard output, but for EPIPE: its reader has closed. 0 before.
private let outputErrno = Atomic<Int32>(0)

/// A stream of this process that is written without a buffer.
public enum StandardStream: Int32, Sendable {
  case output = 1
  case error = 2

  /// Writes all bytes; false when the reader is closed or the disk is full.
  @discardableResult
  public func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var rest = unsafe bytes
    while rest.count > 0 {
      let written = unsafe Glibc.write(rawValue, rest.baseAddress!, rest.count)
      if written < 0 {
        if errno == EINTR { continue }
        guard errno == EAGAIN else {
          let number = errno
          if self == .output, number != EPIPE {
            _ = outputErrno.compareExchange(expected: 0, desired: number, ordering: .relaxed)
          }
          return false
        }
        pause(microseconds: 1000)
        continue
      }
      unsafe rest = UnsafeRawBufferPointer(rebasing: rest[written...])
    }
    return true
  }

  /// Writes a text as UTF-8; false when the reader is closed or the disk is full. Waits while the stream is blocked.
  @discardableResult
  public func write(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { unsafe write(UnsafeRawBufferPointer($0)) }
  }

  /// Opens /dev/null in the place of standard input, output and error where they are closed: else the next file that is
  /// opened has such a number, and gets what is meant for the stream.
  public static func fillGaps() {
    var descriptor: Int32 = 0
    repeat { descriptor = unsafe open("/dev/null", O_RDWR) } while (0...2).contains(descriptor)
    if descriptor > 2 { Glibc.close(descriptor) }
  }

  /// The first error of standard output, such as a full disk; nil for none, and where its reader has closed it.
  ///
  /// To be checked before a program ends with success: else lost output goes unnoticed.
  public static var outputError: SystemError? {
    let errno = outputErrno.load(ordering: .relaxed)
    return errno == 0 ? nil : SystemError(call: "write to standard output", errno: errno)
  }

  /// Whether it is a terminal.
  public var isTerminal: Bool { isatty(rawValue) == 1 }
}
