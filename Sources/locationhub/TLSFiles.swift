// The settings of TLS, and the files that they name: read at the start, and again on SIGHUP.
import Glibc
import HubCommandLine
import HubGateway
import HubRuntime
import HubSystem
import HubTransport

extension ServeOptions {
  static let tls: [Setting<ServeOptions>] = [
    Setting(
      "tls-cert", "FILE",
      "speak TLS with this certificate (PEM), its chain behind it; of several the first is for clients that name no "
        + "host. FILE.ocsp beside it (an OCSP response) is stapled",
      mustBe: "a file", repeats: true
    ) { $0.tlsCertificates.add($1) },
    Setting(
      "tls-key", "FILE", "the certificate's private key (PEM, not encrypted), in the order of the certificates",
      mustBe: "a file", repeats: true
    ) { $0.tlsKeys.add($1) },
    Setting(
      "client-ca", \.clientAuthorities, .text, "FILE",
      "ask clients for a certificate that these authorities (PEM) have signed; they may come without"),
    Setting(
      "client-cert", "NAME=ROLE,ID", "who clients with a certificate for NAME are: DNS:api.example=ops,dispatch",
      mustBe: ClientCertificates.words, repeats: true
    ) { $0.server.clientCertificates.add($1) }.live(\.server.clientCertificates),
  ]
}

extension [String] {
  fileprivate mutating func add(_ file: String) -> Bool {
    append(file)
    return !file.isEmpty
  }
}

/// The files of `--tls-cert`, `--tls-key` and `--client-ca`.
struct TLSFiles {
  private let pairs: [(certificate: String, key: String)]
  private let authorities: String?

  /// Nil for plain HTTP. `hasClientIdentities`: `--client-cert` was given.
  init?(
    certificates: [String], keys: [String], authorities: String?, hasClientIdentities: Bool
  ) throws(CommandError) {
    guard certificates.count <= Limits.certificates else {
      throw .usage("--tls-cert may be given \(Limits.certificates) times at most")
    }
    guard keys.isEmpty == certificates.isEmpty else {
      throw keys.isEmpty
        ? .usage("--tls-cert needs its key: give --tls-key too")
        : .usage("--tls-key needs its certificate: give --tls-cert too")
    }
    guard certificates.count == keys.count else {
      throw .usage(
        "--tls-cert names \(certificates.count) files and --tls-key \(keys.count): each certificate needs its key; in "
          + "LHUB_TLS_CERT and LHUB_TLS_KEY a space begins another file")
    }
    guard (authorities == nil) == !hasClientIdentities else {
      throw hasClientIdentities
        ? .usage("--client-cert needs to know who signs those certificates: give --client-ca too")
        : .usage("--client-ca lets nobody in by itself: give --client-cert too")
    }
    guard !certificates.isEmpty else {
      if authorities != nil { throw .usage("--client-ca is about TLS: give --tls-cert too") }
      return nil
    }
    pairs = Array(zip(certificates, keys))
    self.authorities = authorities
  }

  func makeServer(ticketSecrets: [[UInt8]]) throws(CommandError) -> TLSServer {
    let (certificates, authorities) = try read()
    do throws(TLSError) {
      return try TLSServer(certificates, clientAuthorities: authorities, ticketSecrets: ticketSecrets)
    } catch {
      throw explained(error)
    }
  }

  private func replace(_ server: TLSServer) throws(CommandError) {
    let (certificates, authorities) = try read()
    do throws(TLSError) { try server.replace(certificates, clientAuthorities: authorities) } catch {
      throw explained(error)
    }
  }

  /// Reloads the files. Invalid ones change nothing: the hub continues with its present ones.
  func reload(_ tls: TLSServer, _ server: Server) {
    if server.reload(.tls, { () throws(CommandError) in try replace(tls) }) {
      server.log(.info, "tls_reloaded", ["certificate": pairs.map(\.certificate).joined(separator: ",")])
    }
  }

  private func read() throws(CommandError) -> ([TLSCertificate], [UInt8]?) {
    let certificates = try pairs.map { (pair) throws(CommandError) in
      let (certificate, key) = (try readBytes(pair.certificate), try readBytes(pair.key))
      let status = try readStatus(pair.certificate + ".ocsp")
      do throws(TLSError) { return try TLSCertificate(certificate: certificate, key: key, status: status) } catch {
        throw explained(error, pair)
      }
    }
    return (certificates, try authorities.map(readBytes))
  }

  /// The content of an OCSP response's file; nil where there is no such file.
  private func readStatus(_ file: String) throws(CommandError) -> [UInt8]? {
    do throws(SystemError) { return try readFile(file) } catch {
      if error.errno == ENOENT { return nil }
      throw .failed("cannot read \(file): \(error)")
    }
  }

  private func explained(_ error: TLSError, _ pair: (certificate: String, key: String)) -> CommandError {
    switch error {
    case .noCertificate, .badCertificate, .expired, .notYetValid:
      .failed("cannot use \(pair.certificate): \(error)")
    case .noKey, .badKey, .encryptedKey: .failed("cannot use \(pair.key): \(error)")
    case .keyDoesNotFit: .failed("cannot use \(pair.key) with \(pair.certificate): \(error)")
    case .badStatus: .failed("cannot use \(pair.certificate).ocsp: \(error)")
    }
  }

  /// What is wrong with the authorities.
  private func explained(_ error: TLSError) -> CommandError { .failed("cannot use \(authorities ?? ""): \(error)") }
}
