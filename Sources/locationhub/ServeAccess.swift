// The options of `serve` that say who may come in, and how many.
import Gateway
import HubCore
import Transport

/// Web pages, proxies and operators.
func setAccess(_ arguments: Arguments, _ configuration: inout ServerConfiguration) throws(CommandError) {
  for text in arguments.strings("allow-origin") {
    guard configuration.origins.allow(text) else {
      throw .usage("--allow-origin must be scheme://host or scheme://host:port, or *, not \(text)")
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

/// What bounds newcomers. A limit by address that is given holds for loopback addresses too.
func setDoorLimits(_ arguments: Arguments, _ limits: inout Limits) throws(CommandError) {
  limits.sessions = try arguments.integer("max-sessions", in: 1...(1 << 26))
  let perAddress = try arguments.integer("max-per-address", in: 0...(1 << 26))
  let requestRate = try arguments.number("request-rate", in: 0...1_000_000)
  let requestBurst = try arguments.number("request-burst", in: 1...1_000_000)
  limits.countsLoopbackConnections = perAddress != nil
  limits.countsLoopbackRequests = requestRate != nil
  limits.connectionsPerAddress = perAddress ?? limits.connectionsPerAddress
  limits.requestRate = requestRate ?? limits.requestRate
  limits.requestBurst = requestBurst ?? max(limits.requestBurst, limits.requestRate)
  limits.acceptsPerSecond = try arguments.integer("accept-rate", in: 0...1_000_000) ?? limits.acceptsPerSecond
  limits.handshakeSeconds = try arguments.number("handshake-time", in: 0.1...3600) ?? limits.handshakeSeconds
  limits.keepAliveSeconds = try arguments.number("keep-alive", in: 0.1...3600) ?? limits.keepAliveSeconds
  limits.messageSeconds = try arguments.number("message-time", in: 0.1...3600) ?? limits.messageSeconds
  limits.incompleteBytes =
    try arguments.integer("max-incomplete", in: limits.messageBytes...(1 << 40)) ?? limits.incompleteBytes
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
