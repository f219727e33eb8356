// A request outside the socket, on Linux: on a connection and a thread of its own, since there are few.
#if !canImport(Darwin)
  import HubBytes
  import HubClientCore
  import HubClientLoop
  import HubHTTP
  import HubMessages
  import HubSystem
  import HubTransport

  final class LoopRequest: EventLoopDelegate {
    typealias Result = Swift.Result<SideAnswer, HubError>

    private let loop: EventLoop
    private let names: NameResolver
    private let request: SideRequest
    private let trust: TLSClient
    private let answer: @Sendable (Result) -> Void
    private var untried: [SocketAddress] = []
    private var connection = ConnectionID.none
    private var isConnected = false
    /// When the request fails (uptime, ns).
    private let endsAt: Int64
    private var response = ResponseReader(limits: HTTPLimits(bodyBytes: LoopRequest.answerBytes))
    private var isOver = false

    /// Calls `answer` once, on another thread.
    static func send(
      _ request: SideRequest, trusting trust: TLSClient,
      lookUp: @Sendable @escaping (NameResolver.Question) -> Swift.Result<[SocketAddress], NameResolver.LookupError> =
        NameResolver.systemAddresses,
      answer: @Sendable @escaping (Result) -> Void
    ) {
      do throws(SystemError) {
        _ = try startThread(name: "hub-request") {
          do throws(SystemError) {
            try LoopRequest(request, trust, lookUp, answer).run()
          } catch {
            answer(.failure(HubError(.unreachable, "an event loop: \(error)", retry: .later(after: nil))))
          }
        }
      } catch {
        answer(.failure(HubError(.unreachable, "a thread: \(error)", retry: .later(after: nil))))
      }
    }

    private init(
      _ request: SideRequest, _ trust: TLSClient,
      _ lookUp: @Sendable @escaping (NameResolver.Question) -> Swift.Result<[SocketAddress], NameResolver.LookupError>,
      _ answer: @Sendable @escaping (Result) -> Void
    ) throws(SystemError) {
      loop = try EventLoop(limits: LoopRunner.loopLimits)
      names = NameResolver(capacity: 1, waking: loop.waker, lookUp: lookUp)
      endsAt = loop.now.uptimeNanoseconds + nanoseconds(request.seconds)
      (self.request, self.trust, self.answer) = (request, trust, answer)
    }

    private func run() {
      loop.delegate = self
      loop.setLoopTimer(at: endsAt)
      if let address = request.hub.address {
        untried = [address]
        connect("")
      } else if !names.ask(.init(client: 0, attempt: 0, host: request.hub.host, port: request.hub.port)) {
        end("\(request.hub.host) cannot be looked up")
      }
      if !isOver { loop.run() }
    }

    /// Tries the next address, for its part of the time that is left.
    private func connect(_ reason: String) {
      guard !untried.isEmpty else { return end(reason) }
      let now = loop.now.uptimeNanoseconds
      loop.setLoopTimer(at: now + (endsAt - now) / Int64(untried.count))
      do throws(SystemError) {
        let tls = request.hub.isSecure ? TLSPeer(trust, name: request.hub.host) : nil
        connection = try loop.connect(untried.removeFirst(), tls: tls)
        let start = loop.arena.count
        loop.arena.append(request.bytes)
        loop.send(start..<loop.arena.count, to: connection)
      } catch {
        connect("\(error)")
      }
    }

    func woken() {
      for found in names.takeAnswers() {
        switch found.result {
        case .success(let addresses):
          untried = addresses
          connect("\(request.hub.host) has no address")
        case .failure(let error): end("\(request.hub.host): \(error.text)")
        }
      }
    }

    func connected(_ id: ConnectionID) {
      isConnected = true
      loop.setLoopTimer(at: endsAt)
    }

    func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
      do throws(HTTPError) {
        guard try unsafe response.read(UnsafeRawBufferPointer(bytes)), let head = response.head else { return }
        end(.success(SideAnswer(status: Int(head.status.code), body: response.body)))
      } catch {
        end("the answer is no HTTP: \(error)")
      }
    }

    func overflowed(_ id: ConnectionID) { loop.abort(id) }

    func closed(_ id: ConnectionID, _ cause: CloseCause) {
      guard id == connection else { return }
      // A request that was sent may have been handled: only an address that does not answer is followed by the next.
      if case .connectFailed = cause { connect("\(cause)") } else { end("the connection ended: \(cause)") }
    }

    func loopTimerFired() {
      let reason = "no answer within \(request.seconds) s"
      guard !isConnected, !untried.isEmpty else { return end(reason) }
      // What was written waits for the connection: it was not sent.
      let silent = connection
      connection = .none
      loop.abort(silent)
      connect(reason)
    }

    private func end(_ reason: String) {
      end(.failure(HubError(.unreachable, "\(request.hub): \(reason)", retry: .later(after: nil))))
    }

    private func end(_ result: Result) {
      guard !isOver else { return }
      isOver = true
      answer(result)
      loop.stop()
    }
  }
#endif
