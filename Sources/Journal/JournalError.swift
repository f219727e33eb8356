// Errors of the journal.
import Glibc
public import HubSystem

/// Why the journal cannot be read or written.
public enum JournalError: Error, Equatable, CustomStringConvertible {
  /// A system error concerning `file`.
  case system(SystemError, file: String)
  /// The disk is full, a quota or the limit of file sizes is reached, or descriptors or memory ran out, as the system
  /// error says. The partial group was removed.
  case full(SystemError, file: String)
  /// The path does not lead to this directory any more, or the newest segment was deleted: the next start would not
  /// find what is written there.
  case gone(path: String)
  /// A write or fdatasync failed earlier. The kernel may have dropped unwritten data and report success at the next
  /// fdatasync (fsyncgate, 2018), so nothing is written any more before a restart has read what there is.
  case stopped
  /// Another process has locked the directory.
  case locked(directory: String)
  case damaged(Damage)
  /// The file has the format of a newer or an older program.
  case otherVersion(UInt32, file: String)

  /// What is wrong with which file, and often what to do, for operators.
  public var description: String {
    switch self {
    case .system(let error, let file): "\(file): \(error)"
    case .full(let error, let file) where [EMFILE, ENFILE, ENOMEM].contains(error.errno): "\(file): \(error)"
    case .full(let error, let file): "\(file): no room: \(error)"
    case .gone(let path): "\(path): was moved or deleted while the hub writes there"
    case .stopped: "the journal has stopped after a failed write; restart the hub"
    case .locked(let directory): "another process uses the journal in \(directory)"
    case .damaged(let damage): "\(damage)"
    case .otherVersion(let version, let file) where version > FileHeader.version:
      "\(file) is of format \(version): a newer program wrote it"
    case .otherVersion(let version, let file):
      "\(file) is of format \(version): an older program wrote it, and this one reads only \(FileHeader.version)"
    }
  }

  /// Whether the journal continues by itself when the cause is gone. `stopped` and others need a restart.
  var isPassing: Bool {
    switch self {
    case .full, .gone: true
    case .system, .stopped, .locked, .damaged, .otherVersion: false
    }
  }
}

/// Runs `body`, and rethrows a system error as the journal's, with the name of `file`.
func inFile<R>(_ file: String, _ body: () throws(SystemError) -> R) throws(JournalError) -> R {
  do throws(SystemError) { return try body() } catch { throw .system(error, file: file) }
}

/// A position where a journal's content is not what was written.
public struct Damage: Equatable, Sendable, CustomStringConvertible {
  /// What is damaged.
  public enum Kind: Equatable, Sendable {
    /// A group is broken, and something valid follows it.
    case group
    /// A segment's header is broken, and something valid follows it.
    case header
    /// Groups are missing up to this one.
    case missing(through: UInt64)
    /// A snapshot is incomplete.
    case snapshot
    /// The payload of an intact group is invalid to its reader.
    case meaning(String)
    /// No hub writes such a file; the text describes it.
    case foreign(String)
  }

  public var kind: Kind
  public var file: String
  /// Bytes from the file's start.
  public var offset: Int
  /// The first lost group.
  public var group: UInt64

  /// What is wrong with which file, and often what to do, for operators.
  public var description: String {
    switch kind {
    case .group: "\(file): group \(group) at byte \(offset) is damaged: it was whole once, for more follows it"
    case .header: "\(file): its header is damaged"
    case .missing(let through): "\(file): groups \(group) to \(through) before it are missing"
    case .snapshot: "\(file): the snapshot is not whole"
    case .meaning(let text): "\(file): group \(group) at byte \(offset) makes no sense: \(text)"
    case .foreign(let text): "\(file) \(text)"
    }
  }
}
