// One request to a hub over HTTP/1.1 and its answer, on an event loop of its own, for programs that ask seldom.
//
// One timeout covers name look-up, connecting, TLS and the answer. Each of the host's addresses has its part of the
// time that is left. A request that was sent may have been handled: it is not sent again.
import HubBytes
package import HubClientCore
import HubHTTP
import HubMessages
import HubSystem
package import HubTransport

/// Why there is no answer, in words for people.
package struct HTTPExchangeError: Error, CustomStringConvertible {
  package let description: String
}

package final class HTTPExchange: EventLoopDelegate {
  private let loop: EventLoop
  private let names: NameResolver
  private let hub: HubURL
  private let tls: TLSPeer?
  private let request: [UInt8]
  private let seconds: Double
  /// When the request fails (uptime, ns).
  private let endsAt: Int64
  private var untried: [SocketAddress] = []
  private var connection = ConnectionID.none
  private var isConnected = false
  private var response: ResponseReader
  private var result: Result<(status: Int, body: [UInt8]), HTTPExchangeError>?

  /// Sends the bytes of a request, and blocks until its answer is complete. `bodyBytes`: of the answer at most.
  package static func run(
    _ request: [UInt8], to hub: HubURL, trusting trust: TLSClient, seconds: Double, bodyBytes: Int,
    limits: EventLoopLimits = EventLoopLimits(),
    lookUp: @Sendable @escaping (NameResolver.Question) -> Result<[SocketAddress], NameResolver.LookupError> =
      NameResolver.systemAddresses
  ) throws(HTTPExchangeError) -> (status: Int, body: [UInt8]) {
    let loop: EventLoop
    do throws(SystemError) { loop = try EventLoop(limits: limits) } catch {
      throw HTTPExchangeError(description: "an event loop: \(error)")
    }
    let names = NameResolver(capacity: 1, waking: loop.waker, lookUp: lookUp)
    return try HTTPExchange(loop, names, request, hub, trust, seconds, bodyBytes).run()
  }

  private init(
    _ loop: EventLoop, _ names: NameResolver, _ request: [UInt8], _ hub: HubURL, _ trust: TLSClient,
    _ seconds: Double, _ bodyBytes: Int
  ) {
    (self.loop, self.names, self.request, self.hub, self.seconds) = (loop, names, request, hub, seconds)
    tls = hub.isSecure ? TLSPeer(trust, name: hub.host) : nil
    endsAt = loop.now.uptimeNanoseconds + nanoseconds(seconds)
    response = ResponseReader(limits: HTTPLimits(bodyBytes: bodyBytes))
  }

  private func run() throws(HTTPExchangeError) -> (status: Int, body: [UInt8]) {
    loop.delegate = self
    loop.setLoopTimer(at: endsAt)
    if let address = hub.address {
      untried = [address]
      connect("")
    } else if !names.ask(.init(client: 0, attempt: 0, host: hub.host, port: hub.port)) {
      fail("its name cannot be looked up: there is no thread for it")
    }
    while true {
      if let result { return try result.get() }
      loop.run()
    }
  }

  /// Tries the next address; without one, `reason` is why the last one failed.
  private func connect(_ reason: String) {
    guard !untried.isEmpty else { return fail(reason) }
    let now = loop.now.uptimeNanoseconds
    loop.setLoopTimer(at: now + (endsAt - now) / Int64(untried.count))
    do throws(SystemError) {
      connection = try loop.connect(untried.removeFirst(), tls: tls)
      let start = loop.arena.count
      loop.arena.append(request)
      loop.send(start..<loop.arena.count, to: connection)
    } catch {
      connect("\(error)")
    }
  }

  package func woken() {
    for found in names.takeAnswers() {
      switch found.result {
      case .failure(let error): fail("its name cannot be looked up: \(error.text)")
      case .success(let addresses):
        untried = addresses
        connect("it has no address")
      }
    }
  }

  package func connected(_ id: ConnectionID) {
    isConnected = true
    loop.setLoopTimer(at: endsAt)
  }

  package func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    do throws(HTTPError) {
      if try unsafe response.read(UnsafeRawBufferPointer(bytes)) { succeed() }
    } catch {
      if case .bodyTooLarge = error { return fail("it answers more than a hub does") }
      fail("what answers is no HTTP server (\(error))")
    }
  }

  package func overflowed(_ id: ConnectionID) { loop.abort(id) }

  package func closed(_ id: ConnectionID, _ cause: CloseCause) {
    guard id == connection else { return }
    switch cause {
    case .connectFailed(let errno): connect("\(SystemError.text(errno)). Is the hub running?")
    // The end of an answer without a length (RFC 9112 §6.3).
    case .peerClosed where response.head?.framing == .untilClose: succeed()
    case .peerClosed, .peerReset, .failed, .closedByUs, .tlsFailed(.truncated): fail("it hangs up without an answer")
    case .tlsFailed(let failure): fail("\(failure)")
    }
  }

  package func loopTimerFired() {
    let reason = "no answer within \(seconds) s"
    guard !isConnected, !untried.isEmpty else { return fail(reason) }
    // What was written waits for the connection: it was not sent.
    let silent = connection
    connection = .none
    loop.abort(silent)
    connect(reason)
  }

  private func succeed() {
    guard let head = response.head else { return }
    end(.success((Int(head.status.code), response.body)))
  }

  private func fail(_ reason: String) { end(.failure(HTTPExchangeError(description: reason))) }

  private func end(_ result: Result<(status: Int, body: [UInt8]), HTTPExchangeError>) {
    if self.result == nil { self.result = result }
    loop.stop()
  }
}
