// A file that marks a journal whose records were lost, or a copy whose original has stored more since. It is created
// before damaged files are moved aside, and deleted once the first group after the loss is on stable storage. A hub
// that starts with it begins a new epoch, since the numbers of what was lost are used again.
import HubSystem

enum LossMark {
  static let name = "loss-accepted"

  /// Creates the mark; returns when it is on stable storage.
  static func put(_ files: any JournalFiles) throws(SystemError) {
    try files.open(name).synchronize()
    try files.synchronize()
  }
}
