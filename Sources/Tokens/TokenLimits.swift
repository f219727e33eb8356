// The limits of tokens and of the files of keys. They are part of the token format (protocol/tokens.md), and not
// configurable.

/// The limits of a token itself.
public enum TokenLimits {
  /// The longest token that is read: a request's whole head has 8 KiB.
  public static let maximumBytes = 8 * 1024
}

extension Grants {
  /// Entries of `trips` and of `channels`: each is compared for every fix that names a trip.
  public static let maximumEntries = 256
}

extension SessionLimits {
  /// The operator's named tiers of limits.
  public static let maximumTiers = 16
}

extension KeySet {
  /// Keys of a set: all that fit are tried for a token without a `kid`.
  public static let maximumKeys = 64
}

extension DeviceKeys {
  /// Keys of phones; each is some 150 bytes of memory.
  public static let maximumKeys = 200_000
  /// The longest secret that is read, in bytes.
  public static let maximumSecretBytes = 256
}

extension SigningKey {
  /// The least bits of an RSA key (RFC 7518 §3.3), and bytes of a secret (§3.2).
  static let minimumRSABits: Int32 = 2048
  static let minimumSecretBytes = 32
}
