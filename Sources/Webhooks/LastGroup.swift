// The group of the journal that was read last to deliver one of its events. A group may have thousands: they come one
// after the other, and for all webhooks at about the same time, so it is read and checked once.
import HubJournal

/// One for all webhooks of a loop; it has up to `JournalLimits.groupBytes`.
final class LastGroup {
  private var position: GroupPosition?
  private var payload: [UInt8] = []

  /// Gives the payload of a group that `tail` has read, valid for the call; nil if the journal has it no more.
  func withGroup<R>(
    at position: GroupPosition, of tail: JournalTail, _ body: (UnsafeRawBufferPointer) -> R
  ) throws(JournalError) -> R? {
    if self.position != position {
      guard let bytes = try unsafe tail.withGroup(at: position, { unsafe Array($0) }) else { return nil }
      (self.position, payload) = (position, bytes)
    }
    return unsafe payload.withUnsafeBytes { unsafe body($0) }
  }
}
