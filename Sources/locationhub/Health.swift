// `health`: whether a hub is alive or ready, as an exit code, for images without a shell or curl.
//
// Like a load balancer it requests /healthz or /readyz over HTTP/1.1, on an event loop of its own. One timeout covers
// name look-up, connecting, TLS and the answer.
import HubBytes
import HubClientLoop
import HubCommandLine
import HubHTTP
import HubSystem
import HubTransport

let health = Verb(
  name: "health", operands: "",
  summary: """
    Asks a hub whether it lives, or with --ready whether it takes clients.
    Exit code 0 where it does; 1 where it does not, or does not answer in time, with the reason.
    """,
  options: [
    Option("url", "URL", "the hub, or its admin port (http://127.0.0.1:8080)"),
    Option("ready", nil, "ask /readyz, which fails while the hub drains, not /healthz"),
    Option("ca", "FILE", "trust the certificates of this file (PEM) for https://, not the system's"),
    Option("timeout", "SECONDS", "for everything together (5)"),
  ],
  run: runHealth)

private func runHealth(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  let asksReadiness = arguments.has("ready")
  let url = try healthURL(
    arguments.string("url") ?? "http://127.0.0.1:8080", path: asksReadiness ? "/readyz" : "/healthz")
  let trust = try ClientOptions.trust(arguments, url)
  let seconds = try arguments.value("timeout", .number(0.1...3600)) ?? 5
  let check = try system { () throws(SystemError) in try HealthCheck(url, trust, seconds: seconds) }
  if let reason = check.failure() { throw .failed("\(httpText(url)): \(reason)") }
  StandardStream.output.write(asksReadiness ? "ready\n" : "healthy\n")
  return .ok
}

/// A hub's HTTP URL with another path, parsed by the rules of a WebSocket's.
private func healthURL(_ text: String, path: String) throws(CommandError) -> HubURL {
  let scheme = text.prefix { $0 != ":" }.lowercased()
  let rest = text.dropFirst(scheme.count + 3).drop { $0 != "/" && $0 != "?" }
  guard ["http", "https"].contains(scheme), ["", "/"].contains(rest) else {
    throw .usage("--url: \(text) should look like http://127.0.0.1:8080 or https://hub.example, without a path")
  }
  do throws(HubURLError) {
    let url = try HubURL("ws" + text.dropFirst(4))
    return try HubURL(host: url.host, port: url.port, target: path, isSecure: url.isSecure)
  } catch {
    throw .usage("--url: \(error)")
  }
}

/// The URL with `http` instead of `ws`.
private func httpText(_ url: HubURL) -> String { "http" + "\(url)".dropFirst(2) }

/// One request to a hub, and the fault of its answer.
private final class HealthCheck: EventLoopDelegate {
  /// Of the answer, whose body is short. A longer one counts as wrong.
  private static let limits = HTTPLimits(bodyBytes: 8192)

  private let loop: EventLoop
  private let names: NameResolver
  private let url: HubURL
  private let tls: TLSPeer?
  private let seconds: Double
  private var untried: [SocketAddress] = []
  private var answer = ByteBuffer()
  /// Set at the end; empty for success.
  private var reason: String?

  init(_ url: HubURL, _ trust: TLSClient, seconds: Double) throws(SystemError) {
    self.url = url
    self.seconds = seconds
    tls = url.isSecure ? TLSPeer(trust, name: url.host) : nil
    loop = try EventLoop()
    names = NameResolver(capacity: 1, waking: loop.waker)
    loop.delegate = self
  }

  /// Requests and waits. Nil where the hub answers with 200.
  func failure() -> String? {
    loop.setLoopTimer(at: loop.now.uptimeNanoseconds + Int64(seconds * 1e9))
    if let address = url.address {
      untried = [address]
      connectNext("")
    } else if !names.ask(.init(client: 0, attempt: 1, host: url.host, port: url.port)) {
      end("its name cannot be looked up: there is no thread for it")
    }
    if reason == nil { loop.run() }
    return reason.flatMap { $0.isEmpty ? nil : $0 }
  }

  func woken() {
    for found in names.takeAnswers() {
      switch found.result {
      case .failure(let error): end("its name cannot be looked up: \(error.text)")
      case .success(let addresses):
        untried = addresses
        connectNext("")
      }
    }
  }

  /// Tries the next address; without one, `failure` of the last one is the reason.
  private func connectNext(_ failure: String) {
    guard !untried.isEmpty else { return end(failure) }
    do throws(SystemError) { _ = try loop.connect(untried.removeFirst(), tls: tls) } catch { connectNext("\(error)") }
  }

  func connected(_ id: ConnectionID) {
    let start = loop.arena.count
    let fields = "Host: \(url.authority)\r\nUser-Agent: locationhub\r\nConnection: close\r\n"
    loop.arena.append(utf8: "GET \(url.target) HTTP/1.1\r\n\(fields)\r\n")
    loop.send(start..<loop.arena.count, to: id)
  }

  func received(_ id: ConnectionID, _ bytes: UnsafeMutableRawBufferPointer) {
    unsafe answer.append(UnsafeRawBufferPointer(bytes))
    let limits = HealthCheck.limits
    if answer.count > limits.headBytes + limits.bodyBytes { end("it answers more than a hub does") }
  }

  func closed(_ id: ConnectionID, _ cause: CloseCause) {
    switch cause {
    case .connectFailed(let errno): connectNext("\(SystemError.text(errno)). Is the hub running?")
    // The answer has its own length: a missing close_notify does not matter.
    case .peerClosed, .peerReset, .failed, .closedByUs, .tlsFailed(.truncated): end(judge())
    case .tlsFailed(let failure): end("\(failure)")
    }
  }

  func overflowed(_ id: ConnectionID) { end("it does not read what it is asked") }

  func loopTimerFired() { end("no answer within \(seconds) s") }

  /// The fault of the answer; empty for none.
  private func judge() -> String {
    var parser = ResponseParser()
    do throws(HTTPError) {
      let parsed = try unsafe answer.withBytes { (bytes) throws(HTTPError) in try unsafe parser.parse(bytes) }
      guard case .response(let head, let consumed) = parsed else { return "it hangs up without an answer" }
      if head.status.code == 200 { return "" }
      let body = unsafe answer.withBytes { unsafe Array($0[consumed...].prefix(200)) }
      let text = String(decoding: body, as: UTF8.self).split { $0.isNewline }.joined(separator: " ")
      return "\(head.status.code) \(text)"
    } catch {
      return "what answers is no HTTP server (\(error))"
    }
  }

  private func end(_ reason: String) {
    if self.reason == nil { self.reason = reason }
    loop.stop()
  }
}
