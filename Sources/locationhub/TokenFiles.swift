// The files that `serve` checks tokens with: read at the start, and again on SIGHUP.
import HubGateway
import HubTokens
import HubTransport

/// What `--token-keys` and the options beside it say; nil where no tokens are taken.
func tokenAccess(_ arguments: Arguments) throws(CommandError) -> TokenAccess? {
  guard let file = arguments.string("token-keys") else {
    for name in ["token-issuer", "token-audience", "revoked"] where arguments.string(name) != nil {
      throw .usage("--\(name) is about tokens: give --token-keys too")
    }
    return nil
  }
  let policy = TokenPolicy(issuer: arguments.string("token-issuer"), audience: arguments.string("token-audience"))
  let verifier = TokenVerifier(keys: try readKeys(file), policy: policy)
  guard let list = arguments.string("revoked") else { return TokenAccess(verifier: verifier) }
  let bytes = try readBytes(list)
  do throws(KeyError) {
    return TokenAccess(verifier: verifier, revoked: try RevocationList(parsing: bytes))
  } catch {
    throw .failed("cannot use \(list): \(error)")
  }
}

func readKeys(_ file: String) throws(CommandError) -> KeySet {
  let bytes = try readBytes(file)
  do throws(KeyError) { return try KeySet(parsing: bytes) } catch { throw .failed("cannot use \(file): \(error)") }
}

/// Reads the files again. One that can't be used changes nothing: the hub goes on with what it has, and says so.
func reloadTokens(_ server: Server, _ arguments: Arguments) {
  do throws(CommandError) {
    if let access = try tokenAccess(arguments) { server.replaceTokens(access) }
  } catch {
    server.log(.error, "reload_failed", ["reason": error.text])
  }
}
