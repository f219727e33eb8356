// `GET /v1/events`: from a request to a stream of events (HTML standard, "Server-sent events").
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime

enum EventStreamEndpoint {
  /// The head of a stream. `X-Accel-Buffering` makes nginx pass each message on at once.
  static let head = Response(
    .ok,
    fields: [
      OutgoingField("Content-Type", "text/event-stream"), OutgoingField("Cache-Control", "no-store"),
      OutgoingField("X-Accel-Buffering", "no"),
    ])

  static func open(_ call: HTTPCall) throws(Refusal) -> Outcome {
    try call.context.admitStreams()
    let names = try channels(call)
    let caller = try call.caller()
    guard !caller.isShare || call.time == .unixMilliseconds else {
      throw Refusal(.badMessage, "a share's stream has time=unix_ms")
    }
    let last = try lastEventID(call, channels: names.count)
    let isEventsOnly = try call.query.flag("eventsOnly")
    var channels: [(name: Channel, input: SubscribeInput?)] = []
    for (index, name) in names.enumerated() {
      let request = Subscribe(channel: name, isEventsOnly: isEventsOnly)
      channels.append((name, try input(request, index, caller, call.context, isResumed: last != nil)))
    }
    call.request.charge(units: names.count - 1)  // each is a subscription that the hub begins and ends
    let stream = EventStream(channels, last)
    stream.rateKey = call.request.rateKey
    if case .nothingLeft = stream.verdict { return .respond(Response(.noContent)) }
    return .ask(stream.checks, .channels(stream))
  }

  /// The outcome of a request whose channels were all checked.
  static func outcome(_ verdict: EventStream.Verdict, of stream: EventStream) -> Result<Outcome, Refusal> {
    switch verdict {
    case .begin: .success(.stream(stream))
    case .refuse(let error): .failure(Refusal(error))
    case .nothingLeft: .success(.respond(Response(.noContent)))
    }
  }

  private static func channels(_ call: HTTPCall) throws(Refusal) -> [Channel] {
    let limit = call.context.limits.channelsPerStream
    var channels: [Channel] = []
    for text in try call.query.texts("channel") {
      guard channels.count < limit else { throw Refusal(.badMessage, "a stream has at most \(limit) channels") }
      guard let channel = Channel(text) else {
        throw Refusal(.unknownChannel, "channel: \(Channel.expectation(of: text))")
      }
      guard !channels.contains(channel) else { throw Refusal(.badMessage, "\(channel) is given twice") }
      channels.append(channel)
    }
    guard !channels.isEmpty else { throw Refusal(.badMessage, "give at least one channel=…") }
    return channels
  }

  /// The header's id, or else the query's: a browser that reopens its stream sends the header with the old query.
  private static func lastEventID(_ call: HTTPCall, channels: Int) throws(Refusal) -> LastEventID? {
    let text: [UInt8]?
    switch call.request.head.fields.single("last-event-id") {
    case .repeated: throw Refusal(.badMessage, "send Last-Event-ID once")
    case .value(let value): text = Array(value)
    case .absent: text = try call.query.parameter("lastEventId").map { Array($0.utf8) }
    }
    guard let text, !text.isEmpty else { return nil }
    guard let last = LastEventID(text, channels: channels) else {
      throw Refusal(.badMessage, "Last-Event-ID must be an id of a stream with these channels, in this order")
    }
    return last
  }

  /// The request for a channel. Nil where the credential does not open it and the client resumes: it may have followed
  /// the channel when it had the right.
  private static func input(
    _ request: Subscribe, _ index: Int, _ caller: Credential, _ context: HTTPContext, isResumed: Bool
  ) throws(Refusal) -> SubscribeInput? {
    let envelope = ClientEnvelope(
      messageID: EventStream.messageID(of: index), timestamp: context.now.timestamp,
      message: .subscribe(request))
    let rules = MessageRules(context, SessionRights(caller, expires: .max), envelope)
    switch rules.outcome {
    case .subscribe(let input): return input
    case .refuse(let refusal):
      if isResumed, refusal.error.code == .forbidden { return nil }
      throw Refusal(refusal.error)
    case .ask, .reply, .query, .refresh: preconditionFailure("a subscription is asked for, or refused")
    }
  }
}

extension HTTPContext {
  fileprivate func admitStreams() throws(Refusal) {
    if phase == .draining { throw Refusal(.shuttingDown, "the hub is shutting down", retryAfter: 5) }
  }

  /// Refuses a stream that is about to begin while the hub drains, or where its channels are more than a session may
  /// have, or their cells more than its identity may still watch. Once it has begun, only an error could end it, and
  /// its client would open it again at once, over and over.
  func admit(_ stream: EventStream, of credential: Credential) throws(Refusal) {
    try admitStreams()
    let identity = IdentityKey(credential)
    if stream.found.count > limits.subscriptionsPerSession {
      throw Refusal(.tooManySubscriptions(limits, replyTo: nil))
    }
    guard settings.shared.admissions.mayWatch(credential.role, identity, more: stream.cellCount) else {
      throw Refusal(.tooManyCells(of: credential.role, limits, replyTo: nil))
    }
  }
}

extension Refusal {
  /// The refusal of a message at a limit of its sender's.
  fileprivate init(_ refusal: MessageRefusal) {
    self.init(refusal.error)
    status = .tooManyRequests
    if let limit = refusal.limit { counting = { $0.count(limit) } }
  }
}

extension EventStream {
  /// The client's delay before it reconnects, in milliseconds: spread, so that clients of a hub that ends do not return
  /// at once. `seed`: different for each stream.
  static func retryMilliseconds(seed: UInt64) -> UInt64 {
    let range = Limits.streamRetrySeconds
    let seconds = range.lowerBound + Mix64.unit(Mix64.mix(seed)) * (range.upperBound - range.lowerBound)
    return UInt64(seconds * 1000)
  }
}
