// Reads files: all of one (configuration and traces), or a part.

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

/// Whether there is a folder of this name.
public func isFolder(_ path: String) -> Bool {
  var facts = stat()
  return unsafe stat(path, &facts) == 0 && facts.st_mode & S_IFMT == S_IFDIR
}

/// Which file a name means, and when it was written last: equal values mean that the content is the same, unless it was
/// changed without its size within one tick of the file system's clock (some milliseconds).
public struct FileVersion: Sendable, Equatable {
  private let device: UInt64
  private let number: UInt64
  private let size: Int
  private let seconds: Int
  private let nanoseconds: Int

  /// Throws where there is no file of this name, or it may not be looked at.
  public init(_ path: String) throws(SystemError) {
    var facts = stat()
    guard unsafe stat(path, &facts) == 0 else { throw SystemError("stat") }
    self.init(facts)
  }

  fileprivate init(_ facts: stat) {
    (device, number, size) = (UInt64(facts.st_dev), UInt64(facts.st_ino), Int(facts.st_size))
    (seconds, nanoseconds) = (facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec)
  }
}

/// An open regular file, read at any offset. Each read may wait for the disk.
public final class StoredFile: Sendable {
  private let descriptor: Descriptor
  private let version: FileVersion
  /// Size in bytes when it was opened.
  public let size: Int
  /// When it was written last (seconds since 1970).
  public let modified: Int

  /// Throws where it is missing or no regular file.
  public init(_ path: String) throws(SystemError) {
    // O_NONBLOCK: opening a FIFO waits for a writer otherwise. It has no effect on a file.
    descriptor = try unsafe Descriptor(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), from: "open")
    let facts = try descriptor.facts()
    guard facts.st_mode & S_IFMT == S_IFREG else {
      throw SystemError(call: "open", errno: facts.st_mode & S_IFMT == S_IFDIR ? EISDIR : ENODEV)
    }
    (size, modified, version) = (Int(facts.st_size), facts.st_mtim.tv_sec, FileVersion(facts))
  }

  /// Whether it is as it was when it was opened: nobody has written into it.
  public func isUnchanged() throws(SystemError) -> Bool { FileVersion(try descriptor.facts()) == version }

  /// `count` bytes from `offset` on, or fewer at the end of the file.
  public func read(at offset: Int, count: Int) throws(SystemError) -> [UInt8] {
    var failure: SystemError?
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      do throws(SystemError) {
        filled = try unsafe descriptor.read(at: offset, into: UnsafeMutableRawBufferPointer(buffer))
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return bytes
  }
}

extension Descriptor {
  fileprivate borrowing func facts() throws(SystemError) -> stat {
    var facts = stat()
    guard unsafe fstat(raw, &facts) == 0 else { throw SystemError("fstat") }
    return facts
  }

  /// Reads from `offset` on into the buffer; gives the number of bytes.
  package borrowing func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    var count = 0
    while count < buffer.count {
      let got = unsafe pread(raw, buffer.baseAddress! + count, buffer.count - count, off_t(offset + count))
      if got < 0 {
        if errno == EINTR { continue }
        throw SystemError("pread")
      }
      if got == 0 { break }
      count += got
    }
    return count
  }
}
