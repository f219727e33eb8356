// A file that says that something stored was given up. It is there before anything is moved aside, and until the first
// group behind the loss is on stable storage: a hub that ends in between must not go on, at its next start, as if the
// numbers that were given up had never been.
import HubSystem

enum LossMark {
  static let name = "loss-accepted"

  /// Returns when it is on stable storage.
  static func put(_ files: any JournalFiles) throws(SystemError) {
    try files.open(name).synchronize()
    try files.synchronize()
  }
}
