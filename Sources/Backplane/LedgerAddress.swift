// The address of the ledger: a node, or the master by its sentinels.

/// The address of the ledger.
public enum LedgerAddress: Sendable, Hashable, CustomStringConvertible {
  case node(EngineAddress)
  /// Sentinels, and their name for the master.
  case sentinels([EngineAddress], name: String)

  /// How a reason begins that concerns the sentinels and not the nodes.
  public static let noSentinel = "no sentinel can be asked"

  /// `redis://HOST:PORT`, `rediss://HOST:PORT`, or `sentinel://HOST:PORT,HOST:PORT/NAME` with up to
  /// `BackplaneLimits.maximumSentinels`, each once, or `sentinels://…` where they and the nodes use TLS; nil for any
  /// other text.
  public init?(_ text: String) {
    let isSecure = text.hasPrefix("sentinels://")
    let scheme = isSecure ? "sentinels://" : "sentinel://"
    guard text.hasPrefix(scheme) else {
      guard let node = EngineAddress(text) else { return nil }
      self = .node(node)
      return
    }
    let parts = text.dropFirst(scheme.count).split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[1].isEmpty, parts[1].utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
    let hosts = parts[0].split(separator: ",", omittingEmptySubsequences: false)
    let addresses = hosts.compactMap { EngineAddress("\(isSecure ? "rediss" : "redis")://\($0)") }
    guard addresses.count == hosts.count, addresses.count <= BackplaneLimits.maximumSentinels,
      Set(addresses).count == addresses.count
    else { return nil }
    self = .sentinels(addresses, name: String(parts[1]))
  }

  /// Whether it is spoken to by TLS.
  public var isSecure: Bool {
    switch self {
    case .node(let node): node.isSecure
    case .sentinels(let addresses, _): addresses.contains { $0.isSecure }
    }
  }

  /// A name that does not depend on the order of the sentinels, so that all hubs have the same one for a ledger.
  public var name: String {
    switch self {
    case .node: "\(self)"
    case .sentinels(let addresses, let name):
      "\(LedgerAddress.sentinels(addresses.sorted { "\($0)" < "\($1)" }, name: name))"
    }
  }

  /// The address as operators wrote it, without credentials.
  public var description: String {
    switch self {
    case .node(let node): "\(node)"
    case .sentinels(let addresses, let name):
      (isSecure ? "sentinels://" : "sentinel://")
        + addresses.map { "\($0.address)" }.joined(separator: ",") + "/\(name)"
    }
  }
}
