// `serve`: the hub.
import Glibc
import HubCommandLine
import HubGateway
import HubMessages
import HubRuntime
import HubSystem
import HubTransport

let serve = Verb(
  name: "serve", operands: "",
  summary: """
    Runs the hub until SIGTERM or SIGINT, then closes all sessions and ends.
    That takes up to 5 s after --drain-delay and --drain-spread.
    Prints "listening on http://HOST:PORT …" (https with --tls-cert) on standard output when it is ready.
    On SIGHUP it reads again the files of --tls-cert, --tls-key, --client-ca, --token-keys, --revoked, --device-keys and
    --webhooks; sessions continue, but for revoked ones. It reads --config again, too, and says which settings have
    changed, and which need a restart.
    What is not given is taken from the environment (LHUB_MAX_DRIVERS for --max-drivers; spaces separate the values of
    what may be given several times), then from the --config file.
    A service manager may hand over the sockets (LISTEN_FDS, named http and admin) and gets its state
    (NOTIFY_SOCKET, WATCHDOG_USEC).
    SIGUSR1 and SIGUSR2 are logged and ignored; a limit on the size of files (ulimit -f) counts as a full disk.
    """,
  options: ServeOptions.options, collectsFaults: true,
  run: runServe)

private func runServe(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  if arguments.has("check") { return try checkSettings(arguments) }
  let options = try readSettings(arguments)
  var configuration = options.server
  configuration.commit = Build.commit
  do throws(SystemError) {
    configuration.serviceManager = try ServiceManager(environment: ProcessFacts.environment)
  } catch {
    throw .failed("cannot notify the service manager (NOTIFY_SOCKET): \(error)")
  }
  try takeInherited(into: &configuration)
  let signals = [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2]
  do throws(SystemError) {
    try blockSignals(signals)
    // A file that may not grow further (ulimit -f) is a full disk to the journal, and log lines without a reader are
    // lost: the write itself reports both.
    try ignoreSignals([SIGXFSZ, SIGPIPE])
  } catch {
    throw .failed("\(error)")
  }
  ProcessFacts.giveMemoryBack()
  let server: Server
  do throws(ServerError) {
    server = try Server.start(configuration)
  } catch {
    switch error {
    case .badAddress, .onePortForBoth, .badLoopCount, .developmentCredentialsNotOnLoopback: throw .usage("\(error)")
    case .portTaken, .journal, .system: throw .failed("\(error)")
    }
  }
  announce(server, configuration)
  if configuration.tls == nil, !server.address.isLoopback {
    server.log(
      .warning, "no_tls",
      ["address": "\(server.address)", "hint": "tokens and positions can be read on the way: --tls-cert, --tls-key"])
  }
  let manager = configuration.serviceManager
  manager?.ready("listening on \(server.address)")
  var settings = ReloadedSettings(arguments, options)
  ProcessFacts.releaseStartingCode()
  waitForEnd(of: server, signals) {
    manager?.reloading(at: ClockReading.read().uptimeNanoseconds)
    let webhooks = settings.current.webhooks
    settings.reload(server)
    settings.current.reloadWebhooks(server, before: webhooks)
    reload(server, options)
    manager?.ready("listening on \(server.address)")
  }
  manager?.stopping()
  server.drain()
  server.wait()
  return .ok
}

/// The sockets from a service manager: `admin` by its name, and one other.
private func takeInherited(into configuration: inout ServerConfiguration) throws(CommandError) {
  for (name, descriptor) in ServiceManager.inherited(environment: ProcessFacts.environment) {
    let listener: InheritedListener
    do throws(SystemError) { listener = try InheritedListener(descriptor) } catch {
      throw .failed("the socket \(name) that was handed over (LISTEN_FDS) can't be used: \(error)")
    }
    if name == "admin", configuration.inheritedAdmin == nil {
      configuration.inheritedAdmin = listener
    } else if configuration.inherited == nil {
      configuration.inherited = listener
    } else {
      throw .failed("the socket \(name) that was handed over (LISTEN_FDS) is one too many: http, and perhaps admin")
    }
  }
}

/// Returns when a signal requests the end.
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

/// Prints where the hub listens and what it accepts, once it is ready.
private func announce(_ server: Server, _ configuration: ServerConfiguration) {
  var line = "listening on \(server.urls), "
  line += configuration.loops == 1 ? "1 loop" : "\(configuration.loops) loops"
  if let admin = server.adminAddress { line += ", admin port http://\(admin)" }
  if configuration.tokens != nil { line += ", tokens accepted" }
  if configuration.allowsDevelopmentCredentials { line += ", development credentials accepted" }
  StandardStream.output.write(line + "\n")
}

/// SIGHUP: reloads the files that may change while it runs.
private func reload(_ server: Server, _ options: ServeOptions) {
  if let files = options.tlsFiles, let tls = options.server.tls { files.reload(tls, server) }
  let hasTokens = options.server.tokens != nil
  if hasTokens { options.reloadTokens(server) }
  if options.tlsFiles == nil, options.webhooks == nil, !hasTokens, options.given?.isGiven("config") != true {
    server.log(
      .info, "nothing_to_reload",
      ["hint": "started without --config, --tls-cert, --token-keys, --token-sign-key, --device-keys and --webhooks"])
  }
}

/// The content of a text file.
func readText(_ path: String) throws(CommandError) -> String {
  String(decoding: try readBytes(path), as: UTF8.self)
}

/// The first line of a file, for instance a password; throws where it is empty.
func readFirstLine(_ path: String) throws(CommandError) -> String {
  let line = try readText(path).prefix { !$0.isNewline }
  guard !line.isEmpty else { throw .failed("\(path): its first line is empty") }
  return String(line)
}

func readBytes(_ path: String) throws(CommandError) -> [UInt8] {
  do throws(SystemError) { return try readFile(path) } catch { throw .failed("cannot read \(path): \(error)") }
}
