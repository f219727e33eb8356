// What a session says, and what it is told: each message is checked against the session's rights here, and everything
// that needs the hub becomes an input of it.
import HubBytes
import HubCore
import HubMessages
import HubTransport
import HubWebSocket

extension SessionLoop {
  /// One message of an open session.
  mutating func received(_ slot: Int, _ kind: MessageKind, _ payload: UnsafeRawBufferPointer) {
    counters.messagesIn += 1
    charge(slot, message: WorkUnits.of(bytes: payload.count))
    if kind == .text, case .json(let time) = sessions[slot].form {
      // Read where it is to lie: nobody else touches the list meanwhile.
      let place = inputs.nextCommonPlace(FixInput())
      if reader.readUpdate(payload, time: time, into: &place.pointee.message) { return receivedFix(slot, place) }
    }
    do throws(MessageError) {
      switch sessions[slot].form {
      case .json(let time):
        handle(slot, try reader.readAny(payload, time: time, isValidUTF8: kind == .text), bytes: payload.count)
      case .binary:
        // RFC 6455 §7.4.1: a kind of data that this session does not take.
        guard kind == .binary else { return close(slot, .unsupportedData, "text on a binary session") }
        handle(slot, try namedTrips.read(slot, payload), bytes: payload.count)
      }
    } catch {
      charge(slot, more: WorkUnits.of(bytes: payload.count, positions: error.checkedPositions), than: payload.count)
      refuse(slot, error.messageID, error.code, error.text)
    }
  }

  /// Charges a session for a message as its size tells; what it holds is charged for when it has been read.
  @inline(__always)
  private mutating func charge(_ slot: Int, message units: Int) {
    unitsDone += units - 1
    charge(slot, Double(units))
  }

  /// Charges a session for what a message held beyond what its size, in bytes, was charged for.
  private mutating func charge(_ slot: Int, more units: Int, than bytes: Int) {
    let more = units - WorkUnits.of(bytes: bytes)
    guard more > 0 else { return }
    unitsDone += more
    charge(slot, Double(more))
  }

  /// Counts an answer that took so many bytes of the arena: its text, and once more as far as it was compressed. A
  /// rider is charged for it (`WorkUnits.ofAnswer`), a full bucket at most.
  mutating func chargeAnswer(_ slot: Int, bytes: Int) {
    unitsDone += bytes / WorkUnits.bytes
    guard sessions[slot].role == .rider, case let units = WorkUnits.ofAnswer(bytes: bytes), units > 0 else { return }
    charge(slot, min(Double(units), burst(of: slot)))
  }

  /// The one that stands in the next place of `inputs`.
  @inline(__always)
  private mutating func receivedFix(_ slot: Int, _ fix: UnsafeMutablePointer<FixInput>) {
    guard sessions[slot].role == .driver else { return refuseRole(slot, fix.pointee.message.messageID) }
    fix.pointee.session = reference(sessions[slot].connection)
    fix.pointee.received = now
    fix.pointee.tripIsGranted = names(slot, fix.pointee.message.update.tripID)
    inputs.appendPlacedCommon()
  }

  /// Handles a message of so many bytes, for which the session was charged already.
  private mutating func handle(_ slot: Int, _ envelope: ClientEnvelope, bytes: Int) {
    charge(slot, more: WorkUnits.of(envelope.message, bytes: bytes), than: bytes)
    let session = reference(sessions[slot].connection)
    let messageID = envelope.messageID
    switch envelope.message {
    case .locationUpdate(let location):
      let place = inputs.nextCommonPlace(FixInput())
      place.pointee.message = UpdateEnvelope(messageID: messageID, timestamp: envelope.timestamp, update: location)
      receivedFix(slot, place)
    case .locationBatch(let batch):
      guard isDriver(slot, messageID) else { return }
      inputs.append(
        .batch(
          BatchInput(
            session: session, driverID: nil, messageID: messageID, sent: envelope.timestamp, received: now,
            batch: batch, tripIsGranted: names(slot, batch.tripID))))
    case .driverStatus(let report):
      guard isDriver(slot, messageID) else { return }
      inputs.append(.driverStatus(session, messageID, withClaims(slot, report)))
    case .tripStatus(let report): tripStatus(slot, messageID, report)
    case .tripChange(let change): tripChange(slot, messageID, envelope.timestamp, change)
    case .subscribe(let request): subscribe(slot, messageID, request)
    case .unsubscribe(.view(let id)): inputs.append(.leaveView(session, messageID, .view(id)))
    case .unsubscribe(.channel(let channel)):
      switch channel {
      case .area, .nearby: inputs.append(.leaveView(session, messageID, .channel(channel)))
      case .trip, .driver, .fence, .fleet: inputs.append(.unsubscribe(session, messageID, channel))
      }
    case .ping(let ping): pong(slot, messageID, ping)
    case .refresh(let request): refresh(slot, messageID, request)
    case .query(let request): query(slot, messageID, request)
    }
  }

  private mutating func isDriver(_ slot: Int, _ messageID: MessageID) -> Bool {
    if sessions[slot].role == .driver { return true }
    refuseRole(slot, messageID)
    return false
  }

  private mutating func refuseRole(_ slot: Int, _ messageID: MessageID) {
    refuse(slot, messageID, .forbidden, "only a driver's session sends this")
  }

  private mutating func tripStatus(_ slot: Int, _ messageID: MessageID, _ report: TripStatusReport) {
    guard let credential = sessions[slot].credential else { return }
    inputs.append(
      .tripStatus(
        TripStatusInput(
          session: reference(sessions[slot].connection), actor: Actor(role: credential.role, id: credential.id),
          messageID: messageID, report: report, tripIsGranted: credential.names(trip: report.tripID))))
  }

  private mutating func tripChange(_ slot: Int, _ messageID: MessageID, _ sent: Timestamp, _ change: TripChange) {
    guard let credential = sessions[slot].credential else { return }
    inputs.append(
      .tripChange(
        TripChangeInput(
          session: reference(sessions[slot].connection), actor: Actor(role: credential.role, id: credential.id),
          messageID: messageID, timestamp: sent, change: change)))
  }

  private mutating func subscribe(_ slot: Int, _ messageID: MessageID, _ request: Subscribe) {
    guard let credential = sessions[slot].credential else { return }
    switch request.channel {
    case .trip, .driver, .fence, .fleet: break
    case .area, .nearby:
      if let fault = areaFault(request.channel, credential.role) {
        return refuse(slot, messageID, fault.code, fault.text)
      }
    }
    guard let grant = credential.grant(for: request.channel) else {
      return refuse(
        slot, messageID, .forbidden, "a \(credential.role.name) may not subscribe to this channel")
    }
    guard sessions[slot].subscriptions.count < limits.subscriptionsPerSession else {
      counters.count(.subscriptions)
      return refuse(
        slot, messageID, .rateLimited, "a session has at most \(limits.subscriptionsPerSession) subscriptions",
        retryAfter: 1)
    }
    sessions[slot].subscriptions.ask()
    inputs.append(
      .subscribe(
        SubscribeInput(
          session: reference(sessions[slot].connection), actor: Actor(role: credential.role, id: credential.id),
          messageID: messageID, request: request, grant: grant)))
  }

  private mutating func pong(_ slot: Int, _ messageID: MessageID, _ ping: Ping) {
    let isDriver = sessions[slot].role == .driver
    guard isDriver else {
      return send(
        .pong(Pong(replyTo: messageID, ping: ping, serverTime: now.timestamp, storedThrough: nil)), to: slot)
    }
    inputs.append(.ping(reference(sessions[slot].connection), messageID, ping))
  }

  // MARK: What the session is told

  /// Sends an error and counts it; too many messages at fault end the session.
  mutating func refuse(
    _ slot: Int, _ messageID: MessageID?, _ code: ErrorCode, _ message: String, retryAfter: Double? = nil
  ) {
    send(.error(ErrorReply(code: code, message: message, replyTo: messageID, retryAfter: retryAfter)), to: slot)
  }

  /// Counts an error that is being sent; more than ten messages at fault in a minute end the session.
  private mutating func count(_ error: ErrorReply, _ slot: Int) {
    counters.errors[Int(error.code.rawValue)] += 1
    guard error.code.isBadMessage else { return }
    let excess = excess(of: slot)
    if now.uptime - excess.badMessagesSince > nanoseconds(limits.badMessageWindowSeconds) {
      excess.badMessagesSince = now.uptime
      excess.badMessages = 0
    }
    excess.badMessages += 1
    if excess.badMessages > limits.badMessages { close(slot, .tooManyBadMessages) }
  }

  /// Encodes a reply and puts it into the session's output.
  mutating func send(_ reply: Reply, to slot: Int) {
    guard sessions[slot].phase == .open else { return }
    guard fanOut.send(reply, to: sessions[slot].recipient, now: now.timestamp) else {
      guard case .result(let result) = reply else { return }
      return refuse(slot, result.replyTo, .tooLarge, HubAnswer.tooLarge)
    }
    if case .error(let error) = reply { count(error, slot) }
  }

  /// Why a role may not watch such an area; nil where it may. What only ops may is forbidden to others, as in queries.
  private func areaFault(_ channel: Channel, _ role: HubMessages.Role) -> (code: ErrorCode, text: String)? {
    switch channel {
    case .area(let cell):
      if role == .ops || cell.precision >= 5 { return nil }
      return (.forbidden, "a \(role.name) may watch areas of 5 to 8 characters")
    case .nearby(_, let radius):
      let limit = role == .ops ? limits.areaRadiusMeters : PublicAudience.maximumRadiusMeters
      if radius <= limit { return nil }
      let who = role == .ops ? "ops" : "a \(role.name)"
      return (role == .ops ? .badMessage : .forbidden, "\(who) may watch up to \(Int(limit)) m around a place")
    case .trip, .driver, .fence, .fleet: return nil
    }
  }
}
