// What the client verbs have in common: the hub's URL, credentials, and what happens while it can't be reached.
import Glibc
import HubClientLoop
import HubCommandLine
import HubMessages
import HubSystem
import HubTransport

struct ClientOptions {
  static let options = [
    Option("url", "URL", "the hub's WebSocket (ws://127.0.0.1:8080/v1/ws)"),
    Option("ca", "FILE", "trust the certificates of this file (PEM) for wss://, not the system's"),
    Option("token", "JWT", "sent as Authorization: Bearer; without it: development credentials"),
    Option("token-file", "FILE", "tokens from a file, one a line for each driver, read again when a new one is needed"),
    Option("connect-timeout", "SECONDS", "give up when there is no connection for so long (10)"),
    Option("compression", "on|off", "offer permessage-deflate (off)"),
    Option("codec", "json|binary", "the subprotocol to ask for: locationhub.v1.json or .binary (json)"),
  ]

  let url: HubURL
  let tls: TLSClient
  let token: String?
  let tokenFile: TokenFile?
  let connectTimeout: Double
  let compression: Bool
  let codec: Subprotocol

  init(_ arguments: Arguments, defaultURL: String = "ws://127.0.0.1:8080/v1/ws") throws(CommandError) {
    do throws(HubURLError) {
      url = try HubURL(arguments.string("url") ?? defaultURL)
    } catch {
      throw .usage("--url: \(error)")
    }
    tls = try ClientOptions.trust(arguments, url)
    token = arguments.string("token")
    tokenFile = arguments.string("token-file").map { TokenFile(path: $0) }
    if let tokenFile {
      guard token == nil else { throw .usage("give --token or --token-file, not both") }
      _ = try tokenFile.read()
    }
    connectTimeout = try arguments.value("connect-timeout", .number(0...86_400)) ?? 10
    compression = try arguments.value("compression", .onOff) ?? false
    codec = try arguments.value("codec", .choice([("json", .json), ("binary", .binary)])) ?? .json
  }

  static func trust(_ arguments: Arguments, _ url: HubURL) throws(CommandError) -> TLSClient {
    guard let file = arguments.string("ca") else { return .system }
    guard url.isSecure else { throw .usage("--ca is about TLS, and the URL is \(url)") }
    return try readTrust(file)
  }

  /// Clients of this program, on a loop of their own.
  func makeLoop() throws(CommandError) -> ClientLoop {
    let clients = try system { () throws(SystemError) in try ClientLoop() }
    clients.trust = tls
    return clients
  }

  /// Fails with fewer tokens than clients.
  func checkTokens(for clients: Int) throws(CommandError) {
    guard token == nil || clients == 1 else { throw .usage("--token is for one driver: for more give --token-file") }
    if let tokenFile { _ = try tokenFile.read(atLeast: clients) }
  }

  /// The configuration of the program's `number`th client (from 0), with this role and id. A token, or a credential in
  /// the URL, wins over development credentials.
  func configuration(
    _ role: Role, _ id: Identifier, number: Int = 0
  ) throws(CommandError) -> ClientConfiguration {
    var configuration = try credentials(role, id, number)
    if compression { configuration.offerCompression() }
    configuration.codec = codec
    return configuration
  }

  private func credentials(
    _ role: Role, _ id: Identifier, _ number: Int
  ) throws(CommandError) -> ClientConfiguration {
    if let tokenFile {
      var configuration = ClientConfiguration(url: url)
      configuration.tokens = { _ in tokenFile.token(number) }
      return configuration
    }
    if let token { return ClientConfiguration(url: url, token: token) }
    if url.hasParameter("role") || url.hasParameter("access_token") { return ClientConfiguration(url: url) }
    do throws(HubURLError) {
      return ClientConfiguration(url: try url.adding("role", "\(role.name)").adding("id", "\(id)"))
    } catch {
      throw .usage("--url: \(error)")
    }
  }
}

extension Arguments {
  func identifier(_ name: String) throws(CommandError) -> Identifier? {
    guard let text = string(name) else { return nil }
    guard let id = Identifier(text) else {
      throw .usage("--\(name) must be 1-64 of A-Z a-z 0-9 . _ -, not \(text)")
    }
    return id
  }
}

/// Follows the connections of one program, writes errors to standard error, and decides when to give up.
struct ConnectionReport {
  private let timeout: Int64
  /// When an attempt to connect was reported last (uptime, ns).
  private var lastSaid = Int64.min / 2
  /// Since when there is no connection (uptime, ns).
  private var missingSince: Int64?
  private(set) var lastCause: DisconnectCause?
  private(set) var losses = 0
  private var wasOpen = false

  init(timeoutSeconds: Double, now: Int64) {
    timeout = Int64(timeoutSeconds * 1e9)
    missingSince = now
  }

  mutating func opened(_ url: HubURL) {
    if losses > 0 { Self.say("connected again to \(url)") }
    missingSince = nil
    wasOpen = true
  }

  /// The error at the end of a program that never had a connection, and so has not done its work.
  func neverConnected(_ url: HubURL) -> CommandError? {
    if wasOpen { return nil }
    return .failed("there never was a connection to \(url)\(lastCause.map { ": \($0)" } ?? ""). Is the hub running?")
  }

  /// The error that ends the program; nil while it keeps trying. `isLast`: no other client is connected.
  mutating func closed(
    _ disconnection: Disconnection, _ url: HubURL, isLast: Bool = true, now: Int64
  ) -> CommandError? {
    lastCause = disconnection.cause
    losses += 1
    if isLast, missingSince == nil { missingSince = now }
    switch disconnection.next {
    case .ended(.closedByUs): return nil
    case .ended(let end): return .failed("\(url): \(disconnection.cause)\(Self.advice(end))")
    case .retry(let seconds):
      if let failure = check(now: now, url) { return failure }
      // Printed at most once a second, not for each client.
      guard now - lastSaid >= 1_000_000_000 else { return nil }
      lastSaid = now
      Self.say("\(url): \(disconnection.cause); trying again in \(fixed(seconds, 1)) s")
      return nil
    }
  }

  /// The error that ends the program once it had no connection for too long; nil before.
  func check(now: Int64, _ url: HubURL) -> CommandError? {
    guard let missingSince, now - missingSince >= timeout else { return nil }
    let why = lastCause.map { ": \($0)" } ?? ""
    return .failed("no connection to \(url) within \(fixed(Double(timeout) / 1e9, 0)) s\(why). Is the hub running?")
  }

  private static func advice(_ end: ClientEnd) -> String {
    switch end {
    case .needsToken: ". Give a valid token with --token or --token-file (a hub with --dev-auth takes an --id instead)"
    case .replaced: ". The same driver is connected elsewhere: give another id"
    case .refused(status: 404): ". Is the path right? A hub serves /v1/ws"
    case .closedByUs, .closedByHub, .badMessages, .protocolError, .refused: ""
    }
  }

  static func say(_ text: String) { StandardStream.error.write("locationhub: \(text.withoutControls)\n") }
}

extension String {
  /// This text without C0 and C1 control characters: in a peer's text they could be commands to the terminal.
  var withoutControls: String {
    String(String.UnicodeScalarView(unicodeScalars.map { $0.properties.generalCategory == .control ? "\u{FFFD}" : $0 }))
  }
}

extension ClientLoop {
  /// Ends `run` at SIGINT and SIGTERM, which are blocked.
  func stopAtSignals() throws(CommandError) {
    try system { () throws(SystemError) in
      try loop.watchSignals([SIGINT, SIGTERM]) { [unowned self] _ in stop() }
    }
  }
}

/// The trust in the certificates of a file.
func readTrust(_ file: String) throws(CommandError) -> TLSClient {
  let text = try readBytes(file)
  do throws(TLSError) { return try TLSClient(trusting: text) } catch { throw .failed("cannot use \(file): \(error)") }
}

/// A number with so many decimals, rounded.
func fixed(_ value: Double, _ decimals: Int) -> String {
  var unit = 1.0
  for _ in 0..<decimals { unit *= 10 }
  guard let scaled = Int64(exactly: (value * unit).rounded()) else { return "\(value)" }
  let digits = String(scaled.magnitude)
  guard decimals > 0 else { return (scaled < 0 ? "-" : "") + digits }
  let padded = String(repeating: "0", count: max(0, decimals + 1 - digits.count)) + digits
  return (scaled < 0 ? "-" : "") + padded.dropLast(decimals) + "." + padded.suffix(decimals)
}

/// Closes all of a loop's clients, and runs the loop until their connections are gone, at most 3 s.
func finish(_ clients: ClientLoop) {
  clients.closeAll()
  let end = clients.now.uptime + 3_000_000_000
  while clients.connections > 0, clients.now.uptime < end { clients.runTurn(timeoutMilliseconds: 100) }
}

/// Runs `body`; a system error becomes an error of the command.
func system<R: ~Copyable>(_ body: () throws(SystemError) -> R) throws(CommandError) -> R {
  do throws(SystemError) { return try body() } catch { throw .failed("\(error)") }
}
