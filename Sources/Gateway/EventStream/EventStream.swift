// A stream of events (`GET /v1/events`), as a state machine without I/O: which of its channels it may follow, which it
// still has to subscribe to, and up to where its client has seen each.
//
// A refusal must be a status, so each channel is looked at before the stream begins: it is subscribed to and let go
// again, which costs the hub one look more for each channel. Then the stream begins, and the channels are subscribed to
// one after the other, each when what was missed on the one before has left: the backlogs of 16 channels together would
// not fit an outbox.
import HubBytes
import HubCore
import HubMessages
import HubTransport

final class EventStream {
  /// What the hub says when a channel is looked at.
  enum Look {
    case subscribed(Subscribed)
    case refused(ErrorReply)
  }

  /// What comes of having looked at all channels.
  enum Verdict {
    case begin
    case refuse(ErrorReply)
    /// The client has seen everything that there was, and no more can come.
    case nothingLeft
  }

  /// What is to be done next.
  enum Step {
    case subscribe(SubscribeInput)
    /// The client, which followed the channel before, is told that it may not any more.
    case giveUp(Channel)
  }

  fileprivate struct Followed {
    let name: Channel
    /// Nil where the credential does not open the channel (any more).
    let input: SubscribeInput?
    /// Up to where the client has seen the channel; nil while neither it nor the hub has said.
    var seen: ResumePoint?
    var look: Look?
    var handle: ChannelHandle?
  }

  private var channels: [Followed]
  /// By what its client's address is charged for what it missed; 0 where it is not.
  var rateKey: UInt64 = 0
  /// The client has been here before.
  private let isResumed: Bool
  /// The next channel to be subscribed to.
  private var next = 0
  /// The hub has been asked for a channel and has not answered.
  private var awaitsAnswer = false

  /// `inputs`: for each channel, in the order of the parameters, or nil where it is not open to the client.
  ///
  /// - Precondition: the messages' ids are those of `messageID(of:)`.
  init(_ channels: [(name: Channel, input: SubscribeInput?)], _ lastEventID: LastEventID?) {
    isResumed = lastEventID != nil
    self.channels = channels.enumerated().map { index, channel in
      Followed(name: channel.name, input: channel.input, seen: lastEventID?.points[index])
    }
  }

  /// The id by which the hub is asked for a channel: its place among the parameters, from 1.
  static func messageID(of index: Int) -> MessageID {
    MessageID("\(index + 1)")!  // a few digits
  }

  private func index(of messageID: MessageID?) -> Int? {
    channels.indices.first { EventStream.messageID(of: $0) == messageID }
  }

  // MARK: Looking

  /// What the hub is asked to look at the channels.
  var looks: [HubInput] {
    channels.compactMap { channel in
      guard var input = channel.input else { return nil }
      input.request.resume = nil
      return .subscribe(input)
    }
  }

  /// The hub has answered one; gives what comes of it once all are answered.
  func looked(_ look: Look) -> Verdict? {
    let messageID =
      switch look {
      case .subscribed(let answer): Optional(answer.replyTo)
      case .refused(let error): error.replyTo
      }
    guard let index = index(of: messageID) else { return nil }
    channels[index].look = look
    return verdict
  }

  /// Nil while answers are missing.
  var verdict: Verdict? {
    guard channels.allSatisfy({ $0.input == nil || $0.look != nil }) else { return nil }
    for channel in channels {
      if case .refused(let error) = channel.look, error.code != .forbidden || !isResumed { return .refuse(error) }
    }
    return channels.allSatisfy(\.isOver) ? .nothingLeft : .begin
  }

  // MARK: Following

  /// There are channels that it has not subscribed to, or not been answered for.
  var isAsking: Bool { awaitsAnswer || next < channels.count }

  /// What is to be done next; nil while the hub's answer is awaited, and when nothing is left to do.
  func takeStep() -> Step? {
    guard !awaitsAnswer, next < channels.count else { return nil }
    defer { next += 1 }
    let channel = channels[next]
    guard var input = channel.input, !channel.isForbidden else { return .giveUp(channel.name) }
    input.request.resume = channel.seen
    awaitsAnswer = true
    return .subscribe(input)
  }

  /// The hub has answered, and what follows on the channel is live. `handle`: nil for a part of the map.
  func subscribed(_ answer: Subscribed, to handle: ChannelHandle?) {
    awaitsAnswer = false
    guard let index = index(of: answer.replyTo) else { return }
    channels[index].handle = handle
    if !answer.recovered { channels[index].seen = ResumePoint(since: answer.sequence, epoch: answer.epoch) }
  }

  /// An event of a channel goes out.
  func sending(_ sequence: UInt64, of handle: ChannelHandle) {
    guard let index = channels.firstIndex(where: { $0.handle == handle }) else { return }
    channels[index].seen?.since = sequence
  }

  /// What the client sends back to be brought up to date.
  var lastEventID: LastEventID { LastEventID(points: channels.map(\.seen)) }
}

extension EventStream.Followed {
  /// The hub says that the credential does not open it, or its trip is over.
  var isForbidden: Bool { if case .refused = look { true } else { false } }

  /// Nothing that the client has not seen is there, and nothing more will come.
  var isOver: Bool {
    guard case .subscribed(let answer) = look else { return true }
    return answer.isOver && seen == ResumePoint(since: answer.sequence, epoch: answer.epoch)
  }
}

/// The streams of one loop, by their connections' slots.
struct OpenStreams {
  private var streams: [UInt32: EventStream] = [:]
  private var ended: [ConnectionID] = []

  var isEmpty: Bool { streams.isEmpty }

  mutating func open(_ slot: Int, _ stream: EventStream) { streams[UInt32(slot)] = stream }
  mutating func close(_ slot: Int) { if !streams.isEmpty { streams[UInt32(slot)] = nil } }

  subscript(connection: ConnectionID) -> EventStream? { streams[connection.slot] }

  /// A stream's last channel is over.
  mutating func end(_ connection: ConnectionID) { ended.append(connection) }

  /// One of those whose last channel is over; nil where there are no more.
  @inline(__always)
  mutating func nextEnded() -> ConnectionID? { ended.popLast() }
}
