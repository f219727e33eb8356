// Errors of TLS: unusable files, and connections that failed.

import CHubOpenSSL

/// Why certificates or keys can't be used, as a text for operators.
public enum TLSError: Error, Equatable, CustomStringConvertible {
  /// No certificate in PEM where one should be.
  case noCertificate
  /// OpenSSL refuses it; its text.
  case badCertificate(String)
  /// It is expired, or not valid yet: the date in it.
  case expired(String)
  case notYetValid(String)
  /// There is no private key in PEM.
  case noKey
  case badKey(String)
  /// The key needs a password, and there is nobody to enter it.
  case encryptedKey
  /// The private key belongs to another certificate.
  case keyDoesNotFit
  /// An unusable OCSP response.
  case badStatus(String)

  /// What is wrong, for operators.
  public var description: String {
    switch self {
    case .noCertificate: "there is no certificate in it (PEM: -----BEGIN CERTIFICATE-----)"
    case .badCertificate(let reason): "the certificate can't be used: \(reason)"
    case .expired(let date): "the certificate expired on \(date)"
    case .notYetValid(let date): "the certificate is valid only from \(date)"
    case .noKey: "there is no private key in it (PEM: -----BEGIN PRIVATE KEY-----)"
    case .badKey(let reason): "the private key can't be used: \(reason)"
    case .encryptedKey:
      "the private key is encrypted: give one without a password, in a file that only the hub may read"
    case .keyDoesNotFit: "the private key belongs to another certificate"
    case .badStatus(let reason): "the OCSP response can't be used: \(reason)"
    }
  }
}

/// Why a connection's TLS failed. One word long, since a connection keeps it until its end is reported.
public struct TLSFailure: Hashable, Sendable, CustomStringConvertible {
  // Below 0: of this module. Up to 2^24: a reason of libssl (ERR_GET_REASON, 23 bits). Above: a result of verification
  // (X509_V_ERR_…).
  let code: Int32
  private static let firstCertificateCode: Int32 = 1 << 24

  init(code: Int32) { self.code = code }

  /// TCP ended without close_notify: data may be missing (RFC 8446 §6.1).
  public static let truncated = TLSFailure(code: -1)
  /// TCP ended during the handshake.
  public static let handshakeCut = TLSFailure(code: -2)
  /// More requests for new keys than `EventLoopLimits.tlsKeyUpdates` without data in between.
  public static let tooManyKeyUpdates = TLSFailure(code: -3)
  /// The peer makes TLS answer, and does not read the answers.
  public static let unreadAnswers = TLSFailure(code: -4)
  /// More records that carry next to nothing than `EventLoopLimits.tlsMissingBytes` allows.
  public static let tooManySmallRecords = TLSFailure(code: -6)
  /// The client's part of the handshake is longer than `EventLoopLimits.tlsHandshakeReadBytes`, or its ClientHello than
  /// `EventLoopLimits.clientHelloBytes`.
  public static let longHandshake = TLSFailure(code: -7)
  /// OpenSSL failed internally, such as for lack of memory.
  public static let `internal` = TLSFailure(code: -5)

  /// The chain of certificates is not trusted: X509_V_ERR_….
  static func certificate(_ result: Int) -> TLSFailure { TLSFailure(code: firstCertificateCode + Int32(result)) }

  /// Whether this side refused the peer's certificate.
  public var isCertificate: Bool { code >= TLSFailure.firstCertificateCode }

  /// Takes the oldest error of this thread's queue, which is the cause, and empties the queue.
  static func takingError() -> TLSFailure {
    let error = ERR_get_error()
    ERR_clear_error()
    guard error != 0, hub_err_library(error) == ERR_LIB_SSL else { return .internal }
    return TLSFailure(code: hub_err_reason(error))
  }

  /// What is wrong, for operators.
  public var description: String {
    switch self {
    case .truncated: "cut off without a TLS goodbye"
    case .handshakeCut: "cut off during the TLS handshake"
    case .tooManyKeyUpdates: "too many TLS key updates or renegotiations"
    case .tooManySmallRecords: "too many small TLS records"
    case .longHandshake: "its TLS handshake is too long"
    case .unreadAnswers: "answers of TLS are not read"
    case .internal: "TLS failed inside OpenSSL"
    case let failure where failure.isCertificate:
      unsafe "certificate refused: "
        + String(cString: X509_verify_cert_error_string(Int(failure.code - TLSFailure.firstCertificateCode)))
    case let failure:
      unsafe "TLS: " + (hub_ssl_reason(failure.code).map { unsafe String(cString: $0) } ?? "error \(failure.code)")
    }
  }
}

/// OpenSSL's text for the oldest error of this thread's queue, which is emptied.
func takeErrorText() -> String {
  let error = ERR_get_error()
  defer { ERR_clear_error() }
  return unsafe ERR_reason_error_string(error).map { unsafe String(cString: $0) } ?? "unknown error"
}
