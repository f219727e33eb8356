// What runs a client: a thread (or a queue) of its own, its clock, and a transport. There are two: this project's own
// sockets and TLS on Linux (LoopRunner.swift), URLSession on Apple systems (URLSessionRunner.swift). Both carry bytes
// for a `ClientSession`, which speaks the protocol.
import HubClientCore
import HubMessages

/// Runs one client. Thread-safe.
protocol HubRunner: AnyObject, Sendable {
  /// Runs `work` on the client's thread, in order; false at the limit, or when the client has ended.
  @discardableResult
  func submit(_ work: @Sendable @escaping (HubEngine, Moment) -> Void) -> Bool
  /// Submits what must not be lost, of which there is little: also accepted where `submit` is full.
  @discardableResult
  func submitRequired(_ work: @Sendable @escaping (HubEngine, Moment) -> Void) -> Bool
  /// Sends a request outside the socket; `answer` is called once, on any thread.
  func send(_ request: SideRequest, _ answer: @Sendable @escaping (Result<SideAnswer, HubError>) -> Void)
  /// Ends the client: its thread ends with the connection.
  func end()
}

extension HubRunner {
  /// Ends the connection, and waits until it is gone, at most for its closing time, and the driver's folder is free.
  func stop(erasing: Bool) async {
    let ended = Answer<Void>()
    while !submitRequired({ engine, now in engine.stop(now, erasing: erasing) { ended.give(.success(())) } }) {
      await Task.yield()
    }
    do throws(HubError) { try await ended.value() } catch {
      // The task was cancelled: the client ends all the same, without a waiter.
    }
  }
}

/// A client that runs while a hub, a feed or a loop that reads one holds this, and then ends.
final class RunningClient: Sendable {
  private let runner: any HubRunner

  init(_ runner: any HubRunner) { self.runner = runner }

  deinit { runner.end() }

  @discardableResult
  func submit(_ work: @Sendable @escaping (HubEngine, Moment) -> Void) -> Bool { runner.submit(work) }

  @discardableResult
  func submitRequired(_ work: @Sendable @escaping (HubEngine, Moment) -> Void) -> Bool { runner.submitRequired(work) }

  /// A new reader of a feed, which `add` puts into its table, and `remove` takes out when it is done. If the client's
  /// thread is too far behind, its sequence ends at once, with the feed's last event for that.
  func read<Event>(
    lastWhereFarBehind last: Event? = nil,
    adding add: @Sendable @escaping (HubEngine, FeedReader<Event>) -> Void,
    removing remove: @Sendable @escaping (HubEngine, ObjectIdentifier) -> Void
  ) -> FeedLease<Event> {
    let reader = FeedReader<Event>()
    let key = ObjectIdentifier(reader)
    guard submit({ engine, _ in add(engine, reader) }) else {
      if let last { reader.push(last) }
      reader.finish(.farBehind)
      return FeedLease(reader) {}
    }
    return FeedLease(reader) { [self] in submitRequired { engine, _ in remove(engine, key) } }
  }

  func stop(erasing: Bool = false) async { await runner.stop(erasing: erasing) }

  /// Runs `work`, which asks the engine something, and waits for the answer. Cancelling the task withdraws the
  /// question.
  func ask<Value: Sendable>(
    _ work: @Sendable @escaping (HubEngine, Moment, Answer<Value>) -> Void
  ) async throws(HubError) -> Value {
    let answer = Answer<Value>()
    guard submit({ engine, now in work(engine, now, answer) }) else { throw .farBehind }
    return try await answer.value { [runner] in
      runner.submit { engine, _ in engine.withdraw(ObjectIdentifier(answer)) }
    }
  }

  func send(_ request: SideRequest) async throws(HubError) -> SideAnswer {
    let answer = Answer<SideAnswer>()
    runner.send(request) { answer.give($0) }
    return try await answer.value()
  }
}

/// The runner of this system.
///
/// `driver` moves to the runner's thread: nothing else may keep it.
func makeRunner(
  _ configuration: ClientConfiguration, _ options: HubOptions, _ tokens: TokenSource,
  _ connection: LatestSource<ConnectionState>, driver: sending DriverPart?
) throws(HubError) -> RunningClient {
  var configuration = configuration
  let broker = TokenBroker(tokens)
  if tokens.development == nil { configuration.tokens = { broker.ask($0) } }
  #if canImport(Darwin)
    return RunningClient(URLSessionRunner(configuration, broker, connection, driver: driver))
  #else
    return RunningClient(try LoopRunner(configuration, options, broker, connection, driver: driver))
  #endif
}
