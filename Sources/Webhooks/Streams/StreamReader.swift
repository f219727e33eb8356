// Reads a stream's events from the journal, once, forwards.
import HubCore
import HubJournal
import HubMessages

final class StreamReader {
  private let filter: EventFilter
  private let tail: JournalTail
  private let epoch: String
  private let start: JournalPosition
  /// The events of the group that was read last.
  private var found: ArraySlice<(message: StreamMessage, published: Timestamp)> = []
  /// Bytes that may be read in this turn.
  private var bytes = 0

  /// Begins at `start`. `tail` is used only here.
  init(_ filter: EventFilter, _ tail: JournalTail, epoch: String, start: JournalPosition) {
    self.filter = filter
    self.tail = tail
    self.epoch = epoch
    self.start = start
    tail.seek(to: start.group)
  }

  /// Groups that retention deleted before they were read, or that are damaged; and the latter.
  var missedGroups: UInt64 { tail.missedGroups }
  var damagedGroups: UInt64 { tail.damagedGroups }

  /// The position up to which everything was given.
  var end: JournalPosition { found.first?.message.position ?? max(start, JournalPosition(group: tail.next, record: 0)) }

  /// Renews the budget in a new turn: `scanBytes`, or a group more.
  func beginTurn() { bytes = EventReader.scanBytes }

  /// The next event in groups up to `last`; nil where there is none, or the budget is used up: see `isAtEnd`.
  func next(
    through last: UInt64, isAtEnd: inout Bool
  ) throws(JournalError) -> (message: StreamMessage, published: Timestamp)? {
    while found.isEmpty, bytes > 0 {
      let isMore = try unsafe tail.read(through: last) { group, payload in
        bytes -= payload.count
        unsafe StoredEvents.forEach(in: payload) { event, offset in
          let position = JournalPosition(group: group.number, record: UInt32(offset))
          if position >= start, filter.matches(event), let message = StreamMessage(event, position, epoch: epoch) {
            found.append((message, event.timestamp))
          }
          return true
        }
      }
      guard isMore else {
        isAtEnd = true
        return nil
      }
    }
    isAtEnd = false
    return found.popFirst()
  }
}
