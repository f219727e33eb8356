// Streams of events on a loop: from a checked request to a session, its comments, and its end. EventStream.swift
// decides about its channels; its messages go through the fan-out like those of all sessions.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubSystem
import HubTransport
import HubWebSocket

extension SessionLoop {
  // MARK: From a request to a stream

  /// Takes the hub's answer for a channel of a future stream; ignored where the request is gone. `handles`: that of the
  /// channel, or those of the cells that the hub has begun for it, where it is a part of the map.
  mutating func checked(_ session: SessionRef, _ check: EventStream.ChannelCheck, _ handles: [ChannelHandle]) {
    guard let (request, awaited, exchange) = sessions.waitingRequest(of: session), case .channels(let stream) = awaited
    else { return }
    if case .subscribed(let answer) = check { budget.chargeCells(of: stream, new: handles.count, on: answer.channel) }
    guard let verdict = stream.checked(check, handles) else { return }
    finish(EventStreamEndpoint.outcome(verdict, of: stream), to: request, exchange)
  }

  mutating func begin(_ stream: EventStream, _ request: HTTPRequest, _ exchange: Exchange) throws(Refusal) {
    let (slot, context) = (exchange.slot, context(exchange))
    let credential = try request.caller(by: context.credentials)
    try context.admit(stream, of: credential)
    try admission.beginSession(slot, from: exchange.peer, request, credential, now: now.uptime)
    let rights = SessionRights(credential, expires: credential.sessionEnd(by: access.value, now: now.timestamp))
    exchange.state = .over
    let session = OpenSession(
      rights: rights, form: .json(request.time), encoding: .stream(request.time, hidesIDs: rights.isShare),
      pacing: Pacing(rights.rate(budget.usualRate), now: now.uptime))
    sessions[slot].beginStream(session, stream)
    fanOut.streams.open(slot, stream)
    http.sendStreamHead(to: request, exchange, &counters)
    begun(slot, .eventStream)
    advanceStream(slot)
  }

  // MARK: An open stream

  /// Subscribes a stream to its next channel; does nothing for other sessions.
  mutating func advanceStream(_ slot: Int) {
    if fanOut.advance(&sessions[slot], asking: &inputs) { close(slot, .normal) }
  }

  /// Goes on to a stream's next channel. Where this one was refused the stream ends instead, and its client reconnects.
  /// `wasMuch`: events were missed, which leave before the next channel begins.
  mutating func followed(_ slot: Int, wasMuch: Bool, _ refusal: MessageRefusal?) {
    if refusal != nil { return close(slot, .tryAgainLater) }
    if wasMuch { loop.setTimer(sessions[slot].connection, at: now.uptime) } else { advanceStream(slot) }
  }
}
