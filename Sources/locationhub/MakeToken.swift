// `token`: makes a JSON Web Token for a driver, a rider or an operator.
import HubBytes
import HubCommandLine
import HubMessages
import HubSystem
import HubTokens

let makeToken = Verb(
  name: "token", operands: "",
  summary: """
    Makes a token and prints it.
    It is for --token of other verbs, and for your own back end to compare with.
    The key decides how it is signed: RS256, ES256, EdDSA, or HS256 with a secret of 32 bytes or more.
    """,
  options: [
    Option("key", "FILE", "private key: PEM, a JSON Web Key (Set), or a secret"),
    Option("kid", "NAME", "which key of a set; goes into the token's header"),
    Option("alg", "NAME", "HS256, RS256, ES256 or EdDSA: which key of a set"),
    Option("role", "ROLE", "driver, rider or ops"),
    Option("sub", "ID", "whose token it is"),
    Option("trip", "ID", "a trip it names; id* for all that begin so (repeatable)", repeats: true),
    Option(
      "channel", "NAME", "trip:ID, driver:ID or fence:ID it opens, or …ID*, or fleet (repeatable)", repeats: true),
    Option("vehicle-type", "TEXT", "a driver's vehicle type, whatever the driver says"),
    Option("tag", "TEXT", "one of a driver's tags, instead of those it sends (repeatable, up to 8)", repeats: true),
    Option("expires", "TIME", "how long it lasts: 90s, 15m, 12h, 30d; 0 for ever (15m)"),
    Option("issuer", "TEXT", "its iss"),
    Option("audience", "TEXT", "its aud"),
    Option("jti", "ID", "its own id, by which it can be revoked"),
    Option("rate", "N", "units of work a second of its session (a short message is one); 0 for no limit"),
    Option("burst", "N", "units of work that may come at once"),
  ],
  run: runMakeToken)

private func runMakeToken(_ arguments: Arguments) throws(CommandError) -> ExitCode {
  let now = Timestamp(milliseconds: ClockReading.read().unixMilliseconds)
  var request = TokenRequest(claims: try claims(arguments, now))
  request.issuer = arguments.string("issuer")
  request.audience = arguments.string("audience")
  // Full seconds, as most readers expect.
  request.issuedAt = Timestamp(milliseconds: now.milliseconds / 1000 * 1000)
  let key = try signingKey(arguments)
  let token: [UInt8]
  do throws(KeyError) {
    token = try key.token(request, keyID: arguments.string("kid"))
  } catch {
    throw .failed("cannot sign: \(error)")
  }
  guard token.count <= TokenLimits.maximumBytes else {
    throw .failed("the token has more than \(TokenLimits.maximumBytes) bytes: name fewer trips")
  }
  StandardStream.output.write(String(decoding: token, as: UTF8.self) + "\n")
  return .ok
}

private func required(_ arguments: Arguments, _ name: String) throws(CommandError) -> String {
  guard let value = arguments.string(name) else { throw .usage("token needs --\(name)") }
  return value
}

private func claims(_ arguments: Arguments, _ now: Timestamp) throws(CommandError) -> Claims {
  guard let role = Role(claim: try required(arguments, "role")) else {
    throw .usage("--role must be driver, rider or ops")
  }
  guard let subject = Identifier(try required(arguments, "sub")) else {
    throw .usage("--sub must be 1-64 of A-Z a-z 0-9 . _ -")
  }
  var expires: Timestamp?
  if arguments.string("expires") != "0" {
    let lasting = try arguments.value("expires", .duration) ?? 15 * 60 * 1000
    expires = Timestamp(milliseconds: now.milliseconds / 1000 * 1000 + lasting)
  }
  return Claims(subject: subject, role: role, expires: expires, grants: try grants(arguments))
}

private func grants(_ arguments: Arguments) throws(CommandError) -> Grants? {
  var trips: [NamePattern] = []
  for text in arguments.strings("trip") {
    guard let trip = NamePattern(text) else { throw .usage("--trip must be an id, or the beginning of one and *") }
    trips.append(trip)
  }
  var channels: [ChannelPattern] = []
  for text in arguments.strings("channel") {
    guard let channel = ChannelPattern(text) else {
      throw .usage("--channel must be fleet, or trip:, driver: or fence: and an id, or the beginning of one and *")
    }
    channels.append(channel)
  }
  guard max(trips.count, channels.count) <= Grants.maximumEntries else {
    throw .usage("a token names at most \(Grants.maximumEntries) trips and as many channels")
  }
  var tokenID: InlineText?
  if let text = arguments.string("jti") {
    guard let id = InlineText(text), !id.isEmpty else { throw .usage("--jti must have 1 to 64 bytes") }
    tokenID = id
  }
  let limits = SessionLimits(
    rate: try arguments.value("rate", .number(SessionLimits.rates)),
    burst: try arguments.value("burst", .number(SessionLimits.bursts)))
  let hasLimits = limits != SessionLimits()
  let vehicle = try vehicle(arguments)
  if trips.isEmpty, channels.isEmpty, tokenID == nil, vehicle == nil, !hasLimits { return nil }
  return Grants(
    trips: trips, channels: channels, limits: hasLimits ? limits : nil, vehicle: vehicle, tokenID: tokenID)
}

private func vehicle(_ arguments: Arguments) throws(CommandError) -> VehicleClaims? {
  var vehicle = VehicleClaims()
  if let text = arguments.string("vehicle-type") {
    guard let type = InlineText(text), !type.isEmpty else { throw .usage("--vehicle-type must have 1 to 64 bytes") }
    vehicle.vehicleType = type
  }
  var tags: [InlineText] = []
  for text in arguments.strings("tag") {
    guard let tag = InlineText(text), !tag.isEmpty else { throw .usage("--tag must have 1 to 64 bytes") }
    tags.append(tag)
  }
  guard tags.count <= DriverStatusReport.maximumTags else {
    throw .usage("a token has at most \(DriverStatusReport.maximumTags) tags")
  }
  if !tags.isEmpty { vehicle.tags = tags }
  return vehicle.isEmpty ? nil : vehicle
}

/// The private key selected by `--key`, `--kid` and `--alg`.
private func signingKey(_ arguments: Arguments) throws(CommandError) -> SigningKey {
  let file = try required(arguments, "key")
  var keys = try readKeys(file).keys
  if let kid = arguments.string("kid"), keys.contains(where: { $0.keyID != nil }) {
    keys = keys.filter { $0.keyID == kid }
    guard !keys.isEmpty else { throw .failed("\(file) has no key \(kid)") }
  }
  if let name = arguments.string("alg") {
    guard let algorithm = Algorithm(rawValue: name) else {
      throw .usage("--alg must be HS256, RS256, ES256 or EdDSA, not \(name)")
    }
    let held = keys.map(\.algorithm.rawValue).joined(separator: ", ")
    keys = keys.filter { $0.algorithm == algorithm }
    guard !keys.isEmpty else { throw .failed("--alg \(name) does not fit the key in \(file): \(held)") }
  }
  let usable = keys.filter(\.isPrivate)
  guard let key = usable.first else {
    throw .failed("\(file) has only public keys: a token is signed with the private one")
  }
  guard usable.count == 1 else { throw .usage("\(file) has several keys: choose with --kid or --alg") }
  return key
}
