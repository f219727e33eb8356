// A connection: what is on its way in either direction, in order. Messages of one connection never overtake each other;
// those of different ones do, by the order in which the world looks at them.
import HubBytes
import HubCore
import HubMessages

/// What a client says. The numbers are places in the world's lists.
enum Upward {
  case move(Int)
  case batch(Int)
  case fix(Int)
  case subscribe(Channel, ResumePoint?, MessageID)
  case unsubscribe(Channel, MessageID)
  case ping(MessageID)
}

/// What the hub says.
enum Downward {
  /// `connected`
  case admitted
  case reply(Reply)
  case publication(Publication)
  /// The hub's side closed the connection.
  case closed
}

final class Link {
  let client: Int
  let loop: Int
  let session: SessionRef
  var upward = Pipe<Upward>()
  var downward = Pipe<Downward>()
  /// The client is gone, and the hub has not noticed.
  var isAbandoned = false
  /// The hub is gone, or has let go; what it said before may still arrive.
  var isHungUp = false

  init(client: Int, loop: Int, session: SessionRef) {
    self.client = client
    self.loop = loop
    self.session = session
  }
}

/// First in, first out.
struct Pipe<Message> {
  private var messages: [Message] = []
  private var head = 0

  var count: Int { messages.count - head }
  var isEmpty: Bool { count == 0 }

  mutating func append(_ message: Message) { messages.append(message) }

  mutating func take() -> Message? {
    guard head < messages.count else { return nil }
    defer {
      head += 1
      if head == messages.count {
        messages.removeAll(keepingCapacity: true)
        head = 0
      }
    }
    return messages[head]
  }

  /// All but the oldest `count` are lost.
  mutating func lose(keeping count: Int) { messages.removeLast(max(0, self.count - count)) }
}

extension Publication {
  /// Nil for state.
  public var sequence: UInt64? {
    switch body {
    case .driverLocation, .etaUpdate, .areaUpdate: nil
    case .tripUpdate(let update): update.sequence
    case .notification(let notification): notification.sequence
    }
  }
}
