// A file that marks the loss of stored records, or a copy, behind which the hub that was copied stored more. It exists
// before anything is moved aside, and until the first group behind the loss is on stable storage: a hub that ends in
// between must begin a new epoch at its next start, since the numbers behind were used.
import HubSystem

enum LossMark {
  static let name = "loss-accepted"

  /// Returns when it is on stable storage.
  static func put(_ files: any JournalFiles) throws(SystemError) {
    try files.open(name).synchronize()
    try files.synchronize()
  }
}
