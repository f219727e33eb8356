// The file of `serve --cluster`: `name = value` lines that say who this hub is among others, and where their engine is.
import HubBackplane
import HubCluster
import HubCommandLine
import HubTransport

/// What such a file says.
struct ClusterFile: Sendable {
  private var name: String?
  private var advertise: String?
  private var bus: [EngineAddress] = []
  private var ledger: [LedgerAddress] = []
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
      mustBe:
        "redis://HOST:PORT, rediss://HOST:PORT, sentinel://HOST:PORT,HOST:PORT/NAME or sentinels://…, HOST numeric",
      repeats: true
    ) { file, text in LedgerAddress(text).map { file.ledger.append($0) } != nil },
    Setting("key-file", \.keyFile, .text, "FILE", "one or two lines of 64 hex digits that frames are signed with"),
    Setting(
      "ca", \.ca, .text, "FILE", "trust these certificates (PEM) on rediss:// and sentinels://",
      otherwise: "the system's"),
    Setting("user", \.user, .text, "NAME", "the engine's ACL user"),
    Setting("password-file", \.passwordFile, .text, "FILE", "that user's password"),
    Setting("sentinel-user", \.sentinelUser, .text, "NAME", "the sentinels' ACL user"),
    Setting("sentinel-password-file", \.sentinelPasswordFile, .text, "FILE", "the sentinels' own password"),
  ]

  /// Reads and checks a file.
  static func read(_ path: String) throws(CommandError) -> ClusterConfiguration {
    let plain = ClusterFile()
    var given = Arguments(collecting: [], verb: path, options: settings.map { $0.option(plain) })
    given.merge(configuration: try readText(path), file: path)
    var file = plain
    given.collect(settings, into: &file)
    try given.faults.check()
    return try file.configuration(path)
  }

  private func configuration(_ path: String) throws(CommandError) -> ClusterConfiguration {
    guard let name, ClusterIdentity.isName(name) else {
      throw .usage("\(path): name must be 1-32 letters, digits, -, _ and .")
    }
    guard let advertise, !advertise.contains(" ") else { throw .usage("\(path): advertise must be HOST:PORT") }
    guard !bus.isEmpty else { throw .usage("\(path): give bus = redis://HOST:PORT, once or more") }
    guard ledger.count == 1 else {
      throw .usage("\(path): give ledger = redis://HOST:PORT or sentinel://HOST:PORT,HOST:PORT/NAME, once")
    }
    guard let keyFile else { throw .usage("\(path): give key-file = FILE") }
    guard let keys = FrameKeys(try readText(keyFile)) else {
      throw .failed("cannot use \(keyFile): expected one or two lines of 64 hex digits: openssl rand -hex 32")
    }
    var engine = EngineConfiguration(bus: bus, ledger: ledger[0])
    engine.user = user
    engine.password = try passwordFile.map(readLine)
    (engine.sentinelUser, engine.sentinelPassword) = (sentinelUser, try sentinelPasswordFile.map(readLine))
    if let ca {
      let text = try readBytes(ca)
      do throws(TLSError) { engine.tls = try TLSClient(trusting: text) } catch {
        throw .failed("cannot use \(ca): \(error)")
      }
    }
    return ClusterConfiguration(
      identity: ClusterIdentity(name: name, address: advertise, version: Verbs.version, keys: keys), engine: engine)
  }

  /// The first line of a file.
  private func readLine(_ path: String) throws(CommandError) -> String {
    try readText(path).split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
  }
}
