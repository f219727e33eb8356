// The files that `serve` speaks TLS with: read at the start, and again on SIGHUP.
import HubCommandLine
import HubGateway
import HubRuntime
import HubTransport

/// What `--tls-cert` and `--tls-key` name.
struct TLSFiles {
  private let certificateFile: String
  private let keyFile: String

  /// Nil where the hub is to speak plain HTTP.
  init?(certificate: String?, key: String?) throws(CommandError) {
    switch (certificate, key) {
    case (nil, nil): return nil
    case (_?, nil): throw .usage("--tls-cert needs its key: give --tls-key too")
    case (nil, _?): throw .usage("--tls-key needs its certificate: give --tls-cert too")
    case (let certificate?, let key?):
      certificateFile = certificate
      keyFile = key
    }
  }

  func makeServer() throws(CommandError) -> TLSServer {
    let (certificate, key) = (try readBytes(certificateFile), try readBytes(keyFile))
    do throws(TLSError) { return try TLSServer(certificate: certificate, key: key) } catch { throw explained(error) }
  }

  private func replace(_ server: TLSServer) throws(CommandError) {
    let (certificate, key) = (try readBytes(certificateFile), try readBytes(keyFile))
    do throws(TLSError) { try server.replace(certificate: certificate, key: key) } catch { throw explained(error) }
  }

  /// Reads the files again. Ones that can't be used change nothing: the hub goes on with what it has, and says so.
  func reload(_ tls: TLSServer, _ server: Server) {
    do throws(CommandError) {
      try replace(tls)
      server.noteReload(.tls, isSuccessful: true)
      server.log(.info, "tls_reloaded", ["certificate": certificateFile])
    } catch {
      server.noteReload(.tls, isSuccessful: false)
      server.log(.error, "tls_reload_failed", ["reason": "\(error)"])
    }
  }

  private func explained(_ error: TLSError) -> CommandError {
    switch error {
    case .noCertificate, .badCertificate, .expired, .notYetValid:
      .failed("cannot use \(certificateFile): \(error)")
    case .noKey, .badKey, .encryptedKey: .failed("cannot use \(keyFile): \(error)")
    case .keyDoesNotFit: .failed("cannot use \(keyFile) with \(certificateFile): \(error)")
    }
  }
}
