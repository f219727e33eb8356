// A stream of events (`GET /v1/events`), as a state machine without I/O: its channels, which of them are subscribed to,
// and how far its client has seen each.
//
// A refusal must be a status, so each channel is checked before the stream begins: it is subscribed to and
// unsubscribed, which costs the hub one more request for each channel. Then the stream begins, and the channels are
// subscribed to one after the other, each when what was missed on the one before has left: the backlogs of 16 channels
// together would not fit an outbox.
import HubBytes
import HubCore
import HubMessages
import HubTransport

final class EventStream {
  /// The hub's answer to the check of a channel.
  enum ChannelCheck {
    case subscribed(Subscribed)
    case refused(ErrorReply)
  }

  /// The outcome of checking all channels.
  enum Verdict {
    case begin
    case refuse(ErrorReply)
    /// The client has seen everything, and nothing more can come.
    case nothingLeft
  }

  /// The next step.
  enum Step {
    case subscribe(SubscribeInput)
    /// The client, which followed the channel before, may not any more and is notified.
    case giveUp(Channel)
  }

  fileprivate struct Followed {
    let name: Channel
    /// Nil where the credential does not open the channel.
    let input: SubscribeInput?
    /// How far the client has seen the channel; nil before the hub's answer, unless the client's last event id says it.
    var seen: ResumePoint?
    var check: ChannelCheck?
    var handle: ChannelHandle?
  }

  private var channels: [Followed]
  /// The channels and cells that the hub has found, each once; and the cells, counted for each part of the map.
  private(set) var found: Set<ChannelHandle> = []
  private(set) var cellCount = 0
  /// The key of the address that is charged for missed events and watched cells; 0 where it has no rate.
  var rateKey: UInt64 = 0
  /// Bytes that the client has sent behind its request.
  private var heardBytes = 0
  /// The client resumes.
  private let isResumed: Bool
  /// The index of the next channel to subscribe to.
  private var next = 0
  /// The hub's answer for a channel is awaited.
  private var awaitsAnswer = false

  /// `inputs`: for each channel, in the order of the parameters, or nil where the client may not follow it.
  ///
  /// - Precondition: the messages' ids are those of `messageID(of:)`.
  init(_ channels: [(name: Channel, input: SubscribeInput?)], _ lastEventID: LastEventID?) {
    isResumed = lastEventID != nil
    self.channels = channels.enumerated().map { index, channel in
      Followed(name: channel.name, input: channel.input, seen: lastEventID?.points[index])
    }
  }

  /// The id of the request for a channel: its number among the parameters, from 1.
  static func messageID(of index: Int) -> MessageID {
    MessageID("\(index + 1)")!  // a few digits
  }

  private func index(of messageID: MessageID?) -> Int? {
    channels.indices.first { EventStream.messageID(of: $0) == messageID }
  }

  // MARK: Checking

  /// The requests that check the channels.
  var checks: [HubInput] {
    channels.compactMap { channel in
      guard var input = channel.input else { return nil }
      input.request.resume = nil
      return .subscribe(input)
    }
  }

  /// Takes the hub's answer to one of the checks, with the channel or the cells that it has found; gives the verdict
  /// once all are answered.
  func checked(_ check: ChannelCheck, _ handles: [ChannelHandle] = []) -> Verdict? {
    let messageID =
      switch check {
      case .subscribed(let answer): Optional(answer.replyTo)
      case .refused(let error): error.replyTo
      }
    guard let index = index(of: messageID) else { return nil }
    channels[index].check = check
    found.formUnion(handles)
    if case .subscribed(let answer) = check { cellCount += answer.cells?.count ?? 0 }
    return verdict
  }

  /// The outcome of all checks; nil while answers are missing.
  var verdict: Verdict? {
    guard channels.allSatisfy({ $0.input == nil || $0.check != nil }) else { return nil }
    for channel in channels {
      if case .refused(let error) = channel.check, error.code != .forbidden || !isResumed { return .refuse(error) }
    }
    return channels.allSatisfy(\.isOver) ? .nothingLeft : .begin
  }

  /// Counts bytes that the client sends, which are not looked at; false above the limit.
  func hears(_ count: Int, atMost limit: Int) -> Bool {
    heardBytes += count
    return heardBytes <= limit
  }

  // MARK: Following

  /// Whether channels are left to subscribe to, or an answer is awaited.
  var isAsking: Bool { awaitsAnswer || next < channels.count }

  /// The next step; nil while an answer is awaited, and at the end.
  func takeStep() -> Step? {
    guard !awaitsAnswer, next < channels.count else { return nil }
    defer { next += 1 }
    let channel = channels[next]
    guard var input = channel.input, !channel.isForbidden else { return .giveUp(channel.name) }
    input.request.resume = channel.seen
    awaitsAnswer = true
    return .subscribe(input)
  }

  /// The hub has answered, and the channel is live. `handle`: nil for a part of the map.
  func subscribed(_ answer: Subscribed, to handle: ChannelHandle?) {
    awaitsAnswer = false
    guard let index = index(of: answer.replyTo) else { return }
    channels[index].handle = handle
    if !answer.recovered { channels[index].seen = ResumePoint(since: answer.sequence, epoch: answer.epoch) }
  }

  /// Another hub numbers the channel's events from now on; the client has its state as of this answer.
  func restarted(_ answer: Subscribed, on handle: ChannelHandle) {
    guard let index = channels.firstIndex(where: { $0.handle == handle }) else { return }
    channels[index].seen = ResumePoint(since: answer.sequence, epoch: answer.epoch)
  }

  /// An event of a channel is sent.
  func sending(_ sequence: UInt64, of handle: ChannelHandle) {
    guard let index = channels.firstIndex(where: { $0.handle == handle }) else { return }
    channels[index].seen?.since = sequence
  }

  /// The id from which the client resumes.
  var lastEventID: LastEventID { LastEventID(points: channels.map(\.seen)) }
}

extension EventStream.Followed {
  /// Whether the hub has refused it: the credential does not open it, or its trip is over.
  var isForbidden: Bool { if case .refused = check { true } else { false } }

  /// The client has seen everything, and nothing more will come.
  var isOver: Bool {
    guard case .subscribed(let answer) = check else { return true }
    return answer.isOver && seen == ResumePoint(since: answer.sequence, epoch: answer.epoch)
  }
}

/// The streams of one loop, by slot.
struct OpenStreams {
  private var streams: [UInt32: EventStream] = [:]
  private var ended: [ConnectionID] = []

  mutating func open(_ slot: Int, _ stream: EventStream) { streams[UInt32(slot)] = stream }
  mutating func close(_ slot: Int) { if !streams.isEmpty { streams[UInt32(slot)] = nil } }

  subscript(connection: ConnectionID) -> EventStream? { streams[connection.slot] }

  /// Notes a stream whose last channel has ended.
  mutating func end(_ connection: ConnectionID) { ended.append(connection) }

  /// The next stream whose last channel has ended; nil where there is none.
  @inline(__always)
  mutating func nextEnded() -> ConnectionID? { ended.popLast() }
}
