// `health`: whether a hub is alive or ready, as an exit code, for images without a shell or curl.
//
// Like a load balancer it requests /healthz or /readyz over HTTP/1.1.
import HubClientLoop
import HubCommandLine
import HubSystem

let health = Verb(
  name: "health", operands: "",
  summary: """
    Checks that a hub is alive, or with --ready that it accepts clients.
    Exit code 0 if so; 1, with the reason, if not or without an answer in time.
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
  let fields = "Host: \(url.authority)\r\nUser-Agent: locationhub\r\nConnection: close\r\n"
  let request = Array("GET \(url.target) HTTP/1.1\r\n\(fields)\r\n".utf8)
  let (status, body): (Int, [UInt8])
  do throws(HTTPExchangeError) {
    // The body is short.
    (status, body) = try HTTPExchange.run(request, to: url, trusting: trust, seconds: seconds, bodyBytes: 8192)
  } catch {
    throw .failed("\(httpText(url)): \(error)")
  }
  guard status == 200 else {
    let text = String(decoding: body.prefix(200), as: UTF8.self).split { $0.isNewline }.joined(separator: " ")
    throw .failed("\(httpText(url)): \(status) \(text.withoutControls)")
  }
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
