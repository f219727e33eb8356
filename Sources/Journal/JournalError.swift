// What can go wrong between the hub and its disk.
public import HubSystem

public enum JournalError: Error, Equatable, CustomStringConvertible {
  /// The kernel refused; `file` is what it was about.
  case system(SystemError, file: String)
  /// The disk, the share of it that the hub may use, or the file that it may write is full, by the kernel's word. What
  /// was written of the group was taken back.
  case full(SystemError, file: String)
  /// The path leads to this directory no longer, or the newest segment was deleted: what is written there would not be
  /// found by the next start.
  case gone(path: String)
  /// A write or fdatasync failed earlier. The kernel may have dropped what it could not write and say "done" to the
  /// next fdatasync (fsyncgate, 2018), so nothing is written any more before a restart has read what there is.
  case stopped
  /// Another process has the directory.
  case locked(directory: String)
  case damaged(Damage)
  /// The file is of another format than this program's: a newer or an older one wrote it.
  case otherVersion(UInt32, file: String)

  public var description: String {
    switch self {
    case .system(let error, let file): "\(file): \(error)"
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

  /// Whether the journal goes on by itself when the trouble is over. `stopped` and the like end with a restart.
  var isPassing: Bool {
    switch self {
    case .full, .gone: true
    case .system, .stopped, .locked, .damaged, .otherVersion: false
    }
  }
}

/// What `body` gives; an error of the kernel is about `file`.
func inFile<R>(_ file: String, _ body: () throws(SystemError) -> R) throws(JournalError) -> R {
  do throws(SystemError) { return try body() } catch { throw .system(error, file: file) }
}

/// A place where a journal is not what was once written.
public struct Damage: Equatable, Sendable, CustomStringConvertible {
  public enum Kind: Equatable, Sendable {
    /// A group is broken, and something valid stands behind it.
    case group
    /// A segment's header is broken, and something valid stands behind it.
    case header
    /// Groups are missing up to this one.
    case missing(through: UInt64)
    /// A snapshot is not whole.
    case snapshot
    /// The payload of a whole group makes no sense to its reader.
    case meaning(String)
    /// No hub wrote a file like this one; the text says what it is.
    case foreign(String)
  }

  public var kind: Kind
  public var file: String
  /// Bytes from the file's start.
  public var offset: Int
  /// The first group that is lost.
  public var group: UInt64

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
