// One client of a hub between its session, which speaks the protocol, and the app: no thread, no socket, no clock. Its
// driver (HubRunner.swift, or a test) reports events to it and then calls `reconcile`.
import HubClientCore
import HubMessages

/// Used only on the client's thread.
final class HubEngine {
  /// Schedules work on the client's thread.
  typealias Post = @Sendable (@Sendable @escaping (HubEngine, Moment) -> Void) -> Void

  let session: ClientSession
  let tokens: TokenBroker
  let connection: LatestSource<ConnectionState>
  let driver: DriverPart?
  let feeds = FeedTable()
  let offers = OfferDesk()
  private let post: Post
  private var requests: [MessageID: Request] = [:]
  private var sessionState = ClientSession.State.idle
  private var attempt = 0
  private var lastError: HubError?
  /// Why this side ended the client: `stop`, no token, or a token of the wrong role; nil while it runs.
  private var end: HubError?
  /// `start` was called while a stopped connection is closing: the client starts when that connection is gone.
  private var beginsAgain = false
  /// The driver's queue is deleted at the end.
  private var isErasing = false
  /// The hub's clock, and when it was read (uptime, ns).
  private var hubClock: (time: Timestamp, at: Int64)?
  /// Callers that wait for the end.
  private var whenEnded: [() -> Void] = []

  init(
    _ session: ClientSession, tokens: TokenBroker, connection: LatestSource<ConnectionState>, driver: DriverPart?,
    post: @escaping Post
  ) {
    self.session = session
    self.tokens = tokens
    self.connection = connection
    self.driver = driver
    self.post = post
  }

  // MARK: The app's side

  func start(_ now: Moment) {
    switch session.state {
    case .idle: begin(now)
    case .ended:
      // It may have ended by a `stop` of this turn, which is not reconciled yet.
      reconcileEnd(now)
      begin(now)
    case .closing: beginsAgain = end != nil
    case .waiting, .awaitingToken, .connecting, .handshaking, .greeting, .open: break
    }
  }

  private func begin(_ now: Moment) {
    (end, lastError, attempt, beginsAgain) = (nil, nil, 0, false)
    // The queue's folder was released when the client ended.
    if let failure = driver?.queue.reopen() {
      return connection.set(.stopped(HubError(failure, "its folder")))
    }
    session.start(now: now)
  }

  /// Ends the connection. On return, unsent entries are on disk; `whenEnded` is called when the connection is gone, and
  /// the driver's queue is closed or erased.
  func stop(_ now: Moment, erasing: Bool = false, whenEnded: @escaping () -> Void = {}) {
    (end, beginsAgain) = (.stopped, false)
    isErasing = isErasing || erasing
    self.whenEnded.append(whenEnded)
    driver?.queue.sync()
    tokens.withdraw()
    session.close(now)
    failAll(.stopped)
  }

  /// Asks, and calls `answer` with the result: once, on this thread.
  func ask(_ query: QueryRequest, for asker: Asker? = nil, _ answer: @escaping (Result<QueryResult, HubError>) -> Void)
  {
    guard requests.count < HubEngine.maximumRequests, let id = session.send(query) else {
      return answer(.failure(HubError(.full, "too many questions wait for their answers", retry: .later(after: nil))))
    }
    requests[id] = .result(asker, answer)
  }

  /// Withdraws the question of a caller. A move cannot be withdrawn: the driver's queue keeps it.
  func withdraw(_ asker: Asker) {
    guard let id = requests.first(where: { $0.value.isOf(asker) })?.key else { return }
    requests[id] = nil
    session.withdraw(id)
  }

  func report(
    _ status: DriverStatusReport, for asker: Asker? = nil, _ answer: @escaping (Result<Void, HubError>) -> Void
  ) {
    driver?.reported(status.status)
    send({ session.send(status) }, asker, answer)
  }

  func decline(_ trip: TripID, for asker: Asker? = nil, _ answer: @escaping (Result<Void, HubError>) -> Void) {
    send({ session.send(OfferDecline(tripID: trip)) }, asker, answer)
  }

  /// A rider's message about its trip; kept while the client runs, until it is answered.
  func request(
    _ report: TripStatusReport, for asker: Asker? = nil, _ answer: @escaping (Result<Void, HubError>) -> Void
  ) {
    send({ session.send(report) }, asker, answer)
  }

  func change(_ change: TripChange, for asker: Asker? = nil, _ answer: @escaping (Result<Void, HubError>) -> Void) {
    send({ session.send(change) }, asker, answer)
  }

  /// Call when the device has changed networks or is online again.
  func networkChanged(_ now: Moment) {
    session.networkChanged(now)
    tokens.hurry(now)
    timeReached(now)
    guard case .waiting(let until) = session.state, let lastError else { return }
    connection.set(.waiting(until: timestamp(of: until, now), lastError))
  }

  /// Sends what the hub acknowledges, unless too much is waiting.
  private func send(
    _ message: () -> MessageID?, _ asker: Asker?, _ answer: @escaping (Result<Void, HubError>) -> Void
  ) {
    guard requests.count < HubEngine.maximumRequests, let id = message() else {
      return answer(.failure(HubError(.full, "too much waits for its answer", retry: .later(after: nil))))
    }
    requests[id] = .ack(asker, answer)
  }

  /// Keeps a move until it is answered, across the app's end.
  func move(_ report: TripStatusReport, _ now: Moment, _ answer: @escaping (Result<Void, HubError>) -> Void) {
    let id = session.makeMessageID()
    var report = report
    if !report.timestamp.isAcceptedFromClients { report.timestamp = timestamp(now) }
    guard let driver, !driver.queue.isErased else { return answer(.failure(.stopped)) }
    guard requests.count < HubEngine.maximumRequests, driver.keep(report, as: id, now) else {
      return answer(.failure(HubError(.full, "the queue has no room for another move", retry: .later(after: nil))))
    }
    requests[id] = .move(answer)
  }

  /// The time of a move that is made now: by the phone's clock, unless no hub accepts that; then by the hub's, as far
  /// as known.
  func timestamp(_ now: Moment) -> Timestamp {
    guard !now.timestamp.isAcceptedFromClients else { return now.timestamp }
    let hub = hubClock.map { $0.time + (now.uptime - $0.at) / 1_000_000 }
    return hub.flatMap { $0.isAcceptedFromClients ? $0 : nil } ?? now.timestamp.nearestAccepted
  }

  /// The trip after a move of this client: as the hub has it or, if it cannot be asked any more, as the move itself
  /// says. The move has happened in either case.
  func askMoved(_ report: TripStatusReport, for asker: Asker, _ answer: @escaping (Trip) -> Void) {
    let id = session.connected?.id
    ask(.trip(report.tripID), for: asker) { outcome in
      if case .success(.trip(let trip)) = outcome { return answer(trip) }
      var trip = Trip(
        tripID: report.tripID, status: report.status, timestamp: report.timestamp, created: report.timestamp,
        updated: report.timestamp)
      trip.driverID = id
      answer(trip)
    }
  }

  /// Fails the driver's moves that its queue has lost, unless the hub may still answer them: while the session keeps a
  /// move, it was sent before.
  private func failLostMoves() {
    guard let queue = driver?.queue, !queue.lostMoves.isEmpty else { return }
    let lost = queue.lostMoves.filter { !session.isKept($0) }
    queue.lostMoves.removeAll(where: lost.contains)
    for id in lost { requests.removeValue(forKey: id)?.fail(.lost) }
  }

  /// Ends all unanswered questions and feeds. Moves are kept all the same.
  private func failAll(_ error: HubError) {
    let failed = requests
    requests = [:]
    let lost = driver?.queue.lostMoves ?? []
    for (id, request) in failed { request.end(error, keepsMoves: !isErasing && !lost.contains(id)) }
    feeds.end(error)
    offers.end(error)
    session.withdrawRequests()
    // A driver's moves stay in its queue for the next start; a rider's have failed, and their callers got the error.
    if driver == nil { session.withdrawDurable() }
  }

  // MARK: The hub's side

  func opened(_ greeting: Connected, _ now: Moment) {
    attempt = 0
    hubClock = (greeting.serverTime, now.uptime)
    driver?.sampling.advised(greeting.sampling, isWatched: false)
    guard greeting.role == .driver else {
      if driver != nil { endForRole(greeting.role, now) }
      return
    }
    driver?.queue.belongs(to: greeting.id)
    offers.opened(as: greeting.id)
  }

  /// Ends a driver's client whose token has another role. The hub would refuse every entry of the queue, permanently:
  /// so none is sent, and the next start asks for another token.
  private func endForRole(_ role: Role, _ now: Moment) {
    end = HubError(
      .token, "the hub has identified this driver's client as \(role.name): its token needs the role driver",
      retry: .withNewToken)
    session.refuseToken()
    session.close(now)
  }

  func received(_ envelope: borrowing ServerEnvelope, _ now: Moment) {
    switch envelope.message {
    case .publication(let publication):
      if case .offer(let offer) = publication.body {
        offers.published(offer)
      } else {
        feeds.published(publication)
      }
    case .reply(let reply): replied(reply, now)
    // From a newer hub: the session has counted it if it is an event.
    case .unknown:
      if let id = envelope.unknownReplyTo { requests.removeValue(forKey: id)?.fail(.anotherAnswer) }
    }
  }

  private func replied(_ reply: borrowing Reply, _ now: Moment) {
    switch reply {
    case .subscribed(let answer):
      feeds.subscribed(answer)
      offers.subscribed(answer)
    case .unsubscribed(let answer):
      feeds.unsubscribed(answer)
      offers.unsubscribed(answer)
    case .sampling(let advice):
      driver?.sampling.advised(
        Sampling(interval: advice.interval, minDistance: advice.minDistance), isWatched: advice.reason == .watched)
    case .ack(let ack):
      if let batch = ack.batch { driver?.answered(batch) }
      requests.removeValue(forKey: ack.replyTo)?.acked()
    case .result(let result):
      requests.removeValue(forKey: result.replyTo)?.answered(result.result)
    case .error(let error): refused(error, now)
    case .connected, .pong: break
    }
  }

  /// The session repeats by itself what may succeed later; then the question stays open.
  private func refused(_ error: ErrorReply, _ now: Moment) {
    if let id = error.replyTo, let request = requests[id] {
      guard !session.isKept(id) else { return }
      requests[id] = nil
      // The caller gets the error, so the entry does not count as a refusal without a caller.
      _ = session.takeRefused()
      return request.fail(HubError(error))
    }
    switch session.takeRefused() {
    case .fixes(let fixes, let trip): driver?.refused(fixes, of: trip, error.code, now)
    case .move: driver?.refusedMove()
    case nil: break
    }
    feeds.refused(HubError(error), session)
    offers.refused(HubError(error), session)
  }

  func closed(_ disconnection: Disconnection) {
    driver?.disconnected(session)
    lastError = HubError(disconnection) ?? end ?? .stopped
  }

  /// Handles a deadline.
  func timeReached(_ now: Moment) {
    if let need = tokens.retry(now) { fetch(need) }
  }

  /// When to call `timeReached` (uptime, ns).
  var deadline: Int64? {
    let isOpen = session.state == .open
    return [tokens.retryAt, driver?.deadline(isOpen: isOpen)].compactMap(\.self).min()
  }

  /// Handles the consequences of an event. Call it after each of the methods above, and before the session's `flush`.
  func reconcile(_ now: Moment) {
    if let need = tokens.takeNeed() { fetch(need) }
    driver?.reconcile(session, now)
    failLostMoves()
    feeds.reconcile(session)
    offers.reconcile(session)
    publishState(now)
    guard case .ended = session.state else { return }
    reconcileEnd(now)
    guard beginsAgain else { return }
    begin(now)
    reconcile(now)
  }

  private func reconcileEnd(_ now: Moment) {
    publishState(now)
    guard !whenEnded.isEmpty else { return }
    if isErasing { driver?.erase() } else { driver?.queue.close() }
    isErasing = false
    for call in whenEnded { call() }
    whenEnded = []
  }

  // MARK: Tokens

  private func fetch(_ need: TokenNeed) {
    let (source, post) = (tokens.source, post)
    Task {
      do {
        let token = try await source.fetch(need)
        post { engine, now in engine.token(token, now) }
      } catch let error as HubError {
        post { engine, now in engine.noToken(error, now) }
      } catch {
        let failure = HubError(.token, "no token: \(error)", retry: .later(after: nil))
        post { engine, now in engine.noToken(failure, now) }
      }
    }
  }

  private func token(_ token: String, _ now: Moment) {
    tokens.came()
    // If the client was stopped meanwhile, the token is for the next start.
    session.renew(token: token, now: now)
  }

  private func noToken(_ error: HubError, _ now: Moment) {
    // If the client was stopped meanwhile, the next start asks again.
    guard end == nil else { return tokens.came() }
    lastError = error
    // A session that has a token continues with it.
    guard error.retry != .never || !session.awaitsToken else {
      tokens.came()
      end = error
      return session.close(now)
    }
    tokens.failed(limits: session.configuration.limits, unit: session.drawUnit(), now)
  }

  // MARK: The connection's state

  private func publishState(_ now: Moment) {
    let state = session.state
    if state == .awaitingToken, let retryAt = tokens.retryAt, let lastError {
      return connection.set(.waiting(until: timestamp(of: retryAt, now), lastError))
    }
    guard state != sessionState || state == .awaitingToken else { return }
    let before = sessionState
    sessionState = state
    switch state {
    case .idle: connection.set(.idle)
    case .waiting(let until):
      connection.set(.waiting(until: timestamp(of: until, now), lastError ?? .stopped))
    case .awaitingToken, .connecting, .handshaking, .greeting:
      if !isConnecting(before) { attempt += 1 }
      connection.set(.connecting(attempt: attempt))
    case .open: connection.set(.live(since: now.timestamp))
    case .closing: break
    case .ended:
      let error = end ?? lastError ?? .stopped
      connection.set(.stopped(error))
      // What was requested since `start` is for the next connection.
      if !beginsAgain { failAll(error) }
    }
  }

  private func isConnecting(_ state: ClientSession.State) -> Bool {
    switch state {
    case .awaitingToken, .connecting, .handshaking, .greeting: true
    case .idle, .waiting, .open, .closing, .ended: false
    }
  }

  private func timestamp(of uptime: Int64, _ now: Moment) -> Timestamp {
    Timestamp(milliseconds: now.timestamp.milliseconds + (uptime - now.uptime) / 1_000_000)
  }
}
