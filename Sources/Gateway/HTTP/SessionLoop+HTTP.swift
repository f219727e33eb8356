// HTTP on the same port: applies the outcomes of requests to the hub, the journal's reader and the socket. Handlers and
// rights are in the other files.
import HubBytes
import HubCore
import HubHTTP
import HubMessages
import HubRuntime
import HubTransport

extension SessionLoop {
  func context(_ exchange: Exchange) -> HTTPContext {
    http.context(reference(exchange.connection), access, fanOut.compressionPolicy, now: now)
  }

  // MARK: Requests

  /// Takes bytes of a connection that speaks HTTP, or whose upgrade waits for the hub's answer.
  mutating func receivedHTTP(_ slot: Int, _ bytes: UnsafeRawBufferPointer) {
    guard let exchange = sessions[slot].exchange else { return }
    unsafe http.take(bytes, exchange)
    advance(exchange)
  }

  /// Handles complete requests until an answer is awaited, or others have their turn.
  private mutating func advance(_ exchange: Exchange) {
    while true {
      switch http.next(exchange, context(exchange), &budget, &counters) {
      case .wait: return
      case .handled(let request, let outcome): apply(outcome, to: request, exchange)
      case .failed(let request, let refusal): return refuse(refusal, to: request, exchange)
      }
    }
  }

  // MARK: Outcomes

  private mutating func apply(_ outcome: Result<Outcome, Refusal>, to request: HTTPRequest, _ exchange: Exchange) {
    do throws(Refusal) {
      switch try outcome.get() {
      case .respond(let response, let memory):
        http.respond(response, to: request, exchange, memory: memory, &budget, &counters)
        sessions[exchange.slot].answered()
      case .ask(let questions, let awaited):
        pending.ask(questions, for: awaited, &inputs)
        exchange.awaitAnswer(.waiting(request, for: awaited), until: http.nextDeadline)
      case .query(let question, let awaited):
        do throws(ErrorReply) { try ask(question, for: request.asker(reference(exchange.connection))) } catch {
          throw Refusal(error)
        }
        exchange.awaitAnswer(.waiting(request, for: awaited), until: http.nextDeadline)
      case .consult(let question):
        let asker = request.asker(reference(exchange.connection))
        try pending.workers.consult(question, for: asker, at: request.rateKey, shared, &counters)
        exchange.awaitAnswer(.waiting(request, for: .worker), until: now.uptime + nanoseconds(limits.historySeconds))
      case .image(let tile):
        try pending.workers.ask(for: tile, to: request, by: reference(exchange.connection), shared)
        exchange.awaitAnswer(.waiting(request, for: .worker), until: now.uptime + nanoseconds(limits.historySeconds))
      case .upgrade(let upgrade): try beginUpgrade(upgrade, of: request, exchange)
      case .stream(let stream): try begin(stream, request, exchange)
      case .metrics: beginMetrics(request, exchange)
      }
    } catch { refuse(error, to: request, exchange) }
  }

  /// The awaited answer has come.
  mutating func finish(_ outcome: Result<Outcome, Refusal>, to request: HTTPRequest, _ exchange: Exchange) {
    apply(outcome, to: request, exchange)
    advance(exchange)
    budget.readAgain(sessions[exchange.slot])
    reconcileInput(exchange.slot)
  }

  /// Answers a request, if it still waits.
  mutating func answerRequest(of session: SessionRef, _ answer: HubAnswer) {
    guard let (request, awaited, exchange) = sessions.waitingRequest(of: session) else { return }
    let context = context(exchange)
    guard pending.maySign(answer, of: session, by: context.configuration.tokenSigner, &budget) else { return }
    finish(Result { () throws(Refusal) in try answer.outcome(for: request, awaited, context) }, to: request, exchange)
  }

  /// Wakes the other loops to publish their counters; the request waits for that.
  private mutating func beginMetrics(_ request: HTTPRequest, _ exchange: Exchange) {
    let question = hub.isShared ? shared.metrics.hub.ask() : 0
    report.publish(allCounters, hub.counters)
    guard hub.isShared else { return apply(.success(.respond(http.settings.metricsPage())), to: request, exchange) }
    hub.wakeOthers()
    exchange.state = .waiting(request, for: .metrics)
    pending.awaitCounters(reference(exchange.connection), question: question, now: now.uptime)
  }

  // MARK: Responses

  /// Refuses a request, nil where its head could not be read.
  mutating func refuse(_ refusal: Refusal, to request: HTTPRequest?, _ exchange: Exchange) {
    if let entry = http.refuse(refusal, to: request, exchange, &budget, &counters) { inputs.append(.audit(entry)) }
    sessions[exchange.slot].answered()
  }

  /// Continues an exchange that was stalled in an earlier turn.
  mutating func resume(_ exchange: Exchange) {
    http.resume(exchange, &budget)
    sessions[exchange.slot].answered()
    advance(exchange)
  }

  mutating func checkRequestDeadline(_ slot: Int) {
    guard let exchange = sessions[slot].exchange, let request = http.timerFired(exchange, &counters) else { return }
    finish(.failure(exchange.waitedTooLong(limits)), to: request, exchange)
  }
}
