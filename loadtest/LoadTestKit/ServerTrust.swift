// The load's side of TLS: whose certificates it trusts, and for which name the hub's must be.
import HubCommandLine
package import HubTransport

package struct ServerTrust: Sendable {
  package let client: TLSClient
  /// The host as in the URL: `localhost`, or a numeric address.
  package let name: String

  /// `authority`: a file of PEM with whom to trust; nil for whom this system trusts.
  package init(name: String, authority file: String?) throws(LoadTestError) {
    self.name = name
    guard let file else {
      client = .system
      return
    }
    let text = try readText(file)
    do throws(TLSError) {
      client = try TLSClient(trusting: Array(text.utf8))
    } catch {
      throw .failed("\(file) has no certificates to trust: \(error)")
    }
  }

  init(_ client: TLSClient, name: String) {
    self.client = client
    self.name = name
  }

  /// For one connection: sessions are not resumed, so that each costs the hub a full handshake.
  var peer: TLSPeer { TLSPeer(client, name: name) }
}
