import Glibc
// `serve`: the hub.
import HubGateway
import HubMessages
import HubRuntime
import HubSystem
import HubTransport

let serve = Verb(
  name: "serve", operands: "",
  summary: """
    Runs the hub until SIGTERM or SIGINT, then tells sessions to go and ends.
    That takes up to 5 s after --drain-delay.
    Prints "listening on http://HOST:PORT …" (https with --tls-cert) on standard output when it is ready.
    On SIGHUP it reads --tls-cert, --tls-key, --token-keys and --revoked again; sessions go on, but for revoked ones.
    SIGUSR1 and SIGUSR2 are logged and ignored; a limit on the size of files (ulimit -f) is to it a full disk.
    """,
  options: [
    Option("host", "ADDRESS", "numeric address to listen on (127.0.0.1)"),
    Option("port", "PORT", "TCP port; 0 picks a free one (8080)"),
    Option("loops", "N", "event loops, 1-64 (one for each core)"),
    Option("dev-auth", nil, "take ?role=…&id=… for a credential; only on loopback"),
    Option("tls-cert", "FILE", "speak TLS with this certificate (PEM), its chain behind it"),
    Option("tls-key", "FILE", "the certificate's private key (PEM, not encrypted)"),
    Option("token-keys", "FILE", "take tokens that these keys sign: PEM, a JSON Web Key Set, or a secret"),
    Option("token-issuer", "TEXT", "take only tokens with this iss"),
    Option("token-audience", "TEXT", "take only tokens whose aud is this, or names it"),
    Option("revoked", "FILE", "refuse tokens whose jti or sub is a line of this file"),
    Option("grant-grace", "SECONDS", "an ended trip's positions go on so long, then nobody else sees it (60)"),
    Option("pseudonym-key", "FILE", "32 hex digits that riders' names for drivers are made with (else the journal's)"),
    Option("data", "DIR", "keep what is durable there, over restarts and crashes (./data)"),
    Option("no-journal", nil, "keep nothing: a restart forgets"),
    Option("retain", "TIME", "how long what is past can be read: 90s, 15m, 36h, 30d (30d)"),
    Option("retain-size", "BYTES", "delete the oldest when there is more on the disk: 500M, 64G (64G)"),
    Option("snapshot-every", "BYTES", "write a snapshot after so many bytes of records (64M)"),
    Option("accept-loss", nil, "start from before a damaged place in the journal; what is behind it is moved aside"),
    Option("allow-origin", "ORIGIN", "web pages that may use the hub: https://app.example; * for all", repeats: true),
    Option(
      "allow-host", "NAME", "hosts besides loopback where --dev-auth and open /metrics are served", repeats: true),
    Option("trusted-proxy", "CIDR", "believe the X-Forwarded-For of these addresses", repeats: true),
    Option("admin-port", "PORT", "a second port with /healthz, /readyz and /metrics; 0 picks a free one"),
    Option("admin-host", "ADDRESS", "numeric address of that port (127.0.0.1)"),
    Option("flush-interval", "MS", "hold positions back and send only the newest (0: never)"),
    Option("heartbeat", "SECONDS", "how often a client should be heard (30)"),
    Option("compression", "on|off", "compress for clients that offer it (on)"),
    Option("compression-contexts", "N", "sessions of a loop that may keep deflate contexts, 80 KiB each (0)"),
    Option(
      "session-rate", "N",
      "units of work a second of one session; a short message or a ping is one; 0 for no limit (10)"),
    Option("session-burst", "N", "units of work that may come at once (50)"),
    Option("max-connections", "N", "connections of one loop (what the open-file limit allows)"),
    Option("max-sessions", "N", "sessions of all loops (15/16 of the connections)"),
    Option("max-per-address", "N", "connections of one address; 0 for any number (1000; on loopback 0)"),
    Option("request-rate", "N", "HTTP requests a second of one address; 0 for any number (500; on loopback 0)"),
    Option("request-burst", "N", "HTTP requests of one address that may come at once (1000)"),
    Option("accept-rate", "N", "connections accepted a second by one loop; 0 for any number (5000)"),
    Option("max-head", "BYTES", "head of an HTTP request (8192)"),
    Option("max-message", "BYTES", "a WebSocket message, or the body of an HTTP request (262144)"),
    Option("max-fragments", "N", "fragments of one message (1024)"),
    Option("max-subscriptions", "N", "subscriptions of one session (256)"),
    Option("max-outbox", "BYTES", "unsent bytes of one session (524288)"),
    Option("max-outboxes", "BYTES", "unsent bytes of all sessions (268435456)"),
    Option("max-incomplete", "BYTES", "bytes of all incomplete messages and requests (67108864)"),
    Option("message-time", "SECONDS", "for a message from its first byte to its last (60)"),
    Option("handshake-time", "SECONDS", "for a new connection to send its request (10)"),
    Option("keep-alive", "SECONDS", "an HTTP connection may wait for its next request (30)"),
    Option("max-drivers", "N", "drivers known at once (1048576)"),
    Option("max-trips", "N", "trips known at once (1048576)"),
    Option("max-sessions-per-driver", "N", "sessions of one driver, replaced ones that are closing included (4)"),
    Option("max-sessions-per-rider", "N", "sessions of one rider (16)"),
    Option("max-sessions-per-ops", "N", "sessions of one ops identity (256)"),
    Option("max-areas-per-rider", "N", "cells of areas that one rider watches, over all sessions (512)"),
    Option("max-areas-per-ops", "N", "cells of areas that one ops identity watches (16384)"),
    Option("max-queries-per-driver", "N", "queries and tracks of one driver under way at once (4)"),
    Option("max-queries-per-rider", "N", "queries and tracks of one rider under way at once (8)"),
    Option("max-queries-per-ops", "N", "queries and tracks of one ops identity under way at once (64)"),
    Option("max-trips-per-driver", "N", "trips that one driver begins within a day (1000)"),
    Option("max-trips-per-rider", "N", "trips of one rider within a day, past which it begins no more (100)"),
    Option("max-accuracy", "METRES", "accuracy radius over which a fix is refused (100)"),
    Option("sampling", "SECONDS", "how often drivers are told to send (by trip, speed, who follows)"),
    Option("drain-delay", "SECONDS", "fail readiness this long before sessions are told to go (0)"),
    Option("log-level", "LEVEL", "debug, info, warning or error (info)"),
    Option("config", "FILE", "read name = value lines; options given here win"),
  ],
  run: runServe)

private func runServe(_ given: Arguments) throws(CommandError) -> ExitCode {
  var arguments = given
  if let file = arguments.string("config") {
    try arguments.merge(configuration: try readText(file), file: file)
  }
  var configuration = try serverConfiguration(arguments)
  let tlsFiles = try TLSFiles(arguments)
  configuration.tls = try tlsFiles?.makeServer()
  guard configuration.tokens != nil || configuration.allowsDevelopmentCredentials else {
    throw .usage(
      "serve needs to know whom to let in: give --token-keys FILE, or, to try things out on this machine, --dev-auth")
  }
  let signals = [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2]
  do throws(SystemError) {
    try blockSignals(signals)
    // A file that may not grow further (ulimit -f) is a full disk to the journal, which the write itself says.
    try ignoreSignals([SIGXFSZ])
  } catch {
    throw .failed("\(error)")
  }
  ProcessFacts.giveMemoryBack()
  let server: Server
  do throws(ServerError) { server = try Server.start(configuration) } catch { throw .failed("\(error)") }
  announce(server, configuration)
  if configuration.tls == nil, !server.address.isLoopback {
    server.log(
      .warning, "no_tls",
      ["address": "\(server.address)", "hint": "tokens and positions can be read on the way: --tls-cert, --tls-key"])
  }
  waitForEnd(of: server, signals) { reload(server, arguments, tlsFiles, configuration.tls) }
  server.drain()
  server.wait()
  return .ok
}

/// Returns when a signal asks for the end.
private func waitForEnd(of server: Server, _ signals: [Int32], reload: () -> Void) {
  while true {
    switch waitForSignal(signals) {
    case SIGHUP: reload()
    case SIGUSR1: server.log(.warning, "signal_ignored", ["signal": "SIGUSR1"])
    case SIGUSR2: server.log(.warning, "signal_ignored", ["signal": "SIGUSR2"])
    default: return
    }
  }
}

/// What is said when it is ready.
private func announce(_ server: Server, _ configuration: ServerConfiguration) {
  var line = "listening on \(server.urls), "
  line += configuration.loops == 1 ? "1 loop" : "\(configuration.loops) loops"
  if let admin = server.adminAddress { line += ", admin port http://\(admin)" }
  if configuration.tokens != nil { line += ", tokens accepted" }
  if configuration.allowsDevelopmentCredentials { line += ", development credentials accepted" }
  StandardStream.output.write(line + "\n")
}

/// SIGHUP: reads the files again that may change while it runs.
private func reload(_ server: Server, _ arguments: Arguments, _ tlsFiles: TLSFiles?, _ tls: TLSServer?) {
  if let tlsFiles, let tls { tlsFiles.reload(tls, server.log) }
  if arguments.string("token-keys") != nil { reloadTokens(server, arguments) }
  if tlsFiles == nil, arguments.string("token-keys") == nil {
    server.log(.info, "nothing_to_reload", ["hint": "started without --tls-cert and --token-keys"])
  }
}

func serverConfiguration(_ arguments: Arguments) throws(CommandError) -> ServerConfiguration {
  var configuration = ServerConfiguration()
  if let host = arguments.string("host") { configuration.host = host }
  if let port = try arguments.integer("port", in: 0...65535) { configuration.port = UInt16(port) }
  configuration.loops = try arguments.integer("loops", in: 1...64) ?? min(64, ProcessFacts.processors)
  configuration.allowsDevelopmentCredentials = arguments.has("dev-auth")
  try setAccess(arguments, &configuration)
  configuration.tokens = try tokenAccess(arguments)
  configuration.pseudonymKey = try pseudonymKey(arguments)
  configuration.timings.tripGrace =
    try arguments.number("grant-grace", in: 0...3600) ?? configuration.timings.tripGrace
  configuration.journal = try journalConfiguration(arguments)
  configuration.flushIntervalMilliseconds = try arguments.integer("flush-interval", in: 0...10_000) ?? 0
  configuration.heartbeatInterval = try arguments.number("heartbeat", in: 0.1...3600) ?? configuration.heartbeatInterval
  if let word = try arguments.choice("compression", of: ["on", "off"]) { configuration.compression = word == "on" }
  if let seconds = try arguments.number("sampling", in: 0.1...3600) {
    configuration.sampling = .fixed(seconds: seconds)
  }
  configuration.drainDelay = try arguments.number("drain-delay", in: 0...300) ?? 0
  if let text = arguments.string("log-level") {
    guard let level = LogLevel.allCases.first(where: { "\($0.name)" == text }) else {
      throw .usage("--log-level must be debug, info, warning or error, not \(text)")
    }
    configuration.logLevel = level
  }
  try setLimits(arguments, &configuration.limits)
  return configuration
}

/// The whole of a text file.
func readText(_ path: String) throws(CommandError) -> String {
  String(decoding: try readBytes(path), as: UTF8.self)
}

func readBytes(_ path: String) throws(CommandError) -> [UInt8] {
  do throws(SystemError) { return try readFile(path) } catch { throw .failed("cannot read \(path): \(error)") }
}
