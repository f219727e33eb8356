// `serve`: the hub.
import Gateway
import Glibc
import Messages
import Transport

let serve = Verb(
  name: "serve", operands: "",
  summary: """
    Runs the hub until SIGTERM or SIGINT, then tells sessions to go and ends.
    That takes up to 5 s after --drain-delay.
    Prints "listening on http://HOST:PORT …" on standard output when it is ready.
    On SIGHUP it reads --token-keys and --revoked again; sessions go on, but for revoked ones.
    """,
  options: [
    Option("host", "ADDRESS", "numeric address to listen on (127.0.0.1)"),
    Option("port", "PORT", "TCP port; 0 picks a free one (8080)"),
    Option("loops", "N", "event loops, 1-64 (one for each core)"),
    Option("dev-auth", nil, "take ?role=…&id=… for a credential; only on loopback"),
    Option("token-keys", "FILE", "take tokens that these keys sign: PEM, a JSON Web Key Set, or a secret"),
    Option("token-issuer", "TEXT", "take only tokens with this iss"),
    Option("token-audience", "TEXT", "take only tokens whose aud is this, or names it"),
    Option("revoked", "FILE", "refuse tokens whose jti or sub is a line of this file"),
    Option("grant-grace", "SECONDS", "an ended trip's positions go on so long, then nobody else sees it (60)"),
    Option("data", "DIR", "keep trips and their events there, over restarts and crashes (nowhere)"),
    Option("accept-loss", nil, "start from before a damaged place in --data; what is behind it is moved aside"),
    Option("flush-interval", "MS", "hold positions back and send only the newest (0: never)"),
    Option("heartbeat", "SECONDS", "how often a client should be heard (30)"),
    Option("compression", "on|off", "compress for clients that offer it (on)"),
    Option("session-rate", "N", "messages a second of one session; 0 for no limit (10)"),
    Option("session-burst", "N", "messages that may come at once (50)"),
    Option("max-connections", "N", "connections of one loop (what the open-file limit allows)"),
    Option("max-subscriptions", "N", "subscriptions of one session (256)"),
    Option("max-outbox", "BYTES", "unsent bytes of one session (262144)"),
    Option("max-drivers", "N", "drivers known at once (1048576)"),
    Option("max-trips", "N", "trips known at once (1048576)"),
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
  let configuration = try serverConfiguration(arguments)
  do throws(SystemError) { try blockSignals([SIGTERM, SIGINT, SIGHUP]) } catch { throw .failed("\(error)") }
  let server: Server
  do throws(ServerError) { server = try Server.start(configuration) } catch { throw .failed("\(error)") }
  StandardStream.output.write(
    "listening on http://\(server.address) (WebSocket: ws://\(server.address)/v1/ws), \(configuration.loops) loop"
      + (configuration.loops == 1 ? "" : "s")
      + (configuration.tokens == nil ? "" : ", tokens accepted")
      + (configuration.allowsDevelopmentCredentials ? ", development credentials accepted" : "") + "\n")
  while waitForSignal([SIGTERM, SIGINT, SIGHUP]) == SIGHUP { reloadTokens(server, arguments) }
  server.drain()
  server.wait()
  return .ok
}

func serverConfiguration(_ arguments: Arguments) throws(CommandError) -> ServerConfiguration {
  var configuration = ServerConfiguration()
  if let host = arguments.string("host") { configuration.host = host }
  if let port = try arguments.integer("port", in: 0...65535) { configuration.port = UInt16(port) }
  configuration.loops = try arguments.integer("loops", in: 1...64) ?? min(64, ProcessFacts.processors)
  configuration.allowsDevelopmentCredentials = arguments.has("dev-auth")
  configuration.tokens = try tokenAccess(arguments)
  configuration.timings.tripGrace =
    try arguments.number("grant-grace", in: 0...3600) ?? configuration.timings.tripGrace
  if let directory = arguments.string("data") {
    configuration.journal = JournalConfiguration(directory: directory)
    configuration.journal?.acceptsLoss = arguments.has("accept-loss")
  } else if arguments.has("accept-loss") {
    throw .usage("--accept-loss is about a damaged journal: give its directory with --data")
  }
  configuration.flushIntervalMilliseconds = try arguments.integer("flush-interval", in: 0...10_000) ?? 0
  configuration.heartbeatInterval = try arguments.number("heartbeat", in: 0.1...3600) ?? configuration.heartbeatInterval
  if let text = arguments.string("compression") {
    guard text == "on" || text == "off" else { throw .usage("--compression must be on or off, not \(text)") }
    configuration.compression = text == "on"
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

private func setLimits(_ arguments: Arguments, _ limits: inout Limits) throws(CommandError) {
  limits.sessionRate = try arguments.number("session-rate", in: 0...1_000_000) ?? limits.sessionRate
  limits.sessionBurst = try arguments.number("session-burst", in: 1...1_000_000) ?? limits.sessionBurst
  limits.connectionsPerLoop = try arguments.integer("max-connections", in: 1...(1 << 24))
  limits.subscriptionsPerSession =
    try arguments.integer("max-subscriptions", in: 1...65_000) ?? limits.subscriptionsPerSession
  limits.outboxBytesPerSession =
    try arguments.integer("max-outbox", in: limits.messageBytes...(1 << 30)) ?? limits.outboxBytesPerSession
  limits.drivers = try arguments.integer("max-drivers", in: 1...(1 << 26)) ?? limits.drivers
  limits.trips = try arguments.integer("max-trips", in: 1...(1 << 26)) ?? limits.trips
  limits.channels = max(limits.channels, limits.drivers + limits.trips)
  limits.outboxBytesPerLoop = max(limits.outboxBytesPerLoop, limits.outboxBytesPerSession)
}

/// The whole of a text file.
func readText(_ path: String) throws(CommandError) -> String {
  String(decoding: try readBytes(path), as: UTF8.self)
}

func readBytes(_ path: String) throws(CommandError) -> [UInt8] {
  do throws(SystemError) { return try readFile(path) } catch { throw .failed("cannot read \(path): \(error)") }
}
