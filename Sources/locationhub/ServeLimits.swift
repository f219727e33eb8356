// The options of `serve` that set limits. What each of them bounds, and what happens at it, stands in Gateway's Limits;
// here is what of it operators change, and which values do not go together.
import HubGateway

func setLimits(_ arguments: Arguments, _ limits: inout Limits) throws(CommandError) {
  try setSessionLimits(arguments, &limits)
  try setDoorLimits(arguments, &limits)
  try setIdentityLimits(arguments, &limits)
  limits.drivers = try arguments.integer("max-drivers", in: 1...(1 << 26)) ?? limits.drivers
  limits.trips = try arguments.integer("max-trips", in: 1...(1 << 26)) ?? limits.trips
  limits.accuracyMeters = try arguments.number("max-accuracy", in: 1...100_000) ?? limits.accuracyMeters
  limits.channels = max(limits.channels, limits.drivers + limits.trips)
  try checkRelations(limits)
}

/// What one identity (`sub` and role) may have.
private func setIdentityLimits(_ arguments: Arguments, _ limits: inout Limits) throws(CommandError) {
  func set(_ name: String, _ value: inout Int) throws(CommandError) {
    value = try arguments.integer(name, in: 1...(1 << 24)) ?? value
  }
  try set("max-sessions-per-driver", &limits.sessionsPerIdentity.driver)
  try set("max-sessions-per-rider", &limits.sessionsPerIdentity.rider)
  try set("max-sessions-per-ops", &limits.sessionsPerIdentity.ops)
  try set("max-areas-per-rider", &limits.areasPerIdentity.rider)
  try set("max-areas-per-ops", &limits.areasPerIdentity.ops)
  try set("max-queries-per-driver", &limits.queriesPerIdentity.driver)
  try set("max-queries-per-rider", &limits.queriesPerIdentity.rider)
  try set("max-queries-per-ops", &limits.queriesPerIdentity.ops)
  try set("max-trips-per-driver", &limits.tripsPerDriver)
  try set("max-trips-per-rider", &limits.tripsPerRider)
}

private func setSessionLimits(_ arguments: Arguments, _ limits: inout Limits) throws(CommandError) {
  limits.sessionRate = try arguments.number("session-rate", in: 0...1_000_000) ?? limits.sessionRate
  limits.sessionBurst = try arguments.number("session-burst", in: 1...1_000_000) ?? limits.sessionBurst
  limits.compressionContexts =
    try arguments.integer("compression-contexts", in: 0...(1 << 24)) ?? limits.compressionContexts
  limits.subscriptionsPerSession =
    try arguments.integer("max-subscriptions", in: 1...65_000) ?? limits.subscriptionsPerSession
  if let bytes = try arguments.integer("max-message", in: 1024...(1 << 24)) {
    limits.messageBytes = bytes
    limits.requestBodyBytes = bytes
  }
  limits.fragments = try arguments.integer("max-fragments", in: 1...(1 << 20)) ?? limits.fragments
  limits.messageSeconds = try arguments.number("message-time", in: 0.1...3600) ?? limits.messageSeconds
  limits.outboxBytesPerSession =
    try arguments.integer("max-outbox", in: 1024...(1 << 30)) ?? limits.outboxBytesPerSession
  limits.outboxBytes =
    try arguments.integer("max-outboxes", in: 1024...(1 << 40)) ?? max(limits.outboxBytes, limits.outboxBytesPerSession)
  limits.incompleteBytes = try arguments.integer("max-incomplete", in: 1024...(1 << 40)) ?? limits.incompleteBytes
}

/// What bounds newcomers. A limit by address that is given holds for loopback addresses too.
private func setDoorLimits(_ arguments: Arguments, _ limits: inout Limits) throws(CommandError) {
  limits.connectionsPerLoop = try arguments.integer("max-connections", in: 1...(1 << 24))
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
  limits.requestHeadBytes =
    try arguments.integer("max-head", in: 512...limits.readBufferBytes) ?? limits.requestHeadBytes
  limits.handshakeSeconds = try arguments.number("handshake-time", in: 0.1...3600) ?? limits.handshakeSeconds
  limits.keepAliveSeconds = try arguments.number("keep-alive", in: 0.1...3600) ?? limits.keepAliveSeconds
}

/// Values that do not go together, whether they were given or are defaults.
private func checkRelations(_ limits: Limits) throws(CommandError) {
  let relations: [(smaller: (String, Int), larger: (String, Int), reason: String)] = [
    (
      ("max-message", limits.messageBytes), ("max-outbox", limits.outboxBytesPerSession),
      "what one client sends must fit into what waits for another"
    ),
    (
      ("max-outbox", limits.outboxBytesPerSession), ("max-outboxes", limits.outboxBytes),
      "one session's unsent bytes are among those of all"
    ),
    (
      ("max-message", limits.messageBytes), ("max-incomplete", limits.incompleteBytes),
      "one message must fit while it comes"
    ),
  ]
  for (smaller, larger, reason) in relations where smaller.1 > larger.1 {
    throw .usage("--\(smaller.0) (\(smaller.1)) is more than --\(larger.0) (\(larger.1)): \(reason)")
  }
}
