// A hub at a numeric address, as tests, load generators and the hub's own verbs have it.
public import HubClientCore
public import HubTransport

extension HubURL {
  /// A hub at an address, with the path that hubs serve WebSockets on.
  public init(
    address: SocketAddress, target: String = HubURL.defaultPath, isSecure: Bool = false
  ) throws(HubURLError) {
    try self.init(host: address.host, port: address.port, target: target, isSecure: isSecure)
  }

  /// The address, where the host is a numeric one or `localhost`; nil for names, which are looked up.
  public var address: SocketAddress? { SocketAddress(host: host, port: port) }
}
