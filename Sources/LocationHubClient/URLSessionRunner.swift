// A client on Apple systems: a serial queue, and URLSession's WebSocket, which handles proxies, certificates and
// changes from Wi-Fi to the mobile network.
//
// UNTESTED THERE: this project is built and tested on Linux. AppleTransportTests type-checks this and other files for
// Apple systems against swift-corelibs-foundation, whose URLSession has the same interface without WebSockets. Its
// parts (the session, the bridge, the engine, the queue on disk) are tested.
#if canImport(Darwin)
  import Dispatch
  import Foundation
  import HubBytes
  import HubClientCore
  import HubMessages

  #if canImport(FoundationNetworking)
    import FoundationNetworking
  #endif

  /// `@unchecked Sendable`: all of its state is used only on `queue`.
  final class URLSessionRunner: NSObject, HubRunner, URLSessionWebSocketDelegate, @unchecked Sendable {
    typealias Work = @Sendable (HubEngine, Moment) -> Void

    private let queue = DispatchQueue(label: "hub-client")
    private let session: ClientSession
    private let reader = MessageReader()
    private var engine: HubEngine?
    private var urlSession: URLSession?
    private var task: URLSessionWebSocketTask?
    private var bridge: MessageBridge?
    private var timer: Task<Void, Never>?
    /// Messages that URLSession has not sent; more wait in the session's queue.
    private var unsent = 0
    private var isEnding = false

    init(
      _ configuration: ClientConfiguration, _ tokens: TokenBroker, _ connection: LatestSource<ConnectionState>,
      driver: sending DriverPart?
    ) {
      var configuration = configuration
      // URLSession does not expose compression.
      configuration.compression = nil
      session = ClientSession(configuration)
      super.init()
      engine = HubEngine(session, tokens: tokens, connection: connection, driver: driver) { [weak self] work in
        self?.submit(work)
      }
      let calls = OperationQueue()
      unsafe calls.underlyingQueue = queue
      urlSession = URLSession(configuration: .ephemeral, delegate: self, delegateQueue: calls)
    }

    @discardableResult
    func submit(_ work: @escaping Work) -> Bool {
      queue.async { [self] in
        guard let engine, !isEnding else { return }
        work(engine, now)
        reconcile()
      }
      return true
    }

    /// A system queue has no limit, so this is `submit`.
    @discardableResult
    func submitRequired(_ work: @escaping Work) -> Bool { submit(work) }

    func end() {
      queue.async { [self] in
        guard let engine, !isEnding else { return }
        engine.stop(now)
        reconcile()
        isEnding = true
        timer?.cancel()
        urlSession?.finishTasksAndInvalidate()
      }
    }

    func send(_ side: SideRequest, _ answer: @Sendable @escaping (Result<SideAnswer, HubError>) -> Void) {
      queue.async { [self] in
        guard let urlSession, !isEnding else { return answer(.failure(.stopped)) }
        var request = URLRequest(url: url(side.hub, side.target, scheme: "http"))
        request.httpMethod = "\(side.method)"
        request.timeoutInterval = side.seconds
        if !side.body.isEmpty {
          request.httpBody = Data(side.body)
          request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        }
        if let authorization = side.authorization {
          request.setValue(authorization, forHTTPHeaderField: "Authorization")
        }
        urlSession.dataTask(with: request) { body, response, error in
          guard let response = response as? HTTPURLResponse, let body else {
            let reason = error.map { "\($0)" } ?? "no answer"
            return answer(.failure(HubError(.unreachable, reason, retry: .later(after: nil))))
          }
          answer(.success(SideAnswer(status: response.statusCode, body: Array(body))))
        }.resume()
      }
    }

    /// `scheme`: without the letter for TLS.
    private func url(_ hub: HubURL, _ target: String, scheme: String) -> URL {
      let host = hub.host.contains(":") ? "[\(hub.host)]" : hub.host
      guard let url = URL(string: "\(scheme)\(hub.isSecure ? "s" : "")://\(host):\(hub.port)\(target)") else {
        preconditionFailure("a HubURL is a URL")
      }
      return url
    }

    // MARK: A turn

    private var now: Moment {
      Moment(
        uptime: continuousUptime(), timestamp: Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)))
    }

    private func reconcile() {
      guard let engine else { return }
      engine.reconcile(now)
      var buffer = ByteBuffer()
      let step = session.flush(now, mayWrite: unsent < URLSessionRunner.maximumUnsent, into: &buffer)
      for action in bridge?.take(buffer) ?? [] { perform(action) }
      switch step {
      case .none: break
      case .connect:
        bridge = MessageBridge()
        session.transportConnected(now)
        return reconcile()
      case .disconnect, .abort: return ended(nil)
      }
      arm()
    }

    private func perform(_ action: BridgeAction) {
      switch action {
      case .open(let subprotocols, let authorization): open(subprotocols, authorization)
      case .text(let text): send(.string(text))
      case .binary(let bytes): send(.data(Data(bytes)))
      case .refuse: refused(status: 431, retryAfter: nil)
      case .close(let code): task?.cancel(with: .init(rawValue: Int(code)) ?? .normalClosure, reason: nil)
      }
    }

    private func open(_ subprotocols: [String], _ authorization: String?) {
      let hub = session.configuration.url
      var request = URLRequest(url: url(hub, hub.target, scheme: "ws"))
      request.setValue(subprotocols.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
      if let authorization { request.setValue(authorization, forHTTPHeaderField: "Authorization") }
      unsent = 0
      task = urlSession?.webSocketTask(with: request)
      task?.maximumMessageSize = session.configuration.limits.messageBytes
      task?.resume()
      if let task { receive(on: task) }
    }

    private func send(_ message: URLSessionWebSocketTask.Message) {
      guard let task else { return }
      unsent += 1
      task.send(message) { [weak self] _ in
        // An error ends the task, which reports it.
        self?.queue.async { [weak self] in
          guard let self, self.task === task else { return }
          unsent -= 1
          reconcile()
        }
      }
    }

    private func receive(on task: URLSessionWebSocketTask) {
      task.receive { [weak self] result in
        self?.queue.async { [weak self] in
          guard let self, self.task === task, case .success(let message) = result else { return }
          switch message {
          case .string(let text): received(bridge?.received(text: text) ?? [])
          case .data(let data): received(bridge?.received(binary: Array(data)) ?? [])
          @unknown default: break
          }
          receive(on: task)
        }
      }
    }

    private func received(_ bytes: [UInt8]) {
      guard let engine else { return }
      var bytes = bytes
      let now = now
      unsafe bytes.withUnsafeMutableBytes { bytes in
        unsafe session.received(bytes, now: now, reader: reader) { envelope in
          if case .reply(.connected(let greeting)) = envelope.message {
            engine.opened(greeting, now)
          } else {
            engine.received(envelope, now)
          }
        }
      }
      reconcile()
    }

    private func refused(status: Int, retryAfter: String?) {
      guard let bridge else { return }
      received(bridge.refused(status: status, retryAfter: retryAfter))
      // The session may have handled it already.
      if self.bridge === bridge { ended(nil) }
    }

    private func ended(_ failure: TransportFailure?) {
      task?.cancel()
      task = nil
      bridge = nil
      let disconnection = session.transportEnded(now, failure: failure)
      engine?.closed(disconnection)
      reconcile()
    }

    private func arm() {
      timer?.cancel()
      guard let due = [session.deadline, engine?.deadline].compactMap({ $0 }).min() else { return }
      let wait = Duration.nanoseconds(max(0, due - now.uptime))
      // Work that was due while the phone slept is done when it wakes.
      timer = Task { [weak self] in
        do { try await Task.sleep(for: wait, clock: .continuous) } catch {
          return  // cancelled: another timer is set
        }
        self?.queue.async { [weak self] in self?.timeReached() }
      }
    }

    private func timeReached() {
      guard !isEnding else { return }
      session.timeReached(now)
      engine?.timeReached(now)
      reconcile()
    }

    // MARK: URLSession's calls, on `queue`

    func urlSession(
      _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol subprotocol: String?
    ) {
      guard webSocketTask === task, let bridge else { return }
      received(bridge.opened(subprotocol: subprotocol))
    }

    func urlSession(
      _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
      didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
      guard webSocketTask === task, let bridge else { return }
      received(bridge.closed(UInt16(clamping: closeCode.rawValue)))
      if webSocketTask === task { ended(nil) }
    }

    func urlSession(_ session: URLSession, task ended: URLSessionTask, didCompleteWithError error: (any Error)?) {
      guard ended === task else { return }
      if let response = ended.response as? HTTPURLResponse, response.statusCode != 101 {
        return refused(
          status: response.statusCode, retryAfter: response.value(forHTTPHeaderField: "Retry-After"))
      }
      self.ended((error as? URLError).flatMap(URLSessionRunner.failure))
    }

    private static func failure(_ error: URLError) -> TransportFailure? {
      switch error.code {
      case .cannotFindHost, .dnsLookupFailed: .hostNotFound(error.localizedDescription)
      case .secureConnectionFailed, .serverCertificateUntrusted, .serverCertificateHasBadDate,
        .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid:
        .tlsFailed(error.localizedDescription, isCertificate: error.code != .secureConnectionFailed)
      case .cannotConnectToHost, .notConnectedToInternet, .timedOut: .connectFailed(errno: ECONNREFUSED)
      case _: nil
      }
    }
  }
#endif
