// A failed system call, with its name: EINVAL alone does not say which.

import Glibc

/// A system call that failed: which one, and its `errno`.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The call as in section 2 of the manual, for instance `bind`.
  public let call: String
  /// The kernel's error number, for instance `EADDRINUSE`.
  public let errno: Int32

  public init(call: StaticString, errno: Int32) {
    self.call = call.description
    self.errno = errno
  }

  /// Must be made at once after the failed call, before anything changes `errno`.
  package init(_ call: StaticString) { self.init(call: call, errno: Glibc.errno) }

  /// For instance `bind: Address already in use (98)`.
  public var description: String { "\(call): \(SystemError.text(errno)) (\(errno))" }

  /// The C library's text for an error number.
  public static func text(_ number: Int32) -> String {
    // strerror_r writes into our memory; strerror shares one buffer between threads.
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
      guard unsafe strerror_r(number, buffer.baseAddress!, buffer.count) == 0 else { return "error" }
      return unsafe String(cString: buffer.baseAddress!)
    }
  }
}
