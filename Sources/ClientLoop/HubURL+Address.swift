// A hub at a numeric address, for tests, load generators and the hub's own verbs.
public import HubClientCore
public import HubTransport

extension HubURL {
  /// A hub at an address, with the hubs' usual path.
  public init(
    address: SocketAddress, target: String = HubURL.defaultPath, isSecure: Bool = false
  ) throws(HubURLError) {
    try self.init(host: address.host, port: address.port, target: target, isSecure: isSecure)
  }

  /// The address, if the host is numeric or `localhost`; nil for names, which are looked up.
  public var address: SocketAddress? { SocketAddress(host: host, port: port) }
}
