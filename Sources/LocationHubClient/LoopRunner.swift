// A client on Linux: one thread with an event loop, on which this project's own WebSocket, TCP and TLS run.
//
// One thread for each client, since an app has one; a program with thousands uses `ClientLoop`, on which this is built:
// there one thread serves them all.
#if !canImport(Darwin)
  import HubClientCore
  import HubClientLoop
  import HubMessages
  import HubSystem
  import HubTransport

  final class LoopRunner: HubRunner {
    typealias Work = @Sendable (HubEngine, Moment) -> Void

    private let mailbox: Mailbox<Work?>
    private let trust: TLSClient

    init(
      _ configuration: ClientConfiguration, _ options: HubOptions, _ tokens: TokenBroker,
      _ connection: LatestSource<ConnectionState>, driver: sending DriverPart?
    ) throws(HubError) {
      trust = try client(trusting: options.trustedCertificates)
      mailbox = try startClient(configuration, trust, tokens, connection, options.clock, driver: driver)
    }

    @discardableResult
    func submit(_ work: @escaping Work) -> Bool {
      mailbox.count < LoopRunner.maximumWork && mailbox.append(work)
    }

    @discardableResult
    func submitRequired(_ work: @escaping Work) -> Bool { mailbox.append(work) }

    func end() { _ = mailbox.append(nil) }

    /// Sends a request outside the socket, on a thread of its own, since there are few.
    func send(_ request: SideRequest, _ answer: @Sendable @escaping (Result<SideAnswer, HubError>) -> Void) {
      let trust = trust
      do throws(SystemError) {
        _ = try startThread(name: "hub-request") {
          do throws(HTTPExchangeError) {
            let (status, body) = try HTTPExchange.run(
              request.bytes, to: request.hub, trusting: trust, seconds: request.seconds,
              bodyBytes: LoopRunner.answerBytes, limits: LoopRunner.loopLimits)
            answer(.success(SideAnswer(status: status, body: body)))
          } catch {
            answer(.failure(HubError(.unreachable, "\(request.hub): \(error)", retry: .later(after: nil))))
          }
        }
      } catch {
        answer(.failure(HubError(.unreachable, "a thread: \(error)", retry: .later(after: nil))))
      }
    }
  }

  /// Starts the client's thread. A separate function, so that it captures nothing of the caller.
  private func startClient(
    _ configuration: ClientConfiguration, _ trust: TLSClient, _ tokens: TokenBroker,
    _ connection: LatestSource<ConnectionState>, _ clock: @Sendable @escaping () -> ClockReading,
    driver: sending DriverPart?
  ) throws(HubError) -> Mailbox<LoopRunner.Work?> {
    let loop: ClientLoop
    do throws(SystemError) { loop = try ClientLoop(limits: LoopRunner.loopLimits, clock: clock) } catch {
      throw HubError(.unreachable, "the client's event loop: \(error)", retry: .later(after: nil))
    }
    loop.trust = trust
    let mailbox = Mailbox<LoopRunner.Work?>(
      capacity: LoopRunner.maximumWork + LoopRunner.maximumRequiredWork, waking: loop.loop.waker)
    do throws(SystemError) {
      _ = try startThread(name: "hub-client") {
        let client = LoopClient(loop, mailbox, configuration, tokens, connection, driver: driver)
        client.run()
      }
    } catch {
      throw HubError(.unreachable, "the client's thread: \(error)", retry: .later(after: nil))
    }
    return mailbox
  }

  private func client(trusting certificates: String?) throws(HubError) -> TLSClient {
    guard let certificates else { return .system }
    do throws(TLSError) { return try TLSClient(trusting: Array(certificates.utf8)) } catch {
      throw HubError(.badValue, "trustedCertificates: \(error)")
    }
  }

  /// The client on its thread.
  private final class LoopClient: ClientLoopDelegate {
    private let loop: ClientLoop
    private let mailbox: Mailbox<LoopRunner.Work?>
    private let client: ClientID
    private let engine: HubEngine
    private var batch: [LoopRunner.Work?] = []
    private var due: Int64?
    private var isEnding = false

    init(
      _ loop: ClientLoop, _ mailbox: Mailbox<LoopRunner.Work?>, _ configuration: ClientConfiguration,
      _ tokens: TokenBroker, _ connection: LatestSource<ConnectionState>, driver: DriverPart?
    ) {
      self.loop = loop
      self.mailbox = mailbox
      client = loop.add(configuration, after: nil)
      engine = HubEngine(loop.session(client), tokens: tokens, connection: connection, driver: driver) { work in
        _ = mailbox.append(work)
      }
      loop.delegate = self
    }

    func run() { loop.run() }

    func opened(_ client: ClientID, _ connected: Connected) {
      engine.opened(connected, loop.now)
      reconcile()
    }

    func received(_ client: ClientID, _ envelope: borrowing ServerEnvelope) {
      engine.received(envelope, loop.now)
      reconcile()
    }

    func closed(_ client: ClientID, _ disconnection: Disconnection) {
      engine.closed(disconnection)
      reconcile()
    }

    func timeReached(_ client: ClientID) { reconcile() }

    func due(_ client: ClientID) {
      due = nil
      engine.timeReached(loop.now)
      reconcile()
    }

    func woken() {
      mailbox.drain(into: &batch)
      for work in batch {
        if let work {
          work(engine, loop.now)
        } else {
          isEnding = true
          engine.stop(loop.now)
        }
      }
      batch.removeAll(keepingCapacity: true)
      reconcile()
    }

    private func reconcile() {
      engine.reconcile(loop.now)
      loop.touch(client)
      if let deadline = engine.deadline, deadline != due {
        due = deadline
        loop.schedule(client, at: deadline)
      }
      if isEnding, case .ended = loop.session(client).state { loop.stop() }
    }
  }
#endif
