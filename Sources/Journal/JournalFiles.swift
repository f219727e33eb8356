// The few calls that a journal makes on a directory, so that tests can put a disk in their place that forgets, tears
// and fills up.
public import HubSystem

/// A directory with a journal in it. Used by one thread at a time.
public protocol JournalFiles: AnyObject {
  /// For messages.
  var path: String { get }
  /// Whether `path` still leads to this directory.
  var isInPlace: Bool { get }
  /// Bytes that this process may still write on its disk; nil where that cannot be known.
  func freeBytes() -> UInt64?
  /// The names of all files.
  func names() throws(SystemError) -> [String]
  /// What has this name; nil where nothing has.
  func about(_ name: String) throws(SystemError) -> JournalFileFacts?
  /// A file's bytes, all in memory: for files whose size was looked at.
  func read(_ name: String) throws(SystemError) -> [UInt8]
  /// Opens a file that is there for reading at any place; nil where it isn't there (any more).
  func openForReading(_ name: String) throws(SystemError) -> (any ReadableJournalFile)?
  /// Opens a file for appending, made empty if it isn't there.
  func open(_ name: String) throws(SystemError) -> any JournalFile
  /// Gives a file another name, replacing what has that name.
  func rename(_ name: String, to newName: String) throws(SystemError)
  func remove(_ name: String) throws(SystemError)
  /// Returns when names are on stable storage (fsync of the directory).
  func synchronize() throws(SystemError)
}

/// What stands under a name.
public struct JournalFileFacts: Sendable, Equatable {
  public enum Kind: Sendable, Equatable {
    case file
    /// Something else, in words: "a directory".
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
  /// `names`, as the journal's error where they can't be read.
  func allNames() throws(JournalError) -> [String] {
    try inFile(path) { () throws(SystemError) in try names() }
  }

  /// Why no hub can have written the file that has this name: it is no file, or larger than `limit` bytes. Nil where
  /// one can have, or nothing has the name.
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
  /// Cuts the file to its first `size` bytes.
  func truncate(to size: Int) throws(SystemError)
  /// Returns when what was appended is on stable storage (fdatasync).
  func synchronize() throws(SystemError)
}

/// A file of a journal that is read while it may still grow, or is deleted meanwhile: what is open stays readable.
public protocol ReadableJournalFile: AnyObject {
  /// Bytes in it now.
  func size() throws(SystemError) -> Int
  /// Fills `buffer` from `offset` on as far as the file goes; how many bytes that were.
  func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int
}
