// A journal's directory on a real disk.
import Glibc
import Transport

/// A directory. Who writes a journal's segments has a lock on it that ends with the process; who reads beside, or keeps the
/// files of the one that has the lock, needs none.
public final class DiskFiles: JournalFiles {
  public let path: String
  private let directory: Descriptor

  /// Opens a directory that is there, without a lock.
  public init(beside path: String) throws(JournalError) {
    self.path = path
    do throws(SystemError) {
      directory = try Descriptor(Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), from: "open")
    } catch {
      throw .system(error, file: path)
    }
  }

  /// Opens the directory, made if it isn't there, and locks it. Throws `locked` where another process has it.
  public init(path: String) throws(JournalError) {
    self.path = path
    do throws(SystemError) {
      if mkdir(path, 0o700) != 0, errno != EEXIST { throw SystemError(call: "mkdir", errno: errno) }
      directory = try Descriptor(Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), from: "open")
    } catch {
      throw .system(error, file: path)
    }
    guard faccessat(directory.raw, ".", W_OK | X_OK, 0) == 0 else {
      throw .system(SystemError(call: "access", errno: errno), file: path)
    }
    guard flock(directory.raw, LOCK_EX | LOCK_NB) == 0 else {
      if errno == EWOULDBLOCK { throw .locked(directory: path) }
      throw .system(SystemError(call: "flock", errno: errno), file: path)
    }
  }

  public func names() throws(SystemError) -> [String] {
    // A stream of its own: closedir closes the descriptor that it was given.
    guard let stream = opendir(path) else { throw SystemError(call: "opendir", errno: errno) }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        guard errno == 0 else { throw SystemError(call: "readdir", errno: errno) }
        return names
      }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name != ".", name != ".." { names.append(name) }
    }
  }

  public func read(_ name: String) throws(SystemError) -> [UInt8] {
    guard let file = try openForReading(name) else { throw SystemError(call: "openat", errno: ENOENT) }
    var bytes: [UInt8] = []
    _ = try file.read(at: 0, count: try file.size(), into: &bytes)
    return bytes
  }

  public func openForReading(_ name: String) throws(SystemError) -> (any ReadableJournalFile)? {
    do throws(SystemError) {
      return try ReadableDiskFile(Descriptor(openat(directory.raw, name, O_RDONLY | O_CLOEXEC), from: "openat"))
    } catch {
      if error.errno == ENOENT { return nil }
      throw error
    }
  }

  public func open(_ name: String) throws(SystemError) -> any JournalFile {
    try DiskFile(
      Descriptor(openat(directory.raw, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600), from: "openat"))
  }

  public func rename(_ name: String, to newName: String) throws(SystemError) {
    guard renameat(directory.raw, name, directory.raw, newName) == 0 else {
      throw SystemError(call: "renameat", errno: errno)
    }
  }

  public func remove(_ name: String) throws(SystemError) {
    guard unlinkat(directory.raw, name, 0) == 0 else { throw SystemError(call: "unlinkat", errno: errno) }
  }

  public func synchronize() throws(SystemError) {
    guard fsync(directory.raw) == 0 else { throw SystemError(call: "fsync", errno: errno) }
  }
}

private final class DiskFile: JournalFile {
  private let descriptor: Descriptor
  private(set) var size: Int

  init(_ descriptor: consuming Descriptor) throws(SystemError) {
    let end = lseek(descriptor.raw, 0, SEEK_END)
    guard end >= 0 else { throw SystemError(call: "lseek", errno: errno) }
    self.descriptor = descriptor
    size = Int(end)
  }

  func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
    var rest = bytes
    while let base = rest.baseAddress, rest.count > 0 {
      let count = write(descriptor.raw, base, rest.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw SystemError(call: "write", errno: errno)
      }
      size += count
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  func truncate(to size: Int) throws(SystemError) {
    guard ftruncate(descriptor.raw, off_t(size)) == 0 else { throw SystemError(call: "ftruncate", errno: errno) }
    self.size = size
  }

  func synchronize() throws(SystemError) {
    guard fdatasync(descriptor.raw) == 0 else { throw SystemError(call: "fdatasync", errno: errno) }
  }
}

private final class ReadableDiskFile: ReadableJournalFile {
  private let descriptor: Descriptor

  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  func size() throws(SystemError) -> Int {
    // The file's own offset is used by nothing else: all reads say where.
    let end = lseek(descriptor.raw, 0, SEEK_END)
    guard end >= 0 else { throw SystemError(call: "lseek", errno: errno) }
    return Int(end)
  }

  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    var count = 0
    while count < buffer.count {
      let got = pread(descriptor.raw, buffer.baseAddress! + count, buffer.count - count, off_t(offset + count))
      if got < 0 {
        if errno == EINTR { continue }
        throw SystemError(call: "pread", errno: errno)
      }
      if got == 0 { break }
      count += got
    }
    return count
  }
}
