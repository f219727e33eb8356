// Whom a client trusts, what a server takes for a certificate, and sessions that are resumed.

import CHubOpenSSL
import HubTestCertificates
import Testing

@testable import HubTransport

@Suite struct `TLS certificates` {
  @Test(arguments: [
    (["localhost"], "localhost", true), (["localhost"], "127.0.0.1", false), (["127.0.0.1"], "127.0.0.1", true),
    (["127.0.0.1"], "localhost", false), (["::1"], "::1", true), (["127.0.0.2"], "127.0.0.1", false),
    (["*.hub.example"], "a.hub.example", true), (["*.hub.example"], "a.b.hub.example", false),
    (["a*.hub.example"], "ab.hub.example", false), (["other.example", "LOCALHOST"], "localhost", true),
  ])
  func `the host of the URL must be in the certificate`(hosts: [String], name: String, isTaken: Bool) throws {
    let pair = try Pair(tls: makeServer(hosts: hosts))
    let cause = try pair.refusal(TLSPeer(makeClient(), name: name))
    guard !isTaken else {
      #expect(cause == nil)
      return
    }
    guard case .tlsFailed(let failure) = cause else {
      Issue.record("taken")
      return
    }
    #expect(failure.isCertificate && failure.description.contains("mismatch"), "\(failure)")
    pair.turn(until: { pair.server.counters.tlsHandshakesFailed == 1 || pair.atServer.closed.count == 1 })
  }

  @Test func `another authority's certificate is refused, and the system's store does not know ours`() throws {
    let pair = try Pair(tls: makeServer())
    let other = try TLSClient(trusting: TestAuthority().pem)
    for client in [other, .system] {
      guard case .tlsFailed(let failure) = try pair.refusal(TLSPeer(client, name: "localhost")) else {
        Issue.record("taken")
        return
      }
      #expect(failure.isCertificate, "\(failure)")
    }
  }

  @Test func `a certificate whose time is over, or has not come, is refused by both ends`() throws {
    for (span, isOver) in [(-7200...(-3600), true), (3600...7200, false)] {
      let (certificate, key) = authority.issue(seconds: span)
      do throws(TLSError) {
        _ = try TLSServer([TLSCertificate(certificate: certificate, key: key)])
        Issue.record("taken")
      } catch {
        switch error {
        case .expired(let date): #expect(isOver && date.contains("GMT"))
        case .notYetValid(let date): #expect(!isOver && date.contains("GMT"))
        case let other: Issue.record("\(other)")
        }
      }
    }
    // A server that does not look: its certificate expires while it runs, which for the client is now.
    let server = try makeServer(seconds: -7200...1800)
    let pair = try Pair(tls: server)
    let client = try makeClient()
    let parameters = SSL_CTX_get0_param(client.context.raw)
    X509_VERIFY_PARAM_set_time(parameters, time(nil) + 3600)
    guard case .tlsFailed(let failure) = try pair.refusal(TLSPeer(client, name: "localhost")) else {
      Issue.record("taken")
      return
    }
    #expect(failure.description.contains("expired"))
  }

  @Test func `what is wrong with the files is said`() throws {
    let (certificate, key) = authority.issue()
    let (other, otherKey) = authority.issue()
    let rsa = authority.issue(kind: .rsa(bits: 2048))
    func error(_ certificate: [UInt8], _ key: [UInt8]) -> TLSError? {
      do throws(TLSError) {
        _ = try TLSServer([TLSCertificate(certificate: certificate, key: key)])
        return nil
      } catch { return error }
    }
    #expect(error(certificate, key) == nil && error(other, otherKey) == nil)
    #expect(error(rsa.certificate, rsa.key) == nil)
    #expect(error(certificate + authority.pem, key) == nil, "a chain")
    #expect(error([], key) == .noCertificate)
    #expect(error(Array("no PEM at all".utf8), key) == .noCertificate)
    #expect(error(key, certificate) == .noCertificate)
    #expect(error(certificate, []) == .noKey)
    #expect(error(certificate, certificate) == .noKey)
    #expect(error(certificate, otherKey) == .keyDoesNotFit)
    #expect(error(certificate, rsa.key) == .keyDoesNotFit)
    #expect(error(certificate, encryptedKey) == .encryptedKey)
    let damaged = certificate.map { $0 == UInt8(ascii: "M") ? UInt8(ascii: "!") : $0 }
    guard case .badCertificate = error(damaged, key) else {
      Issue.record("\(String(describing: error(damaged, key)))")
      return
    }
    let weak = authority.issue(kind: .rsa(bits: 1024))
    #expect(error(weak.certificate, weak.key) == .badCertificate("ee key too small"))
    for case let error? in [error([], []), error(certificate, []), error(certificate, otherKey)] {
      #expect(!error.description.isEmpty)
    }
    #expect(throws: TLSError.noCertificate) { try TLSClient(trusting: []) }
    #expect(throws: TLSError.noCertificate) { try TLSClient(trusting: key) }
  }

  /// The head of an encrypted key is enough to be asked for the password.
  private var encryptedKey: [UInt8] {
    guard let target = BIO_new(BIO_s_mem()), let key = newKey() else { return [] }
    defer {
      BIO_free(target)
      EVP_PKEY_free(key)
    }
    let password = Array("secret".utf8)
    guard PEM_write_bio_PrivateKey(target, key, EVP_aes_256_cbc(), password, Int32(password.count), nil, nil) == 1
    else {
      return []
    }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = BIO_read(target, &bytes, 4096)
    return Array(bytes.prefix(Int(count)))
  }

  private func newKey() -> OpaquePointer? {
    guard let context = EVP_PKEY_CTX_new_from_name(nil, "ED25519", nil) else { return nil }
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_generate(context, &key) == 1 else { return nil }
    return key
  }

  // MARK: Resumption

  @Test(arguments: tlsVersions, [true, false])
  func `the second handshake resumes the first's session, however that ended`(version: Int32, inOrder: Bool) throws {
    let server = try makeServer()
    let pair = try Pair(tls: server)
    let peer = TLSPeer(try makeClient(version), name: "localhost")
    for round in 1...3 {
      let (atClient, atServer) = try pair.connect(peer)
      // TLS 1.3's ticket comes behind the handshake: what comes behind it shows that it is there.
      pair.atServer.send([1], to: atServer)
      pair.turn(until: { pair.atClient.received[atClient] == [1] })
      #expect(pair.server.counters.tlsHandshakesResumed == UInt64(round - 1))
      #expect(pair.client.counters.tlsHandshakesResumed == UInt64(round - 1))
      #expect(!peer.hasSession, "it is used once")
      if inOrder { pair.client.close(atClient) } else { pair.client.abort(atClient, reset: true) }
      pair.turn(until: { pair.atClient.closed[atClient] != nil && pair.atServer.closed[atServer] != nil })
      #expect(peer.hasSession)
    }
  }

  @Test(arguments: tlsVersions)
  func `a new certificate is shown to newcomers, and tickets hold on`(version: Int32) throws {
    let server = try makeServer(hosts: ["localhost"])
    let pair = try Pair(tls: server)
    let client = try makeClient(version)
    let old = TLSPeer(client, name: "localhost")
    let (atClient, atServer) = try pair.connect(old)
    pair.atServer.send([1], to: atServer)
    pair.turn(until: { pair.atClient.received[atClient] == [1] })

    let (certificate, key) = authority.issue(for: ["hub.example"])
    #expect(throws: TLSError.noKey) { try server.replace([TLSCertificate(certificate: certificate, key: [])]) }
    #expect(try pair.refusal(TLSPeer(client, name: "hub.example")) != nil, "the old one is kept")
    try server.replace([TLSCertificate(certificate: certificate, key: key)])
    #expect(try pair.refusal(TLSPeer(client, name: "hub.example")) == nil)
    #expect(try pair.refusal(TLSPeer(client, name: "localhost")) != nil)

    pair.atClient.send([2], to: atClient)
    pair.turn(until: { pair.atServer.received[atServer] == [2] })
    pair.client.close(atClient)
    pair.turn(until: { pair.atClient.closed[atClient] != nil })
    let resumed = pair.server.counters.tlsHandshakesResumed
    #expect(try pair.refusal(old) == nil, "the old session continues")
    pair.turn(until: { pair.server.counters.tlsHandshakesResumed == resumed + 1 })
  }

  @Test func `another server's ticket is not taken, and the handshake is a whole one`() throws {
    let peer = TLSPeer(try makeClient(), name: "localhost")
    for _ in 0..<2 {
      let pair = try Pair(tls: makeServer())
      let (atClient, atServer) = try pair.connect(peer)
      pair.atServer.send([1], to: atServer)
      pair.turn(until: { pair.atClient.received[atClient] == [1] })
      #expect(pair.client.counters.tlsHandshakesResumed == 0)
      pair.client.close(atClient)
      pair.turn(until: { pair.atClient.closed[atClient] != nil })
    }
  }
}
