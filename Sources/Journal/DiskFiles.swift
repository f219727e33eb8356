// A journal's directory on a real disk.
import Glibc
public import HubSystem

/// A directory. The writer of a journal's segments has a lock on it that ends with the process; readers, and those that
/// maintain files for the lock's holder, need none.
public final class DiskFiles: JournalFiles {
  public let path: String
  private let directory: Descriptor

  /// Opens an existing directory without a lock.
  public init(beside path: String) throws(JournalError) {
    self.path = path
    do throws(SystemError) {
      directory = try unsafe Descriptor(Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), from: "open")
    } catch {
      throw .system(error, file: path)
    }
  }

  /// Opens the directory, creating it if needed, and locks it. Throws `locked` if another process holds the lock.
  public init(path: String) throws(JournalError) {
    self.path = path
    do throws(SystemError) {
      if unsafe mkdir(path, 0o700) == 0 {
        try Self.synchronizeParent(of: path)
      } else if errno != EEXIST {
        throw SystemError(call: "mkdir", errno: errno)
      }
      directory = try unsafe Descriptor(Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), from: "open")
    } catch {
      throw .system(error, file: path)
    }
    guard unsafe faccessat(directory.raw, ".", W_OK | X_OK, 0) == 0 else {
      throw .system(SystemError(call: "access", errno: errno), file: path)
    }
    guard flock(directory.raw, LOCK_EX | LOCK_NB) == 0 else {
      if errno == EWOULDBLOCK { throw .locked(directory: path) }
      throw .system(SystemError(call: "flock", errno: errno), file: path)
    }
  }

  /// Returns when the name of a new or renamed directory is on stable storage (fsync of its parent).
  static func synchronizeParent(of path: String) throws(SystemError) {
    let parent = try unsafe Descriptor(
      Glibc.open(path + "/..", O_RDONLY | O_DIRECTORY | O_CLOEXEC), from: "open")
    guard fsync(parent.raw) == 0 else { throw SystemError(call: "fsync", errno: errno) }
  }

  /// Unlocks explicitly: between fork and exec a child shares the lock, which closing here would not release.
  deinit { _ = flock(directory.raw, LOCK_UN) }

  /// Whether the path still leads to the open directory, by device and number (stat). A system call each.
  public var isAtPath: Bool {
    // Both are read now: on some file systems a directory's number changes when it is first written to.
    var there = stat()
    var here = stat()
    guard unsafe stat(path, &there) == 0, unsafe fstat(directory.raw, &here) == 0 else { return false }
    return there.st_dev == here.st_dev && there.st_ino == here.st_ino
  }

  /// Bytes that an unprivileged process may still write on this disk (fstatvfs); nil where the call fails.
  public func freeBytes() -> UInt64? {
    var facts = statvfs()
    guard unsafe fstatvfs(directory.raw, &facts) == 0 else { return nil }
    // File systems without a limit may say all ones.
    let (bytes, isMore) = UInt64(facts.f_bavail).multipliedReportingOverflow(by: UInt64(facts.f_frsize))
    return isMore ? .max : bytes
  }

  /// The kind and size of what has this name, links followed (fstatat); nil where nothing has.
  public func about(_ name: String) throws(SystemError) -> JournalFileFacts? {
    var status = stat()
    guard unsafe fstatat(directory.raw, name, &status, 0) == 0 else {
      if errno == ENOENT { return nil }
      throw SystemError(call: "fstatat", errno: errno)
    }
    return JournalFileFacts(kind: Self.kind(status.st_mode), bytes: Int(status.st_size))
  }

  private static func kind(_ mode: mode_t) -> JournalFileFacts.Kind {
    switch mode & S_IFMT {
    case S_IFREG: .file
    case S_IFDIR: .other("a directory")
    case S_IFIFO: .other("a FIFO")
    case S_IFSOCK: .other("a socket")
    case S_IFBLK, S_IFCHR: .other("a device")
    case let other: .other("of file type \(other)")
    }
  }

  /// The names of all entries, in no order, without `.` and `..`. O(entries).
  public func names() throws(SystemError) -> [String] {
    // Opened by path, since closedir would close a descriptor that it was given.
    guard let stream = unsafe opendir(path) else { throw SystemError(call: "opendir", errno: errno) }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = unsafe readdir(stream) else {
        guard errno == 0 else { throw SystemError(call: "readdir", errno: errno) }
        return names
      }
      let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) {
        unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.append(name) }
    }
  }

  /// All bytes of a file, in memory. Throws ENOENT where there is none.
  public func read(_ name: String) throws(SystemError) -> [UInt8] {
    guard let file = try openForReading(name) else { throw SystemError(call: "openat", errno: ENOENT) }
    var bytes: [UInt8] = []
    _ = try file.read(at: 0, count: try file.size(), into: &bytes)
    return bytes
  }

  /// Opens a file for reading at any offset; nil where there is none. Never waits for a writer, for instance of a FIFO.
  public func openForReading(_ name: String) throws(SystemError) -> (any ReadableJournalFile)? {
    do throws(SystemError) {
      // O_NONBLOCK, since opening a FIFO waits for a writer; it has no effect on files.
      return try unsafe ReadableDiskFile(
        Descriptor(openat(directory.raw, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC), from: "openat"))
    } catch {
      if error.errno == ENOENT { return nil }
      throw error
    }
  }

  /// Opens a file for appending, created with mode 0600 where there is none. In a directory of another user, as where
  /// root leaves something for a hub, the file is that user's, and a link of its name is refused.
  public func open(_ name: String) throws(SystemError) -> any JournalFile {
    let owner = try status(of: directory)
    let isOthers = geteuid() == 0 && owner.st_uid != 0
    let flags = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC | (isOthers ? O_NOFOLLOW : 0)
    let file = try unsafe Descriptor(openat(directory.raw, name, flags, 0o600), from: "openat")
    if isOthers, fchown(file.raw, owner.st_uid, owner.st_gid) != 0 { throw SystemError(call: "fchown", errno: errno) }
    return try DiskFile(file)
  }

  /// Renames a file in this directory, replacing another of the new name (renameat); durable after `synchronize`.
  public func rename(_ name: String, to newName: String) throws(SystemError) {
    guard unsafe renameat(directory.raw, name, directory.raw, newName) == 0 else {
      throw SystemError(call: "renameat", errno: errno)
    }
  }

  /// Deletes a file's name (unlinkat); a reader that has it open continues. Durable after `synchronize`.
  public func remove(_ name: String) throws(SystemError) {
    guard unsafe unlinkat(directory.raw, name, 0) == 0 else { throw SystemError(call: "unlinkat", errno: errno) }
  }

  /// Returns when created, renamed and deleted names are on stable storage (fsync of the directory).
  public func synchronize() throws(SystemError) {
    guard fsync(directory.raw) == 0 else { throw SystemError(call: "fsync", errno: errno) }
  }
}

private func status(of descriptor: borrowing Descriptor) throws(SystemError) -> stat {
  var status = stat()
  guard unsafe fstat(descriptor.raw, &status) == 0 else { throw SystemError(call: "fstat", errno: errno) }
  return status
}

/// A file's size in bytes. Throws for anything but a regular file, whose "size" has no meaning.
private func fileSize(of descriptor: borrowing Descriptor) throws(SystemError) -> Int {
  let status = try status(of: descriptor)
  switch status.st_mode & S_IFMT {
  case S_IFREG: return Int(status.st_size)
  case S_IFDIR: throw SystemError(call: "open", errno: EISDIR)
  default: throw SystemError(call: "open", errno: ENODEV)
  }
}

private final class DiskFile: JournalFile {
  private let descriptor: Descriptor
  private(set) var size: Int

  init(_ descriptor: consuming Descriptor) throws(SystemError) {
    size = try fileSize(of: descriptor)
    self.descriptor = descriptor
  }

  var isLinked: Bool {
    do throws(SystemError) { return try status(of: descriptor).st_nlink > 0 } catch { return false }
  }

  func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
    var rest = unsafe bytes
    while let base = rest.baseAddress, rest.count > 0 {
      let count = unsafe write(descriptor.raw, base, rest.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw SystemError(call: "write", errno: errno)
      }
      size += count
      unsafe rest = UnsafeRawBufferPointer(rebasing: rest[count...])
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

  init(_ descriptor: consuming Descriptor) throws(SystemError) {
    _ = try fileSize(of: descriptor)
    self.descriptor = descriptor
  }

  func size() throws(SystemError) -> Int { try fileSize(of: descriptor) }

  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
    try unsafe descriptor.read(at: offset, into: buffer)
  }
}
