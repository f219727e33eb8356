// TLS as a test speaks it: OpenSSL over memory, and a RawConnection under it. Nothing of Transport's TLS is used, so
// that a mistake there cannot hide itself.
import CHubOpenSSL
import Foundation

final class SecureConnection {
  let raw: RawConnection
  private let context: OpaquePointer
  private let ssl: OpaquePointer
  private let incoming: OpaquePointer
  private let outgoing: OpaquePointer

  /// Connects and shakes hands. The hub's certificate is not looked at here; tests ask for its names.
  init(port: UInt16) throws {
    raw = try RawConnection(port: port)
    context = SSL_CTX_new(TLS_client_method())
    ssl = SSL_new(context)
    incoming = BIO_new(BIO_s_mem())
    outgoing = BIO_new(BIO_s_mem())
    SSL_set_bio(ssl, incoming, outgoing)
    SSL_set_connect_state(ssl)
    try advance(waitingFor: "the TLS handshake") { SSL_do_handshake($0) }
  }

  deinit {
    SSL_free(ssl)
    SSL_CTX_free(context)
  }

  var version: String { String(cString: SSL_get_version(ssl)) }

  /// The names and addresses that the hub's certificate is for.
  func isCertified(for name: String) -> Bool {
    guard let certificate = SSL_get1_peer_certificate(ssl) else { return false }
    defer { X509_free(certificate) }
    return X509_check_host(certificate, name, name.utf8.count, 0, nil) == 1
  }

  func send(_ text: String) throws {
    let bytes = Array(text.utf8)
    try advance(waitingFor: "room to send") { SSL_write($0, bytes, Int32(bytes.count)) }
  }

  /// What comes next; empty at a goodbye.
  func receive() throws -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 16 * 1024)
    let count = try advance(waitingFor: "bytes over TLS") { SSL_read($0, &buffer, Int32(buffer.count)) }
    return Array(buffer[..<Int(max(0, count))])
  }

  /// A request with `Connection: close`; its complete answer, up to the goodbye.
  func get(_ target: String) throws -> String {
    try send("GET \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    var answer: [UInt8] = []
    while true {
      let more = try receive()
      if more.isEmpty { return String(decoding: answer, as: UTF8.self) }
      answer += more
    }
  }

  /// Metrics of a hub that speaks TLS.
  static func metrics(port: UInt16) throws -> Metrics {
    let page = try SecureConnection(port: port).get("/metrics")
    guard let body = page.range(of: "\r\n\r\n") else { throw PeerError.unexpected(page) }
    return try Metrics(String(page[body.upperBound...]))
  }

  /// Repeats a call of OpenSSL's, and brings bytes to and from the socket between, until it succeeds; 0 for a goodbye.
  @discardableResult
  private func advance(waitingFor what: String, _ body: (OpaquePointer) -> Int32) throws -> Int32 {
    let deadline = Deadline()
    while true {
      ERR_clear_error()
      let outcome = body(ssl)
      let error = SSL_get_error(ssl, outcome)
      try flush()
      if outcome > 0 { return outcome }
      switch error {
      case SSL_ERROR_WANT_READ:
        let bytes = try raw.receive(until: deadline, waitingFor: what)
        guard !bytes.isEmpty else { throw PeerError.ended(waitingFor: what) }
        _ = BIO_write(incoming, bytes, Int32(bytes.count))
      case SSL_ERROR_ZERO_RETURN: return 0
      default:
        let reason = ERR_reason_error_string(ERR_peek_error()).map { String(cString: $0) }
        throw PeerError.unexpected("TLS: \(reason ?? "error \(error)")")
      }
    }
  }

  private func flush() throws {
    var buffer = [UInt8](repeating: 0, count: 16 * 1024)
    while true {
      let count = BIO_read(outgoing, &buffer, Int32(buffer.count))
      if count <= 0 { return }
      try raw.send(Array(buffer[..<Int(count)]))
    }
  }
}
