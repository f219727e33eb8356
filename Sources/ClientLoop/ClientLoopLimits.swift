// The limits of a loop of clients that are not one client's (ClientLimits.swift in ClientCore).

extension ClientLoop {
  /// Host names that wait to be looked up. At it an attempt has failed, and is made again after its delay.
  static let maximumLookups = 1024
}
