// The events of the journal for a stream, read once, forwards.
import HubCore
import HubJournal
import HubMessages

final class StreamReader {
  private let filter: EventFilter
  private let tail: JournalTail
  private let epoch: String
  private let start: JournalPosition
  /// Events of the group that was read last: of that one alone.
  private var found: ArraySlice<(message: StreamMessage, published: Timestamp)> = []
  /// What may be read of the journal in this turn.
  private var bytes = 0

  /// Begins at `start`. `tail` is this reader's own.
  init(_ filter: EventFilter, _ tail: JournalTail, epoch: String, start: JournalPosition) {
    self.filter = filter
    self.tail = tail
    self.epoch = epoch
    self.start = start
    tail.seek(to: start.group)
  }

  /// Groups that retention deleted before they were read.
  var missedGroups: UInt64 { tail.missedGroups }

  /// Up to where everything was given.
  var end: JournalPosition { found.first?.message.place ?? max(start, JournalPosition(group: tail.next, record: 0)) }

  /// Others had their turn: `scanBytes` may be read again, or a group more.
  func beginTurn() { bytes = EventReader.scanBytes }

  /// The next event in groups up to `last`; nil where there is none, or nothing more is read in this turn: `isAtEnd`
  /// says which.
  func next(
    through last: UInt64, isAtEnd: inout Bool
  ) throws(JournalError) -> (message: StreamMessage, published: Timestamp)? {
    while found.isEmpty, bytes > 0 {
      let isMore = try unsafe tail.read(through: last) { group, payload in
        bytes -= payload.count
        unsafe StoredEvents.forEach(in: payload) { event, offset in
          let place = JournalPosition(group: group.number, record: UInt32(offset))
          if place >= start, filter.matches(event), let message = StreamMessage(event, place, epoch: epoch) {
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
