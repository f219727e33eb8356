// The limits of tokens and of the files of keys. They are part of what a token is (protocol/tokens.md): no operator
// changes them.

extension TokenVerifier {
  /// The longest token that is looked at: the whole of a request's head has 8 KiB.
  public static let maximumBytes = 8 * 1024
}

extension Grants {
  /// Entries of `trips` and of `channels`: each is compared with for every fix that names a trip.
  public static let maximumEntries = 256
}

extension SessionLimits {
  /// Named tiers of limits that an operator may have.
  public static let maximumTiers = 16
}

extension KeySet {
  /// Keys of a set: all that fit are tried where a token names none.
  public static let maximumKeys = 64
}

extension DeviceKeys {
  /// Keys of phones; each is some 150 bytes of memory.
  public static let maximumKeys = 200_000
  /// Bytes of a secret that are looked at.
  public static let maximumSecretBytes = 256
}
