// The content of records: messages of the binary protocol, since a peer is a client of the owner (protocol/binary.md),
// and the asker.
import HubBytes
import HubCore
import HubMessages

/// Flags of a request about a trip.
struct TripRequestFlags: OptionSet {
  let rawValue: UInt8

  /// The sender's credential names the trip.
  static let isGranted = TripRequestFlags(rawValue: 1)
  /// It came over HTTP, and is answered with the trip.
  static let showsTrip = TripRequestFlags(rawValue: 2)
  /// It is no message, but an offer to a driver, or its end.
  static let isOffer = TripRequestFlags(rawValue: 4)
  /// It is no message, but asks about a trip's offers.
  static let isAboutOffers = TripRequestFlags(rawValue: 8)
  /// It is no message, but a notification that was posted.
  static let isNotification = TripRequestFlags(rawValue: 16)
  /// A driver's status whose id is a key: a repetition changes nothing.
  static let isKeyed = TripRequestFlags(rawValue: 32)
  /// It is no message, but asks about a trip's shares.
  static let isAboutShares = TripRequestFlags(rawValue: 64)
  /// Posted fixes that name no trip belong to the driver's only one.
  static let takesCurrentTrip = TripRequestFlags(rawValue: 128)
}

extension ByteBuffer {
  /// The asker and its request, as the owner's hub gets it.
  mutating func append(_ input: SubscribeInput, token: UInt64, at time: Timestamp) {
    append(varint: token)
    append(input.actor.role.rawValue)
    append(utf8Run: input.actor.id.description)
    append(input.grant.rawValue)
    append(input.request, input.messageID, at: time)
  }

  /// A request about a trip, as its hub is asked.
  mutating func append(_ request: TripRequest, token: UInt64, clock: UInt64, at time: Timestamp) {
    append(varint: token)
    append(varint: clock)
    append(request.actor.role.rawValue)
    append(utf8Run: request.actor.id.description)
    let (message, flags, sent): (ClientMessage, TripRequestFlags, Timestamp)
    switch request {
    case .move(let input):
      (message, flags, sent) = (.tripStatus(input.report), input.tripIsGranted ? .isGranted : [], time)
    case .change(let input): (message, flags, sent) = (.tripChange(input.change), [], input.timestamp)
    case .begin(_, let report, _): (message, flags, sent) = (.tripStatus(report), .showsTrip, time)
    case .alter(_, let change, _, _): (message, flags, sent) = (.tripChange(change), .showsTrip, time)
    case .decline(_, _, let decline, _): (message, flags, sent) = (.offerDecline(decline), [], time)
    case .status(_, _, let report, _, let isKeyed):
      (message, flags, sent) = (.driverStatus(report), isKeyed ? .isKeyed : [], time)
    case .batch(let input, _):
      let isGranted: TripRequestFlags = input.tripIsGranted ? .isGranted : []
      (message, flags) = (.locationBatch(input.batch), isGranted.union(input.takesCurrentTrip ? .takesCurrentTrip : []))
      sent = input.sent
    case .offer(_, let offer):
      append(TripRequestFlags.isOffer.rawValue)
      return append(run: { offer.append(to: &$0) })
    case .offers(_, let trip, let question, _):
      append(TripRequestFlags.isAboutOffers.rawValue)
      return append(run: { question.append(trip, to: &$0) })
    case .shares(_, let trip, let question, _):
      append(TripRequestFlags.isAboutShares.rawValue)
      return append(run: { question.append(trip, to: &$0) })
    case .notify(_, let post):
      append(TripRequestFlags.isNotification.rawValue)
      return append(run: { post.append(to: &$0) })
    }
    append(flags.rawValue)
    append(run: {
      BinaryWriter.write(message, messageID: request.messageID, timestamp: sent, tripBefore: nil, into: &$0)
    })
    if case .batch(let input, _) = request { append(input.phone.map { $0.rawValue + 1 } ?? 0) }
  }

  /// A question about drivers or a trip, as every hub is asked.
  mutating func append(_ request: QueryRequest, _ question: FleetQuestion, token: UInt64, at time: Timestamp) {
    append(varint: token)
    append(question.actor.role.rawValue)
    append(utf8Run: question.actor.id.description)
    append(question.audience.rawValue)
    append(question.grant.rawValue)
    append(run: {
      BinaryWriter.write(
        .query(request), messageID: ClusterOutput.unsolicited, timestamp: time, tripBefore: nil, into: &$0)
    })
  }

  mutating func append(_ request: Subscribe, _ messageID: MessageID, at time: Timestamp) {
    append(run: {
      BinaryWriter.write(.subscribe(request), messageID: messageID, timestamp: time, tripBefore: nil, into: &$0)
    })
  }

  mutating func append(_ channel: Channel, at time: Timestamp) {
    append(Subscribe(channel: channel), ClusterOutput.unsolicited, at: time)
  }

  mutating func append(utf8Run text: String) { append(run: { $0.append(utf8: text) }) }

  mutating func append(_ reply: Reply, naming: (handle: UInt32, names: ImpliedNames)? = nil, at time: Timestamp) {
    append(run: { BinaryWriter.write(reply, timestamp: time, messageID: 0, naming: naming, into: &$0) })
  }

  mutating func append(_ position: PublishedPosition, _ binding: UInt32) {
    append(run: { BinaryWriter.write(position, handle: binding, names: ImpliedNames(), into: &$0) })
  }

  mutating func append(_ publication: Publication, _ binding: UInt32, _ names: ImpliedNames) {
    append(run: { BinaryWriter.write(publication, handle: binding, names: names, into: &$0) })
  }
}

extension ClusterFrameReader {
  /// What `append(_:token:at:)` wrote; `session` is the asker here.
  mutating func subscribeInput(_ session: SessionRef) throws(ClusterFrameError) -> SubscribeInput {
    guard let role = Role(rawValue: try byte()), let id = Identifier(String(decoding: try run(), as: UTF8.self)),
      let grant = ChannelGrant(rawValue: try byte())
    else { throw .message }
    let (request, messageID) = try subscribe()
    return SubscribeInput(
      session: session, actor: Actor(role: role, id: id), messageID: messageID, request: request, grant: grant)
  }

  /// What `append(_:token:at:)` wrote behind the token; its session is nobody's yet.
  mutating func tripRequest(at now: Moment) throws(ClusterFrameError) -> TripRequest {
    guard let role = Role(rawValue: try byte()), let id = Identifier(String(decoding: try run(), as: UTF8.self)) else {
      throw .message
    }
    let actor = Actor(role: role, id: id)
    let flags = TripRequestFlags(rawValue: try byte())
    let session = SessionRef.nobody
    if flags.contains(.isOffer) {
      guard let offer = SentOffer(try run()) else { throw .message }
      return .offer(session, offer)
    }
    if flags.contains(.isAboutOffers) {
      guard let (trip, question) = OffersQuestion.read(try run()) else { throw .message }
      return .offers(session, trip, question, by: actor)
    }
    if flags.contains(.isAboutShares) {
      guard let (trip, question) = TripShareQuestion.read(try run()) else { throw .message }
      return .shares(session, trip, question, by: actor)
    }
    if flags.contains(.isNotification) {
      guard let post = NotificationPost(try run()) else { throw .message }
      return .notify(session, post)
    }
    let envelope = try clientMessage()
    switch envelope.message {
    case .offerDecline(let decline): return .decline(session, envelope.messageID, decline, by: actor.id)
    case .driverStatus(let report):
      return .status(session, envelope.messageID, report, of: actor.id, isKeyed: flags.contains(.isKeyed))
    case .locationBatch(let batch):
      var input = BatchInput(
        session: session, driverID: actor.id, messageID: envelope.messageID, sent: envelope.timestamp, received: now,
        batch: batch, tripIsGranted: flags.contains(.isGranted))
      input.takesCurrentTrip = flags.contains(.takesCurrentTrip)
      let phone = try byte()
      if phone > 0 {
        input.phone = PhoneFormat(rawValue: phone - 1)
        if input.phone == nil { throw .message }
      }
      return .batch(input, of: actor.id)
    case .tripStatus(let report):
      if flags.contains(.showsTrip) { return .begin(session, report, by: actor) }
      return .move(
        TripStatusInput(
          session: session, actor: actor, messageID: envelope.messageID, report: report,
          tripIsGranted: flags.contains(.isGranted)))
    case .tripChange(let change):
      if flags.contains(.showsTrip) { return .alter(session, change, by: actor, key: envelope.messageID) }
      return .change(
        TripChangeInput(
          session: session, actor: actor, messageID: envelope.messageID, timestamp: envelope.timestamp,
          change: change))
    case .locationUpdate, .subscribe, .unsubscribe, .ping, .refresh, .query:
      throw .message
    }
  }

  /// What `append(_:token:at:)` wrote behind the token; `session` is the asker here.
  mutating func question(_ session: SessionRef) throws(ClusterFrameError) -> FleetQuestion {
    guard let role = Role(rawValue: try byte()), let id = Identifier(String(decoding: try run(), as: UTF8.self)),
      let audience = Audience(rawValue: try byte()), let grant = ChannelGrant(rawValue: try byte())
    else { throw .message }
    let envelope = try clientMessage()
    guard case .query(let request) = envelope.message else { throw .message }
    return FleetQuestion(
      session: session, replyTo: envelope.messageID, request: .query(request), actor: Actor(role: role, id: id),
      audience: audience, grant: grant)
  }

  private mutating func clientMessage() throws(ClusterFrameError) -> ClientEnvelope {
    let bytes = try run()
    let read = unsafe bytes.withUnsafeBytes { bytes in
      Result { () throws(MessageError) in try unsafe BinaryReader.read(bytes, tripBefore: nil) }
    }
    guard case .success(let envelope) = read else { throw .message }
    return envelope
  }

  mutating func subscribe() throws(ClusterFrameError) -> (Subscribe, MessageID) {
    let envelope = try clientMessage()
    guard case .subscribe(let request) = envelope.message else { throw .message }
    return (request, envelope.messageID)
  }

  mutating func channel() throws(ClusterFrameError) -> Channel { try subscribe().0.channel }

  mutating func identifier() throws(ClusterFrameError) -> Identifier {
    guard let id = Identifier(String(decoding: try run(), as: UTF8.self)) else { throw .message }
    return id
  }

  /// The owner's next message, if it is a position; else nil, and the message is still to be read.
  mutating func position(_ reader: inout BinaryServerReader) throws(ClusterFrameError) -> PublishedPosition? {
    var ahead = self
    let bytes = try ahead.run()
    guard let position = unsafe bytes.withUnsafeBytes({ unsafe reader.readPosition($0) }) else { return nil }
    self = ahead
    return position
  }

  /// The owner's next message, read with `reader`'s numbers of this peer's channels; nil for one to `reader` only.
  mutating func message(_ reader: inout BinaryServerReader) throws(ClusterFrameError) -> ServerMessage? {
    let bytes = try run()
    let read = unsafe bytes.withUnsafeBytes { bytes in
      Result { () throws(MessageError) in try unsafe reader.read(bytes) }
    }
    guard case .success(let envelope) = read else { throw .message }
    return envelope?.message
  }
}
