// The file of `serve --cluster`: `name = value` lines with this hub's identity in the cluster, and the engine.
import HubBackplane
import HubCluster
import HubCommandLine
import HubTransport

/// The content of such a file.
struct ClusterFile: Sendable {
  private var name: String?
  private var advertise: String?
  private var bus: [EngineAddress] = []
  private var ledgers: [LedgerAddress] = []
  private var keyFile: String?
  private var ca: String?
  private var user: String?
  private var passwordFile: String?
  private var sentinelUser: String?
  private var sentinelPasswordFile: String?

  static let settings: [Setting<ClusterFile>] = [
    Setting("name", \.name, .text, "NAME", "this hub's own name: 1-32 letters, digits, -, _ and ."),
    Setting("advertise", \.advertise, .text, "HOST:PORT", "where operators find this hub"),
    Setting(
      "bus", "URL", "a node that frames go by", mustBe: "redis://HOST:PORT or rediss://HOST:PORT, HOST numeric",
      repeats: true
    ) { file, text in EngineAddress(text).map { file.bus.append($0) } != nil },
    Setting(
      "ledger", "URL", "the node that knows members and owners, or sentinels that know the node",
      mustBe: """
        redis://HOST:PORT, rediss://HOST:PORT, sentinel://HOST:PORT,HOST:PORT/NAME or sentinels://…, HOST numeric, \
        up to \(BackplaneLimits.maximumSentinels) sentinels, each once
        """,
      repeats: true
    ) { file, text in LedgerAddress(text).map { file.ledgers.append($0) } != nil },
    Setting("key-file", \.keyFile, .text, "FILE", "one or two lines of 64 hex digits that frames are signed with"),
    Setting(
      "ca", \.ca, .text, "FILE", "trust these certificates (PEM) on rediss:// and sentinels://",
      otherwise: "the system's"),
    Setting("user", \.user, .text, "NAME", "the engine's ACL user"),
    Setting("password-file", \.passwordFile, .text, "FILE", "that user's password"),
    Setting("sentinel-user", \.sentinelUser, .text, "NAME", "the sentinels' ACL user"),
    Setting("sentinel-password-file", \.sentinelPasswordFile, .text, "FILE", "the sentinels' own password"),
  ]

  /// Reads and checks a file. Throws all faults at once, each with its line, or with the setting that is missing.
  static func read(_ path: String) throws(CommandError) -> ClusterConfiguration {
    let plain = ClusterFile()
    var given = Arguments(collecting: [], verb: path, options: settings.map { $0.option(plain) })
    given.merge(configuration: try readText(path), file: path)
    var file = plain
    given.collect(settings, into: &file)
    let checked = file.configuration(path, &given)
    try given.faults.check()
    guard let checked else { preconditionFailure("what lacks is a fault") }
    return checked
  }

  /// Nil where there is a fault, which is collected.
  private func configuration(_ path: String, _ given: inout Arguments) -> ClusterConfiguration? {
    for (name, words) in [
      ("name", "name = NAME"), ("advertise", "advertise = HOST:PORT"), ("key-file", "key-file = FILE"),
      ("bus", "bus = redis://HOST:PORT, once or more"),
      ("ledger", "ledger = redis://HOST:PORT or sentinel://HOST:PORT,HOST:PORT/NAME, once or more"),
    ] where !given.isGiven(name) {
      given.faults.add(.usage("\(path): give \(words)"))
    }
    checkValues(&given)
    let keys = keyFile.flatMap { self.keys(in: $0, &given) }
    let tls = ca.flatMap { self.trust(in: $0, &given) }
    let (password, sentinelPassword) = (
      passwordFile.flatMap { read($0, "password-file", &given, readFirstLine) },
      sentinelPasswordFile.flatMap { read($0, "sentinel-password-file", &given, readFirstLine) }
    )
    guard let name, let advertise, let keys, given.faults.errors.isEmpty else { return nil }
    var engine = EngineConfiguration(bus: bus, ledgers: ledgers)
    (engine.user, engine.password, engine.tls) = (user, password, tls)
    (engine.sentinelUser, engine.sentinelPassword) = (sentinelUser, sentinelPassword)
    for (setting, address) in zip(given.values("bus"), bus) { engine.origins["\(address)"] = setting.origin }
    for (setting, address) in zip(given.values("ledger"), ledgers) {
      engine.ledgerOrigins["\(address)"] = setting.origin
    }
    engine.credentialOrigin = (given.values("password-file") + given.values("user")).first?.origin
    engine.sentinelCredentialOrigin =
      (given.values("sentinel-password-file") + given.values("sentinel-user")).first?.origin
    engine.trustOrigin = given.values("ca").first?.origin
    var identity = ClusterIdentity(name: name, address: advertise, version: Verbs.version, keys: keys)
    identity.ledgers = Rendezvous.digest(ledgers.map(\.name))
    return ClusterConfiguration(identity: identity, engine: engine)
  }

  /// Checks values that are well-formed.
  private func checkValues(_ given: inout Arguments) {
    if let name, !ClusterIdentity.isName(name) {
      refuse("name", "must be 1-32 letters, digits, -, _ and ., not \(name)", &given)
    }
    if let advertise, !ClusterFile.isHostAndPort(advertise) {
      refuse("advertise", "must be HOST:PORT, not \(advertise)", &given)
    }
    checkList("bus", "a bus has \(BackplaneLimits.maximumNodes) nodes", BackplaneLimits.maximumNodes, &given) {
      EngineAddress($0)
    }
    let ledgers = BackplaneLimits.maximumLedgers
    checkList("ledger", "there are \(ledgers) ledgers", ledgers, &given) { LedgerAddress($0)?.name }
    for (file, user) in [("password-file", "user"), ("sentinel-password-file", "sentinel-user")]
    where given.isGiven(user) {
      if !given.isGiven(file) { refuse(user, "needs \(file)", &given) }
      if given.string(user) == "" { refuse(user, "must not be empty", &given) }
    }
    checkUse(&given)
  }

  /// Refuses repeated addresses of a list, each with its line, and addresses past the limit. Malformed ones are faults
  /// already, and are skipped.
  private func checkList<Address: Hashable>(
    _ setting: String, _ words: String, _ limit: Int, _ given: inout Arguments, _ read: (String) -> Address?
  ) {
    var known: Set<Address> = []
    for line in given.values(setting) {
      guard let address = read(line.text), !known.insert(address).inserted else { continue }
      given.faults.add(.usage("\(line.origin): \(address) is a node already"))
    }
    if let excess = given.values(setting).dropFirst(limit).first {
      given.faults.add(.usage("\(excess.origin): \(words) at most"))
    }
  }

  /// Refuses settings that no address of the file uses: the operator expects an effect that they do not have.
  private func checkUse(_ given: inout Arguments) {
    let areAllRead = given.values("bus").count == bus.count && given.values("ledger").count == ledgers.count
    guard !ledgers.isEmpty, !bus.isEmpty, areAllRead else { return }
    if given.isGiven("ca"), !ledgers.contains(where: \.isSecure), !bus.contains(where: \.isSecure) {
      refuse("ca", "is for rediss:// and sentinels://, and neither bus nor ledger has such an address", &given)
    }
    if ledgers.contains(where: { if case .sentinels = $0 { true } else { false } }) { return }
    for setting in ["sentinel-user", "sentinel-password-file"] where given.isGiven(setting) {
      refuse(setting, "is for a ledger of sentinel://HOST:PORT,HOST:PORT/NAME or sentinels://…", &given)
    }
  }

  /// Whether a text may be a hub's address: any host, for operators alone, and a port.
  private static func isHostAndPort(_ text: String) -> Bool {
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
      return false
    }
    return colon > text.startIndex && port > 0 && !text.contains(where: \.isWhitespace)
  }

  private func refuse(_ setting: String, _ words: String, _ given: inout Arguments) {
    given.faults.add(.usage("\(given.values(setting).last?.origin ?? setting) \(words)"))
  }

  private func keys(in file: String, _ given: inout Arguments) -> FrameKeys? {
    guard let text = read(file, "key-file", &given, readText) else { return nil }
    let keys = FrameKeys(text)
    if keys == nil {
      refuse("key-file", "\(file): expected one or two lines of 64 hex digits: openssl rand -hex 32", &given)
    }
    return keys
  }

  private func trust(in file: String, _ given: inout Arguments) -> TLSClient? {
    guard let text = read(file, "ca", &given, { (path) throws(CommandError) in try readBytes(path) }) else {
      return nil
    }
    do throws(TLSError) { return try TLSClient(trusting: text) } catch {
      refuse("ca", "\(file): \(error)", &given)
      return nil
    }
  }

  /// The content of a file that a setting names; an unreadable file is a fault of the setting.
  private func read<Content>(
    _ file: String, _ setting: String, _ given: inout Arguments, _ read: (String) throws(CommandError) -> Content
  ) -> Content? {
    if file.isEmpty {
      refuse(setting, "must be FILE, and is empty", &given)
      return nil
    }
    do throws(CommandError) { return try read(file) } catch {
      given.faults.add(.failed("\(given.values(setting).last?.origin ?? setting): \(error)"))
      return nil
    }
  }
}
