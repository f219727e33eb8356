// A journal's calls on a directory, so that tests can simulate a disk that forgets, tears and fills up.
public import HubSystem

/// A directory with a journal in it. For one thread at a time.
public protocol JournalFiles: AnyObject {
  /// The path, for messages.
  var path: String { get }
  /// Whether `path` still leads to this directory.
  var isAtPath: Bool { get }
  /// Bytes that this process may still write on its disk; nil where that cannot be known.
  func freeBytes() -> UInt64?
  /// The names of all files.
  func names() throws(SystemError) -> [String]
  /// The kind and size of a file of this name; nil where there is none.
  func about(_ name: String) throws(SystemError) -> JournalFileFacts?
  /// A file's bytes, all in memory: for files of known size.
  func read(_ name: String) throws(SystemError) -> [UInt8]
  /// Opens an existing file for reading at any offset; nil where there is none (any more).
  func openForReading(_ name: String) throws(SystemError) -> (any ReadableJournalFile)?
  /// Opens a file for appending, created if needed.
  func open(_ name: String) throws(SystemError) -> any JournalFile
  /// Renames a file, replacing another of the new name.
  func rename(_ name: String, to newName: String) throws(SystemError)
  /// Deletes a file; one that is open can still be read.
  func remove(_ name: String) throws(SystemError)
  /// Returns when names are on stable storage (fsync of the directory).
  func synchronize() throws(SystemError)
}

/// The kind and size of a directory entry.
public struct JournalFileFacts: Sendable, Equatable {
  /// Whether it is a file.
  public enum Kind: Sendable, Equatable {
    case file
    /// Something else, described: "a directory".
    case other(String)
  }

  public var kind: Kind
  public var bytes: Int

  public init(kind: Kind, bytes: Int) {
    self.kind = kind
    self.bytes = bytes
  }
}

extension JournalFiles {
  /// The names of all files; throws a `JournalError` with the directory's path.
  func allNames() throws(JournalError) -> [String] {
    try inFile(path) { () throws(SystemError) in try names() }
  }

  /// The reason why no hub can have written this entry: it is no regular file, or it has more than `limit` bytes. Nil
  /// if there is no such reason, or no entry.
  func oddity(of name: String, atMost limit: Int = .max) throws(SystemError) -> String? {
    guard let facts = try about(name) else { return nil }
    switch facts.kind {
    case .other(let what): return "is \(what), and no file that a hub writes"
    case .file where facts.bytes > limit: return "has \(facts.bytes) bytes, and a hub writes \(limit) at most"
    case .file: return nil
    }
  }
}

/// An open file of a journal.
public protocol JournalFile: AnyObject {
  var size: Int { get }
  /// Whether it still has a name: false once it was deleted.
  var isLinked: Bool { get }
  /// Appends all of `bytes`. After an error a part of them may be there.
  func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError)
  /// Truncates the file to its first `size` bytes.
  func truncate(to size: Int) throws(SystemError)
  /// Returns when appended bytes are on stable storage (fdatasync).
  func synchronize() throws(SystemError)
}

/// A file of a journal that is read while it may grow or be deleted: an open one stays readable.
public protocol ReadableJournalFile: AnyObject {
  /// Its present size in bytes.
  func size() throws(SystemError) -> Int
  /// Fills `buffer` from `offset` on as far as the file goes; gives the number of bytes.
  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int
}
