// Whom certificates stand for: rows, and which of a certificate's names counts.
import HubCore
import HubHTTP
import HubMessages
import HubTokens
import HubTransport
import Testing

@testable import HubGateway

@Suite struct ClientCertificatesTests {
  private let now = Timestamp(milliseconds: 1_763_680_000_000)

  @Test(arguments: [
    "DNS:api.example = ops, dispatch", "URI:spiffe://acme/x?a=b = rider,r1", "email:a@b.example=driver , d-1",
    "DNS:API.example=ops,o",
  ])
  func `rows are read`(text: String) {
    var certificates = ClientCertificates()
    let isRow = certificates.add(text)
    #expect(isRow && !certificates.isEmpty)
    let isTwice = certificates.add(text)
    #expect(!isTwice, "a name stands for one identity")
  }

  @Test(arguments: [
    "", "=", "api.example = ops, dispatch", "DNS: = ops, dispatch", "DNS:a = ops", "DNS:a = admin, x", "DNS:a = ops, ",
    "DNS:a = ops, a b", "DNS:a = ops, x, y", "IP:127.0.0.1 = ops, x", "DNS:a",
  ])
  func `what is no row is refused`(text: String) {
    var certificates = ClientCertificates()
    let isRow = certificates.add(text)
    #expect(!isRow && certificates.isEmpty)
  }

  private func check(_ rows: [String], _ text: String = "", access: TokenAccess? = nil) throws -> (PeerCertificate?)
    throws -> Credential
  {
    var certificates = ClientCertificates()
    for row in rows {
      let isRow = certificates.add(row)
      #expect(isRow)
    }
    let check = CredentialCheck(
      access: access, generation: 0, developmentHosts: nil, certificates: certificates, now: now)
    var parser = RequestParser()
    let bytes = Array("GET /v1/drivers HTTP/1.1\r\nHost: localhost\r\n\(text)\r\n".utf8)
    let parsed = try bytes.withUnsafeBytes { try parser.parse($0, limits: HTTPLimits(headBytes: 4096, bodyBytes: 0)) }
    guard case .request(let head, _) = parsed else { throw HTTPError.malformedStartLine }
    return { certificate in
      var check = check
      return try check.credential(of: head, certificate)
    }
  }

  private func shown(_ names: String..., seconds: Int64 = 60) -> PeerCertificate {
    PeerCertificate(names: names, notAfter: now.milliseconds / 1000 + seconds)
  }

  @Test func `the first name that has an identity counts, until the certificate ends`() throws {
    let read = try check(["DNS:a.example = ops, one", "URI:spiffe://b = rider, two"])
    let first = try read(shown("DNS:other", "URI:spiffe://b", "DNS:a.example"))
    #expect(first.role == .rider && first.id == Identifier("two")!)
    #expect(first.expires == Timestamp(milliseconds: now.milliseconds + 60_000))
    #expect(first.authority == .token(nil))
    #expect(try read(shown("DNS:a.example")).role == .ops)
  }

  @Test func `a name without an identity, of another kind, or late, is nobody`() throws {
    let read = try check(["DNS:a.example = ops, one"])
    for certificate in [
      shown("DNS:b.example"), shown("URI:a.example"), shown("DNS:a.example\0.evil"), shown(),
      shown("DNS:a.example", seconds: 0),
    ] {
      #expect(throws: CredentialError.self) { _ = try read(certificate) }
    }
    #expect(throws: CredentialError.self) { _ = try read(nil) }
  }

  @Test func `a proxy's certificate stands for nobody behind it`() throws {
    for mark in ["X-Forwarded-For: 203.0.113.9", "Via: 1.1 proxy", "Forwarded: for=203.0.113.9"] {
      let read = try check(["DNS:a.example = ops, one"], mark + "\r\n")
      #expect(throws: CredentialError.self) { _ = try read(shown("DNS:a.example")) }
    }
  }

  @Test func `a token counts before it, and a revoked identity is refused`() throws {
    let key = try KeySet(parsing: Array("a secret that is 32 bytes long or more".utf8))
    let access = TokenAccess(
      verifier: TokenVerifier(keys: key, policy: TokenPolicy()),
      revoked: try RevocationList(parsing: Array("gone\n".utf8)))
    let rows = ["DNS:a.example = ops, one", "DNS:g.example = ops, gone"]
    let read = try check(rows, access: access)
    #expect(try read(shown("DNS:a.example")).id == Identifier("one")!)
    #expect(throws: CredentialError.self) { _ = try read(shown("DNS:g.example")) }
    let withToken = try check(rows, "Authorization: Bearer x.y.z\r\n", access: access)
    #expect(throws: CredentialError.self) { _ = try withToken(shown("DNS:a.example")) }
  }
}
