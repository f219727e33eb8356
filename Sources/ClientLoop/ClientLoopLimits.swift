// Limits of a loop of clients; those of one client are in ClientCore's ClientLimits.swift.

extension ClientLoop {
  /// Host names that wait to be looked up. At it an attempt has failed, and is repeated after its delay.
  static let maximumLookups = 1024
}
