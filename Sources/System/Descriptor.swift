// The owner of a file descriptor.

import CHubLinux
import Glibc

/// Owns one file descriptor. Not copyable, so it is closed exactly once.
public struct Descriptor: ~Copyable, Sendable {
  public let raw: Int32

  /// Takes over `raw`; a negative value is the failure of `call`, with its `errno`.
  public init(_ raw: Int32, from call: StaticString) throws(SystemError) {
    guard raw >= 0 else { throw SystemError(call) }
    self.raw = raw
  }

  /// Takes over an open descriptor that was released by its owner.
  package init(owning raw: Int32) { self.raw = raw }

  deinit {
    // Linux frees the number whatever close returns, so there is nothing to do about an error here.
    _ = close(raw)
  }

  /// Sleeps until the descriptor is readable, `nanoseconds` passed, or a signal came.
  package func sleepUntilReadable(nanoseconds: Int64) {
    var watched = pollfd(fd: raw, events: Int16(POLLIN), revents: 0)
    var time = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    _ = unsafe ppoll(&watched, 1, &time, nil)
  }

  /// Hands the number to another owner, which has to close it.
  package consuming func release() -> Int32 {
    let number = raw
    discard self
    return number
  }
}
