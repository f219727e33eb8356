// Which of several certificates a client is shown, what a client's certificate says of it, and the status that is sent
// with a server's.

import CHubOpenSSL
import HubTestCertificates
import Testing

@testable import HubTransport

private func certificate(
  for hosts: [String], kind: TestAuthority.KeyKind = .p256, status: ([UInt8]) -> [UInt8]? = { _ in nil }
) throws -> TLSCertificate {
  let (certificate, key) = authority.issue(for: hosts, kind: kind)
  return try TLSCertificate(certificate: certificate, key: key, status: status(certificate))
}

/// A client with a certificate of this authority.
private func makeOwner(
  _ issuer: TestAuthority, names: [String], seconds: ClosedRange<Int> = -3600...86_400, usage: String = "clientAuth",
  chain: [TestAuthority] = []
) throws -> TLSClient {
  let client = try TLSClient(trusting: authority.pem)
  let (certificate, key) = issuer.issue(for: names, seconds: seconds, usage: usage)
  let (one, other) = (BIO_new_mem_buf(certificate, Int32(certificate.count)), BIO_new_mem_buf(key, Int32(key.count)))
  defer { for source in [one, other] { BIO_free(source) } }
  let (read, readKey) = (PEM_read_bio_X509(one, nil, nil, nil), PEM_read_bio_PrivateKey(other, nil, nil, nil))
  defer {
    X509_free(read)
    EVP_PKEY_free(readKey)
  }
  #expect(SSL_CTX_use_certificate(client.context.raw, read) == 1)
  #expect(SSL_CTX_use_PrivateKey(client.context.raw, readKey) == 1)
  for authority in chain {
    _ = try forEachCertificate(in: authority.pem) {
      #expect(SSL_CTX_ctrl(client.context.raw, SSL_CTRL_CHAIN_CERT, 0, UnsafeMutableRawPointer($0)) == 1)
    }
  }
  return client
}

@Suite struct TLSNamesTests {
  @Test func `each name gets its certificate, and one that none is for the first`() throws {
    let server = try TLSServer([
      certificate(for: ["first.example"]), certificate(for: ["a.example", "B.example"], kind: .rsa(bits: 2048)),
      certificate(for: ["*.c.example", "a.example"]),
    ])
    let pair = try Pair(tls: server)
    let client = try makeClient()
    for name in ["first.example", "a.example", "b.example", "x.c.example", "A.EXAMPLE", "a.example", "a.example."] {
      #expect(try pair.refusal(TLSPeer(client, name: name)) == nil, "\(name)")
    }
    for name in ["c.example", "x.y.c.example", "other.example", "127.0.0.1"] {
      guard case .tlsFailed(let failure) = try pair.refusal(TLSPeer(client, name: name)) else {
        Issue.record("\(name) was taken")
        continue
      }
      #expect(failure.isCertificate, "\(failure)")
    }
  }

  @Test(arguments: tlsVersions) func `sessions are resumed whichever certificate they began with`(version: Int32) throws
  {
    let pair = try Pair(tls: TLSServer([certificate(for: ["a.example"]), certificate(for: ["b.example"])]))
    let client = try makeClient(version)
    for name in ["a.example", "b.example"] {
      let peer = TLSPeer(client, name: name)
      let before = pair.server.counters.tlsHandshakesResumed
      for _ in 0..<2 {
        let (id, atServer) = try pair.connect(peer)
        pair.atServer.send([1], to: atServer)
        pair.turn(until: { pair.atClient.received[id]?.isEmpty == false })
        pair.client.close(id)
        pair.turn(until: { pair.atServer.closed[atServer] != nil && pair.atClient.closed[id] != nil })
      }
      #expect(pair.server.counters.tlsHandshakesResumed == before + 1, "\(name)")
    }
  }
}

@Suite struct ClientCertificateTests {
  private let issuer = TestAuthority(name: "of clients")

  private func makeServer(_ authorities: [UInt8]) throws -> TLSServer {
    try TLSServer([certificate(for: ["a.example"]), certificate(for: ["b.example"])], clientAuthorities: authorities)
  }

  private func visit(_ pair: Pair, _ peer: TLSPeer) throws -> PeerCertificate? {
    let (id, atServer) = try pair.connect(peer)
    let certificate = pair.server.peerCertificate(atServer)
    pair.atServer.send([1], to: atServer)  // behind the ticket
    pair.turn(until: { pair.atClient.received[id]?.isEmpty == false })
    pair.client.close(id)
    pair.turn(until: { pair.atServer.closed[atServer] != nil && pair.atClient.closed[id] != nil })
    #expect(pair.server.peerCertificate(atServer) == nil, "it is gone")
    return certificate
  }

  /// Whether the server does not take it. With TLS 1.3 a client learns that after its own handshake is done.
  private func isRefused(_ pair: Pair, _ client: TLSClient) throws -> Bool {
    let before = pair.server.counters.tlsHandshakesFailed
    let handshakes = pair.server.counters.tlsHandshakes
    let id = try pair.client.connect(pair.address, tls: TLSPeer(client, name: "a.example"))
    pair.turn(until: {
      pair.server.counters.tlsHandshakes > handshakes || pair.server.counters.tlsHandshakesFailed > before
    })
    pair.client.close(id)
    return pair.server.counters.tlsHandshakesFailed > before
  }

  @Test(arguments: ["a.example", "b.example"]) func `its names come, resumed or not`(host: String) throws {
    let pair = try Pair(tls: makeServer(issuer.pem))
    let names = ["Api.example", "spiffe://acme/dispatch", "127.0.0.1"]
    let peer = TLSPeer(try makeOwner(issuer, names: names), name: host)
    for number in 0..<3 {
      let shown = try visit(pair, peer)
      #expect(shown?.names == ["DNS:api.example", "URI:spiffe://acme/dispatch"])
      #expect(shown.map { $0.notAfter > time(nil) + 80_000 } == true)
      #expect(pair.server.counters.tlsHandshakesResumed == UInt64(number))
    }
    #expect(try visit(pair, TLSPeer(makeClient(), name: host)) == nil, "without one")
  }

  @Test func `others' are refused, and who is not asked shows none`() throws {
    let pair = try Pair(tls: makeServer(issuer.pem))
    let stranger = TestAuthority(name: "of clients")  // of the same name, with another key
    #expect(try isRefused(pair, makeOwner(stranger, names: ["api.example"])))
    #expect(try isRefused(pair, makeOwner(issuer, names: ["api.example"], seconds: -7200...(-3600))))
    #expect(try isRefused(pair, makeOwner(issuer, names: ["api.example"], usage: "serverAuth")))
    let long = (0..<600).map { "spiffe://acme/a-long-name-of-some-service-\($0)" }
    #expect(try isRefused(pair, makeOwner(issuer, names: long)), "more than 16 KiB of certificates")
    #expect(try !isRefused(pair, makeOwner(issuer, names: ["api.example"])))
    let open = try Pair(tls: TLSServer([certificate(for: ["a.example"])]))
    #expect(try visit(open, TLSPeer(makeOwner(issuer, names: ["api.example"]), name: "a.example")) == nil)
  }

  @Test(arguments: [(4, false), (5, true)])
  func `four authorities may be between a certificate and the one that is trusted`(count: Int, isRefused: Bool) throws {
    let pair = try Pair(tls: makeServer(issuer.pem))
    var chain: [TestAuthority] = []
    for number in 0..<count {
      chain.insert(TestAuthority(name: "between \(number)", signedBy: chain.first ?? issuer), at: 0)
    }
    let owner = try makeOwner(chain[0], names: ["api.example"], chain: chain)
    #expect(try self.isRefused(pair, owner) == isRefused)
  }

  @Test func `a session does not outlive the authority that has let it in`() throws {
    let server = try makeServer(issuer.pem)
    let pair = try Pair(tls: server)
    let client = try makeOwner(issuer, names: ["api.example"])
    let peer = TLSPeer(client, name: "a.example")
    #expect(try visit(pair, peer) != nil)
    try server.replace([certificate(for: ["a.example"])], clientAuthorities: issuer.pem)
    #expect(try visit(pair, peer) != nil)
    #expect(pair.server.counters.tlsHandshakesResumed == 1, "over a reload with the same authorities")
    try server.replace([certificate(for: ["a.example"])], clientAuthorities: TestAuthority().pem)
    #expect(peer.hasSession)
    #expect(try isRefused(pair, client))
    #expect(pair.server.counters.tlsHandshakesResumed == 1)
  }

  @Test func `files without authorities are refused`() throws {
    let own = try certificate(for: ["a.example"])
    #expect(throws: TLSError.noCertificate) { _ = try TLSServer([own], clientAuthorities: []) }
  }
}

@Suite struct StatusTests {
  /// What a client gets that asks.
  private func stapled(_ certificate: TLSCertificate) throws -> [UInt8]? {
    let pair = try Pair(tls: TLSServer([certificate]))
    let client = try makeClient()
    SSL_CTX_ctrl(client.context.raw, SSL_CTRL_SET_TLSEXT_STATUS_REQ_TYPE, Int(TLSEXT_STATUSTYPE_ocsp), nil)
    let (id, _) = try pair.connect(TLSPeer(client, name: "a.example"))
    var bytes: UnsafePointer<UInt8>?
    let ssl = pair.client.tls.pointer(id.slot).pointee.ssl
    let count = withUnsafeMutablePointer(to: &bytes) {
      SSL_ctrl(ssl, SSL_CTRL_GET_TLSEXT_STATUS_REQ_OCSP_RESP, 0, $0)
    }
    return count > 0 ? Array(UnsafeBufferPointer(start: bytes, count: count)) : nil
  }

  @Test func `it is sent to who asks, while it holds`() throws {
    var sent: [UInt8] = []
    let current = try certificate(for: ["a.example"]) {
      sent = authority.status(of: $0, seconds: -60...3600)
      return sent
    }
    #expect(try stapled(current) == sent)
    #expect(try stapled(certificate(for: ["a.example"])) == nil, "there is none")
    let old = try certificate(for: ["a.example"]) { authority.status(of: $0, seconds: -7200...(-3600)) }
    #expect(try stapled(old) == nil)
  }

  @Test func `what is no status of a good certificate is refused`() throws {
    for status in [[], [1, 2, 3], Array("no DER".utf8)] as [[UInt8]] {
      do throws(TLSError) {
        let (certificate, key) = authority.issue(for: ["a.example"])
        _ = try TLSCertificate(certificate: certificate, key: key, status: status)
        Issue.record("taken")
      } catch {
        guard case .badStatus = error else {
          Issue.record("\(error)")
          continue
        }
      }
    }
    let (certificate, key) = authority.issue(for: ["a.example"])
    let revoked = authority.status(of: certificate, isGood: false, seconds: -60...3600)
    let renewed = authority.issue(for: ["a.example"])
    let stale = authority.status(of: certificate, seconds: -60...3600)
    #expect(throws: TLSError.badStatus("it is of another certificate")) {
      _ = try TLSCertificate(certificate: renewed.certificate, key: renewed.key, status: stale)
    }
    #expect(throws: TLSError.badStatus("it does not say that the certificate is good")) {
      _ = try TLSCertificate(certificate: certificate, key: key, status: revoked)
    }
  }
}
