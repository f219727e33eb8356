// The files of the driver's queue: what the queue needs of a file system, and the implementation for this system.
//
// They are readable by the owner alone (0700, 0600), since positions are personal data. On Apple systems the folder
// also has the data protection "complete until first user authentication", so that fixes can be stored while the phone
// is locked, and is excluded from backups.
import HubClientCore

#if canImport(Darwin)
  import Darwin
  import Foundation
#else
  import Glibc
#endif

/// Why a file could not be used.
struct FileFailure: Error, Equatable, CustomStringConvertible {
  let call: String
  let errno: Int32

  /// For instance `write: No space left on device (28)`.
  var description: String { "\(call): \(systemText(errno)) (\(errno))" }

  /// The file does not exist (any more).
  var isMissing: Bool { errno == ENOENT }

  /// Whether a later attempt may succeed: another client has the folder, the disk is full, the system is short of a
  /// resource, or an iPhone was not unlocked since it was switched on.
  var isPassing: Bool {
    switch errno {
    case EWOULDBLOCK, ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, EBUSY, EINTR: true
    #if canImport(Darwin)
      case EPERM: true
    #endif
    default: false
    }
  }
}

/// A folder of append-only files, for one thread.
protocol FixFiles: AnyObject {
  /// The names of all files.
  func names() throws(FileFailure) -> [String]
  func size(_ name: String) throws(FileFailure) -> Int
  /// Up to `count` bytes from `offset` on; fewer at the end.
  func read(_ name: String, from offset: Int, count: Int) throws(FileFailure) -> [UInt8]
  /// Appends; creates the file where there is none. After a failure a part may have been written.
  func append(_ bytes: [UInt8], to name: String) throws(FileFailure)
  /// Replaces a file by one with this content, atomically.
  func replace(_ name: String, with bytes: [UInt8]) throws(FileFailure)
  func truncate(_ name: String, to size: Int) throws(FileFailure)
  /// Returns when appended bytes and the file's name are on disk.
  func sync(_ name: String) throws(FileFailure)
  func remove(_ name: String) throws(FileFailure)
  /// Removes all files and the folder; afterwards does nothing. What cannot be removed does not stop the rest.
  func erase() throws(FileFailure)
  /// Releases the folder to others. No other method is called until it is locked again.
  func unlock()
  /// Locks the folder for this client; does nothing where it is locked.
  func lock() throws(FileFailure)
}

extension FixFiles {
  func unlock() {}
  func lock() throws(FileFailure) {}
}

/// A folder of this device.
final class FolderFiles: FixFiles {
  private let path: String
  /// The descriptor of the locked file; negative while the folder is not this client's.
  private var lockFile: Int32 = -1
  /// The file that was appended to last.
  private var open: (name: String, descriptor: Int32)?
  /// The folder was deleted: one of the same name is another client's.
  private var isErased = false

  /// Creates the folder where it is missing, and locks it: a queue belongs to one client at a time.
  init(_ path: String) throws(FileFailure) {
    self.path = path
    try lock()
  }

  func lock() throws(FileFailure) {
    guard lockFile < 0, !isErased else { return }
    do throws(FileFailure) {
      repeat {
        unlock()
        try makeFolder()
        lockFile = try FolderFiles.check("open", systemOpen(path + "/lock", O_RDWR | O_CREAT | O_CLOEXEC))
        _ = try FolderFiles.check("flock", flock(lockFile, LOCK_EX | LOCK_NB))
        // If another client erased the folder between the two calls, this lock's name is gone.
      } while !isLockNamed
      try closeToOthers()
    } catch {
      unlock()
      throw error
    }
  }

  func unlock() {
    forget()
    guard lockFile >= 0 else { return }
    _ = flock(lockFile, LOCK_UN)  // a child forked meanwhile has it, too, until it runs its program
    close(lockFile)
    lockFile = -1
  }

  private var isLockNamed: Bool {
    var (ours, named) = (stat(), stat())
    guard unsafe fstat(lockFile, &ours) == 0, unsafe stat(path + "/lock", &named) == 0 else { return false }
    return ours.st_ino == named.st_ino && ours.st_dev == named.st_dev
  }

  /// Restricts an existing folder, unless it contains more than a queue.
  private func closeToOthers() throws(FileFailure) {
    var facts = stat()
    _ = try unsafe FolderFiles.check("stat", stat(path, &facts))
    guard facts.st_mode & 0o077 != 0, try names().allSatisfy(FolderFiles.isOurs) else { return }
    _ = try unsafe FolderFiles.check("chmod", chmod(path, 0o700))
  }

  private static func isOurs(_ name: String) -> Bool { name.hasSuffix(".queue") || name.hasSuffix(".draft") }

  deinit { unlock() }

  private func makeFolder() throws(FileFailure) {
    var parent = path.startIndex
    while let slash = path[parent...].dropFirst().firstIndex(of: "/") {
      // An error is ignored: the parent exists already, or making the folder below fails with the reason.
      _ = unsafe mkdir(String(path[..<slash]), 0o700)
      parent = slash
    }
    if unsafe mkdir(path, 0o700) != 0, errno != EEXIST { throw FileFailure(call: "mkdir", errno: errno) }
    #if canImport(Darwin)
      do {
        try FileManager.default.setAttributes(
          [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication], ofItemAtPath: path)
        // Positions are excluded from backups.
        var folder = URL(filePath: path, directoryHint: .isDirectory)
        var values = URLResourceValues()
        values.isExcludedFromBackup = true
        try folder.setResourceValues(values)
      } catch { throw FileFailure(call: "setAttributes", errno: EPERM) }
    #endif
  }

  private static func check(_ call: String, _ result: Int32) throws(FileFailure) -> Int32 {
    guard result >= 0 else { throw FileFailure(call: call, errno: errno) }
    return result
  }

  private func systemOpen(_ path: String, _ flags: Int32) -> Int32 {
    #if canImport(Darwin)
      unsafe Darwin.open(path, flags, 0o600)
    #else
      unsafe Glibc.open(path, flags, 0o600)
    #endif
  }

  func names() throws(FileFailure) -> [String] {
    guard let folder = unsafe opendir(path) else { throw FileFailure(call: "opendir", errno: errno) }
    defer { unsafe closedir(folder) }
    var names: [String] = []
    while let entry = unsafe readdir(folder) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
        unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      if name != ".", name != "..", name != "lock" { names.append(name) }
    }
    return names
  }

  func size(_ name: String) throws(FileFailure) -> Int {
    var facts = stat()
    _ = try unsafe FolderFiles.check("stat", stat("\(path)/\(name)", &facts))
    return Int(facts.st_size)
  }

  func read(_ name: String, from offset: Int, count: Int) throws(FileFailure) -> [UInt8] {
    let file = try FolderFiles.check("open", systemOpen("\(path)/\(name)", O_RDONLY | O_CLOEXEC))
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: count)
    let got = unsafe bytes.withUnsafeMutableBytes { unsafe pread(file, $0.baseAddress, count, off_t(offset)) }
    guard got >= 0 else { throw FileFailure(call: "pread", errno: errno) }
    bytes.removeLast(count - got)
    return bytes
  }

  private func descriptor(_ name: String) throws(FileFailure) -> Int32 {
    if let open, open.name == name { return open.descriptor }
    let file = try FolderFiles.check(
      "open", systemOpen("\(path)/\(name)", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC))
    forget()
    open = (name, file)
    return file
  }

  private func forget() {
    if let open { close(open.descriptor) }
    open = nil
  }

  func append(_ bytes: [UInt8], to name: String) throws(FileFailure) {
    try write(bytes, to: try descriptor(name))
  }

  private func write(_ bytes: [UInt8], to file: Int32) throws(FileFailure) {
    var done = 0
    while done < bytes.count {
      let count = unsafe bytes[done...].withUnsafeBytes { bytes in
        #if canImport(Darwin)
          unsafe Darwin.write(file, bytes.baseAddress, bytes.count)
        #else
          unsafe Glibc.write(file, bytes.baseAddress, bytes.count)
        #endif
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw FileFailure(call: "write", errno: errno) }
      done += count
    }
  }

  func replace(_ name: String, with bytes: [UInt8]) throws(FileFailure) {
    let draft = "\(path)/\(name).draft"
    let file = try FolderFiles.check("open", systemOpen(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC))
    defer { close(file) }
    try write(bytes, to: file)
    _ = try FolderFiles.check("fsync", fsync(file))
    _ = try unsafe FolderFiles.check("rename", rename(draft, "\(path)/\(name)"))
    if open?.name == name { forget() }
  }

  func truncate(_ name: String, to size: Int) throws(FileFailure) {
    _ = try FolderFiles.check("ftruncate", ftruncate(try descriptor(name), off_t(size)))
  }

  func sync(_ name: String) throws(FileFailure) {
    _ = try FolderFiles.check("fsync", fsync(try descriptor(name)))
    let folder = try FolderFiles.check("open", systemOpen(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
    defer { close(folder) }
    _ = try FolderFiles.check("fsync", fsync(folder))
  }

  func remove(_ name: String) throws(FileFailure) {
    if open?.name == name { forget() }
    _ = try unsafe FolderFiles.check("unlink", unlink("\(path)/\(name)"))
  }

  func erase() throws(FileFailure) {
    guard !isErased else { return }
    var failure: FileFailure?
    for name in try names() { do throws(FileFailure) { try remove(name) } catch { failure = error } }
    if let failure { throw failure }
    _ = try unsafe FolderFiles.check("unlink", unlink(path + "/lock"))
    isErased = true
    _ = try unsafe FolderFiles.check("rmdir", rmdir(path))
  }
}

/// Files in memory: unsent fixes do not survive the program.
final class MemoryFiles: FixFiles {
  private var files: [String: [UInt8]] = [:]

  func names() -> [String] { Array(files.keys) }
  func size(_ name: String) -> Int { files[name]?.count ?? 0 }
  func read(_ name: String, from offset: Int, count: Int) -> [UInt8] {
    Array((files[name] ?? []).dropFirst(offset).prefix(count))
  }
  func append(_ bytes: [UInt8], to name: String) { files[name, default: []] += bytes }
  func replace(_ name: String, with bytes: [UInt8]) { files[name] = bytes }
  func truncate(_ name: String, to size: Int) { files[name] = Array((files[name] ?? []).prefix(size)) }
  func sync(_ name: String) {}
  func remove(_ name: String) { files[name] = nil }
  func erase() { files = [:] }
}
