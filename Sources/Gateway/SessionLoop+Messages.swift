// A session's messages and their replies. MessageRules decides about a message; it is carried out here.
import HubBytes
import HubCore
import HubMessages
import HubTransport
import HubWebSocket

extension SessionLoop {
  /// Handles one message of an open session, which is charged for `bytes` bytes.
  mutating func received(_ slot: Int, _ kind: MessageKind, _ payload: UnsafeRawBufferPointer, charged bytes: Int) {
    counters.messagesIn += 1
    budget.spend(bytes: bytes)
    budget.charge(&sessions[slot], Double(WorkUnits.of(bytes: bytes)))
    let form = sessions[slot].open.form
    if kind == .text, case .json(let time) = form {
      // The fix is read in place into the list of inputs, which nothing else touches meanwhile.
      let fix = unsafe inputs.nextCommonSlot(FixInput())
      if unsafe reader.readUpdate(payload, time: time, into: &fix.pointee.message) {
        return unsafe receivedFix(slot, fix)
      }
    }
    do throws(MessageError) {
      switch form {
      case .json(let time):
        unsafe handle(slot, try reader.readAny(payload, time: time, isValidUTF8: kind == .text), bytes: bytes)
      case .binary:
        // RFC 6455 §7.4.1: a kind of data that this session does not accept.
        guard kind == .binary else { return close(slot, .unsupportedData, "text on a binary session") }
        unsafe handle(slot, try namedTrips.read(slot, payload), bytes: bytes)
      }
    } catch {
      budget.charge(
        &sessions[slot], more: WorkUnits.of(bytes: bytes, positions: error.checkedPositions), than: bytes)
      refuse(slot, MessageRefusal(error.code, error.text, replyTo: error.messageID))
    }
  }

  /// Completes a fix that was read into the next element of `inputs`, and appends it; refuses one of another role.
  @inline(__always)
  private mutating func receivedFix(_ slot: Int, _ fix: UnsafeMutablePointer<FixInput>) {
    guard sessions[slot].open.rights.role == .driver else {
      return unsafe refuse(slot, MessageRules.roleRefusal(of: fix.pointee.message.messageID))
    }
    unsafe fix.pointee.session = reference(sessions[slot].connection)
    unsafe fix.pointee.received = now
    unsafe fix.pointee.tripIsGranted = sessions[slot].open.rights.names(fix.pointee.message.update.tripID)
    inputs.appendCommonSlot()
  }

  /// Handles a message that was read. The session was already charged for its `bytes`.
  private mutating func handle(_ slot: Int, _ envelope: ClientEnvelope, bytes: Int) {
    budget.charge(&sessions[slot], more: WorkUnits.of(envelope.message, bytes: bytes), than: bytes)
    if case .locationUpdate(let update) = envelope.message {
      let fix = unsafe inputs.nextCommonSlot(FixInput())
      unsafe fix.pointee.message = UpdateEnvelope(
        messageID: envelope.messageID, timestamp: envelope.timestamp, update: update)
      return unsafe receivedFix(slot, fix)
    }
    let rules = MessageRules(
      session: reference(sessions[slot].connection), rights: sessions[slot].open.rights, envelope: envelope, now: now,
      areaRadiusMeters: limits.areaRadiusMeters)
    switch rules.outcome {
    case .ask(let input): inputs.append(input)
    case .subscribe(let input):
      sessions[slot].open.subscriptions.ask()
      inputs.append(.subscribe(input))
    case .reply(let reply): send(reply, to: slot)
    case .query(let request):
      let asker = Asker(
        session: rules.session, credential: rules.rights.credential, replyTo: envelope.messageID)
      do throws(ErrorReply) { try ask(request, for: asker) } catch { send(.error(error), to: slot) }
    case .refresh(let request): refresh(slot, envelope.messageID, request)
    case .refuse(let refusal): refuse(slot, refusal)
    }
  }

  // MARK: Answers

  /// Sends a refusal and counts its limit; does nothing for nil.
  mutating func refuse(_ slot: Int, _ refusal: MessageRefusal?) {
    guard let refusal else { return }
    if let limit = refusal.limit { counters.count(limit) }
    send(.error(refusal.error), to: slot)
  }

  /// Encodes a reply into the session's output. Counts errors; too many violations end the session.
  mutating func send(_ reply: Reply, to slot: Int) {
    guard sessions[slot].phase == .open else { return }
    let before = loop.arena.count
    defer { budget.spend(bytes: loop.arena.count - before) }
    guard fanOut.send(reply, to: sessions[slot].recipient) else {
      guard case .result(let result) = reply else { return }
      return refuse(slot, MessageRefusal(.tooLarge, HubAnswer.tooLarge, replyTo: result.replyTo))
    }
    guard case .error(let error) = reply else { return }
    counters.errors[Int(error.code.rawValue)] += 1
    if error.code.isBadMessage,
      case .close(let reason) = sessions[slot].open.pacing.countBadMessage(limits, now: now.uptime)
    {
      close(slot, reason)
    }
  }

  /// Replaces the token. Subscriptions that the new one does not open end with `unsubscribed`, `grant_ended`.
  mutating func refresh(_ slot: Int, _ messageID: MessageID, _ request: Refresh) {
    do throws(CredentialError) {
      let new = try TokenRefresh(request, of: &sessions[slot], access.value, now: now.timestamp, &budget)
      if let vehicle = new.credential.vehicleInput { inputs.append(vehicle) }
      control.arm(&sessions[slot], now: now)
      send(.ack(Ack(replyTo: messageID)), to: slot)
      if new.isReviewNeeded { fanOut.review(&sessions[slot], asking: &inputs) }
    } catch {
      refuse(slot, MessageRefusal(error.code, error.text, replyTo: messageID))
    }
  }
}
