import HubCore
// The options of `serve` that say who may come in.
import HubGateway
import HubTransport

/// Web pages, proxies and operators.
func setAccess(_ arguments: Arguments, _ configuration: inout ServerConfiguration) throws(CommandError) {
  for text in arguments.strings("allow-origin") {
    guard configuration.origins.allow(text) else {
      throw .usage("--allow-origin must be scheme://host or scheme://host:port, or *, not \(text)")
    }
  }
  for text in arguments.strings("allow-host") {
    guard configuration.hosts.allow(text) else {
      throw .usage("--allow-host must be a name or a numeric address, without a port, not \(text)")
    }
  }
  for text in arguments.strings("trusted-proxy") {
    guard let block = AddressBlock(text) else {
      throw .usage("--trusted-proxy must be an address or a block such as 10.0.0.0/8 or fd00::/8, not \(text)")
    }
    configuration.trustedProxies.append(block)
  }
  if let port = try arguments.integer("admin-port", in: 0...65535) { configuration.adminPort = UInt16(port) }
  if let host = arguments.string("admin-host") {
    guard configuration.adminPort != nil else { throw .usage("--admin-host is of no use without --admin-port") }
    configuration.adminHost = host
  }
}

/// What riders' names for drivers are made with; nil for a new key.
func pseudonymKey(_ arguments: Arguments) throws(CommandError) -> SipKey? {
  guard let file = arguments.string("pseudonym-key") else { return nil }
  let text = try readText(file).filter { !$0.isWhitespace }
  guard let key = SipKey(hexadecimal: text) else {
    throw .failed("cannot use \(file): expected 32 hexadecimal digits, as openssl rand -hex 16 writes them")
  }
  return key
}
