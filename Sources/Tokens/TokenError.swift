// Why a token or a file of keys is refused. No case holds bytes of a token or of a key, so that none can get into an
// answer or a log.
import HubBytes
import HubMessages

/// Why a token is not accepted.
public enum TokenError: Error, Equatable, Sendable {
  /// Longer than `TokenLimits.maximumBytes`.
  case tooLong
  /// Not three parts of base64url with dots between (RFC 7515 §7.1).
  case notCompact
  /// The header, or the claims, are no JSON object, or one with two members of the same name (RFC 7515 §4).
  case badHeader, badClaims
  /// `alg` is none of HS256, RS256, ES256 and EdDSA; `none` is among these (RFC 8725 §3.2).
  case unsupportedAlgorithm
  /// The header demands an extension that this verifier does not know (RFC 7515 §4.1.11).
  case criticalHeader
  /// No key has the token's `kid`.
  case unknownKey
  /// The selected keys are for other algorithms (RFC 8725 §3.1).
  case algorithmDoesNotFitKey
  case badSignature
  /// RFC 7519 §4.1.1, §4.1.3, §4.1.5, §4.1.4.
  case wrongIssuer, wrongAudience, notYetValid, expired
  /// A required claim is missing.
  case missing(Claim)
  /// A claim has the wrong type, or a value out of its range.
  case invalid(Claim)
  /// Its `jti` or its `sub` is revoked.
  case revoked
  /// Its `tier` is not configured.
  case unknownTier
  /// A refresh token was given where an access token belongs, or the other way round.
  case isRefreshToken, isNoRefreshToken

  /// The claims that can be missing or invalid.
  public enum Claim: String, Sendable {
    case sub, role, trips, channels, limits, vehicleType, tags, exp, nbf, jti, tier
  }
}

extension TokenError: CustomStringConvertible {
  /// Why the token is refused, for the peer and the log.
  public var description: String {
    switch self {
    case .tooLong: "the token is longer than \(TokenLimits.maximumBytes) bytes"
    case .notCompact: "the token is no JWT: three parts in base64url with dots between"
    case .badHeader: "the token's header is not a JSON object of the right form"
    case .badClaims: "the token's claims are not a JSON object of the right form"
    case .unsupportedAlgorithm: "the token's alg must be HS256, RS256, ES256 or EdDSA"
    case .criticalHeader: "the token's header has crit, which this hub does not support"
    case .unknownKey: "this hub has no key with the token's kid"
    case .algorithmDoesNotFitKey: "the token's alg does not fit the key"
    case .badSignature: "the token's signature is wrong"
    case .wrongIssuer: "the token's iss is not the one that this hub accepts"
    case .wrongAudience: "the token's aud does not name this hub"
    case .notYetValid: "the token is not valid yet"
    case .expired: "the token has expired"
    case .missing(let claim): "the token has no \(claim.rawValue)"
    case .invalid(let claim): "the token's \(claim.rawValue) is not of the right form: expected \(claim.expectation)"
    case .revoked: "the token was revoked"
    case .unknownTier: "this hub has no tier of the token's name"
    case .isRefreshToken: "a refresh token is no credential: POST /v1/tokens/refresh gives an access token for it"
    case .isNoRefreshToken: "this is no refresh token; an access token cannot be used here"
    }
  }
}

extension TokenError.Claim {
  /// What would be right.
  fileprivate var expectation: String {
    switch self {
    case .sub: "an id: a string of 1–64 of A-Z a-z 0-9 . _ -"
    case .role: "driver, rider or ops"
    case .trips: "up to \(Grants.maximumEntries) ids of trips in an array; * at the end of one is any ending"
    case .channels: "up to \(Grants.maximumEntries) channels in an array; * at the end of one is any ending"
    case .limits: "an object: rate from 0 and burst from 1, each up to 1000000"
    case .vehicleType, .jti, .tier: "a string of 1–\(InlineText.capacity) bytes"
    case .tags: "up to \(DriverStatusReport.maximumTags) strings of 1–\(InlineText.capacity) bytes in an array"
    case .exp, .nbf: "seconds since 1970, a number"
    }
  }
}

/// Why a file of keys or of revoked tokens cannot be used.
public enum KeyError: Error, Equatable, Sendable {
  /// The file is empty.
  case empty
  case tooManyKeys(limit: Int)
  /// A PEM block that OpenSSL can't read, or that is encrypted, counted from 1.
  case badPEM(block: Int)
  /// No JSON object with an array `keys` (RFC 7517 §5).
  case badKeySet
  /// A key of the set, counted from 1, that lacks a member, has it in the wrong form, or makes no key.
  case badKey(Int)
  /// A key that is no RSA, P-256, Ed25519 or secret key, or whose own `alg` does not fit it.
  case unsupportedKey(Int)
  /// RSA under 2048 bits (RFC 7518 §3.3) or a secret under 256 (§3.2).
  case tooShort(Int)
  /// A secret of several lines of text.
  case severalLines
  /// A secret that is the text of a key, or a page of HTML: anybody who can read it could sign.
  case secretIsAKey(Int)
  /// Two keys of the set have the same `kid` and algorithm.
  case duplicateKeyID(Int)
  /// OpenSSL could not sign, or the key is a public one.
  case cannotSign
  /// A line of a revocation list that is longer than 64 bytes, not UTF-8, or has a comment behind its id.
  case badLine(Int)
  /// A line of a file of device keys that is not an id and a hash, or has the hash of another line.
  case badDeviceLine(Int)
}

extension KeyError: CustomStringConvertible {
  /// Which key or line is wrong and why, for operators; it contains nothing of a key.
  public var description: String {
    switch self {
    case .empty: "there is no key in it"
    case .tooManyKeys(let limit): "it has more than \(limit) keys"
    case .badPEM(let block): "PEM block \(block) is not a key without a passphrase"
    case .badKeySet: "it is not a JSON Web Key Set: an object with an array \"keys\""
    case .badKey(let number): "key \(number) is not complete, or not a valid key"
    case .unsupportedKey(let number): "key \(number) is not for HS256, RS256, ES256 or EdDSA (Ed25519)"
    case .tooShort(let number): "key \(number) is too short: an RSA key has 2048 bits or more, a secret 32 bytes"
    case .severalLines: "a secret is one line of text; for several keys give a JSON Web Key Set"
    case .secretIsAKey(let number): "key \(number) is given as a secret and is the text of another key, JSON or HTML"
    case .duplicateKeyID(let number): "key \(number) has the kid of another one for the same algorithm"
    case .cannotSign: "the key cannot sign: it is a public one"
    case .badLine(let line): "line \(line) is not an id of 1-64 bytes; a comment has a line of its own, with # first"
    case .badDeviceLine(let line): "line \(line) is not a driver's id and the SHA-256 of a key that no other line has"
    }
  }
}
