// The settings of tokens, and the files to check them with: read at the start, and again on SIGHUP. And the key of
// drivers' pseudonyms, which is read only at the start.
import HubBytes
import HubCommandLine
import HubCore
import HubGateway
import HubRuntime
import HubTokens
import HubTransport

extension ServeOptions {
  static let tokens: [Setting<ServeOptions>] = [
    Setting(
      "token-keys", \.tokenKeys, .text, "FILE",
      "accept tokens signed by these keys: PEM, a JSON Web Key Set, or a secret"
    ),
    Setting(
      "token-sign-key", \.tokenSignKey, .text, "FILE",
      "sign and accept tokens of shared trips and POST /v1/tokens with this key: PEM, a JSON Web Key, or a secret"),
    Setting("token-issuer", \.tokenIssuer, .text, "TEXT", "accept only tokens with this iss"),
    Setting("token-audience", \.tokenAudience, .text, "TEXT", "accept only tokens whose aud is or contains this"),
    Setting(
      "device-keys", \.deviceKeys, .text, "FILE",
      "accept phones' keys: lines of a driver's id and a key's SHA-256, as `locationhub device add` prints them"),
    Setting(
      "tier", "NAME=RATE,BURST", "limits of sessions whose token has this tier: units a second, and at once",
      mustBe: "NAME=RATE,BURST: 1-64 bytes, 0-1000000 and 1-1000000; at most \(SessionLimits.maximumTiers)",
      range: "1-64 bytes, 0-1000000, 1-1000000", repeats: true
    ) { $0.addTier($1) },
    Setting("revoked", \.revoked, .text, "FILE", "refuse tokens whose jti or sub is a line of this file"),
    Setting(
      "grant-grace", \.server.timings.tripGrace, .number(0...3600), "SECONDS",
      "how long a trip's followers see its positions after its end"),
    Setting(
      "device-interval", \.server.timings.deviceInterval, .number(1...86_400), "SECONDS",
      "longest sending interval assumed for phone apps; their driver is offline after 2.5 times this"),
    Setting(
      "pseudonym-key", \.pseudonymKey, .text, "FILE", "32 hex digits from which riders' names for drivers are made",
      otherwise: "the journal's"),
  ]

  /// The values of `--token-keys` and related options; nil where no tokens are accepted.
  func tokenAccess() throws(CommandError) -> TokenAccess? {
    let signer = server.tokenSigner.map { [$0] } ?? []
    guard tokenKeys != nil || deviceKeys != nil || !signer.isEmpty else {
      for (name, value) in [
        ("token-issuer", tokenIssuer), ("token-audience", tokenAudience), ("revoked", revoked),
        ("tier", tiers.isEmpty ? nil : ""),
      ] where value != nil {
        throw .usage("--\(name) needs --token-keys")
      }
      return nil
    }
    let policy = TokenPolicy(issuer: tokenIssuer, audience: tokenAudience)
    let issuers = try tokenKeys.map { (file) throws(CommandError) in try readKeys(file).keys } ?? []
    var access = TokenAccess(verifier: TokenVerifier(keys: KeySet(keys: issuers + signer), policy: policy))
    access.tiers = tiers
    if let revoked {
      access.revoked = try use(revoked) { (bytes) throws(KeyError) in try RevocationList(parsing: bytes) }
    }
    if let deviceKeys {
      access.devices = try use(deviceKeys) { (bytes) throws(KeyError) in try DeviceKeys(parsing: bytes) }
    }
    return access
  }

  /// Adds a tier, NAME=RATE,BURST; false for an invalid text, or past the limit of tiers.
  private mutating func addTier(_ text: String) -> Bool {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let name = InlineText(String(parts[0])), !name.isEmpty else { return false }
    let numbers = parts[1].split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
    guard numbers.count == 2, let rate = numbers[0], let burst = numbers[1], SessionLimits.rates.contains(rate),
      SessionLimits.bursts.contains(burst), tiers[name] != nil || tiers.count < SessionLimits.maximumTiers
    else { return false }
    tiers[name] = SessionLimits(rate: rate, burst: burst)
    return true
  }

  private func use<Value>(_ file: String, _ read: ([UInt8]) throws(KeyError) -> Value) throws(CommandError) -> Value {
    let bytes = try readBytes(file)
    do throws(KeyError) { return try read(bytes) } catch { throw .failed("cannot use \(file): \(error)") }
  }

  /// The private key of `--token-sign-key`; nil where none is given.
  func tokenSigner() throws(CommandError) -> SigningKey? {
    guard let file = tokenSignKey else { return nil }
    let keys = try readKeys(file).keys.filter(\.isPrivate)
    guard keys.count == 1, let key = keys.first else {
      throw .failed("cannot use \(file): expected one private key, or a secret")
    }
    return key
  }

  /// The key of drivers' pseudonyms; nil for a new one.
  func readPseudonymKey() throws(CommandError) -> SipKey? {
    guard let file = pseudonymKey else { return nil }
    let text = try readText(file).filter { !$0.isWhitespace }
    guard let key = SipKey(hexadecimal: text) else {
      throw .failed("cannot use \(file): expected 32 hexadecimal digits, as openssl rand -hex 16 writes them")
    }
    return key
  }

  /// Reloads the files. An invalid one changes nothing: the hub continues with its present one.
  func reloadTokens(_ server: Server) {
    _ = server.reload(.tokens) { () throws(CommandError) in
      if let access = try tokenAccess() { server.replaceTokens(access) }
    }
  }
}

func readKeys(_ file: String) throws(CommandError) -> KeySet {
  let bytes = try readBytes(file)
  do throws(KeyError) { return try KeySet(parsing: bytes) } catch { throw .failed("cannot use \(file): \(error)") }
}
