// A certificate for one run with TLS, in two files of a folder of its own until the hub has read them.
import Glibc
import HubCommandLine
import HubTestCertificates
import HubTransport

package struct RunCertificate {
  let authority = TestAuthority()
  private let folder: TemporaryFolder
  let certificateFile: String
  let keyFile: String

  init(in parent: String = "/tmp") throws(LoadTestError) {
    let issued = authority.issue(for: ["localhost"])
    // Nobody else can enter it, and it is gone with its owner.
    folder = try TemporaryFolder(in: parent)
    certificateFile = "\(folder.path)/cert.pem"
    keyFile = "\(folder.path)/key.pem"
    try write(String(decoding: issued.certificate, as: UTF8.self), to: certificateFile)
    try write(String(decoding: issued.key, as: UTF8.self), to: keyFile)
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
