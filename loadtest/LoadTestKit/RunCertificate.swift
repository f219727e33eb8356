// A certificate for one run with TLS, in two files of the temporary folder until the hub has read them.
import Glibc
import HubCommandLine
import HubTestCertificates
import HubTransport

package struct RunCertificate {
  let authority = TestAuthority()
  let certificateFile: String
  let keyFile: String

  init() {
    let issued = authority.issue(for: ["localhost"])
    certificateFile = "/tmp/hub-loadtest-\(getpid())-cert.pem"
    keyFile = "/tmp/hub-loadtest-\(getpid())-key.pem"
    RunCertificate.write(issued.certificate, to: certificateFile)
    RunCertificate.write(issued.key, to: keyFile)
  }

  private static func write(_ bytes: [UInt8], to path: String) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_EXCL, 0o600)
    precondition(
      file >= 0 && bytes.withUnsafeBytes({ Glibc.write(file, $0.baseAddress, $0.count) }) == bytes.count,
      "cannot write \(path)")
    close(file)
  }

  func trust() throws(LoadTestError) -> ServerTrust {
    do throws(TLSError) {
      return ServerTrust(try TLSClient(trusting: authority.pem), name: "localhost")
    } catch {
      throw .failed("TLS: \(error)")
    }
  }

  func removeFiles() {
    unlink(certificateFile)
    unlink(keyFile)
  }
}
